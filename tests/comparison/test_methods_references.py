"""References learn from columns of many categories what a user would let them learn."""

import numpy as np
import pytest

from nearkin.comparison import compare
from nearkin.comparison.table import many_categories, raw_columns
from nearkin.tables import TableEncoder
from nearkin.tables.cells import read_cells

pd = pytest.importorskip("pandas")

FEW = {"methods": [], "n_splits": 2, "n_repeats": 1, "refit": False}
TREES = ("random forest", "gradient boosting")


def stores(n_stores, n=1200, seed=0):
    """Return sales of stores that have an effect each, as codes without an order."""
    rng = np.random.default_rng(seed)
    store, size, effect = (
        rng.integers(n_stores, size=n),
        rng.normal(size=n),
        rng.normal(size=n_stores),
    )
    frame = pd.DataFrame({"store": [f"s{code:03}" for code in store], "size": size})
    return frame, 2 * effect[store] + size + 0.3 * rng.normal(size=n)


@pytest.mark.long
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_they_see_every_value_of_a_column(task):
    X, y = stores(60)
    y = y > 0 if task == "classification" else y
    linear = {"classification": "logistic regression", "regression": "ridge regression"}[task]
    found = {one.name: one for one in compare(X, y, task=task, n_jobs=1, **FEW).references}
    assert found[linear].score.mean() > 0.87
    assert all(found[name].score.mean() > 0.8 for name in TREES)
    assert not any(one.warnings for one in found.values())


def test_columns_of_many_values_with_their_indicators():
    frame, _ = stores(60)
    frame["kind"] = np.arange(1200) % 3
    frame = frame.astype({"kind": "category", "store": "category"})
    frame.loc[5, "store"] = None
    encoder = TableEncoder().fit(frame)
    found = many_categories(encoder, raw_columns(encoder, read_cells(frame, strict=False)))
    names = encoder.get_feature_names_out()
    assert [name for name in names if name.startswith("store=")] == names[found.indicators].tolist()
    assert found.codes.shape == (1200, 1)
    assert len(np.unique(found.codes)) == 61
    same = frame["store"].eq(frame["store"].iloc[0]).to_numpy()
    assert len({*found.codes[same, 0]}) == 1
    few = frame[["kind", "size"]].assign(name=[f"text {at}" for at in range(600)] * 2)
    few.loc[0, "name"] = "another"
    encoder = TableEncoder().fit(few)
    cells = read_cells(few, strict=False)
    assert many_categories(encoder, raw_columns(encoder, cells)) is None


@pytest.mark.long
def test_rare_classes_values_and_weights():
    X, y = stores(150, n=300)
    labels = np.array(["few", "some", "many"])[np.digitize(y, np.quantile(y, [0.015, 0.3]))]
    weights = np.where(np.arange(300) % 7, 1.0, 0.0)
    found = compare(X, labels, sample_weight=weights, n_jobs=1, **FEW)
    assert [one.name for one in found.references if one.name in TREES]
    assert not any(one.warnings for one in found.references if one.name in TREES)
