"""A new model for an old index: what maps between two embedding models keep of the search; in
docs/measured/adapt.md.

    NEARKIN_DATA=folder python -m benchmarks.studies.migrate PART ... [--document docs/measured/adapt.md]

Parts are migrate (two models), versions (verdicts on pairs of models and versions of one space, with
judgements and without), unrelated and migrate-time; "all" runs them.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import RidgeCV

from benchmarks.measure import command, timed
from benchmarks.report import percent, row, table
from benchmarks.studies.adapt import Map, added, banking77, embeddings
from nearkin import Migration
from nearkin._blocks import unit_rows
from nearkin.statistics import paired_test_by_rows
from nearkin.vectors import Vectors, evaluate_migration

MIGRATED = (1_000, 4_000, 8_000)  # rows of the sample
MIGRATIONS = ("rotation", "least squares", "ridge")  # that ours is compared with


def two_models() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the questions of banking77 by two models, and their intents."""
    X, y, _ = banking77()
    return {"MiniLM": X, "wordllama": banking77("wordllama")[0]}, y


def migration_maps(X: np.ndarray, Y: np.ndarray, y: np.ndarray, side: str) -> dict[str, Map]:
    """Return maps of unit rows X towards Y, by name; y has -1 for intents without labels."""
    least_squares = Migration(side=side, reverse=0, alpha=0).fit(X, Y)
    ridge = RidgeCV(alphas=np.logspace(-4, 1, 6)).fit(X, Y)
    maps = {
        "rotation": Migration(side=side, reverse=0, alpha=np.inf).fit(X, Y).transform,
        "least squares": least_squares.transform,
        "ridge": ridge.predict,
    }
    x, A = X.mean(axis=0), least_squares.components_
    V = np.linalg.eigh(np.cov((X - x) @ A.T, rowvar=False))[1]
    for rank in (64, 128):  # reduced-rank regression
        P = V[:, -rank:] @ V[:, -rank:].T
        maps[f"low rank, {rank}"] = lambda Z, P=P: ((Z - x) @ A.T) @ P + Y.mean(axis=0)
    maps["Migration"] = Migration(side=side).fit(X, Y).transform
    maps["Migration, labels"] = Migration(side=side).fit(X, Y, labels=y).transform
    return maps


def migrate() -> str:
    """Two models, both directions and both sides; a fifth of the intents has no labels."""
    models, y = two_models()
    parts = []
    for old, new in (("MiniLM", "wordllama"), ("wordllama", "MiniLM")):
        for side in ("query", "document"):
            text = migrated(models[old], models[new], y, side)
            what = "queries" if side == "query" else "documents"
            parts.append(f"### {what} mapped, old model {old}, new model {new}\n\n{text}\n")
    return "\n".join(parts)


def migrated(old: np.ndarray, new: np.ndarray, y: np.ndarray, side: str) -> str:
    """Return scores of maps by rows of the sample, the means over splits."""
    source, target = (new, old) if side == "query" else (old, new)
    cells: dict[str, list[list[str]]] = {}
    notes = []
    for n in MIGRATED:
        kept: dict[str, list[np.ndarray]] = {}
        right: dict[str, list[np.ndarray]] = {}
        asked, are_seen = [], []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            sample, queries, documents = np.split(rng.permutation(len(y)), [n, n + 1000])
            seen = rng.permutation(y.max() + 1) % 5 > 0
            codes = np.where(seen[y], y, -1)
            own = Vectors(new[queries], new[documents]).ranked(10)
            spaces = {
                "embedded again": (new[queries], new[documents]),
                "old model": (old[queries], old[documents]),
            }
            maps = migration_maps(source[sample], target[sample], codes[sample], side)
            for name, transform in maps.items():
                if side == "query":
                    spaces[name] = transform(new[queries]), old[documents]
                else:
                    spaces[name] = new[queries], transform(old[documents])
            for name, space in spaces.items():
                found = Vectors(*space).ranked(10)
                shared = (found[:, :, None] == own[:, None, :]).any(axis=2)
                kept.setdefault(name, []).append(shared.mean(axis=1))
                same = y[documents][found] == y[queries][:, None]
                right.setdefault(name, []).append(same.mean(axis=1))
            asked.append(queries)
            are_seen.append(seen[y[queries]])
        for name in kept:
            parts = [
                [one[part] for one, part in zip(right[name], mask, strict=True)]
                for mask in (are_seen, [~part for part in are_seen])
            ]
            means = [np.mean([one.mean() for one in part]) for part in (kept[name], *parts)]
            cells.setdefault(name, []).append(percent(means))
            row(f"{n:,}", name, *cells[name][-1])
        for score, values, ours in (
            ("neighbours kept", kept, "Migration"),
            ("precision@10, all intents", right, "Migration, labels"),
        ):
            best = max(MIGRATIONS, key=lambda name, v=values: np.mean(np.concatenate(v[name])))
            test = paired_test_by_rows(values[ours], values[best], asked, n)
            low, high = test.interval()
            notes.append(
                f"- {n:,} rows, {score}: {ours} - {best} {100 * test.difference:+.1f} "
                f"[{100 * low:.1f}, {100 * high:.1f}]"
            )
            print(notes[-1], flush=True)
    scores = ("neighbours kept", "precision@10, labelled intents", "others")
    sizes = [f"{n:,}" for n in MIGRATED]
    head = [
        "search",
        *(f"{score}: {sizes[0]}" if n == sizes[0] else n for score in scores for n in sizes),
    ]
    rows = [[name, *np.transpose(found).ravel()] for name, found in cells.items()]
    return table(head, rows) + "\n\n" + "\n".join(notes)


def verdict_row(name: str, old: np.ndarray, new: np.ndarray, side: str) -> list[str]:
    """Return a line on a verdict without judgements."""
    found = evaluate_migration(old, new, side=side)
    cells = [name, side, *percent([found.scores["migration"]["recall@10"]]), found.verdict]
    row(*cells)
    return cells


def versions() -> str:
    """Pairs of models and versions of one space: the verdict without judgements, which other
    measures there are, and the verdict by judgements.

    Of 6,000 rows of banking77, 500 are queries, to which the documents of their intent are
    relevant; half of the others are held out. The measures are of the queries and of these.
    """
    models, y = two_models()
    rows = np.random.default_rng(0).permutation(len(y))[:6000]
    firsts = (np.unique(Z[rows], axis=0, return_index=True)[1] for Z in models.values())
    rows = rows[np.intersect1d(*firsts)]  # without copies
    (mini, llama), y = (Z[rows] for Z in models.values()), y[rows]
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(384, 384)))[0].astype(np.float32)
    noise = rng.normal(size=mini.shape).astype(np.float32) / 384**0.5
    pairs = {
        "MiniLM, wordllama": (mini, llama),
        "wordllama, MiniLM": (llama, mini),
        "MiniLM, its first 128 numbers": (mini, mini[:, :128]),
        "its first 128 numbers, MiniLM": (mini[:, :128], mini),
        "MiniLM, with noise of half the length": (mini, mini + 0.5 * noise),
        "MiniLM, with noise of 10 % of the length": (mini, mini + 0.1 * noise),
        "MiniLM, rotated": (mini, mini @ Q),
        "MiniLM, 192 principal axes": (mini, TruncatedSVD(192, random_state=0).fit_transform(mini)),
        "MiniLM, 256 principal axes, centred": (mini, PCA(256, random_state=0).fit_transform(mini)),
    }
    lines = []
    for name, (old, new) in pairs.items():
        for side in ("query", "document"):
            blind = evaluate_migration(old[500:], new[500:], side=side)
            found = evaluate_migration(
                old[500:],
                new[500:],
                side=side,
                queries=(old[:500], new[:500]),
                relevance=np.argwhere(y[:500, None] == y[None, 500:]),
            )
            n = len(rows) - 500
            held_out = 500 + np.random.default_rng(0).permutation(n)[: n // 2]
            of_queries = [unit_rows(Z[:500]) for Z in (old, new)]
            of_documents = [unit_rows(Z[held_out]) for Z in (old, new)]
            own = Vectors(of_queries[1], of_documents[1]).ranked(10)
            if side == "query":
                mapped = Vectors(found.map.transform(of_queries[1]), of_documents[0])
            else:
                mapped = Vectors(of_queries[1], found.map.transform(of_documents[0]))
            in_fifty = (own[:, :, None] == mapped.ranked(50)[:, None, :]).any(axis=2).mean()
            scores = {way: one["recall@10"] for way, one in found.scores.items()}
            shares = [scores["migration"], scores["old model"], in_fifty, found.kept]
            added(lines, [name, side, *percent(shares), found.verdict, blind.verdict])
    head = ["old and new model", "mapped", "own ten found", "by the old model", "within fifty"]
    return table([*head, "kept by judgements", "verdict by these", "without"], lines)


def unrelated() -> str:
    """Ten pairs of spaces that have nothing to do with each other: rows of one number are no
    items of both.
    """
    spaces = {name: embeddings(name)[0] for name in ("tdt2", "news_rec", "usps", "mnist")}
    spaces |= two_models()[0]
    names, rows = list(spaces), []
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]][:10]
    for place, (a, b) in enumerate(pairs):
        n = min(len(spaces[a]), len(spaces[b]), 4000)
        rng = np.random.default_rng(place)
        X, Y = (spaces[name][rng.permutation(len(spaces[name]))[:n]] for name in (a, b))
        rows.append(verdict_row(f"{a}, {b}", X, Y, ("query", "document")[place % 2]))
    return table(["spaces", "mapped", "recall@10", "verdict"], rows)


def migrate_time() -> str:
    """20,000 pairs of 384 numbers, drawn: 100 classes, a linear map and noise."""
    rng, rows = np.random.default_rng(0), []
    y = rng.integers(100, size=20_000)
    X = (rng.normal(size=(100, 384))[y] + 2 * rng.normal(size=(20_000, 384))).astype(np.float32)
    Y = X @ rng.normal(size=(384, 384)).astype(np.float32) / 20
    Y += rng.normal(size=Y.shape).astype(np.float32)
    for name, side, labels in (
        ("queries", "query", None),
        ("documents", "document", None),
        ("queries, labels", "query", y),
    ):
        run = timed(lambda: Migration(side=side).fit(X, Y, labels=labels))  # noqa: B023
        added(rows, [name, f"{run.seconds:.1f}", f"{run.processor:.1f}"])
    return table(["mapped", "fit, s", "processor s"], rows)


if __name__ == "__main__":
    command(migrate, versions, unrelated, migrate_time)
