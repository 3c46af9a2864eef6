"""What a frame of any library holds, cell by cell."""

import subprocess
import sys

import numpy as np
import pytest

from nearkin import TableEncoder
from nearkin.tables import Cells, Text, features_of
from nearkin.tables.cells import numbered_names

pd = pytest.importorskip("pandas")


def frame_of(cells):
    return pd.DataFrame({"x": list(cells), "other": np.arange(len(cells)) % 2 + 0.5})


# What a frame holds.


def test_names_that_occur_twice_are_numbered_as_pandas_does():
    assert numbered_names(["a", "b", "a", "a.1", "a"]) == ["a", "b", "a.2", "a.1", "a.3"]
    frame = pd.DataFrame([[1.0, 5.0], [2.0, 7.0], [3.0, 6.0]], columns=["a", "a"])
    assert TableEncoder(drop_identifiers=False).fit(frame).get_feature_names_out().tolist() == [
        "a",
        "a.1",
    ]


def test_other_objects_are_text():
    frame = frame_of([["a", "b"], ["a"], {"k": 1}, None] * 5)
    encoder = TableEncoder("keep").fit(frame)
    assert [f.level for f in features_of(encoder) if f.is_level] == [
        "a",
        "a, b",
        "{'k': 1}",
        "(missing)",
    ]
    with pytest.raises(TypeError, match="an argument must be a string, a number"):
        TableEncoder("keep", strict=True).fit(frame)


def test_numbers_stay_in_their_memory():
    X = np.random.default_rng(0).normal(size=(50, 4))
    names = list("abcd")
    encoder = TableEncoder(missing="keep").fit(Cells(names, X, names, {}))
    assert np.shares_memory(encoder.transform(Cells(names, X, names, {})), X)
    words = {"w": Text(["u", "v"], np.arange(50) % 2)}
    encoder = TableEncoder(missing="keep").fit(Cells([*names, "w"], X.copy(), names, words))
    np.testing.assert_array_equal(
        encoder.transform(Cells([*names, "w"], X.copy(), names, words)),
        np.column_stack([X, np.arange(50) % 2 == 0, np.arange(50) % 2]),
    )


@pytest.mark.long  # a process of its own
def test_arrays_of_numbers_need_no_pandas():
    code = (
        "import sys; sys.modules['pandas'] = None; import numpy as np; from nearkin import "
        "TableEncoder; "
    )
    code += "print(TableEncoder().fit_transform(np.eye(3)).sum())"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "3.0\n"
    )
