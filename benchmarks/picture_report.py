"""The document of pictures.py, from the lines that it stored, and what both have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from rankings import p_text, ranks, signed_rank, table
from tables import CLASSES, HALVES, SMALL

from nearkin.evaluation import holm
from nearkin.evaluation.statistics import paired_test

SINGLE = ("digits", "banking77", "mnist")
# Of classes, up to 2,000 rows; settings were chosen on the development half.
LARGE = ("chess", "marketing", "nursery", "penbased", "satimage", "splice")
TABLES = {
    half: tuple(
        name
        for name in names
        if name in (*CLASSES, "breast_cancer", "iris", "wine") and name not in LARGE
    )
    for half, names in HALVES.items()
}
N_FOLDS = 5
TRUST_ROWS, TRUST_NEIGHBORS = 2000, 10
GIVEN, PERMUTED = "given", "permuted"
OURS, ON_FRAME = "TDistributedNCA", "TDistributedNCA, data frame"
UMAP, UNSEEDED, TSNE = "supervised UMAP", "supervised UMAP, no seed", "openTSNE"
ORDER = (ON_FRAME, OURS, UMAP, UNSEEDED, TSNE, "LDA", "NCA", "PCA")

HEAD = f"""\
# Pictures

Two dimensions for rows that the fit has not seen: `TDistributedNCA` beside UMAP with labels (`fit(X, y)`, `transform`),
openTSNE (no labels; `transform`), and the linear LDA, `NCA` and PCA, all to two dimensions (LDA to one for two classes) with
their defaults. Written by the commands at the end, nothing by hand.

- held-out: accuracy of 5-NN in the plane on rows kept aside, voted for by the training rows' places
- training: the same for the training rows, no row voting for itself; what one sees of a picture of training rows
- trust: trustworthiness of the held-out rows, of at most {TRUST_ROWS:,}: whether the {TRUST_NEIGHBORS} nearest in the plane are near in the
  features, 1 at best. Labels are not asked, so that a method which places rows by class has less of it.
- permuted: held-out and training accuracy where labels of training rows were permuted; a picture should then show nothing,
  and training accuracy above that of the most frequent class is what it made up
- fit, transform: seconds on the clock, of transform milliseconds for a new row of those held out"""

TITLES = {
    "held-out": "## Tables on which nothing was chosen",
    "development": "## Tables on which settings were chosen\n\nThese support no claim.",
}


def document(lines: list[dict[str, Any]]) -> str:
    frame = pd.DataFrame(lines)
    if frame.empty:
        return HEAD
    failed = frame[frame["status"] != "ok"].groupby(["method", "data", "labels", "status"]).size()
    frame = frame[frame["status"] == "ok"]
    parts = [HEAD]
    for name in SINGLE:
        if name in set(frame["data"]):
            parts += single_text(name, frame[frame["data"] == name])
    for half, title in TITLES.items():
        on_tables = frame[frame["data"].isin(TABLES[half])]
        if len(on_tables):
            parts += [title, *tables_text(on_tables, frame[frame["data"] == "banking77"])]
    if len(failed):
        some = [f"- {', '.join(names)}, {n} times: {why}" for (*names, why), n in failed.items()]
        parts += ["\n".join(["Failed, and left out:", "", *some])]
    stamps = sorted(
        {", ".join(f"{name} {n}" for name, n in kept.items()) for kept in frame["versions"]}
    )
    dates = sorted(set(frame["date"]))
    return "\n\n".join([*parts, (
        "## Commands\n\n    pip install umap-learn openTSNE lightgbm xgboost catboost pytabkit\n"
        "    NEARKIN_DATA=folder python benchmarks/pictures.py\n"
        "    python benchmarks/pictures.py --write docs/measured/pictures.md\n\n"
        f"Run on {dates[0]}{f' to {dates[-1]}' if dates[1:] else ''}, on two cores of an x86-64 machine, with {'; or '.join(stamps)}."
    )])  # fmt: skip


def means(part: pd.DataFrame, labels: str) -> pd.DataFrame:
    """Return means over folds, then over data sets, methods in order."""
    keys = ["held_out", "training", "trust", "chance", "fit", "transform", "new_row"]
    part = part[part["labels"] == labels]
    part = part.assign(new_row=1000 * part["transform"] / part["hits"].str.len())
    found = part.groupby(["method", "data"])[keys].mean().groupby("method").mean()
    return found.loc[[method for method in ORDER if method in found.index]]


HEADER = (
    "method", "held-out", "training", "trust", "permuted: held-out", "training", "fit, s", "transform, s", "ms a row",
)  # fmt: skip


def rows_of(part: pd.DataFrame) -> list[list[str]]:
    given, permuted = means(part, GIVEN), means(part, PERMUTED)
    return [
        [
            method,
            *(percent(one[key]) for key in ("held_out", "training")),
            f"{one['trust']:.3f}",
            *(
                percent(permuted.loc[method, key]) if method in permuted.index else ""
                for key in ("held_out", "training")
            ),
            *(f"{one[key]:.2f}" for key in ("fit", "transform", "new_row")),
        ]
        for method, one in given.iterrows()
    ]


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def single_text(name: str, part: pd.DataFrame) -> list[str]:
    """Return the figures of a data set, and the tests of ours against the others on its rows."""
    one, n_folds = part.iloc[0], part["fold"].nunique()
    how = f"{n_folds} stratified folds" if n_folds > 1 else "one split"
    given = part[part["labels"] == GIVEN].sort_values("fold")
    hits = {
        method: [np.array(list(text), dtype=int) for text in lines["hits"]]
        for method, lines in given.groupby("method", sort=False)
    }
    tests = []
    if OURS in hits:
        ends = np.cumsum([len(fold) for fold in hits[OURS]])
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        found = {
            method: paired_test(hits[OURS], theirs, rows, one["rows"])
            for method, theirs in hits.items()
            if method != OURS and len(theirs) == len(rows)
        }
        p_values = holm([test.p_value for test in found.values()])
        tests = [
            f"{OURS} is better by, in points: "
            + ", ".join(
                f"{method} {100 * test.difference:+.2f} (p {p_text(p)})"
                for (method, test), p in zip(found.items(), p_values, strict=True)
            )
            + ". "
            + (
                "Corrected for folds that share training rows"
                if n_folds > 1
                else "A single split tests fitted models, not methods"
            )
            + ", and by Holm."
        ]
    return [
        f"## {name}",
        f"{one['rows']:,} rows for training, {len(one['hits']):,} held out ({how}), {one['features']} features, "
        f"{one['classes']} classes, the most frequent one {percent(part['chance'].mean())}.",
        table(HEADER, rows_of(part)),
        *tests,
    ]


def tables_text(on_tables: pd.DataFrame, banking: pd.DataFrame) -> list[str]:
    """Return means over tables, ranks, and the accuracy on every table and banking77."""
    both = pd.concat([on_tables, banking[banking["method"] != UNSEEDED]])
    both = both[both["labels"] == GIVEN]
    values = both.pivot_table(index="data", columns="method", values="held_out")
    values = values[[method for method in ORDER if method in values]]
    parts = [
        f"{on_tables['data'].nunique()} tables of classes, those of at most {SMALL:,} rows of this half of [Tables](tables.md); {N_FOLDS} stratified folds. "
        f'"{ON_FRAME}" takes the data frame by `estimator=NCAClassifier()`, as `nearkin compare` does; the '
        "others the features of `TableEncoder`, missing numbers replaced by means, standardized. Means over the tables; the most "
        f"frequent class has {percent(means(on_tables, GIVEN)['chance'].mean())}.",
        table(HEADER, rows_of(on_tables)),
    ]
    for ours, other in ((ON_FRAME, OURS), (OURS, ON_FRAME)):
        if ours in values:
            parts += ranking(
                ours,
                values[ours].fillna(values.get(OURS)),
                values.drop(columns=[other], errors="ignore"),
            )
    return [
        *parts,
        "Held-out accuracy:",
        table(
            ["data", *values],
            [[name, *marked(row)] for name, row in values.iterrows()],
        ),
    ]  # fmt: skip


def ranking(ours: str, of_ours: pd.Series, values: pd.DataFrame) -> list[str]:
    """Return mean ranks and Wilcoxon's signed-rank tests against ours, by Holm."""
    values = values.assign(**{ours: of_ours}).dropna(axis=1)
    gains = (-values.sub(of_ours, axis=0)).drop(columns=ours)
    tests = dict(
        zip(gains, holm([signed_rank(gains[name].to_numpy()) for name in gains]), strict=True)
    )
    rows = [
        [
            name,
            percent(values[name].mean()),
            f"{rank:.2f}",
            *((f"{np.sum(gains[name] > 0)}, {np.sum(gains[name] < 0)}", p_text(tests[name])) if name in tests else ("", "")),
        ]
        for name, rank in zip(values, ranks(values.to_numpy()), strict=True)
    ]  # fmt: skip
    return [
        f"Mean rank over {len(values)} data sets (the tables, and banking77 where it was run), with {ours} as ours; "
        "how often ours is better and worse, and the p-value of Wilcoxon's signed-rank test over the data sets, by Holm:",
        table(["method", "mean accuracy", "rank", "ours better, worse", "p"], rows),
    ]


def marked(row: pd.Series) -> list[str]:
    """Return accuracies in percent, the best bold, nothing where there is none."""
    texts = [f"{100 * share:.1f}" for share in row]
    return [
        "" if np.isnan(share) else f"**{text}**" if share == row.max() else text
        for share, text in zip(row, texts, strict=True)
    ]
