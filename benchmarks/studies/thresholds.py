"""How often does a threshold of `nearkin adapt` break its promise? The vectors are chosen, and their
threshold is set, by the same held-out queries.

Seven classes are Gaussians with means that differ in eight of sixteen dimensions, drawn anew in every
draw. Ways are compared and one is chosen, as the command does, but with a single setting and short
fits. A promise is broken if, of the matches of 8,000 new queries by the maps and among the
candidates of the four splits, fewer are right than promised. Beside it stands an adapter that is the
same in all draws, whatever its scores. Prints Markdown: the percentage of draws in which a precision
is promised, and in which the promise is broken, with its 95 % interval.

    python -m benchmarks.studies.thresholds [--draws 120]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from scipy.stats import binomtest

from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin._blocks import unit_rows
from nearkin.vectors import Labels, compare_vectors
from nearkin.vectors import comparison as adaptation
from nearkin.vectors.matching import OF_PAIRS, PrecisionCurve

PRECISIONS = (0.85, 0.9, 0.95)
CLASSES, ROWS, QUERIES, P, INFORMATIVE, SD = 7, 300, 8000, 16, 8, 0.65
SIZES, FIXED = (5, 6, 7, 8), "adapter 8"


def drawn(rng):
    """Return labelled rows, and new queries from the same classes."""
    y = np.arange(ROWS + QUERIES) % CLASSES
    informative = np.arange(P) < INFORMATIVE
    X = rng.normal(size=(CLASSES, P))[y] * informative
    X += np.where(informative, SD, 1.0) * rng.normal(size=X.shape)
    known = np.arange(ROWS)
    X = X.astype(np.float32)
    return Labels(X[:ROWS], y[:ROWS], known), Labels(X, y, np.arange(len(y)))


def new_matches(found, way, every):
    """Return the cosine of the best candidate of every new query in each split, and whether it is
    right.
    """
    cosines, right = [], []
    for place, (split, _) in enumerate(found.held_out(way)):
        adapter = None
        if way.is_adapted:
            adapter = found.adapter(way.uncoded, split.train)
        queries = np.arange(ROWS + place, ROWS + QUERIES, 4)
        vectors = adaptation.vectors_of(way, replace(split, queries=queries), every, adapter)
        S = unit_rows(vectors.queries) @ unit_rows(vectors.candidates).T
        cosines.append(S.max(axis=1))
        right.append(every.y[split.candidates[S.argmax(axis=1)]] == every.y[queries])
    return np.concatenate(cosines), np.concatenate(right)


def draw(seed):
    """Return the chosen way, and (given, broken) for every way and precision."""
    known, every = drawn(np.random.default_rng(seed))
    found = compare_vectors(known, sizes=SIZES, random_state=seed)
    fixed = next(one for one in found.results if one.way.name == FIXED)
    outcomes = []
    for way in (found.chosen.way, fixed.way):
        lists = found.held_out_lists(way)
        curve = PrecisionCurve.of(lists.matches(OF_PAIRS, 0.0, list(lists.units)))
        cosines, right = new_matches(found, way, every)
        promises = [curve.promise(precision) for precision in PRECISIONS]
        outcomes.append(
            [
                (True, right[cosines >= promise.threshold].mean() < promise.precision)
                if promise
                else (False, False)
                for promise in promises
            ]
        )
    return found.chosen.way.name, outcomes


def thresholds(draws=120):
    """Print how often a precision is promised, and how often the promise is broken."""
    adaptation.SETTINGS[:] = [adaptation.SETTINGS[0] | {"max_iter": 1}]
    adaptation.CHOICE_QUERIES = 1
    names, outcomes = zip(*map(draw, range(draws)), strict=True)
    print("Chosen:", ", ".join(f"{name} {count}" for name, count in Counter(names).most_common()))
    head("promised, %", "chosen: given", "broken", f"{FIXED}: given", "broken")
    for place, precision in enumerate(PRECISIONS):
        cells = []
        for of_way in zip(*outcomes, strict=True):
            given, broken = np.array([of_draw[place] for of_draw in of_way]).T
            low, high = binomtest(int(broken.sum()), draws).proportion_ci()
            interval = f"({100 * low:.1f} to {100 * high:.1f})"
            cells += [f"{100 * given.mean():.0f}", f"{100 * broken.mean():.1f} {interval}"]
        row(f"{100 * precision:.0f}", *cells)


if __name__ == "__main__":
    command(thresholds)
