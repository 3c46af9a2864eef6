"""What a ranking says of warnings: each cause once, in words for an analyst."""

from pathlib import Path

import numpy as np
import pytest

import nearkin
from nearkin import DNE, LDE, MFA, NMMP
from nearkin.app.tables.words import MEANINGS, Summary, warning_notes
from nearkin.comparison import Method, compare
from nearkin.spectral import SpectralStatus

FLAT = SpectralStatus.FLAT.value


def test_a_cause_is_said_once_whatever_the_method_and_the_figures():
    lines = list(
        warning_notes(
            {
                "NMMP": {FLAT: 20, "a residual of 1.2e-05 after 3 steps": 1},
                "MFA": {FLAT: 15, "a residual of 7.5e-04 after 12 steps": 2},
                "PCA": {},
            }
        )
    )
    assert len(lines) == 2
    assert lines[0].startswith(
        "NMMP, MFA (35 fits) found no direction in which neighbours of different classes differ"
    )
    assert lines[1] == "NMMP, MFA (3 fits) warned: a residual of 1.2e-05 after 3 steps."


@pytest.mark.parametrize("start", [start for start, meaning in MEANINGS.items() if meaning])
def test_no_line_is_a_formula_or_a_remedy_that_the_command_does_not_have(start):
    (line,) = warning_notes({"NMMP": {f"{start} and so on": 1}})
    assert line.startswith("NMMP (1 fit) ")
    assert "No action is needed" in line
    assert not any(
        word in line for word in ("V'AV", "n_neighbors", "max_iter", "objective", "KernelPCA")
    )


def test_meanings_begin_as_warnings_of_the_library_do():
    source = "".join(
        path.read_text(encoding="utf-8") for path in Path(nearkin.__file__).parent.rglob("*.py")
    )
    for start in MEANINGS:
        assert source.count(f'"{start}') >= 2, start  # here, and where it is warned


@pytest.mark.long
def test_of_features_that_repeat_others_nothing_is_said():
    """A sum beside its parts, up to the last digits: the map does without it, and there is nothing
    to do.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] > 0).astype(int)
    X = np.column_stack([X, X[:, 0] + 1e-11 * rng.normal(size=120)])
    with pytest.warns(UserWarning, match="1 direction, which was dropped"):
        NMMP(2).fit(X, y)
    methods = [Method(cls.__name__, cls(2), nested=False) for cls in (DNE, LDE, NMMP)]
    found = compare(
        X, y, methods=methods, references=[], n_splits=3, n_repeats=1, n_neighbors=3, refit=False
    )
    assert [line for line in Summary(found).notes if "direction" in line] == []


@pytest.mark.slow
def test_warnings_of_settings_that_were_not_taken_are_not_counted():
    """One map a fold is scored; what the inner folds try and leave does not matter to the ranking."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    method = Method("DNE", DNE(), nested=False)
    found = compare(
        X, np.arange(150) % 5, methods=[method], references=[], n_splits=3, n_repeats=1, refit=False
    )
    assert sum(found["DNE"].warnings.values()) <= 3


@pytest.mark.slow
def test_lines_of_a_comparison():
    """Two classes far apart: no row has a neighbour of the other class that differs in a tried
    direction.
    """
    X = np.random.default_rng(0).normal(size=(90, 2))
    methods = [Method("DNE", DNE(), nested=False), Method("MFA", MFA(1), nested=False)]
    found = compare(
        X, np.arange(90) % 5, methods=methods, references=[], n_splits=3, n_repeats=1, refit=False
    )
    lines = [line for line in Summary(found).notes if line.startswith("DNE (")]
    assert len(lines) == 1
    assert "No action is needed" in lines[0]
