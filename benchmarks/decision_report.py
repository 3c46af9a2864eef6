"""The document of decisions.py, from the lines that it stored, and what both have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rankings import p_text, ranks, signed_rank, table
from table_methods import BOOSTING, FOREST, OURS

from nearkin.evaluation import holm

COVERAGE, LEAST_COVERAGE, MANY_ROWS = 0.9, 0.85, 300
LEVELS = np.arange(1, 20) / 20
OURS_EMPTY = f"{OURS}, empty allowed"
MAPIE = f"{FOREST} + MAPIE"
QUANTILE_FOREST, QUANTILE_BOOSTING = "quantile-forest", f"{BOOSTING}, quantiles"
FLIPPED = (5, 10, 20)  # percent of the labels
CLEANLAB_MODELS = {
    f"cleanlab, {name}": model
    for name, model in (
        (FOREST, FOREST),
        ("logistic regression", "linear"),
        (BOOSTING, BOOSTING),
    )
}
N_DRIFT_FITS, DRIFT_DRAWS = 10, 20
# seconds of the processor and MB that the project has set itself; predictions are of 1,000 rows
FIT_LIMITS, PREDICT_LIMIT, MEMORY_LIMIT = {1000: 2, 20_000: 40, 200_000: 300}, 2, 2000

HEAD = f"""\
# Decisions: sets, intervals, labels, drift

What `NCAClassifier` and `NCARegressor` ("{OURS}") say beside the label, against packages that people use for it. The
tables and their halves are those of [Tables](tables.md); all methods have their defaults. Written by the commands at the
end, nothing by hand. A p-value is that of Wilcoxon's signed-rank test over the tables, by Holm's correction for the
rivals in the table."""

HALVES = {
    "held-out": "## Tables on which nothing was chosen",
    "development": "## Tables on which settings were chosen\n\nThese support no claim.",
}
SETS = f"""\
### Sets of labels

`NCAClassifier.predict_set(X, coverage={COVERAGE})` against split-conformal sets of MAPIE with a {FOREST} that gives a
fifth of the training rows to the calibration (score "lac", the default; the others refuse two classes). A set of MAPIE may
be empty, ours only with `allow_empty=True`; as a decision needs a label, sizes are compared a second time with each empty
set counted as one label. Five stratified folds, each row is tested once; of tables with more than 2,000 rows one fold. A good
set covers the true label in {100 * COVERAGE:.0f} % of the rows, and is small."""
INTERVALS = f"""\
### Intervals and quantiles

`NCARegressor.predict_quantiles` at the levels .05, .10, ..., .95 and `predict_interval(X, coverage={COVERAGE})` against
RandomForestQuantileRegressor of quantile-forest and HistGradientBoostingRegressor(loss="quantile"), fitted once for each
level; their interval lies between the levels .05 and .95. Folds as above. Pinball loss and width are in standard
deviations of the target; level error is the mean distance between a level and the share of rows below its quantile. A
width says little where the coverage is another."""
LABELS = """\
### Labels that are wrong

Of at most 1,000 rows of each table a fifth is kept for testing. In the others 5, 10 or 20 % of the labels are replaced by
another class at random. `label_issues` ranks them, and cleanlab with probabilities of five folds. Average precision: of
the ranking, over the replaced labels. Then what a method flags (`n_issues` rows, or `find_label_issues`) is dropped, and a
random forest trained on the rest and tested on the rows kept aside, whose labels are right; against dropping as many rows
at random (mean of three draws)."""
MORE = (
    "Beside the tables of this half, five sets that came with the papers, so that there are twenty."
)
UNKNOWN = """\
### Rows of a class that was left out

The three most frequent classes of each table are left out of the training rows, one after the other. AUROC of
1 - `familiarity(X)` on a fifth of the other rows and all of the class, against KNN and IForest of pyod (one-hot,
standardized). Where a class lies among the others, nothing can find it (.5)."""
DRIFT = f"""\
### Drift

`model.drift(X)` on 2,000 rows, of a model of 2,000 others of the same table: {N_DRIFT_FITS} fits and {DRIFT_DRAWS} tables
for each, first as they are drawn, then with one column of numbers (drawn, too) moved by half its standard deviation. The
test has a level of 5 %. "synthetic": ten columns and three classes of `make_classification`."""
COST = """\
### Time and memory

One thread, a process of its own; 20 columns of `make_classification` (three classes) or `make_regression`. Seconds are
those of the processor; memory is by how much the process grew, the table included."""

RUN = "NEARKIN_DATA=folder python benchmarks/decisions.py"


def document(lines: Sequence[dict[str, Any]]) -> str:
    frame = pd.DataFrame(lines).drop_duplicates(
        ["section", "half", "method", "table", "part"], keep="last"
    )
    parts = [HEAD]
    for half, title in HALVES.items():
        some = frame[frame["half"] == half]
        if len(some):
            parts += [title]
            for name, text in SECTIONS.items():
                part = some[some["section"] == name]
                done = part[part["status"] == "ok"].dropna(axis=1, how="all")
                if len(done):
                    parts += text(done)
                parts += missing(part)
    return "\n\n".join([*parts, end_text(frame)])


def complete(done: pd.DataFrame) -> pd.DataFrame:
    """Return what all methods have: the same folds, shares or classes of a table."""
    n_methods = done["method"].nunique()
    return done[done.groupby(["table", "part"])["method"].transform("nunique") == n_methods]


def missing(part: pd.DataFrame) -> list[str]:
    failed = part[part["status"] != "ok"].groupby(["method", "table", "status"]).size()
    lines = [
        f"- {method}, {name}, {n} times: {status}" for (method, name, status), n in failed.items()
    ]
    return ["\n".join(["Failed, and left out:", "", *lines])] if lines else []


def sums(done: pd.DataFrame, keys: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return means over rows of what was summed: tables by methods."""
    added = done.groupby(["table", "method"])[["rows", *keys]].sum()
    means = {key: (added[key] / added["rows"]).unstack() for key in keys}
    return {key: values[ours_first(values)] for key, values in means.items()}


def ours_first(names: Any) -> list[str]:
    return sorted(names, key=lambda name: name != OURS)


def against(values: pd.DataFrame, sign: int, ours: str = OURS) -> dict[str, str]:
    """Return the p-values of differences to ours, by Holm."""
    rivals = [name for name in values if name != ours]
    if ours not in values or not rivals:
        return {}
    tests = holm([signed_rank(sign * (values[ours] - values[name]).to_numpy()) for name in rivals])
    return dict(zip(rivals, map(p_text, tests), strict=True))


def mean_ranks(values: pd.DataFrame, sign: int) -> dict[str, float]:
    return dict(zip(values, ranks(sign * values.to_numpy()), strict=True))


def sets_text(done: pd.DataFrame) -> list[str]:
    done = complete(done)
    ours = done[done["method"] == OURS]
    allowed = pd.DataFrame(list(ours.get("empty_allowed", [])), ours.index)
    done = pd.concat([done, ours.assign(method=OURS_EMPTY, **allowed)])
    found = sums(done, ["covered", "size", "empty"])
    n_rows = done.groupby(["table", "method"])["rows"].sum().unstack().max(axis=1)
    covered, size = found["covered"], found["size"]
    compared = [
        (values[[name for name in (one, MAPIE) if name in values]], one)
        for values, one in ((size, OURS_EMPTY), (size + found["empty"], OURS))
    ]
    cells: dict[str, list[str]] = {name: [] for name in size}
    for values, one in compared:
        places, tests = mean_ranks(values, -1), against(values, -1, one)
        for name in size:
            cells[name] += [
                f"{values[name].mean():.2f}" if name in values else "",
                f"{places[name]:.2f}" if name in values else "",
                tests.get(name, ""),
            ]
    rows = [
        [
            name,
            *coverage_cells(covered[name], n_rows),
            f"{100 * found['empty'][name].mean():.1f} %",
            *cells[name],
        ]
        for name in size
    ]
    header = [
        text
        for _, one in compared
        for text in ("mean size" if one == OURS_EMPTY else "with empty as 1", "rank", "p")
    ]
    return [
        SETS,
        table(["method", *COVERAGE_HEADER, "empty", *header], rows),
        "Coverage and mean size (tested rows):",
        pair_table(covered, size, n_rows),
    ]


COVERAGE_HEADER = [
    "mean coverage",
    "least",
    f"tables with more than {MANY_ROWS} rows below {100 * LEAST_COVERAGE:.0f} %",
]


def coverage_cells(covered: pd.Series, n_rows: pd.Series) -> list[str]:
    low = covered[(covered < LEAST_COVERAGE) & (n_rows[covered.index] > MANY_ROWS)]
    return [
        f"{100 * covered.mean():.1f} %",
        f"{100 * covered.min():.1f} % ({covered.idxmin()})",
        ", ".join(f"{name} ({100 * value:.1f})" for name, value in low.items()) or "none",
    ]


def pair_table(covered: pd.DataFrame, size: pd.DataFrame, n_rows: pd.Series) -> str:
    rows = [
        [
            f"{name} ({n_rows[name]:,.0f})",
            *(f"{100 * covered.loc[name, m]:.1f} %, {size.loc[name, m]:.3f}" for m in size),
        ]
        for name in size.index
    ]
    return table(["table", *size], rows)


def intervals_text(done: pd.DataFrame) -> list[str]:
    done = complete(done)
    found = sums(done, ["covered", "width", "pinball"])
    n_rows = done.groupby(["table", "method"])["rows"].sum().unstack().max(axis=1)
    pinball = found["pinball"]
    places, widths = mean_ranks(pinball, -1), mean_ranks(found["width"], -1)
    tests = against(pinball, -1)
    rows = [
        [
            name,
            f"{pinball[name].mean():.4f}",
            f"{places[name]:.2f}",
            tests.get(name, ""),
            f"{100 * level_error(done[done['method'] == name], pinball.index):.1f} %",
            *coverage_cells(found["covered"][name], n_rows),
            f"{found['width'][name].mean():.2f}",
            f"{widths[name]:.2f}",
        ]
        for name in pinball
    ]
    header = ["mean pinball loss", "rank", "p", "level error"]
    each = [
        [f"{name} ({n_rows[name]:,.0f})", *(f"{pinball.loc[name, m]:.4f}" for m in pinball)]
        for name in pinball.index
    ]
    return [
        INTERVALS,
        table(["method", *header, *COVERAGE_HEADER, "mean width", "rank, width"], rows),
        "Pinball loss (tested rows):",
        table(["table", *pinball], each),
        "Coverage and mean width of the interval:",
        pair_table(found["covered"], found["width"], n_rows),
    ]


def level_error(done: pd.DataFrame, tables: pd.Index) -> float:
    """Return the mean distance between levels and shares of rows below, over tables."""
    errors = []
    for name in tables:
        some = done[done["table"] == name]
        shares = np.sum([np.array(below) for below in some["below"]], axis=0) / some["rows"].sum()
        errors.append(np.abs(shares - LEVELS).mean())
    return float(np.mean(errors))


def labels_text(done: pd.DataFrame) -> list[str]:
    done, parts = complete(done), [LABELS]
    if len(set(done["table"])) >= 20:
        parts += [MORE]
    values = done.pivot_table(index=["table", "part"], columns="method", values="precision")
    values = values[ours_first(values)]
    by_table = values.groupby("table").mean()
    places, tests = mean_ranks(by_table, 1), against(by_table, 1)
    shares = sorted(set(done["part"]))
    rows = [
        [
            name,
            *(f"{values[name].xs(share, level='part').mean():.3f}" for share in shares),
            f"{values[name].mean():.3f}",
            f"{places[name]:.2f}",
            tests.get(name, ""),
            f"{done.loc[done['method'] == name, 'seconds'].median():.1f}",
        ]
        for name in values
    ]
    header = [f"{share} %" for share in shares]
    parts += [
        f"Mean average precision, {len(by_table)} tables:",
        table(["method", *header, "mean", "rank", "p", "median, s"], rows),
    ]
    rows = []
    for name in values:
        some = done[done["method"] == name]
        mean = some.groupby("table")[["all", "dropped", "at_random"]].mean()
        over = (mean["dropped"] - mean["at_random"]).to_numpy()
        hits = some["hits"].sum() / max(some["flagged"].sum(), 1)
        rows.append(
            [
                name,
                f"{100 * (some['flagged'] / some['rows']).mean():.1f} %",
                f"{100 * hits:.1f} %",
                *(f"{100 * mean[key].mean():.2f} %" for key in ("all", "dropped", "at_random")),
                p_text(signed_rank(over)),
            ]
        )
    header = ["flagged", "wrong among flagged", "accuracy, all rows", "flagged dropped"]
    parts += [
        "Dropping what is flagged (p: against as many at random, without correction):",
        table(["method", *header, "as many at random", "p"], rows),
        "Average precision, mean of the shares:",
        score_table(by_table),
    ]
    return parts


def score_table(values: pd.DataFrame) -> str:
    """Return a row a table, the best in bold."""
    rows = []
    for name, row in values.iterrows():
        best = f"{row.max():.3f}"
        cells = (f"{value:.3f}" for value in row)
        rows.append([name, *(f"**{text}**" if text == best else text for text in cells)])
    return table(["table", *values], rows)


def unknown_text(done: pd.DataFrame) -> list[str]:
    values = complete(done).groupby(["table", "method"])["auroc"].mean().unstack()
    values = values[ours_first(values)]
    places, tests = mean_ranks(values, 1), against(values, 1)
    rows = [
        [name, f"{values[name].mean():.3f}", f"{places[name]:.2f}", tests.get(name, "")]
        for name in values
    ]
    return [
        UNKNOWN,
        f"{len(values)} tables:",
        table(["method", "mean AUROC", "rank", "p"], rows),
        score_table(values),
    ]


def drift_text(done: pd.DataFrame) -> list[str]:
    added = done.groupby("table")[["draws", "alarms", "moved", "named"]].sum()
    rows = [
        [
            name,
            f"{row.draws:.0f}",
            *(f"{100 * row[key] / row.draws:.1f} %" for key in ("alarms", "moved", "named")),
        ]
        for name, row in added.iterrows()
    ]
    header = ["alarms without drift", "alarms, a column moved", "this column named"]
    return [DRIFT, table(["table", "draws", *header], rows)]


def cost_text(done: pd.DataFrame) -> list[str]:
    rows = []
    for _, line in done.sort_values(["method", "part"]).iterrows():
        limit = FIT_LIMITS[line.part]
        rows.append(
            [
                line.method,
                line.table,
                f"{line.fit:.1f}",
                limit,
                f"{line.predict:.2f}",
                PREDICT_LIMIT,
                f"{line.memory:,.0f}",
                f"{MEMORY_LIMIT:,}",
                f"{line.score:.3f}",
            ]
        )
    header = ["fit, s", "limit", "1,000 predictions, s", "limit", "memory, MB", "limit", "score"]
    return [COST, table(["estimator", "rows x columns", *header], rows)]


SECTIONS: dict[str, Callable[[pd.DataFrame], list[str]]] = {
    "sets": sets_text,
    "intervals": intervals_text,
    "labels": labels_text,
    "unknown": unknown_text,
    "drift": drift_text,
    "cost": cost_text,
}


def end_text(frame: pd.DataFrame) -> str:
    """Return the commands, versions and dates."""
    versions = sorted(
        {
            ", ".join(f"{name} {number}" for name, number in kept.items())
            for kept in frame["versions"]
        }
    )
    dates = sorted(set(frame["date"]))
    more = f"\n    {RUN} --half development" if "development" in set(frame["half"]) else ""
    return (
        "## Commands\n\n    pip install lightgbm xgboost catboost pytabkit mapie quantile-forest cleanlab pyod\n"
        f"    {RUN}{more}\n    python benchmarks/decisions.py --write docs/measured/decisions.md\n\nRun on "
        f"{dates[0]}{f' to {dates[-1]}' if dates[1:] else ''}, on two shared cores of an x86-64 machine, with "
        f"{'; or '.join(versions)}."
    )
