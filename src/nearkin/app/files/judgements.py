"""Relevance judgements in the files of other tools: pairs of rows, or queries and documents.

Every format is converted to rows of (query, document, grade); 0 was judged not relevant.
"""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import types

from ..._messages import counted, listed, shown
from ..._validation import is_missing
from ...vectors import Adaptation, Relevance, WayResult
from ..endings import TableError
from ..output import atomic_folder
from ..places import STANDARD_INPUT
from .formats import FORMATS, opened
from .json_file import load_json, records_of
from .readers import AS_FOUND, Progress, Reading, Source, ignore

NUMBER_NAME = re.compile(r"-?\d+(\.\d+)?")
POSITIVE = ("positive", "positives", "pos")
NEGATIVE = re.compile(r"neg(ative)?s?(_\d+)?")
LEAST_GRADE = 0.01  # of scores, relative to the best one of a query; below, not relevant

# names of columns, ignoring case, blanks, "-" and "_"
QUERY = ("query_id", "q_id", "qid", "query", "anchor")
DOCUMENT = (
    *("corpus_id", "document_id", "doc_id", "docid", "passage_id"),
    *("item_id", "product_id", "article_id", "sku"),
    *("document", "doc", "passage", "item", "product", "article"),
)
GRADE = ("grade", "relevance", "score", "label", "esci_label")
SENTENCES = ("sentence1", "sentence2")
SHOWN, CLICKED = ("shown", "impressions", "views"), ("clicked", "clicks")
PLACE = ("position", "rank")  # in a displayed list; never a grade
# the gains of ESCI (Amazon's shopping queries) and of WANDS (Wayfair's), which has "partial"
ESCI = {
    **{"exact": 1.0, "partial": 0.5, "substitute": 0.1, "complement": 0.01, "irrelevant": 0.0},
    **{"e": 1.0, "s": 0.1, "c": 0.01, "i": 0.0},
}
GRADE_WORDS = {
    **{"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0},
    **{"relevant": 1.0, "not relevant": 0.0},
    **ESCI,
}


@dataclass(frozen=True)
class JudgementFile:
    """Judgements, one per row.

    Attributes
    ----------
    form : str
        The format of the file, such as "TREC qrels".
    left, right : arrays of shape (n,)
        Names or indices of a query and a document, or of two rows.
    grades : float array of shape (n,)
        Relevance; not relevant if at most 0.
    queries, documents : list of str or None
        The names of the vectors in their order, if the file contains them.
    columns : str
        How columns were interpreted, and which were not used.
    """

    form: str
    left: np.ndarray
    right: np.ndarray
    grades: np.ndarray
    _: KW_ONLY
    queries: list[str] | None = None
    documents: list[str] | None = None
    columns: str = ""

    @property
    def note(self) -> str:
        """Return a line on what was read."""
        n_negative = int((self.grades <= 0).sum())
        unlike = f", {n_negative:,} of them not relevant" * (n_negative > 0)
        columns = self.columns and f" ({self.columns})"
        return f"{self.form}{columns}: {counted(len(self.grades), 'judgement')}{unlike}"


def read_judgements(
    source: str,
    progress: Progress = ignore,
    *,
    names: bool = False,
    reading: Reading = AS_FOUND,
) -> JudgementFile:
    """Return the judgements in a file or a folder, whose format is detected from its content.

    Parameters
    ----------
    source : str
        A BEIR folder; TREC qrels or a run; JSON of ranx or LlamaIndex; JSON lines; or a table in
        any other format. "-" is standard input, for a table.
    progress : callable, optional
        Called as `progress(part that is read, whole)` while a table is read.
    names : bool, default=False
        Whether to also read the names of queries and documents from a folder.
    reading : Reading, optional
        How a text table is read, where this is not detected.
    """
    path = Path(source)
    if path.is_dir():
        judged = _beir(path, names)
    else:
        judged = _of_file(source, _line(path), progress, reading)
    for what, cells in (("query", judged.left), ("document", judged.right)):
        if is_missing(cells).any():
            raise TableError(f"{source}: a {what} is missing: fill the cell or drop its row.")
    if not np.isfinite(judged.grades).all():
        raise TableError(f"{source}: a grade is missing or infinite: give numbers.")
    return judged


def _of_file(source: str, line: str, progress: Progress, reading: Reading) -> JudgementFile:
    """Return the judgements in a file whose first line is given, "" if it is not text."""
    path, fields = Path(source), line.split()
    if line[:1] in ("{", "["):
        return _json(path)
    if len(fields) == 4 and _is_number(fields[3]):
        return JudgementFile("TREC qrels", *_trec(path, 4, (0, 2, 3)))
    if len(fields) == 6 and _is_number(fields[3]) and _is_number(fields[4]):
        return _scored("TREC run", *_trec(path, 6, (0, 2, 4)))
    if source != STANDARD_INPUT and path.exists() and path.suffix.lower() not in FORMATS:
        raise TableError(
            f"{source} holds judgements in no known format: `nearkin adapt --help` lists them."
        )
    return _table(source, progress, reading)


def _line(path: Path) -> str:
    """Return the first nonempty line of a text file, or ""."""
    try:
        with _text(path) as file:
            return next(filter(None, map(str.strip, islice(file, 100))), "")
    except (OSError, EOFError, UnicodeDecodeError):  # perhaps a table, or refused as one
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

    T is the standard deviation of the scores within queries. Normalized to sum 1, these grades are
    the softmax of `score / T` over the scored documents, i.e. the distribution of a teacher such as
    a cross-encoder (listwise distillation).
    """
    of_query = pd.Series(scores).groupby(pd.factorize(queries)[0])
    deviation = float(np.sqrt(np.mean((scores - of_query.transform("mean")) ** 2)))
    grades = np.exp((scores - of_query.transform("max").to_numpy()) / (deviation or 1.0))
    return np.where(grades < LEAST_GRADE, 0, grades)


def grades_of_clicks(
    queries: np.ndarray, documents: np.ndarray, shown: np.ndarray, clicked: np.ndarray
) -> pd.DataFrame:
    """Return the columns query, document and grade for every document shown for a query.

    The grade is the click rate, smoothed by one additional impression at the click rate of the
    whole log, and divided by the largest of the query; it is 0 for documents shown but never
    clicked. Lower attention to lower positions is not corrected.
    """
    log = pd.DataFrame({"query": queries, "document": documents, "shown": shown, "clicks": clicked})
    log = log.groupby(["query", "document"], as_index=False, sort=False, dropna=False).sum()
    log = log[log["shown"] > 0]
    rate = (log["clicks"] + log["clicks"].sum() / log["shown"].sum()) / (log["shown"] + 1)
    best = rate.groupby(log["query"]).transform("max")
    return log.assign(grade=np.where(log["clicks"] > 0, rate / best, 0))


def _scored(form: str, queries: Any, documents: Any, scores: np.ndarray) -> JudgementFile:
    """Return scores of a teacher as grades."""
    return JudgementFile(f"{form}, scores", queries, documents, grades_of_scores(queries, scores))


def _graded(form: str, queries: Any, documents: Any, numbers: np.ndarray) -> JudgementFile:
    """Return whole numbers as grades unchanged, and other numbers as scores of a teacher."""
    is_whole = (numbers == np.floor(numbers)).all() or not np.isfinite(numbers).all()
    return (JudgementFile if is_whole else _scored)(form, queries, documents, numbers)


# Files that are not tables


def _trec(path: Path, width: int, wanted: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield some columns of a file without a header, names as text and the last one as numbers."""
    try:
        with _text(path) as file:
            table = pd.read_csv(
                file, sep=r"\s+", header=None, dtype=str, quoting=3, na_filter=False
            )
        if table.shape[1] != width:
            raise ValueError(f"{table.shape[1]} columns in place of {width}")
        numbers = table[wanted[-1]].astype(float).to_numpy()
    except ValueError as error:
        why = " ".join(str(error).split())
        raise TableError(
            f"{path} begins like a TREC file of {width} columns, but does not go on like one "
            f"({why}): correct it."
        ) from error
    yield from (table[column].to_numpy(dtype=object) for column in wanted[:-1])
    yield numbers


def _json(path: Path) -> JudgementFile:
    """Return judgements of ranx, of LlamaIndex, or of JSON lines."""
    found = _loaded(path)
    if isinstance(found, dict) and isinstance(found.get("relevant_docs"), dict):
        return _llama_index(path, found)
    if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
        rows = [(q, d, grade) for q, judged in found.items() for d, grade in judged.items()]
        if rows and all(isinstance(grade, int | float) for _, _, grade in rows):
            queries, documents, grades = map(np.array, zip(*rows, strict=True))
            return _graded("ranx JSON", queries, documents, grades.astype(float))
    records = _records(found)
    if not records or not all(isinstance(record, dict) for record in records):
        raise TableError(f"{path} is JSON in no known format: `nearkin adapt --help` lists them.")
    table = pd.DataFrame(records, dtype=object)
    columns = {str(name): cells.to_numpy() for name, cells in table.items()}
    return _of_columns("JSON lines", str(path), columns)


def _records(found: Any) -> Any:
    """Return what JSON holds as records, a single one without columns too."""
    if not isinstance(found, dict):
        return found
    return records_of(found) or [found]


def _loaded(path: Path) -> Any:
    try:
        return load_json(path)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not readable JSON ({error}): write it again.") from error


def _llama_index(path: Path, found: dict[str, Any]) -> JudgementFile:
    rows = [(q, d) for q, documents in found["relevant_docs"].items() for d in documents]
    if not rows:
        raise TableError(f"{path}: 'relevant_docs' is empty: give judgements.")
    left, right = (np.array(names, dtype=object) for names in zip(*rows, strict=True))
    order: dict[str, Any] = {
        name: list(found[key]) if key in found else None
        for name, key in (("queries", "queries"), ("documents", "corpus"))
    }
    return JudgementFile("LlamaIndex JSON", left, right, np.ones(len(rows)), **order)


def _beir(folder: Path, with_names: bool) -> JudgementFile:
    """Return the judgements of a BEIR folder: the training ones, or the only ones."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    train = [file for file in files if file.stem == "train"] or files
    if not files:
        raise TableError(
            f"{folder} is not a BEIR folder, as it has no qrels/*.tsv: give that, or a file."
        )
    if len(train) > 1:
        raise TableError(f"{folder} has several files in qrels and no train.tsv: name one of them.")
    judged = _table(str(train[0]), ignore, AS_FOUND)
    order: dict[str, Any] = {}
    for name, file in (("queries", "queries.jsonl"), ("documents", "corpus.jsonl")):
        if with_names and (folder / file).exists():
            order[name] = [str(one["_id"]) for one in _records(_loaded(folder / file))]
    form = f"BEIR, qrels/{train[0].name}"
    return JudgementFile(form, judged.left, judged.right, judged.grades, **order)


# Tables


def _table(source: str, progress: Progress, reading: Reading) -> JudgementFile:
    """Return the judgements in a CSV, Parquet or NPZ file."""
    with opened(source, progress, replace(reading, drop_empty_rows=True)) as file:
        if isinstance(file, Source):
            if all(NUMBER_NAME.fullmatch(name) for name in file.names[:3]):
                raise TableError(
                    f"{source} begins with numbers: add a header line that names the columns."
                )
            read = _needed(file.names)
            others = [name for name in file.names if name not in read]
            columns = file.read(read, read).labels
            for name in () if file.untyped else read:
                cells = file.identifiers(name)
                if types.is_nested(cells.type):  # lists of positives and negatives
                    columns[name] = pd.Series(cells.to_pylist(), dtype=object).to_numpy()
            return _of_columns("table", source, columns, others)
        found = file.read()
        columns = dict(zip(found.number_names, found.numbers.T, strict=True))
        return _of_columns("table", source, columns)


def _word(name: str) -> str:
    """Return the normalized name of a column."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def _needed(names: Sequence[str]) -> list[str]:
    """Return the columns that may contain judgements, and the first three except positions."""
    words = {*QUERY, *DOCUMENT, *GRADE, *SHOWN, *CLICKED, *SENTENCES, *POSITIVE}
    first = [name for name in names if _word(name) not in PLACE][:3]
    return [
        name
        for name in names
        if name in first or _word(name) in words or NEGATIVE.fullmatch(_word(name))
    ]


def _of_columns(
    form: str, source: str, columns: dict[str, np.ndarray], others: Sequence[str] = ()
) -> JudgementFile:
    """Return the judgements in columns, identified by name, or else in the first two or three.

    The first format whose columns exist is used. `others` are columns of the file that were not
    read.
    """
    by_word = {_word(name): name for name in columns if _word(name) not in PLACE}
    names = list(by_word.values())
    if len(names) < 2:
        raise TableError(
            f"{source} has one column: give two, of rows that belong together, and optionally "
            "grades."
        )

    def called(words: Sequence[str]) -> str | None:
        return next((by_word[word] for word in words if word in by_word), None)

    def numbers(name: str | None) -> np.ndarray:
        """Return a column of numbers, or 1 if there is none."""
        return np.ones(len(columns[names[0]])) if name is None else _numbers(source, name, columns)

    def with_columns(judged: JudgementFile, **read: str | None) -> JudgementFile:
        """Return judgements with a note on their columns."""
        used = [f"{what}: {name}" for what, name in read.items() if name]
        used += _gains_of(columns[grade]) if grade and read.get("grade") else []
        unused = [name for name in (*columns, *others) if name not in read.values()]
        text = ", ".join(used) + f"; not used: {listed(unused, 5)}" * bool(unused)
        return replace(judged, columns=text)

    query, document, grade = called(QUERY), called(DOCUMENT), called(GRADE)
    positive, clicked, shown = called(POSITIVE), called(CLICKED), called(SHOWN)
    if query and document and clicked:
        clicks, at = numbers(clicked), (columns[query], columns[document])
        judged = _clicks(source, *at, numbers(shown) if shown else None, clicks)
        return with_columns(judged, query=query, document=document, shown=shown, clicked=clicked)
    if query and positive:
        negatives = [name for word, name in by_word.items() if NEGATIVE.fullmatch(word)]
        judged = _positives(*(columns[name] for name in (query, positive, *negatives)))
        more = dict(zip(map(_word, negatives), negatives, strict=True))
        return with_columns(judged, anchor=query, positive=positive, **more)
    if not grade and (clicked or shown):
        raise TableError(
            f"{source} has clicks or impressions, but is not a click log: call its columns query, "
            "document, clicked and optionally shown, or call a column of grades 'grade'."
        )
    if query and document:
        grade = grade or _only_grade(source, [*names, *others], query, document)
        make = _graded if grade and grade == called(["score"]) else JudgementFile
        judged = make(form, columns[query], columns[document], numbers(grade))
        return with_columns(judged, query=query, document=document, grade=grade)
    first, second, *rest = names
    third = rest[0] if rest else None
    if set(SENTENCES) <= by_word.keys():
        form, third = "pairs of sentences", grade
        first, second = (by_word[word] for word in SENTENCES)
    elif third and not _is_graded(columns[third]):
        judged = _positives(columns[first], columns[second], columns[third])
        return with_columns(judged, anchor=first, positive=second, negative=third)
    judged = JudgementFile(form, columns[first], columns[second], numbers(third))
    return with_columns(judged, first=first, second=second, grade=third)


def _only_grade(source: str, names: Sequence[str], query: str, document: str) -> str | None:
    """Return the only remaining column, as that of the grades; None if there is none."""
    left = [name for name in names if name not in (query, document) and _word(name) not in PLACE]
    if len(left) > 1:
        raise TableError(
            f"{source}: which column holds the grades, {listed(left, 5)}? Call it 'grade', or drop "
            "these columns if none does."
        )
    return left[0] if left else None


def _numbers(source: str, name: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return a column as numbers; yes and no are 1 and 0."""
    cells = _as_grades(columns[name])
    try:
        values = cells.to_numpy(np.float64)
    except (ValueError, TypeError):
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise TableError(
            f"{source}: {shown(name)} must hold grades (numbers, or yes and no) without missing "
            "cells: correct it, or drop the column if it holds no grades."
        )
    return values


def _gains_of(cells: np.ndarray) -> list[str]:
    """Return how the words of ESCI in a column of grades are read."""
    words = {str(cell).strip().lower() for cell in pd.unique(cells)} & ESCI.keys()
    return [f"{word} {gain:g}" for word, gain in ESCI.items() if word in words]


def _as_grades(cells: np.ndarray) -> pd.Series:
    """Return a column of grades, those in words as numbers."""
    grades = pd.Series(cells)
    if grades.dtype.kind in "biuf":
        return grades
    return grades.map(lambda cell: GRADE_WORDS.get(str(cell).strip().lower(), cell))


def _is_graded(cells: np.ndarray) -> bool:
    """Return whether some cell of a column is a grade; else all may be names of rows."""
    return bool(pd.to_numeric(_as_grades(cells), errors="coerce").notna().any())


def _clicks(
    source: str,
    query: np.ndarray,
    document: np.ndarray,
    shown: np.ndarray | None,
    clicks: np.ndarray,
) -> JudgementFile:
    """Return the judgements estimated from a click log.

    Without impressions, all rows count as shown equally often.
    """
    form = f"click log of {counted(len(query), 'row')}"
    if shown is None:
        most = clicks.max(initial=1)
        form += ", each an impression" if most == 1 else ", assumed to be shown equally often"
        shown = np.full(len(clicks), most)
    if (clicks < 0).any() or (clicks > shown).any() or not (shown > 0).any():
        raise TableError(
            f"{source} has fewer impressions than clicks, or none: count at most one click per "
            "impression."
        )
    log = grades_of_clicks(query, document, shown, clicks)
    columns = (log[name].to_numpy() for name in ("query", "document", "grade"))
    return JudgementFile(form, *columns)


def _positives(anchor: np.ndarray, positive: np.ndarray, *negatives: np.ndarray) -> JudgementFile:
    """Return triplets as judgements; a row may have lists of positives and negatives, and gaps."""
    parts = []
    for column in (positive, *negatives):
        cells = pd.Series(column, anchor, dtype=object).map(_listed).explode()
        parts.append(cells if column is positive else cells[~is_missing(cells.to_numpy())])
    grades = np.repeat([1.0, 0.0], [len(parts[0]), sum(map(len, parts[1:]))])
    names = pd.concat(parts)
    left, right = names.index.to_numpy(dtype=object), names.to_numpy()
    return JudgementFile("positives and negatives", left, right, grades)


def _listed(cell: Any) -> Any:
    """Return the items of a list that is written as text, as in a CSV file."""
    if not isinstance(cell, str) or not cell.startswith("["):
        return cell
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell


# Rankings for verification with other tools


def check_names(names: Iterable[str]) -> None:
    """Raise an error for a name of a row that `write_runs` cannot write."""
    for name in names:
        if name.split() != [name]:
            raise TableError(
                f"{shown(name)} is not a name for --run, where blanks end a name: rename the rows."
            )


def write_runs(
    folder: Path,
    found: Adaptation,
    chosen: WayResult,
    judged: Relevance,
    queries: Sequence[str],
    documents: Sequence[str],
) -> None:
    """Write a new folder with qrels.trec, and runs of the raw and the chosen vectors.

    `queries` and `documents` are the names of the rows.
    """
    R = judged.R
    with atomic_folder(folder) as part:
        with (part / "qrels.trec").open("w", encoding="utf-8") as file:
            for q in np.flatnonzero(judged.n_relevant).tolist():
                at = slice(R.indptr[q], R.indptr[q + 1])
                for d, grade in zip(R.indices[at].tolist(), R.data[at], strict=True):
                    file.write(f"{queries[q]} 0 {documents[d]} {grade:g}\n")
        for way in {found.raw.way, chosen.way}:
            tag = way.name.replace(" ", "-")
            with (part / f"{tag}.trec").open("w", encoding="utf-8") as file:
                for rows, ranked in found.rankings(way):
                    for q, first in zip(rows.tolist(), ranked.tolist(), strict=True):
                        # distinct scores, since trec_eval orders equal ones in its own way
                        for rank, d in enumerate(first, 1):
                            place = f"{rank} {len(first) + 1 - rank}"
                            file.write(f"{queries[q]} Q0 {documents[d]} {place} {tag}\n")
