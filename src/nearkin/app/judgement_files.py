"""Judgements as people have them: which rows belong together, or which documents answer which
queries, in the files of other tools.

Every form becomes rows of (query, document, grade); 0 is what was judged not relevant.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import counted, shown
from .._validation import is_missing
from .places import STANDARD_INPUT
from .readers import Progress, Reading, Source, TableError, find_name, ignore
from .tables import FORMATS, opened

NUMBER_NAME = re.compile(r"-?\d+(\.\d+)?")
NEGATIVE = re.compile(r"negative(_\d+)?")
LEAST_GRADE = 0.01  # of scores, relative to the best one of a query; below is not relevant

# how columns are called, capitals, blanks, "-" and "_" apart
QUERY = ("query_id", "q_id", "qid", "query", "anchor")
DOCUMENT = ("corpus_id", "document_id", "doc_id", "docid", "passage_id", "document", "passage")
GRADE = ("grade", "relevance", "score", "label")
SHOWN, CLICKED = ("shown", "impressions"), ("clicked", "clicks")


@dataclass(frozen=True)
class JudgementFile:
    """What was judged, a row each.

    Attributes
    ----------
    left, right : arrays of shape (n,)
        Names or numbers of a query and a document, or of two rows.
    grades : float array of shape (n,)
        How relevant; 0 and less is not.
    form : str
        What the file is, such as "TREC qrels".
    queries, documents : list of str or None
        The names of the vectors in their order, where the file tells.
    """

    left: np.ndarray
    right: np.ndarray
    grades: np.ndarray
    form: str
    queries: list[str] | None = field(default=None, kw_only=True)
    documents: list[str] | None = field(default=None, kw_only=True)

    @property
    def note(self) -> str:
        """Return in a line what was read."""
        n_negative = int((self.grades <= 0).sum())
        unlike = f", {n_negative:,} of them not relevant" * (n_negative > 0)
        return f"{self.form}: {counted(len(self.grades), 'judgement')}{unlike}"


def read_judgements(
    source: str, progress: Progress = ignore, *, names: bool = False
) -> JudgementFile:
    """Return the judgements in a file or a folder; its content tells the form.

    Parameters
    ----------
    source : str
        A BEIR folder; TREC qrels or a run; JSON of ranx or LlamaIndex; JSON lines; or a CSV,
        Parquet or NPZ file. - for standard input, of one of the latter three.
    names : bool
        Whether a folder is asked for the names of its queries and documents, too.
    """
    path = Path(source)
    if path.is_dir():
        judged = _beir(path, names)
    else:
        judged = _of_file(source, _line(path), progress)
    for what, cells in (("query", judged.left), ("document", judged.right)):
        if is_missing(cells).any():
            raise TableError(f"{source}: a {what} is missing: fill the cell or drop its row.")
    if not np.isfinite(judged.grades).all():
        raise TableError(f"{source}: a grade is missing or infinite: give numbers.")
    return judged


def _of_file(source: str, line: str, progress: Progress) -> JudgementFile:
    """Return the judgements in a file that begins with a line, "" for one that is no text."""
    path, fields = Path(source), line.split()
    if line[:1] in ("{", "["):
        return _json(path, line)
    if len(fields) == 4 and _is_number(fields[3]):
        return JudgementFile(*_trec(path, 4, (0, 2, 3)), "TREC qrels")
    if len(fields) == 6 and _is_number(fields[3]) and _is_number(fields[4]):
        return _scored(*_trec(path, 6, (0, 2, 4)), "TREC run")
    if source != STANDARD_INPUT and path.exists() and path.suffix.lower() not in FORMATS:
        raise TableError(
            f"{source} holds no judgements of a known form: `nearkin adapt --help` lists them."
        )
    return _table(source, progress)


def _line(path: Path) -> str:
    """Return the first line of a text file that is not empty; "" where there is none."""
    try:
        with _text(path) as file:
            return next(filter(None, map(str.strip, islice(file, 100))), "")
    except (OSError, EOFError, UnicodeDecodeError):  # a table, maybe, or refused as one
        return ""


def _text(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig")


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


# Scores and clicks as grades


def grades_of_scores(queries: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return `exp((score - best of its query) / T)`, and 0 below 0.01.

    T is the standard deviation of the scores within queries. Relative to their sum these grades
    are the softmax of `score / T` over what was scored: the distribution that a teacher, such as a
    cross-encoder, gives (listwise distillation).
    """
    of_query = pd.Series(scores).groupby(pd.factorize(queries)[0])
    deviation = float(np.sqrt(np.mean((scores - of_query.transform("mean")) ** 2)))
    grades = np.exp((scores - of_query.transform("max").to_numpy()) / (deviation or 1.0))
    return np.where(grades < LEAST_GRADE, 0, grades)


def grades_of_clicks(
    queries: np.ndarray, documents: np.ndarray, shown: np.ndarray, clicked: np.ndarray
) -> pd.DataFrame:
    """Return columns query, document and grade, of every document that was shown for a query.

    The grade is its click rate, smoothed by one showing more at the click rate of the whole log,
    relative to the largest of the query; 0 for what was shown and never clicked. That a lower
    place is looked at less is not corrected.
    """
    log = pd.DataFrame({"query": queries, "document": documents, "shown": shown, "clicks": clicked})
    log = log.groupby(["query", "document"], as_index=False, sort=False).sum()
    rate = (log["clicks"] + log["clicks"].sum() / log["shown"].sum()) / (log["shown"] + 1)
    best = rate.groupby(log["query"]).transform("max")
    return log.assign(grade=np.where(log["clicks"] > 0, rate / best, 0))


def _scored(
    queries: np.ndarray, documents: np.ndarray, scores: np.ndarray, form: str
) -> JudgementFile:
    """Return scores of a teacher as grades."""
    return JudgementFile(queries, documents, grades_of_scores(queries, scores), f"{form} (scores)")


def _graded(queries: Any, documents: Any, numbers: Any, form: str) -> JudgementFile:
    """Return grades as they are where they are whole numbers, and else as scores of a teacher."""
    numbers = np.array(numbers, dtype=float)
    is_whole = (numbers == np.floor(numbers)).all() or not np.isfinite(numbers).all()
    make: Callable[..., JudgementFile] = JudgementFile if is_whole else _scored
    return make(np.array(queries, dtype=object), np.array(documents, dtype=object), numbers, form)


# Files that are no tables


def _trec(path: Path, width: int, wanted: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield some columns of a file without a header, names as text and the last as numbers."""
    try:
        with _text(path) as file:
            table = pd.read_csv(file, sep=r"\s+", header=None, dtype=str, quoting=3, na_filter=False)
        if table.shape[1] != width:
            raise ValueError(f"{table.shape[1]} columns in place of {width}")
        numbers = table[wanted[-1]].astype(float).to_numpy()
    except ValueError as error:
        why = " ".join(str(error).split())
        raise TableError(
            f"{path} begins as a file of TREC, of {width} columns, and does not go on so ({why}): "
            "mend it."
        ) from error
    yield from (table[column].to_numpy(dtype=object) for column in wanted[:-1])
    yield numbers


def _json(path: Path, line: str) -> JudgementFile:
    """Return judgements of ranx, of LlamaIndex, or of lines with an object each."""
    with _text(path) as file:
        text = file.read()
    try:
        found = json.loads(text)
    except ValueError:
        found = list(_json_lines(path, text.splitlines()))
    if isinstance(found, dict) and isinstance(found.get("relevant_docs"), dict):
        return _llama_index(path, found)
    if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
        rows = [(q, d, grade) for q, judged in found.items() for d, grade in judged.items()]
        if rows and all(isinstance(grade, int | float) for _, _, grade in rows):
            return _graded(*zip(*rows, strict=True), "ranx JSON")
    records = [found] if isinstance(found, dict) else found
    if not records or not all(isinstance(record, dict) for record in records):
        raise TableError(
            f"{path} is JSON of no known form: `nearkin adapt --help` lists them."
        )
    table = pd.DataFrame(records, dtype=object)
    columns = {name: _typed(table[name]) for name in table}
    return _of_columns(str(path), list(columns), columns.__getitem__, "JSON lines")


def _json_lines(path: Path, lines: Iterable[str]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise TableError(
                    f"{path} is no readable JSON (line {number}: {error}): write it again."
                ) from error


def _typed(cells: Any) -> np.ndarray:
    """Return numbers as such, and whatever else as it is."""
    is_number = cells.map(lambda cell: isinstance(cell, int | float)).all()
    return cells.to_numpy(dtype=float if is_number else object)


def _llama_index(path: Path, found: dict[str, Any]) -> JudgementFile:
    rows = [(q, d) for q, documents in found["relevant_docs"].items() for d in documents]
    if not rows:
        raise TableError(f"{path}: 'relevant_docs' is empty: give judgements.")
    left, right = (np.array(names, dtype=object) for names in zip(*rows, strict=True))
    order = {
        name: list(found[key]) if key in found else None
        for name, key in (("queries", "queries"), ("documents", "corpus"))
    }
    return JudgementFile(left, right, np.ones(len(rows)), "LlamaIndex JSON", **order)


def _beir(folder: Path, with_names: bool) -> JudgementFile:
    """Return the judgements of a BEIR folder: those for training, or the only ones."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    train = [file for file in files if file.stem == "train"] or files
    if not files:
        raise TableError(f"{folder} is no BEIR folder, it has no qrels/*.tsv: give that, or a file.")
    if len(train) > 1:
        raise TableError(f"{folder} has several files in qrels and no train.tsv: name one of them.")
    judged = _table(str(train[0]), ignore)
    order = {}
    for name, file in (("queries", "queries.jsonl"), ("documents", "corpus.jsonl")):
        if with_names and (folder / file).exists():
            with _text(folder / file) as lines:
                order[name] = [str(one["_id"]) for one in _json_lines(folder / file, lines)]
    form = f"BEIR, qrels/{train[0].name}"
    return JudgementFile(judged.left, judged.right, judged.grades, form, **order)


# Tables


def _table(source: str, progress: Progress) -> JudgementFile:
    """Return the judgements in a CSV, Parquet or NPZ file."""
    with opened(source, progress, Reading(drop_empty_rows=True)) as file:
        if isinstance(file, Source):
            if all(NUMBER_NAME.fullmatch(name) for name in file.names[:3]):
                raise TableError(
                    f"{source} begins with numbers: put a line above that names the columns."
                )
            return _of_columns(
                source, file.names, lambda name: file.read([name], [name]).labels[name], "table"
            )
        found = file.read()
        return _of_columns(
            source, found.number_names, lambda name: found.numbers[:, found.positions[name]], "table"
        )


def _of_columns(
    source: str, names: Sequence[str], read: Callable[[str], np.ndarray], form: str
) -> JudgementFile:
    """Return the judgements in columns, by what these are called; else in the first two or three."""
    known = {re.sub(r"[\s_-]+", "_", name.strip().lower()): name for name in names}

    def called(*words: str) -> str | None:
        return next((known[word] for word in words if word in known), None)

    def numbers(name: str) -> np.ndarray:
        cells = read(name)
        if cells.dtype.kind not in "iufb":
            raise TableError(f"{source}: {shown(name)} must hold numbers, and no cell be missing.")
        return cells.astype(np.float64)

    query, document, grade = called(*QUERY), called(*DOCUMENT), called(*GRADE)
    positive, clicked, shown_at = called("positive"), called(*CLICKED), called(*SHOWN)
    first, second = called("sentence1"), called("sentence2")
    if query and document and clicked:
        clicks = numbers(clicked)
        showings = numbers(shown_at) if shown_at else np.ones(len(clicks))
        if (clicks < 0).any() or (clicks > showings).any() or not (showings > 0).any():
            raise TableError(f"{source} has more clicks than showings, or none: count every click once.")
        log = grades_of_clicks(read(query), read(document), showings, clicks)
        columns = (log[name].to_numpy() for name in ("query", "document", "grade"))
        return JudgementFile(*columns, f"click log of {len(clicks):,} rows")
    if query and positive:
        others = [name for word, name in known.items() if NEGATIVE.fullmatch(word)]
        right = [read(name) for name in (positive, *others)]
        n = len(right[0])
        left, grades = np.tile(read(query), len(right)), np.repeat([1.0, 0.0], [n, n * len(others)])
        found = JudgementFile(left, np.concatenate(right), grades, "positives and negatives")
        kept = (grades > 0) | ~is_missing(found.right)  # a row may have fewer negatives than others
        return JudgementFile(left[kept], found.right[kept], grades[kept], found.form)
    if first and second:
        grades = numbers(grade) if grade else np.ones(len(read(first)))
        return JudgementFile(read(first), read(second), grades, "pairs of sentences")
    if query and document:
        left = read(query)
        grades = numbers(grade) if grade else np.ones(len(left))
        make = _graded if grade == called("score") else JudgementFile
        return make(left, read(document), grades, form)
    if len(names) < 2:
        raise TableError(
            f"{source} has one column: give two, of rows that belong together, and maybe grades."
        )
    left = read(names[0])
    grades = numbers(names[2]) if len(names) > 2 else np.ones(len(left))
    return JudgementFile(left, read(names[1]), grades, form)
