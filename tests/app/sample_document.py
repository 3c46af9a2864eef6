"""Documents such as `nearkin compare --json` writes (docs/guide/json.md), made up to look at the
page.

By hand: `python -m tests.app.sample_document FOLDER` writes a page of each.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

from nearkin.app.document import write_page

DOCUMENTED = Path(__file__).parents[2] / "docs" / "guide" / "json.md"
EVIL = "</script><img src=x onerror=alert(1)>"
NASTY = f"{EVIL}\"'&lt;$title\x00\x1b\u202eabc\u2028"
METHODS = (
    "NCA", "NCA log", "LDE", "LFDA", "LDA", "RCA", "GMML", "DMLMJ", "DNE", "NMMP ratio trace", "NMMP", "MFA", "LMNN",
    "PCA", "raw k-NN", "LPP", "ANMM",
)  # fmt: skip
ACCURACY = {"name": "accuracy", "title": "Accuracy", "axis": "Accuracy on held-out rows, %", "factor": 100, "unit": "%",
            "decimals": 1, "sign": 1}  # fmt: skip
BALANCED = ACCURACY | {"name": "balanced_accuracy", "title": "Balanced accuracy"}
R2 = {
    "name": "r2",
    "title": "R²",
    "axis": "R² on held-out rows",
    "factor": 1,
    "unit": "",
    "decimals": 3,
    "sign": 1,
}
MAE = R2 | {"name": "mae", "title": "Mean absolute error", "decimals": None, "sign": -1}
NO_NEIGHBORS = {
    "kind": "reference",
    "status": "reference",
    "neighbors": None,
    "soft": None,
    "dimension": None,
}
MODELS = {
    "random forest": 0.3,
    "gradient boosting": 0.15,
    "logistic regression": 0.5,
    "majority": 2.6,
}


def sample(labels=("L", "B", "R"), *, methods=METHODS, name="balance_scale", target="side", single=False, dimensions=2,
           points=125, wrap=str):  # fmt: skip
    """Return a document of a classification with these labels, or, if there are none, of a
    regression.

    Parameters
    ----------
    labels : sequence of str or None
    methods : sequence of str
    name, target : str
    single : bool
        One split, thus one fold, no deviation and no p.
    dimensions : int
        Of the maps, 1 or 2.
    points : int
        Drawn in a map.
    wrap : callable
        What becomes of every name of a row, a column and a class.
    """
    rng, n_folds = np.random.default_rng(0), 1 if single else 15
    labels = None if labels is None else [wrap(label) for label in labels]
    score, beside = (R2, MAE) if labels is None else (ACCURACY, BALANCED)
    title = {"score": score, "beside": beside}
    rows = [
        _line(rng, method, place / len(methods), n_folds, beside)
        for place, method in enumerate(methods)
    ]
    base = next(row for row in rows if row["kind"] == "baseline")
    choice = _line(rng, "automatic choice", 0.01, n_folds, beside) | {"kind": "choice"}
    references = [
        _line(rng, name_, place, n_folds, beside) | NO_NEIGHBORS for name_, place in MODELS.items()
    ]
    for row in [choice, *rows, *references]:
        row["difference"] = row["score"] - base["score"]
        if row is not base:
            row["low"], row["high"] = row["difference"] - 0.03, row["difference"] + 0.03
        if row["kind"] in ("choice", "method"):
            row["status"] = (
                "better" if row["low"] > 0 else "worse" if row["high"] < 0 else "unclear"
            )
            row["p"] = None if single else 0.00003 if row["status"] != "unclear" else 0.43
        row["written"] = {
            "score": _written(row["score"], score),
            "second": _written(row["scores"][beside["name"]], beside),
            **{
                name: _written(row[name], score, sign="+") for name in ("difference", "low", "high")
            },
        }
    said = [
        f"{score['factor'] * row['score']:.{score['decimals']}f}{score['unit']}"
        for row in (choice, base)
    ]
    found = (
        f"k-NN is more accurate after a chosen map than on the raw features: {said[0]} against "
        f"{said[1]}"
    )
    n_classes = 0 if labels is None else len(labels)
    counts = None if labels is None else rng.integers(20, 300, n_classes).tolist()
    answers = (
        rng.uniform(5, 50, points).round(2)
        if labels is None
        else rng.integers(0, n_classes, points)
    )
    maps = [_map(rng, row, answers, dimensions) for row in rows if row["kind"] == "method"]
    return {
        "format": 1, "nearkin": "0.3.0", "command": ["nearkin", "compare", name, "--target", target],
        "versions": {"Python": "3.11.2", "NumPy": "2.4.6", "SciPy": "1.17.1", "scikit-learn": "1.8.0"},
        "machine": "Linux-6.1-x86_64", "seed": 0, "seconds": 17.2,
        "table": {
            "name": name, "rows": 625, "labelled": 625, "columns": 4, "features": 4, "sparse": False, "target": target,
            "task": "regression" if labels is None else "classification",
            "n_classes": labels and n_classes,
            "classes": labels and [{"label": a, "rows": b} for a, b in zip(labels, counts, strict=True)],
            "range": [5.0, 50.0] if labels is None else None,
            "largest_class": None if labels is None else f"{max(counts) / sum(counts):.1%}", "groups": None,
            "n_left_out": 1, "left_out": [{"column": wrap("id"), "reason": "a different text in every row"}],
            "suspicious": [{"column": wrap("weight_copy"), "score": 0.99}], "group_hints": [wrap("patient")],
            "missing": {"cells": 14, "n_features": 1, "features": [{"feature": wrap("left weight"), "rows": 14}]},
            "twins": {"rows": 12, "share": 0.0192, "kept": False},
        },
        "protocol": {
            "folds": n_folds, "repeats": 1 if single else 3, "held_out_rows": 125 if single else 625,
            "training_rows": 500, "scaled": True, "neighbors": None,
            "test": "corrected resampled t-test, paired by fold; Holm over the methods",
            "tests": len(methods), "detectable": 0.021,
        },
        **title,
        "verdict": f"{found} of held-out rows, p <0.001 after Holm over {len(methods)} methods.\nA second line.",
        "doubts": [],
        "quote": f"{found} of held-out rows of {name} (625 rows, p <0.001; nearkin 0.3.0).",
        "notes": ["LMNN (3 fits) warned: it did not converge.", "10 folds reduced to 5 folds: a class has 5 rows."],
        "ranking": [choice, *rows, *references],
        "columns": _columns(rng, [wrap(f"{label} tail") for label in labels or "abcdefg"][:20], wrap),
        "curves": [_curve(rng, row, n_folds) for row in rows],
        "rows": _rows(rng, answers, wrap) if maps else None, "maps": maps,
        "confusion": None if labels is None else _confusion(rng, methods[0], labels),
    }  # fmt: skip


def _written(value, by, sign=""):
    form = f"{sign}.3g" if by["decimals"] is None else f"{sign}.{by['decimals']}f"
    return None if value is None else f"{by['factor'] * value:{form}}"


def _line(rng, name, place, n_folds, beside):
    folds = (0.955 - 0.16 * place + rng.normal(0, 0.017, n_folds)).round(5)
    baseline = name == "raw k-NN"
    return {
        "name": name, "kind": "baseline" if baseline else "method", "status": "baseline" if baseline else "unclear",
        "score": folds.mean(), "deviation": folds.std(ddof=1) if n_folds > 1 else None, "folds": folds.tolist(),
        "scores": {beside["name"]: folds.mean() - 0.05}, "difference": 0.0,
        "low": None, "high": None, "p": None, "dimension": [2, 4, 4],
        "neighbors": [3, 9, 15], "soft": 0.4, "fit_seconds": 0.096, "learned_rows": 400 if name == "LMNN" else 500,
        "summary": f"{name}: the first line of its documentation.",
        "choices": [{"folds": n_folds, "params": {"init": "pca"}}] if name == "NCA" else [],
    }  # fmt: skip


def _columns(rng, levels, wrap):
    names = [
        wrap(name)
        for name in ("left weight", "left distance", "kind", *(f"column {i}" for i in range(12)))
    ]
    edges = np.sort(rng.lognormal(8, 1, 9)).round(2)
    number = {
        "edges": edges.tolist(),
        "levels": None,
        "places": rng.normal(0, 1, (3, 9)).cumsum(axis=1).tolist(),
    }
    category = {
        "edges": None,
        "levels": levels,
        "places": rng.normal(0, 1, (3, len(levels))).tolist(),
        "missing": None,
    }
    return {
        "squared": True, "axes": [0.6, 0.3, 0.05], "n_columns": 60,
        "effects": [{"column": name, "effect": 3.21 / (i + 1) ** 2} for i, name in enumerate(names)],
        "curves": [{"name": names[0], **number, "missing": [1.0, -2.5, 0.3]},
                   {"name": names[1], **number, "missing": None}, {"name": names[2], **category}],
    }  # fmt: skip


def _curve(rng, row, n_folds):
    dimension = [4] if row["kind"] == "baseline" else [1, 2, 3, 4]
    mean = row["score"] - 0.1 / np.array(dimension)
    ends = {"mean": mean, "low": mean - 0.02, "high": mean + 0.02}
    return {"name": row["name"], "dimension": dimension} | {
        key: v.round(5).tolist() for key, v in ends.items()
    }


def _rows(rng, answers, wrap):
    n = len(answers)
    return {
        "held_out": n, "name": [wrap(f"row {i}") for i in range(2 * n)],
        "answer": [*answers.tolist(), *answers.tolist()],
        "values": {wrap("left weight"): rng.integers(1, 6, n).tolist()},
    }  # fmt: skip


def _map(rng, row, answers, dimensions):
    n, turn = len(answers), 2 * np.pi * answers / (np.ptp(answers) + 1)
    return {
        "name": row["name"], "vote": "15-NN", "score": row["score"], "said": f"is right in {100 * row['score']:.1f}%",
        "x": (3 * np.cos(turn) + rng.standard_normal(n)).round(3).tolist(),
        "y": (3 * np.sin(turn) + rng.standard_normal(n)).round(3).tolist() if dimensions > 1 else None,
        "near": rng.integers(n, 2 * n, (n, 3)).tolist(),
    }  # fmt: skip


def _confusion(rng, name, labels):
    n = len(labels)
    shares = []
    for errors in (20.0, 6.0):
        matrix = rng.random((n, n)) ** 4
        np.fill_diagonal(matrix, 0)
        matrix *= errors / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-9)
        np.fill_diagonal(matrix, 100 - matrix.sum(axis=1))
        shares.append(matrix.round(2).tolist())
    return {
        "name": name,
        "labels": list(labels),
        "classes": n,
        "before": shares[0],
        "after": shares[1],
    }


def large():
    """Return a document whose figures are as long as any: an error in a large unit, many
    dimensions, long fits.
    """
    document = sample(
        None,
        name="houses",
        target="price",
        methods=("MLKR", "NCA tables", "raw k-NN", "NMMP ratio trace"),
    )
    document |= {"score": MAE, "beside": R2}
    for row in document["ranking"]:
        for key in ("score", "deviation", "difference", "low", "high"):
            row[key] = row[key] and 123456.0 * row[key]
        row["folds"] = [123456.0 * fold for fold in row["folds"]]
        row |= {"scores": {"r2": 0.123}, "fit_seconds": 1234.5, "p": row["p"] and 0.0012}
        if row["kind"] != "reference":
            row |= {"dimension": [100, 784, 1234], "neighbors": [10, 25, 100]}
    return document


LONG = [f"Species number {i} of the genus Tyrannosauropteryx, with a long label" for i in range(50)]
SAMPLES = {
    "classes": lambda: sample(),
    "fifty": lambda: sample(LONG, points=1000),
    "regression": lambda: sample(None, name="houses", target="price", methods=("MLKR", "NCA", "raw k-NN", "PCA")),
    "large": large,
    "evil": lambda: sample(("a", "b", "c"), name=NASTY, target=NASTY, wrap=lambda text: f"{NASTY}{text}",
                           methods=(f"NCA {NASTY}", "raw k-NN", "PCA")),
    "few": lambda: sample(methods=("PCA", "raw k-NN")) | {"curves": [], "notes": []},
    "raw": lambda: sample(methods=("raw k-NN",)) | {"confusion": None},
    "strip": lambda: sample(dimensions=1),
    "strip_regression": lambda: sample(None, dimensions=1, methods=("PCA", "raw k-NN")),
    "single": lambda: sample(("cat", "dog"), single=True, methods=("NCA", "PCA", "raw k-NN")),
}  # fmt: skip


def documented_keys():
    """Return the keys that docs/guide/json.md names, by its headings."""
    sections, name = {}, ""
    for line in DOCUMENTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            name = line[3:].strip("`")
        elif line.startswith("| `"):
            of_command = name.startswith("nearkin")  # whose lines also name keys further down
            text = line if of_command else line.split("|")[1]
            sections.setdefault(name, set()).update(re.findall("`([a-z_]+)`", text))
    return {name: keys - {"null"} for name, keys in sections.items()}


def keys_of(document, name=""):
    """Return the keys of a document at all levels, but for names of scores, settings and parts."""
    found = set()
    if isinstance(document, dict):
        found = set() if name in ("queries", "settings", "scores", "by_part") else set(document)
    children = document.items() if isinstance(document, dict) else enumerate(document)
    for key, child in children:
        if isinstance(child, dict | list):
            found |= keys_of(child, key)
    return found


def document_in(page):
    """Return the document that a page draws."""
    data = Path(page).read_text(encoding="utf-8").partition('id="data">')[2]
    return json.loads(data.partition("</script>")[0])


def main(folder):
    """Write a page of every sample into a folder."""
    for name, make in SAMPLES.items():
        path = Path(folder) / f"{name}.html"
        write_page(path, make())
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1])
