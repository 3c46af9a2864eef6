"""Embeddings adapted to labels and judgements, against what a user would take instead; in
docs/measured/adapt.md.

    NEARKIN_DATA=folder python -m benchmarks.studies.adapt PART ... [--document docs/measured/adapt.md]

Parts are banking (classes seen), unseen (57 classes seen, 20 not), decisions (match or none),
promises (recall at a promised precision), growing (promises in larger indices), cranfield, grades
(of the same queries), negatives (judged ones), sets (text and images) and scale; "all" runs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import roc_auc_score

from benchmarks.data import archive, counts
from benchmarks.measure import command, memory, timed
from benchmarks.report import percent, row, table
from nearkin import DNE, LMNN, NCA, RCA, EmbeddingAdapter, Matcher
from nearkin._blocks import unit_rows
from nearkin.neighbors import twin_groups
from nearkin.vectors import (
    Labels,
    MatchRules,
    Relevance,
    Vectors,
    compare_vectors,
    judged_matrix,
    retrieval_scores,
)
from nearkin.vectors.judgements import Split, usable_splits
from nearkin.vectors.matching import HeldOutLists, Space, first_of

SCORES = ("precision@1", "precision@10", "nDCG@10", "MRR")
SEEDS = 5

Map = Callable[[np.ndarray], np.ndarray]


def embeddings(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of unit length and classes: text by LSA of TF-IDF (300 components), images as
    they are.
    """
    if name in ("tdt2", "news_rec"):
        X, y = counts(name)
        X = TfidfTransformer().fit_transform(X) if name == "tdt2" else X
        X = TruncatedSVD(300, random_state=0).fit_transform(X)
    else:
        z = archive(name)
        X, y = z["X"].reshape(len(z["y"]), -1), z["y"]
    rows = np.random.default_rng(0).permutation(len(y))[:6000]
    X, y = X[rows].astype(np.float32), np.unique(y, return_inverse=True)[1][rows]
    return unit_rows(X - X.min() if name == "usps" else X), y


def banking77(model: str = "minilm") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the questions as vectors of unit length, their intents, and which are for training."""
    z = archive(f"banking77_{model}")
    y = np.unique(archive("banking77_minilm")["y"], return_inverse=True)[1]
    return unit_rows(z["X"].astype(np.float32)), y, archive("banking77_minilm")["train"]


def added(rows: list[list[str]], cells: list[str]) -> None:
    """Add a row to a table, and print it at once."""
    rows.append(cells)
    row(*cells)


def torch_adapter(X: np.ndarray, y: np.ndarray, m: int, seconds: float) -> Map:
    """Return an adapter as public ones are learned, in so many processor seconds.

    Pairs of one class against the others of the batch (MultipleNegativesRankingLoss on cosines,
    scale 20), AdamW, a learning rate of 1e-3, batches of 64 and a random start, as a torch user
    would write it.
    """
    import torch

    torch.manual_seed(0)
    rng, rows = np.random.default_rng(0), torch.from_numpy(X)
    linear = torch.nn.Linear(X.shape[1], m, bias=False)
    optimizer = torch.optim.AdamW(linear.parameters(), lr=1e-3)
    members = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    members = [some for some in members if len(some) > 1]
    end = time.process_time() + seconds
    while time.process_time() < end:
        some = rng.choice(len(members), min(64, len(members)), replace=False)
        pairs = np.array([rng.choice(members[c], 2, replace=False) for c in some])
        left, right = (torch.nn.functional.normalize(linear(rows[side])) for side in pairs.T)
        loss = torch.nn.functional.cross_entropy(20 * left @ right.T, torch.arange(len(pairs)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    A = linear.weight.detach().numpy()
    return lambda Z: Z @ A.T


def methods(
    X: np.ndarray, y: np.ndarray, sizes: Iterable[int], quick: bool = False
) -> dict[str, tuple[Map, float]]:
    """Return maps that are learned from rows, and the processor seconds that this took."""
    found: dict[str, tuple[Map, float]] = {f"raw {X.shape[1]}": (lambda Z: Z, 0.0)}

    def add(name: str, fit: Callable[[], Map]) -> float:
        _, seconds, learned = timed(fit)
        found[name] = learned, seconds
        return seconds

    def fitted(name: str, estimator: object) -> float:
        return add(name, lambda: estimator.fit(X, y).transform)

    rng = np.random.default_rng(0)
    for m in (size for size in sizes if size < X.shape[1]):
        R = np.linalg.qr(rng.standard_normal((X.shape[1], m)))[0].astype(X.dtype)
        add(f"first {m} numbers", lambda m=m: lambda Z: Z[:, :m])
        add(f"random projection {m}", lambda R=R: lambda Z: Z @ R)
        fitted(f"PCA {m}", PCA(m, svd_solver="covariance_eigh"))
        fitted(f"PCA, whitened {m}", PCA(m, whiten=True, svd_solver="covariance_eigh"))
        c = min(m, int(y.max()))
        shrunk = {"solver": "eigen", "shrinkage": "auto", "n_components": c}
        fitted(f"LDA {c}", LinearDiscriminantAnalysis(**shrunk))
        fitted(f"RCA {m}", RCA(m))
        if not quick:
            fitted(f"DNE {m}", DNE(m))
            nca = NCA(m, solver="sgd", objective="log_likelihood", random_state=0)
            fitted(f"NCA {m}", nca)
        if not quick and m == 64:
            few = np.random.default_rng(0).permutation(len(X))[:3000]
            lmnn = LMNN(m)
            add(f"LMNN {m} (3,000 rows)", lambda m=lmnn, few=few: m.fit(X[few], y[few]).transform)
        seconds = fitted(f"EmbeddingAdapter {m}", EmbeddingAdapter(m))
        fitted(f'EmbeddingAdapter {m}, start="plda"', EmbeddingAdapter(m, start="plda"))
        for name, times in (("as long", 1), ("ten times as long", 10))[: 1 if quick else 2]:
            add(
                f"torch adapter {m}, {name}",
                lambda m=m, s=times * seconds: torch_adapter(X, y, m, s),
            )
    return found


def class_scores(vectors: Vectors, q: np.ndarray, c: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of queries of classes q among candidates of classes c."""
    n_relevant = np.bincount(c, minlength=max(q.max(), c.max()) + 1)[q]
    ideal = (np.arange(10) < n_relevant[:, None]).astype(float)
    return retrieval_scores((c[vectors.ranked(100)] == q[:, None]).astype(float), ideal, n_relevant)


def score(
    transform: Map, Q: np.ndarray, q: np.ndarray, C: np.ndarray, c: np.ndarray
) -> list[float]:
    scores = class_scores(Vectors(transform(Q), transform(C)), q, c)
    return [float(scores[name].mean()) for name in SCORES]


def banking() -> str:
    """Official training and test rows of banking77, all classes seen."""
    X, y, train = banking77()
    rows = []
    for name, (transform, seconds) in methods(X[train], y[train], (32, 64)).items():
        found = score(transform, X[~train], y[~train], X[train], y[train])
        added(rows, [name, *percent(found), f"{seconds:.1f}"])
    rows += codes(X, y, train)
    return table(["vectors", *SCORES, "fit, processor s"], rows)


def codes(X: np.ndarray, y: np.ndarray, train: np.ndarray) -> list[list[str]]:
    """Return lines on codes, nested sizes and the settings for seen classes, on the official test
    rows.
    """
    rows = []

    def add(name: str, queries: np.ndarray, candidates: np.ndarray, by: object = None) -> None:
        scores = class_scores(Vectors(queries, candidates, by), y[~train], y[train])
        added(rows, [name, *percent([float(scores[one].mean()) for one in SCORES]), ""])

    for m in (64, 256):
        adapter = EmbeddingAdapter(m).fit(X[train], y[train])
        Q, C = adapter.embed(X[~train]), adapter.embed(X[train])
        add(f"EmbeddingAdapter {m}", Q, C)
        int8 = adapter.quantized("int8", X[train])
        coded = [int8.quantizer_.decode(int8.transform(rows)) for rows in (X[~train], X[train])]
        add(f"EmbeddingAdapter {m}, int8 ({m} bytes)", *coded)
        bits = adapter.quantized("binary", X[train])
        signs = tuple(
            bits.quantizer_.decode(bits.transform(rows)) for rows in (X[~train], X[train])
        )
        add(f"EmbeddingAdapter {m}, {m} bits ({m // 8} bytes)", *signs)
        add(f"EmbeddingAdapter {m}, {m} bits, rescored in int8", Q, coded[1], signs)
    nested = EmbeddingAdapter(128, nested=(32, 64)).fit(X[train], y[train])
    Q, C = nested.embed(X[~train]), nested.embed(X[train])
    for m in (32, 64, 128):
        add(f"EmbeddingAdapter(128, nested=(32, 64)), first {m}", Q[:, :m], C[:, :m])
    for m in (32, 64):
        seen = EmbeddingAdapter(m, alpha=0.05).fit(X[train], y[train])
        add(
            f"EmbeddingAdapter({m}, alpha=.05): for classes that are all seen",
            seen.embed(X[~train]),
            seen.embed(X[train]),
        )
    return rows


Scores = dict[str, list[list[float]]]  # of each method in each split


def unseen_classes(
    X: np.ndarray, y: np.ndarray, share: float, sizes: tuple[int, ...]
) -> tuple[Scores, Scores]:
    """Return scores for classes seen and not."""
    seen: Scores = {}
    unseen: Scores = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        known = rng.permutation(y.max() + 1) < round(share * (y.max() + 1))
        query = rng.random(len(y)) < 0.25
        train = known[y] & ~query
        kinds = np.unique(y[train], return_inverse=True)[1]
        for name, (transform, _) in methods(X[train], kinds, sizes, quick=True).items():
            name = name.split()[0] if name.startswith(("LDA", "raw")) else name
            for found, part in ((seen, known[y]), (unseen, ~known[y])):
                one = score(
                    transform, X[part & query], y[part & query], X[part & ~query], y[part & ~query]
                )
                found.setdefault(name, []).append(one)
        print("split", seed, flush=True)
    return seen, unseen


def at_10(scores: Scores, name: str) -> np.ndarray:
    """Return precision@10 in percent, split by split."""
    return 100 * np.array(scores[name])[:, 1]


def beside_raw(scores: Scores, name: str) -> str:
    """Return the mean of precision@10 minus that of the raw vectors, with its standard error."""
    difference = at_10(scores, name) - at_10(scores, next(iter(scores)))
    return f"{difference.mean():+.1f} ± {difference.std(ddof=1) / SEEDS**0.5:.1f}"


def unseen() -> str:
    X, y, _ = banking77()
    known, new = unseen_classes(X, y, 57 / 77, (64, 128))
    rows = []
    for name in new:
        means = [np.mean(scores[name], axis=0)[:2] for scores in (known, new)]
        rows.append([name, *percent(np.ravel(means)), beside_raw(new, name)])
    head = ["vectors", "seen: precision@1", "@10", "unseen: precision@1", "@10", "unseen @10 - raw"]
    return table(head, rows)


def calibration_error(probabilities: np.ndarray, right: np.ndarray, n_bins: int = 10) -> float:
    """Return the mean difference between the probabilities and the shares of right matches, in bins
    of equally many.
    """
    bins = np.array_split(np.argsort(probabilities, kind="stable"), n_bins)
    gaps = [abs(np.sum(probabilities[some] - right[some])) for some in bins]
    return float(sum(gaps) / len(right))


def decisions() -> str:
    """Which match is right, and which query has none: 57 classes are learned, and all 77 are in the
    index; or these 57, and queries of the other 20 have no answer. The means of five splits.
    """
    z = archive("banking77_minilm")
    X, y = z["X"].astype(np.float32), np.unique(z["y"], return_inverse=True)[1]
    found: dict[tuple[str, ...], list[list[float]]] = {}
    errors: dict[tuple[str, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        is_known = rng.permutation(y.max() + 1)[y] < 57
        query = rng.random(len(y)) < 0.25
        train, known, new = is_known & ~query, is_known & query, ~is_known & query
        none = np.zeros(len(y), bool)
        share = new.sum() / query.sum()
        for name, estimator in (("raw", None), ("adapter 128", EmbeddingAdapter(128))):
            for what, expect, answered, unanswered, index, unanswerable in (
                ("known", "known", known, none, ~query, 0.0),
                ("new", "new", new, none, ~query, 0.0),
                ("known, new ones have no answer", "known", known, new, train, share),
            ):
                matcher = Matcher(estimator, expect=expect, unanswerable=unanswerable)
                matcher.fit(X[train], y[train])
                asked = answered | unanswered
                best = matcher.best_match(X[asked], X[index], precision=1e-9)
                right = y[index][best.rows] == y[asked]
                scores, has_answer = best.probabilities, ~unanswered[asked]
                if not unanswered.any():  # the same queries, each without the rows of its class
                    for c in np.unique(y[asked]):
                        alone = X[asked & (y == c)], X[index & (y != c)]
                        more = matcher.best_match(*alone, precision=1e-9).probabilities
                        scores, has_answer = (
                            np.append(scores, more),
                            np.append(has_answer, 0 * more),
                        )
                area = roc_auc_score(has_answer, scores)
                for precision in (0.9, 0.95):
                    key = (name, what, f"{100 * precision:.0f}")
                    errors.setdefault(key, []).append((best.probabilities, right))
                    try:
                        rows = matcher.best_match(X[asked], X[index], precision=precision).rows
                    except ValueError:
                        found.setdefault(key, []).append([np.nan, np.nan, area])
                        continue
                    taken = right[rows >= 0]
                    recall = taken.sum() / answered.sum()
                    found.setdefault(key, []).append([taken.mean(), recall, area])
        print("split", seed, flush=True)
    lines = []
    for key, values in found.items():
        observed, recall, area = np.array(values).T
        error = calibration_error(*map(np.concatenate, zip(*errors[key], strict=True)))
        promised = np.isfinite(observed)
        cells = ["none"] * 3
        if promised.any():
            cells = percent([np.nanmean(observed), np.nanmin(observed), np.nanmean(recall)])
        lines.append(
            [*key, f"{promised.sum()} of {SEEDS}", *cells, f"{error:.3f}", f"{area.mean():.3f}"]
        )
    head = [
        *("vectors", "classes", "promised, %", "splits", "observed", "least", "recall"),
        *("calibration error", "AUROC of answerable"),
    ]
    return table(head, lines)


@dataclass(frozen=True)
class Drawn:
    """Questions of banking77, by one model: some rows of 57 intents are learned, others are asked
    or added.

    Attributes
    ----------
    X, y : arrays of shape (13083, p) and (13083,)
    learned, known, new : int arrays
        Rows that are learned from, and queries of the 57 intents and of the 20 others.
    others : dict of str to int array
        Further rows, of all intents or only of the 20, in random order.
    """

    X: np.ndarray
    y: np.ndarray
    learned: np.ndarray
    known: np.ndarray
    new: np.ndarray
    others: dict[str, np.ndarray]

    @classmethod
    def of(cls, seed: int, n_learned: int, n_queries: int, model: str = "minilm") -> Drawn:
        X, y, _ = banking77(model)
        rng = np.random.default_rng(seed)
        rows, is_known = rng.permutation(len(y)), rng.permutation(y.max() + 1)[y] < 57
        known, new = (rows[of_kind[rows]] for of_kind in (is_known, ~is_known))
        learned, known, more = np.split(known, [n_learned, n_learned + n_queries])
        new, more_new = np.split(new, [n_queries])
        others = {"all": rng.permutation(np.append(more, more_new)), "new": more_new}
        return cls(X, y, learned, known, new, others)

    def rules(self, adapter: EmbeddingAdapter | None) -> tuple[Map, HeldOutLists]:
        """Return the map of all learned rows (None: none), and the lists of held-out queries."""
        X, y = self.X[self.learned], np.unique(self.y[self.learned], return_inverse=True)[1]
        known = Labels(X, y, twin_groups(X, scale=False))

        def learned(judgements: Labels) -> Map:
            return (lambda Z: Z) if adapter is None else judgements.fit(adapter).transform

        def searches() -> Iterable[tuple[Space, Split]]:
            for split in usable_splits(known, np.random.default_rng(0)):
                Z = learned(split.train)(X)
                for part in split.apart():
                    q, c = part.queries, part.candidates
                    yield Space.of(Z[q], Z[c], X[q], X[c], "cosine"), part

        lists = HeldOutLists.of(searches(), known)
        return learned(known), lists

    def asked(
        self, transform: Map, queries: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the features of the best candidates of queries, and of those of new intents in an
        index without these; whether they are right; and which queries have an answer.
        """
        parts = [
            self._best(transform, rows, index, answered)
            for rows, answered in ((queries, True), (self.new, False))
        ]
        features, right = map(np.concatenate, zip(*parts, strict=True))
        return features, right, np.arange(len(right)) < len(queries)

    def _best(
        self, transform: Map, queries: np.ndarray, index: np.ndarray, answered: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        X = self.X
        space = Space.of(transform(X[queries]), transform(X[index]), X[queries], X[index], "cosine")
        S, is_right = space.similarities(slice(None)), self.y[queries][:, None] == self.y[index]
        if not answered:
            S[is_right] = -np.inf
        listed, S = first_of(S)
        right = np.take_along_axis(is_right, listed[:, :1], axis=1)[:, 0]
        return space.features(slice(None), listed, S), right & answered


def with_share(answered: np.ndarray, unanswerable: float) -> np.ndarray:
    """Return weights of queries by which this share of them has no answer."""
    odds = unanswerable / (1 - unanswerable)
    return np.where(answered, 1, odds * answered.sum() / (~answered).sum())


def precision_recall(
    accepted: np.ndarray, right: np.ndarray, answered: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return the precision of accepted matches, and the recall of answered queries."""
    total = weights @ accepted
    precision = weights @ (accepted & right) / total if total else np.nan
    return float(precision), float(np.mean((accepted & right)[answered]))


def lowest_threshold(
    scores: np.ndarray, right: np.ndarray, weights: np.ndarray, precision: float
) -> float:
    """Return the lowest score from which on matches have a precision, or inf."""
    order = np.argsort(-scores, kind="stable")
    w = weights[order]
    enough = np.flatnonzero(np.cumsum(w * right[order]) >= precision * np.cumsum(w))
    return float(scores[order[enough[-1]]]) if len(enough) else np.inf


def promises(draws: int = 6) -> str:
    """Recall at a promised precision beside that of an oracle, which knows the right threshold of
    the same score, and of a raw cosine that is tuned on half of the queries and used for the
    others.
    """
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for name, model in (("MiniLM", "minilm"), ("wordllama", "wordllama")):
        for seed in range(100, 100 + draws):  # the rules were chosen on others
            for key, values in recalls(Drawn.of(seed, 3200, 1500, model)).items():
                found.setdefault((name, *key), []).append(values)
            print(name, "draw", seed, flush=True)
    lines = []
    for key, values in found.items():
        oracle, by_hand, recall_by_hand, observed, recall = np.array(values).T
        is_given = np.isfinite(observed)
        broken = np.sum(observed < int(key[-1]) / 100)
        cells = percent([np.nanmean(observed), np.nanmin(observed)]) if is_given.any() else [""] * 2
        cells += percent([recall.mean(), oracle.mean(), np.nanmean(by_hand), recall_by_hand.mean()])
        lines.append([*key, f"{is_given.sum()}", f"{broken}", *cells])
    head = [
        *("model", "vectors", "classes", "unanswerable, %", "promised, %", f"given, of {draws}"),
        *("broken", "observed", "least", "recall", "oracle", "raw cosine by hand: observed"),
        "recall",
    ]
    return table(head, lines)


def recalls(drawn: Drawn) -> dict[tuple[str, ...], list[float]]:
    """Return the recall of an oracle, and precision and recall by hand and by a promise."""
    found: dict[tuple[str, ...], list[float]] = {}
    # as large as what the held-out queries searched, a quarter of it of new intents, 14 of 20
    few = np.unique(drawn.y[drawn.new])[:14]
    asked, added = (rows[np.isin(drawn.y[rows], few)] for rows in (drawn.new, drawn.others["new"]))
    mixed = np.append(drawn.learned[:2400], added[:800])
    for name, adapter in (("raw", None), ("adapter 64", EmbeddingAdapter(64, start="pca"))):
        transform, lists = drawn.rules(adapter)
        for u in (0.25, 0.5):
            rules = MatchRules.fitted(lists, u, of_pairs=False)
            for expect, queries, index in (
                ("known", drawn.known, drawn.learned),
                ("new", asked, mixed),
            ):
                features, right, answered = drawn.asked(transform, queries, index)
                half = np.arange(len(right)) % 2 == 0
                weights = with_share(answered, u)
                expected = rules.expecting(expect)
                scores, cosine = features @ expected.every.coefficients, features[:, 2]
                for precision in (0.9, 0.95):
                    oracle = lowest_threshold(scores, right, weights, precision)
                    values = [precision_recall(scores >= oracle, right, answered, weights)[1]]
                    cut = lowest_threshold(cosine[half], right[half], weights[half], precision)
                    others = (part[~half] for part in (right, answered, weights))
                    values += precision_recall(cosine[~half] >= cut, *others)
                    try:
                        accepted = expected.accept(features, precision, len(index))
                        values += precision_recall(accepted, right, answered, weights)
                    except ValueError:
                        values += [np.nan, 0.0]
                    found[name, expect, f"{100 * u:.0f}", f"{100 * precision:.0f}"] = values
    return found


GROWTHS = (1, 1.5, 2, 5, 18)


def growing(draws: int = 20) -> str:
    """What is promised among 600 rows of 57 intents, in larger indices: further rows are of all
    intents, or of the 20 others. A quarter of the queries, all of the 57, has no answer.
    """
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for seed in range(draws):
        drawn, u = Drawn.of(seed, 600, 800), 0.25
        for name, adapter in (("raw", None), ("adapter 64", EmbeddingAdapter(64, start="pca"))):
            transform, lists = drawn.rules(adapter)
            rules = MatchRules.fitted(lists, u, of_pairs=False).expecting("known")
            for kind, others in drawn.others.items():
                for growth in GROWTHS:
                    n_others = round((growth - 1) * len(drawn.learned))
                    if n_others > len(others):
                        continue
                    index = np.append(drawn.learned, others[:n_others])
                    features, right, answered = drawn.asked(transform, drawn.known, index)
                    weights = with_share(answered, u)
                    p = np.average(rules.probability(features, len(index)), weights=weights)
                    for precision in (0.8, 0.9):
                        values = [p - np.average(right, weights=weights)]
                        for n in (len(index), None):  # with and without the correction
                            try:
                                kept = rules.promises(precision, n).values()
                                accepted = rules.accept(features, precision, n)
                            except ValueError:
                                values += [np.nan, 0.0]
                                continue
                            observed, recall = precision_recall(accepted, right, answered, weights)
                            is_kept = all(one.is_kept for one in kept)
                            values += [observed if is_kept else np.nan, is_kept * recall]
                        key = (name, kind, f"{growth:g}", f"{100 * precision:.0f}")
                        found.setdefault(key, []).append(values)
        print("draw", seed, flush=True)
    lines = []
    for key, values in found.items():
        gap, observed, recall, before, _ = np.array(values).T
        is_given = np.isfinite(observed)
        broken, broken_before = (np.sum(one < int(key[3]) / 100) for one in (observed, before))
        cells = [f"{is_given.sum()}", f"{broken}", f"{np.isfinite(before).sum()}"]
        cells += [f"{broken_before}", *percent([recall.mean()]), f"{100 * gap.mean():+.1f}"]
        lines.append([*key, *cells])
    head = [
        *("vectors", "further rows", "times as large", "promised, %", f"given, of {draws}"),
        *("broken", "without the correction: given", "broken", "recall"),
        "mean probability - observed",
    ]
    return table(head, lines)


SETS = {"tdt2": 2 / 3, "news_rec": 0.5, "usps": 0.7, "mnist": 0.7, "coil20_32": 0.7}


def sets() -> str:
    """Text and images by 32 numbers: `SETS` names the share of the classes that is seen."""
    found = []
    for name, share in SETS.items():
        X, y = embeddings(name)
        print(name, X.shape, flush=True)
        found.append(unseen_classes(X, y, share, (32,)))
    rows = []
    for method in found[0][0]:
        means = [f"{at_10(seen, method).mean():.1f}" for seen, _ in found]
        rows.append([method, *means, *(beside_raw(unseen, method) for _, unseen in found)])
    first, *others = SETS
    head = ["vectors", f"seen: {first}", *others, f"unseen - raw: {first}", *others]
    return table(head, rows)


def cranfield() -> str:
    z = archive("cranfield_minilm")
    judged = z["relevance"][z["relevance"][:, 2] > 0]
    Q, D = (z[name].astype(np.float32) for name in ("queries", "documents"))
    R = csr_array((np.ones(len(judged)), (judged[:, 0], judged[:, 1])), shape=(len(Q), len(D)))
    R.data[:] = 1
    judgements = Relevance(Q, D, R, np.arange(len(Q)))
    rows = []
    for one in (found := compare_vectors(judgements)).results:
        scores, test = one.scores["queries"], one.tests["queries"]
        low, high = test.interval()
        difference = f"{100 * test.difference:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        difference = "" if one.status == "baseline" else difference
        cells = percent([scores[name] for name in ("nDCG@10", "recall@100", "MRR")])
        added(rows, [one.way.name, f"{one.way.bytes:,}", *cells, difference, one.status])
    print(found.settings, flush=True)
    return table(
        ["vectors", "bytes", "nDCG@10", "recall@100", "MRR", "nDCG@10 - raw [95 %]", "shown"], rows
    )


@dataclass(frozen=True)
class BinaryGains(Relevance):
    """Judgements that are learned from with their grades, and scored by whether these are above
    0.
    """

    def gains(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        return (super().gains(queries, documents) > 0).astype(float)

    def best_gains(
        self, queries: np.ndarray, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        best, n_relevant = super().best_gains(queries, candidates)
        return (best > 0).astype(float), n_relevant


def grades() -> str:
    """Cranfield learned from with grades (1 is a complete answer, 4 of minimum interest, -1 not
    relevant), scored as without them.
    """
    z = archive("cranfield_minilm")
    query, document, code = z["relevance"].astype(int).T
    Q, D = (z[name].astype(np.float32) for name in ("queries", "documents"))
    gain = np.where(code > 0, 5.0 - code, 0)
    rows = []
    for name, learned in (
        ("1 for all relevant ones", (code > 0).astype(float)),
        ("grades 4 to 1, judged zeros", gain),
        ("2^grade - 1, judged zeros", 2**gain - 1),
    ):
        R = judged_matrix(query, document, learned, (len(Q), len(D)))
        found = compare_vectors(BinaryGains(Q, D, R, np.arange(len(Q))), sizes=(64, 128, 256))
        for one in found.results:
            if one.way.kind == "adapter" and one.way.quantize is None and one.way.size < Q.shape[1]:
                scores = one.scores["queries"]
                cells = percent([scores[key] for key in ("nDCG@10", "MAP", "recall@100", "MRR")])
                added(rows, [name, one.way.name, *cells])
    return table(["learned from", "vectors", "nDCG@10", "MAP", "recall@100", "MRR"], rows)


def negatives() -> str:
    """Test questions of banking77 with three relevant training questions each, and the ten most
    similar ones of other intents, judged not relevant; precision at ten of the other test
    questions.
    """
    X, y, train = banking77()
    Q, D, q, d = X[~train], X[train], y[~train], y[train]
    found: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        asked, test = np.split(rng.permutation(len(Q)), [800])
        relevant, unlike = [], []
        for number, one in enumerate(asked):
            same = np.flatnonzero(d == q[one])
            relevant += [(number, row, 1) for row in rng.choice(same, 3, replace=False)]
            near = np.argsort(-(D @ Q[one]))
            unlike += [(number, row, 0) for row in near[d[near] != q[one]][:10]]
        for name, judged in (("relevant ones", relevant), ("and negatives", relevant + unlike)):
            adapter = EmbeddingAdapter(64, alpha=1).fit_relevance(Q[asked], D, np.array(judged))
            scores = class_scores(Vectors(adapter.embed(Q[test]), adapter.embed(D)), q[test], d)
            found.setdefault(name, []).append(float(scores["precision@10"].mean()))
        print({name: values[-1] for name, values in found.items()}, flush=True)
    rows = [[name, *percent(values), *percent([np.mean(values)])] for name, values in found.items()]
    return table(["learned from", *(f"split {seed}" for seed in range(SEEDS)), "mean"], rows)


def scale() -> str:
    """10^6 rows of 384 numbers in 1,000 classes, drawn: each class a Gaussian about its mean."""
    lines = []
    for n in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        y = rng.integers(1000, size=n + 2000)
        means = rng.standard_normal(size=(1000, 384), dtype=np.float32)
        X = np.empty((n + 2000, 384), np.float32)
        for first in range(0, len(X), 10_000):
            rows = X[first : first + 10_000]
            rows[:] = means[y[first : first + 10_000]]
            rows += 2 * rng.standard_normal(size=rows.shape, dtype=np.float32)
        (X, X_new), (y, y_new) = (np.split(part, [n]) for part in (X, y))
        wall, processor, adapter = timed(EmbeddingAdapter(64).fit, X, y)
        peak = memory() / 2**30
        few = slice(20_000)
        found = [
            score(transform, X_new, y_new, X[few], y[few])[1]
            for transform in (lambda Z: Z, adapter.transform)
        ]
        cells = [f"{wall:.0f}", f"{processor:.0f}", f"{peak:.1f}", *percent(found)]
        added(lines, [f"{n:,}", str(adapter.n_iter_), *cells])
    cost = ["passes", "fit, s", "processor s", "peak memory of the process, GB (the rows included)"]
    return table(
        ["rows", *cost, "precision@10 of 2,000 others among 20,000: raw", "adapter"], lines
    )


if __name__ == "__main__":
    command(
        banking, unseen, decisions, promises, growing, cranfield, grades, negatives, sets, scale
    )
