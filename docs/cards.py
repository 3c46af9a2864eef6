"""The small pictures on the cards of the front page: `python docs/cards.py` writes them into
`docs/images/cards`.

Each is drawn twice, for the light and for the dark theme, in the size in which it is shown: few
marks, and text that can be read. The pages that the cards lead to have the full pictures.
"""

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import (
    NCA,
    EmbeddingAdapter,
    Matcher,
    Migration,
    NCAClassifier,
    TDLClassifier,
    label_issues,
)
from nearkin.comparison import all_methods, compare
from nearkin.datasets import load

FOLDER = Path(__file__).parent / "images" / "cards"
SIZE = (2.8, 1.7)  # inches of 96 pixels: the width of a card
INK = {"light": "#222832", "dark": "#dbe1e8"}
BLUE = {"light": "#0072b2", "dark": "#56b4e9"}
ORANGE = {"light": "#b34a00", "dark": "#ff9a57"}
FAINT = {"light": "#5c6670", "dark": "#9aa5b0"}

Drawing = Callable[[Axes, str], None]


def table() -> Drawing:
    """Return the picture of the columns that move the wines farthest."""
    wine = load_wine(as_frame=True)
    model = NCAClassifier().fit(wine.data, wine.target)
    foremost = np.argsort(-model.feature_effects_)[:4][::-1]
    names = [wine.data.columns[column].replace("_", " ") for column in foremost]

    def draw(ax: Axes, theme: str) -> None:
        ax.barh(names, model.feature_effects_[foremost], color=BLUE[theme], height=0.6)
        ax.set_xticks([])
        ax.set_xlabel("moves rows by")

    return draw


def methods() -> Drawing:
    """Return the picture of a small ranking: held-out accuracy with intervals about that of raw
    k-NN.
    """
    balance = load("balance_scale")
    shown = ["PCA", "LDA", "DNE", "NCA"]
    chosen = [method for method in all_methods("classification") if method.name in shown]
    found = compare(
        balance.X, balance.y, methods=chosen, references=[], n_repeats=1, n_splits=5, refit=False
    )
    results = {result.name: result for result in found.results}
    raw = 100 * found.raw.score.mean()

    def draw(ax: Axes, theme: str) -> None:
        ax.axvline(raw, color=FAINT[theme], linestyle="--", linewidth=1.2)
        for place, name in enumerate(shown):
            low, high = raw + 100 * np.array(results[name].interval)
            color = BLUE[theme] if results[name].status == "better" else FAINT[theme]
            ax.plot(
                [low, high],
                [place, place],
                color=color,
                linewidth=6,
                alpha=0.45,
                solid_capstyle="round",
            )
            ax.plot(100 * results[name].score.mean(), place, "o", color=color, markersize=7)
        ax.set_yticks(range(len(shown)), shown)
        ax.set_ylim(-0.6, len(shown) - 0.4)
        ax.set_xlabel("accuracy, % (dashed: raw k-NN)")

    return draw


def search() -> tuple[np.ndarray, np.ndarray, np.ndarray, Callable[..., float]]:
    """Return stored images of digits, queries, the labels of the stored ones, and the precision at
    ten of both in any coordinates, in percent.
    """
    X, y = load_digits(return_X_y=True)
    stored, queries, y_stored, y_queries = train_test_split(
        X, y, test_size=400, stratify=y, random_state=0
    )

    def precision(stored: np.ndarray, queries: np.ndarray) -> float:
        index = NearestNeighbors(n_neighbors=10, metric="cosine").fit(stored)
        near = index.kneighbors(queries, return_distance=False)
        return 100 * float((y_stored[near] == y_queries[:, None]).mean())

    return stored, queries, y_stored, precision


def vectors() -> Drawing:
    """Return the picture of precision against bytes."""
    stored, queries, y_stored, precision = search()

    sizes = (4, 8, 16, 32)
    by_pca = [precision(*map(PCA(m).fit(stored).transform, (stored, queries))) for m in sizes]
    adapters = [EmbeddingAdapter(m).fit(stored, y_stored) for m in sizes]
    adapted = [
        precision(adapter.transform(stored), adapter.transform(queries)) for adapter in adapters
    ]
    raw = precision(stored, queries)

    def draw(ax: Axes, theme: str) -> None:
        n_bytes = 4 * np.array(sizes)
        ax.axhline(raw, color=FAINT[theme], linestyle="--", linewidth=1.2)
        ax.plot(n_bytes, adapted, "o-", color=BLUE[theme], linewidth=2)
        ax.plot(n_bytes, by_pca, "s-", color=ORANGE[theme], linewidth=2)
        ax.annotate(
            "adapter",
            (n_bytes[1], adapted[1]),
            (-8, 7),
            textcoords="offset points",
            color=BLUE[theme],
        )
        ax.annotate(
            "PCA",
            (n_bytes[1], by_pca[1]),
            (8, -10),
            textcoords="offset points",
            color=ORANGE[theme],
        )
        ax.set_xscale("log", base=2)
        ax.set_xticks(n_bytes, [str(size) for size in n_bytes])
        ax.set_xlabel("bytes a vector (dashed: raw, 256)")
        ax.set_ylabel("precision, %")
        ax.set_ylim(top=103)

    return draw


def doubts() -> Drawing:
    """Return the picture of the probabilities that labels are wrong, where ten were changed."""
    flowers = load_iris(as_frame=True).frame
    changed = np.random.default_rng(0).choice(len(flowers), 10, replace=False)
    flowers.loc[changed, "target"] = (flowers.loc[changed, "target"] + 1) % 3
    found = label_issues(flowers, "target")
    probability = 100 * found.probabilities
    is_changed = np.isin(found.rows, changed)

    def draw(ax: Axes, theme: str) -> None:
        places = np.arange(1, 31)
        for of, color, name in (
            (is_changed[:30], ORANGE, "label changed"),
            (~is_changed[:30], FAINT, "as it was"),
        ):
            ax.bar(places[of], probability[:30][of], color=color[theme], label=name)
        ax.set_xlabel("rows, the most doubtful first")
        ax.set_ylabel("wrong, %")
        ax.legend(frameon=False, labelcolor="linecolor", handlelength=1)

    return draw


def matches() -> Drawing:
    """Return the picture of the probabilities of new rows' best matches; half of them have none."""
    X, y = load_digits(return_X_y=True)
    learned, later, y_learned, y_later = train_test_split(
        X, y, test_size=600, stratify=y, random_state=0
    )
    stored = y_learned < 5
    adapter = EmbeddingAdapter(16, start="pca", max_iter=20)
    matcher = Matcher(adapter, expect="known", unanswerable=0.5).fit(learned, y_learned)
    found = matcher.best_match(later, learned[stored], precision=0.95)
    has_answer = y_later < 5
    taken = 100 * found.probabilities[found.rows >= 0].min()

    def draw(ax: Axes, theme: str) -> None:
        bins = np.linspace(0, 100, 21)
        ax.hist(
            [100 * found.probabilities[has_answer], 100 * found.probabilities[~has_answer]],
            bins,
            stacked=True,
            color=[BLUE[theme], FAINT[theme]],
            label=["has a match", "has none"],
        )
        ax.axvline(taken, color=ORANGE[theme], linestyle="--", linewidth=1.2)
        ax.set_yscale("log")
        ax.set_xlabel("a match, % (dashed: 95 % right)")
        ax.set_ylabel("new rows")
        ax.legend(frameon=False, labelcolor="linecolor", loc="upper center", handlelength=1)

    return draw


def new_model() -> Drawing:
    """Return the picture of the precision of a new model's queries in an index of the old one."""
    stored, queries, y_stored, precision = search()
    old, new = PCA(16).fit(stored), EmbeddingAdapter(16).fit(stored[:300], y_stored[:300])
    both = stored[:400]  # embedded by both models

    mapped = Migration(side="document").fit(old.transform(both), new.transform(both))
    found = {
        "old model": precision(old.transform(stored), old.transform(queries)),
        "old index, mapped": precision(
            mapped.transform(old.transform(stored)), new.transform(queries)
        ),
        "embed again": precision(new.transform(stored), new.transform(queries)),
    }

    def draw(ax: Axes, theme: str) -> None:
        for place, (name, color) in enumerate(zip(found, (FAINT, BLUE, FAINT), strict=True)):
            ax.plot(found[name], place, "o", color=color[theme], markersize=8)
        ax.set_yticks(range(len(found)), found)
        ax.set_ylim(len(found) - 0.5, -0.5)
        ax.margins(x=0.2)
        ax.set_xlabel("precision, %")

    return draw


def labels() -> Drawing:
    """Return the picture of accuracy against the number of labels of a class."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    counts, found = [1, 2, 3, 4], {"TDL": list[float](), "1-NN": list[float]()}
    for n_known in counts:
        scores = np.zeros((5, 2))
        for draw_number in range(5):
            rng = np.random.default_rng(draw_number)
            known = np.concatenate(
                [rng.choice(np.flatnonzero(y == c), n_known, replace=False) for c in range(10)]
            )
            partial = np.full(len(y), -1)
            partial[known] = y[known]
            hidden = partial == -1
            nearest = KNeighborsClassifier(1).fit(X[known], y[known]).predict(X[hidden])
            filled_in = TDLClassifier().fit(X, partial).transduction_[hidden]
            scores[draw_number] = np.mean(filled_in == y[hidden]), np.mean(nearest == y[hidden])
        for name, score in zip(found, 100 * scores.mean(axis=0), strict=True):
            found[name].append(float(score))

    def draw(ax: Axes, theme: str) -> None:
        for (name, accuracy), color, marker in zip(
            found.items(), (BLUE, ORANGE), "os", strict=True
        ):
            ax.plot(counts, accuracy, marker + "-", color=color[theme], linewidth=2)
            ax.annotate(
                name,
                (counts[2], accuracy[2]),
                (-6, -17),
                textcoords="offset points",
                color=color[theme],
            )
        ax.set_xticks(counts)
        ax.set_xlabel("labels of each class")
        ax.set_ylabel("right, %")

    return draw


def picture() -> Drawing:
    """Return the map of held-out images of five digits."""
    X, y = load_digits(n_class=5, return_X_y=True)
    train, held_out, y_train, y_held_out = train_test_split(
        X / 16, y, test_size=150, stratify=y, random_state=0
    )
    nca = NCA(2).fit(train, y_train)
    Z = nca.transform(held_out)
    right = KNeighborsClassifier(3).fit(nca.transform(train), y_train).score(Z, y_held_out)

    def draw(ax: Axes, theme: str) -> None:
        for digit, (color, marker) in enumerate(
            zip((BLUE, ORANGE, FAINT, BLUE, ORANGE), "os^DX", strict=True)
        ):
            of_digit = Z[y_held_out == digit]
            ax.plot(*of_digit.T, marker, color=color[theme], markersize=4.5, alpha=0.85)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"held-out rows, {100 * right:.0f} % right")

    return draw


def pipeline() -> Drawing:
    """Return the picture of the errors of k-NN with and without NCA before it."""
    sets = {"iris": "iris", "breast\ncancer": "breast_cancer", "balance": "balance_scale"}
    steps = {"3-NN": [], "NCA, 3-NN": [NCA()]}
    errors = {name: list[float]() for name in steps}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for dataset in map(load, sets.values()):
        for name, before in steps.items():
            model = make_pipeline(StandardScaler(), *before, KNeighborsClassifier(3))
            errors[name].append(
                100 * (1 - cross_val_score(model, dataset.X, dataset.y, cv=folds).mean())
            )

    def draw(ax: Axes, theme: str) -> None:
        places = np.arange(len(sets))
        for shift, (name, color) in zip(
            (-0.2, 0.2), (("3-NN", FAINT), ("NCA, 3-NN", BLUE)), strict=True
        ):
            ax.bar(places + shift, errors[name], width=0.38, color=color[theme], label=name)
        ax.set_xticks(places, sets)
        ax.set_ylabel("wrong, %")
        ax.legend(frameon=False, labelcolor="linecolor", loc="upper left", handlelength=1)

    return draw


DRAWINGS = (
    *(table, methods, doubts, vectors, matches),
    *(new_model, labels, picture, pipeline),
)


def main() -> None:
    """Write every picture in both themes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "nearkin"  # the same file every time
    for drawing in DRAWINGS:
        draw = drawing()
        for theme, ink in INK.items():
            colors = (
                "text.color",
                "axes.labelcolor",
                "xtick.color",
                "ytick.color",
                "axes.edgecolor",
            )
            with mpl.rc_context({"font.size": 9.5, **dict.fromkeys(colors, ink)}):
                fig, ax = plt.subplots(figsize=SIZE, layout="constrained")
                draw(ax, theme)
                ax.spines[["top", "right"]].set_visible(False)
                fig.savefig(
                    FOLDER / f"{drawing.__name__}_{theme}.svg",
                    transparent=True,
                    metadata={"Date": None},
                )
                plt.close(fig)


if __name__ == "__main__":
    main()
