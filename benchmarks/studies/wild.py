"""Tables as people publish them, nothing cleaned: NCA on the raw frame against what a user would take instead.

    pip install skrub catboost
    NEARKIN_DATA=folder python -m benchmarks.studies.wild raw cleaned promises --document docs/measured/wild.md

A third of the rows is withheld, at random or, where rows are of different times, the last ones. A file is read as
`pandas.read_csv` reads it; for "cleaned", as somebody leaves it who has looked at it: numbers and dates parsed,
identifiers and notes dropped. Every fit has one thread. "promises" gives the files to the command as they are, a third
of their rows drawn at random aside, and compares what it promises with what these rows show: the score of the saved
model, and the share of them within its sets and intervals of 90 %.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer, tabular_pipeline

from benchmarks.data import path
from benchmarks.measure import Kept, command, timed
from benchmarks.report import mean_ranks, table
from nearkin import NCAClassifier, NCARegressor

RESULTS = Path("benchmarks", "results", "wild.jsonl")
SMALLEST = 1e-4  # probability of the true class in the log loss, so that one row decides no table


@dataclass(frozen=True)
class Wild:
    """A table: its target, how its rows are withheld, and what somebody mends who has looked at it.

    Attributes
    ----------
    target : str
    is_real : bool
        Whether numbers are predicted.
    time : str
        The column by which the last third of the rows is withheld; "" for a random third.
    left_out : tuple of str
        Columns that are known only after the target.
    reading : dict
        Arguments of `pandas.read_csv`.
    numbers, dates, dropped : tuple of str
        Columns to be parsed or dropped by hand.
    n_header : int
        Lines above the first row.
    """

    target: str
    is_real: bool = False
    time: str = ""
    left_out: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    n_header: int = 1


BRAZILIAN = {"sep": ";", "encoding": "cp1252"}
TABLES = {
    "thanksgiving": Wild("How would you describe where you live?", dropped=("RespondentID",)),
    "steak": Wild("How do you like your steak prepared?", dropped=("RespondentID",), n_header=2),
    "sleeping": Wild(
        "Which of the following best describes your current relationship status?",
        reading={"encoding": "cp1252"},
        dates=("StartDate", "EndDate"),
        n_header=2,
    ),
    "focus": Wild(
        "price",
        is_real=True,
        numbers=("mileage", "mileage2", "engine size", "engine size2"),
        dropped=("reference",),
    ),
    "caixa": Wild(
        "Preço",
        is_real=True,
        reading=BRAZILIAN,
        numbers=("Valor de avaliação", "Desconto"),
        dropped=(" N° do imóvel", "Link de acesso"),
    ),
    "lublin": Wild("price", is_real=True, dropped=("Unnamed: 0",)),
    "telco": Wild("Churn", numbers=("TotalCharges",), dropped=("customerID",)),
    "weather": Wild("weather", time="date", dates=("date",)),
    "birds": Wild(
        "Effect Amount of damage",
        time="Flight Date",
        left_out=("Cost Other", "Cost Repair", "Cost Total $"),
        reading={"keep_default_na": False, "na_values": [""]},  # "None" is no damage
        numbers=("Speed IAS in knots",),
        dates=("Flight Date",),
    ),
    "inspections": Wild("inspection_score", is_real=True, time="Year", dropped=("rownames",)),
    "kershaw": Wild("PitchType", time="Time", dates=("Time",), dropped=("rownames",)),
    "cats": Wild("intake_condition", dropped=("rownames",)),
    "credit": Wild("Status", dropped=("rownames",)),
}


def as_number(cell: Any) -> float:
    """Return the first number in a cell, NaN without one.

    A comma before two last digits, or one, is a decimal mark.
    """
    text = str(cell)
    marked = re.sub(r",(?=\d{1,2}\b)", "_", text)
    plain = text.replace(",", "") if marked == text else marked.replace(".", "")
    found = re.search(r"-?\d+(?:[._]\d+)?", plain)
    return float(found[0].replace("_", ".")) if found else np.nan


def withheld(
    name: str, *, cleaned: bool
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return frame and target of the rows to learn from, and of those withheld."""
    table = TABLES[name]
    frame = pd.read_csv(path("wild", f"{name}.csv.gz"), low_memory=False, **table.reading)
    if table.is_real:
        frame["target of numbers"] = frame[table.target].map(as_number)
        known = frame["target of numbers"].notna()
        y = frame.pop("target of numbers")[known].to_numpy()
    else:
        known = frame[table.target].notna()
        known &= frame.groupby(table.target)[table.target].transform("size") > 1
        y = frame.loc[known, table.target].astype(str).to_numpy()
    frame = frame[known].reset_index(drop=True)
    n = len(frame)
    if table.time:
        order = np.argsort(frame[table.time].to_numpy(), kind="stable")
        train, test = order[: n - n // 3], order[n - n // 3 :]
    else:
        stratify = None if table.is_real else y
        train, test = train_test_split(
            np.arange(n), test_size=n // 3, random_state=0, stratify=stratify
        )
    X = frame.drop(columns=[table.target, *table.left_out])
    if cleaned:
        X = X.drop(columns=list(table.dropped))
        for column in table.numbers:
            X[column] = X[column].map(as_number)
        for column in table.dates:
            dates = pd.to_datetime(X[column], format="mixed", errors="coerce", utc=True)
            X[column] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
            X[f"{column}, day of the year"] = dates.dt.day_of_year
            X[f"{column}, hour"] = dates.dt.hour
    X, X_test = (X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    return X, y[train], X_test, y[test]


class Words(TransformerMixin, BaseEstimator):
    """Columns of text as text without gaps, for CatBoost's `cat_features`."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Words:
        self.names_ = list(X.select_dtypes(exclude="number"))
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        texts = {name: X[name].astype(object).fillna("").astype(str) for name in self.names_}
        return X.assign(**texts)


def catboost(X: pd.DataFrame, *, is_real: bool) -> Any:
    model = CatBoostRegressor if is_real else CatBoostClassifier
    words = list(X.select_dtypes(exclude="number"))
    options = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return make_pipeline(Words(), model(cat_features=words, **options))


def nca(X: pd.DataFrame, *, is_real: bool) -> Any:
    return (NCARegressor if is_real else NCAClassifier)(random_state=0)


def boosting(X: pd.DataFrame, *, is_real: bool) -> Any:
    model = HistGradientBoostingRegressor if is_real else HistGradientBoostingClassifier
    return tabular_pipeline(model(random_state=0))


def forest(X: pd.DataFrame, *, is_real: bool) -> Any:
    model = RandomForestRegressor if is_real else RandomForestClassifier
    return tabular_pipeline(model(random_state=0))


def nca_behind_skrub(X: pd.DataFrame, *, is_real: bool) -> Any:
    return make_pipeline(TableVectorizer(), nca(X, is_real=is_real))


METHODS: dict[str, Callable[..., Any]] = {
    "NCA, raw frame": nca,
    "skrub + boosting": boosting,
    "CatBoost": catboost,
    "skrub + forest": forest,
    "skrub + NCA": nca_behind_skrub,
}
RANKED = tuple(METHODS)[:4]


def scores(model: Any, X: pd.DataFrame, y: np.ndarray, *, is_real: bool) -> tuple[float, float]:
    """Return R2 and the mean absolute error over that of the median, or accuracy and log loss."""
    if is_real:
        predicted = np.ravel(model.predict(X))
        r2 = 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)
        return r2, np.abs(y - predicted).mean() / np.abs(y - np.median(y)).mean()
    P, classes = model.predict_proba(X), {c: at for at, c in enumerate(model.classes_.tolist())}
    at = np.array([classes.get(label, -1) for label in y.tolist()])
    of_truth = np.where(at < 0, 0, P[np.arange(len(y)), at])
    return np.mean(P.argmax(axis=1) == at), -np.log(np.maximum(of_truth, SMALLEST)).mean()


def parts(name: str, folder: Path) -> pd.DataFrame:
    """Write two thirds of the records of a file, and the others, as they are; return these as a frame."""
    table = TABLES[name]
    encoding = table.reading.get("encoding", "utf-8")
    with gzip.open(path("wild", f"{name}.csv.gz"), "rt", encoding=encoding, newline="") as file:
        lines = file.readlines()
    reader, records, start = csv.reader(lines, delimiter=table.reading.get("sep", ",")), [], 0
    for _ in reader:
        records.append("".join(lines[start : reader.line_num]))
        start = reader.line_num
    header, rows = records[: table.n_header], np.array(records[table.n_header :], dtype=object)
    is_new = np.random.default_rng(0).permutation(len(rows)) < len(rows) // 3
    for part, chosen in (("old", ~is_new), ("new", is_new)):
        text = "".join([*header, *rows[chosen]])
        Path(folder, f"{part}.csv").write_text(text, encoding=encoding, newline="")
    return pd.read_csv(
        Path(folder, "new.csv"),
        low_memory=False,
        skip_blank_lines=False,
        skiprows=range(1, table.n_header),
        **table.reading | {"keep_default_na": False},
    )


def promised(name: str) -> list[str]:
    """Return what the command promises for new rows, and what these show."""
    table = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        new = parts(name, Path(folder))
        train = ["compare", "old.csv", "--target", table.target, "--quick", "--json", "c.json"]
        train += ["--save", "m.safetensors", *(["--task", "regression"] if table.is_real else [])]
        predict = ["predict", "m.safetensors", "new.csv", "--coverage", "0.9", "-o", "out.csv"]
        for words in (train, predict):
            called = [sys.executable, "-m", "nearkin", *words]
            run = subprocess.run(called, cwd=folder, capture_output=True, text=True)
            if run.returncode:
                return [f"refused: {run.stderr.strip().splitlines()[-1][:200]}"]
        found = json.loads(Path(folder, "c.json").read_text())
        out = pd.read_csv(Path(folder, "out.csv"), keep_default_na=False)
    choice = next(one for one in found["ranking"] if one["kind"] == "choice")
    n = found["table"]["labelled"]
    promise = choice["scores"]["r2" if table.is_real else "accuracy"]
    y = new[table.target].iloc[out["row"]].reset_index(drop=True)
    covers = "low" in out or "labels" in out
    if table.is_real:
        y = y.map(as_number)
        known = y.notna()
        y, out = y[known].to_numpy(), out[known]
        error, base = (y - out["value"]) ** 2, (y - y.mean()) ** 2
        score = 1 - error.sum() / base.sum()
        se = np.sqrt(np.var(error - (1 - score) * base) / len(y)) / base.mean()
        covered = ((out["low"] <= y) & (y <= out["high"])).mean() if covers else np.nan
    else:
        y = y.astype(str).str.strip()
        known = y != ""
        y, out = y[known], out[known]
        score = (y == out["label"].astype(str)).mean()
        se = np.sqrt(score * (1 - score) / len(y))
        sets = out["labels"].astype(str).str.split(" | ", regex=False) if covers else ()
        inside = [label in found for label, found in zip(y, sets, strict=True)] if covers else []
        covered = np.mean(inside) if covers else np.nan
    z = (score - promise) / (se * np.sqrt(1 + len(y) / n))
    return [f"{promise:.3f}", f"{score:.3f}", f"{z:+.1f}", f"{covered:.1%}"]


def evaluate(name: str, method: str, cleaned: bool) -> dict[str, Any]:
    """Return the scores of a method on the rows withheld from a table, and its seconds."""
    X, y, X_new, y_new = withheld(name, cleaned=cleaned)
    is_real = TABLES[name].is_real

    def found() -> dict[str, Any]:
        try:
            model = METHODS[method](X, is_real=is_real).fit(X, y)
            score, loss = scores(model, X_new, y_new, is_real=is_real)
            return {"score": score, "loss": loss}
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:150]}"}

    run = timed(found)
    sizes = {"rows": len(y) + len(y_new), "columns": X.shape[1]}
    return sizes | run.result | {"seconds": run.processor}


def results(cleaned: bool, tables: tuple[str, ...], methods: tuple[str, ...]) -> pd.DataFrame:
    """Measure what is not kept; return all results by table and method."""
    kept = Kept(RESULTS, "table", "method", "cleaned")
    for name, method in product(tables, methods):
        if (name, method, cleaned) not in kept.done:
            job = {"table": name, "method": method, "cleaned": cleaned}
            kept.add(job, evaluate(name, method, cleaned))
    found = pd.DataFrame([line for line in kept.lines if line["cleaned"] is cleaned])
    return found.set_index(["table", "method"])


def complete(found: pd.DataFrame) -> list[str]:
    """Return the tables with results of all methods."""
    return [name for name in TABLES if all((name, method) in found.index for method in METHODS)]


def scores_table(found: pd.DataFrame, *, is_real: bool) -> str:
    """Return the scores of all methods, and mean ranks of those that are ranked."""
    names = [name for name in complete(found) if TABLES[name].is_real is is_real]
    if not names:
        return ""
    score, loss = (found[key].unstack().reindex(names)[list(METHODS)] for key in ("score", "loss"))
    rows = []
    for name in names:
        both = zip(score.loc[name], loss.loc[name], strict=True)
        cells = ["refused" if np.isnan(a) else f"{a:.3f} / {b:.3f}" for a, b in both]
        size = found.loc[name, "CatBoost"]
        rows.append([name, f"{size['rows']:,} x {size['columns']}", *cells])
    first = mean_ranks(score[list(RANKED)].fillna(-np.inf))
    second = mean_ranks(-loss[list(RANKED)].fillna(np.inf))
    ranks = [f"{a:.2f} / {b:.2f}" for a, b in zip(first, second, strict=True)]
    rows.append(["mean rank of these four", "", *ranks, ""])
    title = "R2 / MAE" if is_real else "accuracy / log loss"
    return table([title, "rows x columns", *METHODS], rows)


def seconds_table(found: pd.DataFrame) -> str:
    """Return the processor seconds of fit and prediction, over the tables."""
    seconds = found["seconds"].unstack().loc[complete(found), list(METHODS)]
    rows = {"median": seconds.median(), "longest": seconds.max()}
    return table(
        ["seconds", *METHODS], [[what, *(f"{s:.1f}" for s in one)] for what, one in rows.items()]
    )


def raw(tables: tuple[str, ...] = tuple(TABLES), methods: tuple[str, ...] = tuple(METHODS)) -> str:
    """Return the scores on the frames as they are, and the seconds."""
    found = results(False, tables, methods)
    parts = [scores_table(found, is_real=is_real) for is_real in (False, True)]
    return "\n\n".join([*parts, seconds_table(found)])


def cleaned(
    tables: tuple[str, ...] = tuple(TABLES), methods: tuple[str, ...] = tuple(METHODS)
) -> str:
    """Return the scores on the frames that somebody has cleaned."""
    found = results(True, tables, methods)
    return "\n\n".join(scores_table(found, is_real=is_real) for is_real in (False, True))


def promises(tables: tuple[str, ...] = tuple(TABLES)) -> str:
    """Return what the command promises, and what the withheld rows show."""
    header = ["table", "promised", "withheld rows", "above", "covered"]
    return table(header, [[name, *promised(name)] for name in tables])


if __name__ == "__main__":
    command(raw, cleaned, promises, threads=1)
