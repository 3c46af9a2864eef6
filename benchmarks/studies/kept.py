"""Does what `nearkin compare --save` keeps hold on new rows? A third of each table is withheld, and
predicted by it.

    NEARKIN_DATA=folder python -m benchmarks.studies.kept [--names NAME ...]

Prints Markdown: for every table the score that ranks; on the withheld rows that of the saved model,
of the plain predictor for tables, random forest and gradient boosting; how many standard errors the
saved model is behind the plain one, paired by row; what the comparison promised, and how many
standard errors of both that is above the fresh score; and the doubts that its verdict names. Four
tables are made to deceive: rows of machines that are not among the withheld ones, a column that
copies the target while training, a class of one row in two hundred, and twelve noisy copies of
every row. Of two, the command is told the groups: of the machines, and of patients with five visits
each, more than 2,000 rows. Of the folder, those of the half of `tables.py` by which no setting was
chosen, and one of more than 2,000 training rows, many of which have a twin; without it, only the
tables that are made here.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from benchmarks import data
from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin import NCAClassifier, NCARegressor, TableEncoder
from nearkin.app.cli import main
from nearkin.comparison import SCORES

CLASSES = (
    "automobile", "contraceptive", "german", "mammographic", "saheart", "spectfheart", "winequality_white",
)  # fmt: skip
NUMBERS = ("forestfires", "medical_cost", "quake", "wizmir")
MODELS = {
    "classification": (NCAClassifier, RandomForestClassifier, HistGradientBoostingClassifier),
    "regression": (NCARegressor, RandomForestRegressor, HistGradientBoostingRegressor),
}


def machines(rng: np.random.Generator) -> pd.DataFrame:
    """Faults that go with the machine: its rows look alike, those of another one do not tell."""
    machine = np.repeat(np.arange(60), 20)
    offsets, faulty = rng.normal(size=(60, 6)) * 2, rng.random(60) < 0.5
    flipped = rng.random(len(machine)) < 0.05
    frame = pd.DataFrame(offsets[machine] + 0.4 * rng.normal(size=(len(machine), 6))).add_prefix(
        "sensor "
    )
    frame["machine"] = [f"M{number:03d}" for number in machine]
    frame["target"] = np.where(faulty[machine] ^ flipped, "fault", "fine")
    return frame


def leaking(rng: np.random.Generator) -> pd.DataFrame:
    """A column that is filled in after the outcome is known; of new rows it is not."""
    X = rng.normal(size=(900, 5))
    y = X[:, 0] + rng.normal(size=900) > 0
    frame = pd.DataFrame(X).add_prefix("x")
    frame["refund"] = np.where(y ^ (rng.random(900) < 0.003), 1.0, 0.0) * rng.integers(50, 90, 900)
    return frame.assign(target=np.where(y, "claim", "none"))


def rare(rng: np.random.Generator) -> pd.DataFrame:
    """One row in two hundred is of the class that matters."""
    y = rng.random(8000) < 0.005
    X = rng.normal(size=(8000, 8)) + 1.2 * y[:, None] * (np.arange(8) < 3)
    return pd.DataFrame(X).add_prefix("x").assign(target=np.where(y, "fraud", "fine"))


def copies(rng: np.random.Generator) -> pd.DataFrame:
    """Twelve noisy copies of every row; the labels mean nothing."""
    X, y = rng.normal(size=(80, 6)), rng.permutation(np.repeat(["a", "b"], 40))
    rows = np.repeat(np.arange(80), 12)
    frame = pd.DataFrame(X[rows] + 0.001 * rng.normal(size=(len(rows), 6))).add_prefix("x")
    return frame.assign(target=y[rows], original=rows)


def visits(rng: np.random.Generator) -> pd.DataFrame:
    """Five visits of every patient, which vary less than patients do, as does their diagnosis."""
    patient = np.repeat(np.arange(700), 5)
    X, effect = rng.normal(size=(700, 6)), rng.normal(size=700)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 1.5 * effect > 0
    flipped = rng.random(len(patient)) < 0.1
    frame = pd.DataFrame(X[patient] + 0.1 * rng.normal(size=(len(patient), 6))).add_prefix("x")
    frame["town"] = [f"T{number // 3:03d}" for number in patient]  # of three patients each
    return frame.assign(patient=patient, target=np.where(y[patient] ^ flipped, "ill", "well"))


MADE: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "machines": machines,
    "leaking": leaking,
    "rare": rare,
    "copies": copies,
    "told machines": machines,
    "visits": visits,
}
# of which new rows are new ones, and where the command is told
GROUPS = dict(
    zip(
        ("machines", "copies", "told machines", "visits"),
        ("machine", "original", "machine", "patient"),
        strict=True,
    )
)
TOLD = ("told machines", "visits")


def two_parts(name: str, frame: pd.DataFrame, task: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training rows and withheld ones, as new rows would come."""
    of_classes = StratifiedShuffleSplit if task == "classification" else ShuffleSplit
    splitter = GroupShuffleSplit if name in GROUPS else of_classes
    split = splitter(1, test_size=1 / 3, random_state=0).split(
        frame, frame["target"], frame.get(GROUPS.get(name))
    )
    train, fresh = (frame.iloc[rows].reset_index(drop=True) for rows in next(split))
    return train, fresh.assign(refund=0.0) if name == "leaking" else fresh


def standard_error(contributions: np.ndarray, groups: np.ndarray) -> float:
    """Return the standard error of a mean over rows, of which those of a group depend on one
    another.
    """
    sums = pd.Series(contributions - contributions.mean()).groupby(groups).sum().to_numpy()
    return float(np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(contributions))


def shared_rows(protocol: dict) -> float:
    """Return held-out rows over training rows: what folds share adds so much to the variance of
    their mean (Nadeau and Bengio, Machine Learning 52, 2003).
    """
    folds = protocol["folds"] / protocol["repeats"]
    return 1 / (folds - 1) if folds > 1 else 0.0


def saved(
    train: pd.DataFrame, fresh: pd.DataFrame, task: str, folder: Path, groups: str | None
) -> tuple[pd.DataFrame, dict]:
    """Return what the saved model predicts of the withheld rows, and the report of the comparison,
    which may be told the column of groups.
    """
    train.to_csv(folder / "train.csv", index=False)
    fresh.drop(columns="target").to_csv(folder / "fresh.csv", index=False)
    compare = ["compare", "train.csv", "--target", "target", "--task", task, "--picture", "p.png"]
    compare += ["--groups", groups] if groups else []
    predict = ["predict", "m.safetensors", "fresh.csv", "-o", "p.csv", "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
        compared = main([*compare, "--save", "m.safetensors", "--json", "r.json", "--quiet"])
        assert compared == main(predict) == 0
    report = json.loads((folder / "r.json").read_text())
    return pd.read_csv(folder / "p.csv"), report


def shares(predicted: pd.DataFrame, classes: np.ndarray) -> np.ndarray:
    """Return probabilities of the classes, as far as the columns of the command tell them."""
    columns = [f"probability of {name}" for name in classes]
    if set(columns) <= set(predicted.columns):
        return predicted[columns].to_numpy()
    share = predicted["vote" if "vote" in predicted else "probability"].to_numpy()
    own = predicted["label"].astype(str).to_numpy()[:, None] == classes.astype(str)
    return np.where(own, share[:, None], (1 - share[:, None]) / max(1, len(classes) - 1))


def evaluate(name: str, frame: pd.DataFrame, task: str, folder: Path) -> list[str]:
    """Return the cells of a table."""
    train, fresh = two_parts(name, frame, task)
    groups = fresh[GROUPS[name]].to_numpy() if name in GROUPS else np.arange(len(fresh))
    train, fresh = (part.drop(columns="original", errors="ignore") for part in (train, fresh))
    told = GROUPS[name] if name in TOLD else None
    predicted, report = saved(train, fresh, task, folder, told)
    if told:
        train, fresh = (part.drop(columns=told) for part in (train, fresh))
    score = SCORES[task][report["score"]["name"]]
    classes = np.unique(train["target"])
    truth = fresh["target"].to_numpy()
    y = np.searchsorted(classes, truth) if task == "classification" else truth.astype(float)
    X, new = train.drop(columns="target"), fresh.drop(columns="target")
    of_rows = {}
    kept = shares(predicted, classes) if task == "classification" else predicted["value"].to_numpy()
    of_rows["kept"] = score.contributions(y, kept)
    for key, model in zip(("plain", "forest", "boosting"), MODELS[task], strict=True):
        model = model(random_state=0)
        if key != "plain":
            model = make_pipeline(
                TableEncoder(missing="keep"), SimpleImputer(keep_empty_features=True), model
            )
        model.fit(X, train["target"])
        found = model.predict_proba(new) if task == "classification" else model.predict(new)
        of_rows[key] = score.contributions(y, found)
    behind = score.sign * (of_rows["plain"] - of_rows["kept"])
    error = standard_error(behind, groups)
    choice = next(line for line in report["ranking"] if line["kind"] == "choice")
    fresh_score, promised = of_rows["kept"].mean(), choice["score"]
    of_promise = (choice["deviation"] or 0.0) * np.sqrt(
        1 / len(choice["folds"]) + shared_rows(report["protocol"])
    )
    of_both = np.hypot(standard_error(of_rows["kept"], groups), of_promise)
    method = max(choice["choices"], key=lambda one: one["folds"])["params"]["method"]
    cells = [name, score.name, *(f"{of_rows[key].mean():.3f}" for key in of_rows)]
    cells += [f"{behind.mean() / error if error else 0:+.2f}", f"{promised:.3f}"]
    cells += [f"{score.sign * (promised - fresh_score) / of_both:+.1f}", method]
    return [*cells, ", ".join(doubt["code"] for doubt in report["doubts"])]


def kept(names: tuple[str, ...] = ()) -> None:
    """Print a line for every table."""
    heads = ("kept", "plain", "forest", "boosting", "behind", "promised", "above", "choice")
    head("table", "score", *heads, "doubts")
    made = [
        (name, lambda make=make: make(np.random.default_rng(0)), "classification")
        for name, make in MADE.items()
    ]
    stored = [
        (name, lambda name=name: data.frame(name), task)
        for task, group in (("classification", CLASSES), ("regression", NUMBERS))
        for name in group
    ]
    for name, read, task in made + stored:
        if names and name not in names:
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                row(*evaluate(name, read(), task, Path(folder)))
        except FileNotFoundError as error:
            print(f"{name}: left out ({error})", file=sys.stderr)


if __name__ == "__main__":
    command(kept)
