"""The command line: `nearkin compare`, `check`, `predict`, `transform`, `inspect`, and for vectors
`adapt`, `match`, `migrate`, `export`.

Results go to standard output; progress, remarks and errors go to standard error. Everything that
help and invalid options need is here, in `endings` and in `places`; nothing else is loaded for it.
"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from typing import Any

from .. import __version__
from .endings import BAD_INPUT, EXIT_CODES, TableError, Terminated, ended_by, fail, signals_raise
from .places import BUNDLED, SEPARATORS, STANDARD_INPUT, is_absent, missing_file

# What the commands take: options, help and examples. Nothing slow is loaded for it.

TASKS = ("classification", "regression")
SCORE_NAMES = ("accuracy", "balanced", "f1", "auc", "log_loss", "r2", "mae", "rank")
SAVED = (
    "a file saved by nearkin compare; transform and inspect also take those of nearkin adapt and "
    "migrate"
)
TABLE = (
    "a CSV, Excel, JSON, Parquet, Feather, NPZ or NPY file, - for standard input, or a bundled set "
    f"({', '.join(BUNDLED)})"
)


PARSER = argparse.ArgumentParser(
    prog="nearkin",
    description="Learn the space in which nearest neighbours are right.",
    epilog=f"nearkin COMMAND --help shows options and examples.\n\n{EXIT_CODES}",
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
PARSER.add_argument("--version", action="version", version=f"nearkin {__version__}")
COMMANDS = PARSER.add_subparsers(required=True, title="commands", metavar="COMMAND", dest="command")


Add = Callable[..., None]


def command(add_options: Callable[[Add], None]) -> argparse.ArgumentParser:
    """Make a command from a function that adds its options; its docstring is the help."""
    summary, _, text = cleandoc(add_options.__doc__ or "").partition("\n\n")
    summary = summary.replace("\n", " ")
    parser = COMMANDS.add_parser(
        add_options.__name__,
        help=summary.rstrip("."),
        description=f"{summary}\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(names: str, text: str, metavar: str | None = None, **more: Any) -> None:
        """Add an option; an option without a value is a switch."""
        if metavar or more:
            more["metavar"] = metavar
        else:
            more["action"] = "store_true"
        parser.add_argument(*names.split(), help=text, **more)

    add_options(add)
    add("-q --quiet", "no progress and no remarks")
    return parser


def _add_model_and_tables(add: Add) -> None:
    add("model", SAVED, "MODEL")
    add("table", TABLE, "TABLE")
    _add_table_output(add)
    add("--id", "copy this column of TABLE unchanged, as the first of OUT", "COLUMN")
    _add_escaping(add)
    add_reading(add)
    _add_strict(add)


def _add_table_output(add: Add) -> None:
    add(
        "-o --output",
        ".csv, .parquet or .npz (default: CSV to standard output)",
        "OUT",
        default="-",
    )


def _add_vectors(add: Add) -> None:
    add(
        "--vectors",
        "which column of vectors to take, where there are several (default: the one of the name "
        "or the length that is needed)",
        "COLUMN",
    )


def _add_escaping(add: Add) -> None:
    add(
        "--escape-formulas",
        "in CSV, put an apostrophe before text that a spreadsheet would read as a formula (= + "
        "- @)",
    )


def add_reading(add: Add) -> None:
    """Add the options for reading text tables."""
    add(
        "--sep",
        "the field separator of a text table: comma, semicolon, tab, pipe, or a character "
        "(default: detected)",
        "MARK",
        type=_separator,
    )
    add("--decimal", "the decimal mark of its numbers (default: detected)", choices=[".", ","])


def _add_missing(add: Add) -> None:
    add(
        "--missing",
        "what counts as missing in every column, besides empty cells (default: in columns of "
        "numbers NA, ?, -, #N/A and the like, in columns of text nothing else)",
        "VALUE",
        nargs="+",
    )


def _add_strict(add: Add) -> None:
    add(
        "--strict",
        "refuse cells that do not fit their column, and rows that lack a column; read text as "
        "numbers or dates only if all cells are (default: what does not fit is missing, with a "
        "remark)",
    )


def _separator(text: str) -> str:
    named = SEPARATORS | {"\\t": "\t", "space": " "}
    mark = named.get(text.lower(), text)
    if len(mark) != 1 or mark in "\"'\r\n" or mark.isalnum() or not mark.isascii():
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join(named)}, or a single other mark, got {text!r}"
        )
    return mark


def _add_dask(add: Add) -> None:
    add(
        "--dask",
        "TABLE is a folder of Parquet files, which may be larger than memory; use the cluster "
        "whose scheduler has this address (default: all cores of this machine; needs "
        "nearkin[dask])",
        "ADDRESS",
        nargs="?",
        const="",
    )


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a function that reads an integer of at least `minimum`."""

    def read(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    read.__name__ = "whole number"  # for argparse's message: invalid whole number value
    return read


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"must be between 0 and 1, such as 0.9 for 90 %, got {text}"
        )
    return value


@command
def compare(add: Add) -> None:
    """Rank nearest-neighbour methods on held-out rows.

    The first answer, in seconds, ranks k-NN on the raw features, LDA, and NCA tables (which
    learns from the columns as they are, and lets all rows vote) by their predictions of
    held-out rows. References follow: the largest class, logistic regression, random forest,
    gradient boosting. --all adds PCA, NCA and all other nearkin methods; with up to 1,000
    rows, they are added by default.

    Scaling and every choice (dimension, parameters, number of neighbours) use the training
    rows only. So does the automatic choice of the method itself, which --save saves: NCA
    tables, unless another method is shown to be better there.

    Up to 20,000 labelled rows are each held out in one of 5 folds, which are drawn again
    until about 1,500 rows have been held out (at most 3 times). Of more rows, 5,000 are held
    out in one split. Fewer than 5 folds show only large differences. One split compares the
    fitted models: only several folds show how much a fit varies by chance.
    Rows without a label (an empty cell) are never held out and do not vote, but PCA, LPP,
    TDL, SDA and DP are also fitted to them. Identical and nearly identical rows stay on one
    side of every split.

    With --dask, TABLE is a folder of Parquet files, which may be larger than memory. A sample
    of 20,000 rows is compared like any table; of equal rows all are drawn or none. --save fits
    the raw features and most maps to all rows, of which at most 100,000 vote; NCA tables and
    other methods are those of the sample.

    For example:
      nearkin compare balance_scale
      nearkin compare measurements.csv --target species --report species.html
      nearkin compare scans.parquet --target diagnosis --groups patient --save scans.safetensors
      nearkin compare fraud.csv --target fraud --score auc --quick
      nearkin compare houses.csv --target price --task regression --methods nca,mlkr
      zcat big.csv.gz | nearkin compare - --target kind
      nearkin compare embeddings/ --target topic --dask --save topics.safetensors
    """
    add("table", TABLE, "TABLE")
    add("--target", "the labels or numbers (NPZ: by default y; bundled sets need none)", "COLUMN")
    add(
        "--task",
        "what the target holds: classes (the default), or numbers to predict",
        choices=TASKS,
        default=TASKS[0],
    )
    add(
        "--score",
        "the score that ranks and chooses: accuracy, balanced, f1, auc or log_loss of classes; r2, "
        "mae or rank of numbers (default: accuracy, or auc if one class has more than 75%% of the "
        "rows; r2, or mae if the most extreme 1%% of the rows have most of the squared deviations "
        "from the median)",
        "NAME",
        choices=SCORE_NAMES,
    )
    add("--methods", "compare only raw k-NN and these, named as in the ranking", "NAME,NAME")
    add(
        "--all",
        "after the first answer, also compare all other methods (the default on small tables)",
    )
    add("--no-references", "leave out logistic regression, random forest and the like")
    add(
        "--unlabelled",
        "what the target holds in rows without a label, besides empty cells",
        "VALUE",
    )
    add("--groups", "keep rows of one group on one side of every split", "COLUMN")
    add("--keep-twins", "split identical and nearly identical rows like other rows")
    _add_missing(add)
    add(
        "--refuse-missing",
        "refuse features with missing cells (default: filled by medians of the training rows, "
        "with indicators)",
    )
    add_reading(add)
    _add_strict(add)
    add("--report", "write an interactive page (.html) that needs no network", "FILE")
    add("--json", "write all results (.json)", "FILE")
    add("--save", "choose and fit a model on all rows, and save it (.safetensors)", "FILE")
    add("--picture", "where to write the PNG (default: ./TABLE-nearkin.png)", "FILE")
    add(
        "--neighbors",
        "k of the vote (default: chosen, as are distance weights)",
        "K",
        type=at_least(1),
    )
    add(
        "--folds",
        "number of folds (default: 5, or as described above); fewer than 5 show only large "
        "differences",
        "N",
        type=at_least(2),
    )
    add(
        "--repeats",
        "how often the folds are drawn (default: as described above)",
        "N",
        type=at_least(1),
    )
    add(
        "--quick",
        "at most 3 folds, drawn once, and choices made on 500 rows: for a first look at large "
        "differences",
    )
    add("--no-scaling", "do not standardize (for features that share a unit)")
    add("--seed", "seed of the folds (default: 0)", type=at_least(0), default=0)
    add(
        "--time-budget",
        "rank what is finished after this many seconds (default: no limit)",
        "S",
        type=_positive,
    )
    _add_dask(add)


@command
def check(add: Add) -> None:
    """Show rows whose label is probably wrong, contradictory twins, and rows far from all others.

    The neighbours of every row vote on its label, in a space that was learned without this row (NCA
    tables); rows with the fewest votes for their given label come first. The probability that the
    label is wrong assumes that labels were replaced at random, equally often in all classes, and as
    often as among the rows with the surest votes; where classes overlap everywhere, it is too high.
    "expected" is the expected number of wrong labels down to this row.

    Contradictory twins are equal in all features but have different labels. Far rows are compared
    by all columns, with numbers in standard deviations. Like compare, this command names columns
    that only identify rows, that alone predict the target, or that look like groups of rows.

    Row numbers are those of pandas.read_csv: the first row is 0. The table is not changed.

    For example:
      nearkin check measurements.csv --target species
      nearkin check measurements.csv --target species --report species.html --rows 30
      nearkin check scans.parquet --target diagnosis --groups patient --json scans.json
    """
    add("table", TABLE, "TABLE")
    add("--target", "the labels (NPZ: by default y; bundled sets need none)", "COLUMN")
    add(
        "--unlabelled",
        "what the target holds in rows without a label, besides empty cells",
        "VALUE",
    )
    add("--groups", "label rows by rows of other groups, such as other patients", "COLUMN")
    _add_missing(add)
    add_reading(add)
    _add_strict(add)
    rows = (
        "how many rows are printed (default: 10, or up to 20 that stand out, or none if no label "
        "is likely to be wrong)"
    )
    add("--rows", rows, "N", type=at_least(1))
    add("--report", "write a page (.html) that needs no network", "FILE")
    add("--json", "write all results (.json)", "FILE")
    add("--seed", "seed of the samples of many rows (default: 0)", type=at_least(0), default=0)


@command
def predict(add: Add) -> None:
    """Label new rows, or predict numbers, with a saved model.

    The output has, for every row, its number (the first row is 0) or the column --id, its label
    and the label's share of the vote (in a regression, the value), and the row numbers and
    distances of the five nearest voters (in NPZ, of all). CSV has six digits of the shares and
    distances, other formats all. With --dask, every file of a folder becomes one in the new folder
    OUT.

    Models of NCA tables also report the familiarity of each row: the share of training rows that
    are at least as far from the others. If it is small, do not rely on the prediction.

    For example:
      nearkin predict scans.safetensors new.csv -o labels.csv
      nearkin predict scans.safetensors new.csv --id patient -o labels.csv
      nearkin predict scans.safetensors new.parquet | head
      nearkin predict scans.safetensors new.csv --coverage 0.9 --drift -o labels.csv
      nearkin predict topics.safetensors embeddings/ -o labels/ --dask
    """
    _add_model_and_tables(add)
    add(
        "--search",
        "search for the nearest voters: exact (the default), approximate (needs faiss; faster with "
        "100,000 voters or more), or chosen by their number",
        choices=["exact", "approximate", "auto"],
        default="exact",
    )
    add(
        "--coverage",
        "NCA tables: add sets of labels (for numbers: intervals, low and high) that contain the "
        "true one for this share of rows like the training rows",
        "SHARE",
        type=_share,
    )
    add(
        "--drift",
        "NCA tables: report whether TABLE as a whole still looks like the training rows, and "
        "which columns have moved",
    )
    _add_dask(add)


@command
def transform(add: Add) -> None:
    """Map new rows into the learned space of a saved model, or vectors with a saved adapter.

    Adapted vectors are written as one column of lists in Parquet, and as X in NPZ. With --dask,
    every file of a folder becomes one in the new folder OUT.

    For example:
      nearkin transform adapter.safetensors vectors.parquet --id sku -o short.parquet
      nearkin transform scans.safetensors new.csv -o coordinates.parquet
      nearkin transform scans.safetensors new.csv -o coordinates.csv --picture new.png
      nearkin transform scans.safetensors new.npz -o coordinates.npz
      nearkin transform topics.safetensors embeddings/ -o short/ --dask
    """
    _add_model_and_tables(add)
    _add_vectors(add)
    add(
        "--picture",
        "draw the rows in two dimensions, coloured by the labels or numbers that the model "
        "predicts (.png)",
        "FILE",
    )
    _add_dask(add)


@command
def inspect(add: Add) -> None:
    """Show which features a saved model stretches and which it ignores, or describe an adapter.

    For example:
      nearkin inspect scans.safetensors
      nearkin inspect scans.safetensors --picture scans.png
    """
    add("model", SAVED, "MODEL")
    add("--picture", "where to write the PNG (default: ./MODEL-features.png)", "FILE")


# What the commands for vectors take.


def _sizes(text: str) -> tuple[int, ...]:
    read = at_least(1)
    try:
        return tuple(sorted({read(size) for size in text.split(",")}))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be whole numbers separated by commas, such as 32,64; got {text!r}"
        ) from None


@command
def adapt(add: Add) -> None:
    """Make vectors for search shorter and more accurate, or report that no adapter is shown to be
    better.

    Vectors of a language or image model are compared as they are, centred, truncated, reduced by
    PCA, and adapted by a learned linear map: how many relevant vectors do held-out queries find
    among the nearest by cosine? The map is learned from labels (rows with the same label are
    relevant to each other), from pairs of rows that belong together, or from queries and their
    relevant documents; it may also map the queries alone. With labels, a quarter of the classes is
    held out as "unseen", which shows how an adapter does on classes that come later.

    Vectors other than the raw ones are recommended only if shown to be better, and not worse on
    unseen classes. --save writes their map for `nearkin transform` and `nearkin export`.

    For example:
      nearkin adapt vectors.parquet --label intent --save adapter.safetensors --report adapter.html
      nearkin adapt vectors.parquet --label product --expect new
      nearkin adapt documents.npz --queries queries.npz --relevance judged.csv --side query
      nearkin adapt vectors.parquet --id sku --pairs bought_together.csv
      nearkin adapt embeddings/ --label topic --save topics.safetensors
      nearkin adapt corpus.npz --queries queries.npz --relevance scifact/ --run rankings

    Vectors are a column of lists or of text such as [0.1, 0.2], or columns of numbers, in any file
    that nearkin reads: also the output of COPY from pgvector, JSON of Qdrant, Chroma and Pinecone,
    and vectors.npy with vectors_ids.npy or ids.txt beside it (--id ids).

    The format of judgements is detected: BEIR folders (vectors in the order of corpus.jsonl and
    queries.jsonl, or with --id), TREC qrels and runs, JSON and Parquet of ranx, JSON of LlamaIndex,
    and CSV, Parquet or JSON lines with the columns of sentence-transformers (anchor, positive,
    negative_1; pos, neg; sentence1, sentence2, score), of BEIR, of ESCI, or of a click log (query,
    document, shown or impressions, clicked or clicks). Documents that are judged 0, shown but never
    clicked, or given as negatives count as not relevant. Scores of runs, and a column "score" of
    other than whole numbers, are taken as those of a teacher, such as a cross-encoder.
    """
    add(
        "table",
        "a file of vectors, see above, or a folder of Parquet files, of which a sample is read",
        "VECTORS",
    )
    add("--label", "learn from this column: rows with the same label belong together", "COLUMN")
    add(
        "--pairs",
        "learn from a table of pairs: two columns of rows that belong together, and optionally a "
        "third, how relevant they are (0: not); or from judgements in another format, see above",
        "FILE",
    )
    add("--queries", "vectors of queries; VECTORS are those of documents", "FILE")
    add(
        "--relevance",
        "a table of three columns: query, document, and how relevant it is (default 1; 0: not); or "
        "judgements in another format, see above",
        "FILE",
    )
    add(
        "--id",
        "the column by which pairs and judgements name rows (default: by number, the first row is "
        "0)",
        "COLUMN",
    )
    add(
        "--groups",
        "keep rows of one group on one side of every split, such as parts of one document",
        "COLUMN",
    )
    _add_vectors(add)
    add(
        "--side",
        "query: adapt only queries, and leave an index of documents as it is; both (default): "
        "compare this with adapting documents, too",
        choices=["both", "query"],
        default="both",
    )
    add(
        "--sizes",
        "dimensions to try (default: 32,64,128,256)",
        "N,N",
        type=_sizes,
    )
    add(
        "--score",
        "the score that decides (default: precision@10 of labels, nDCG@10 of documents)",
        "NAME",
        choices=["precision@1", "precision@10", "recall@100", "nDCG@10", "MAP", "MRR"],
    )
    add(
        "--unanswerable",
        "share of later queries that have no right match at all, which the figures for matches "
        "take into account (default: 0)",
        "SHARE",
        type=_share,
        default=0.0,
    )
    add(
        "--expect",
        "the classes to expect: known ones, new ones, or both (default); settings are chosen for "
        "these, and with new, only new ones decide",
        choices=["both", "known", "new"],
        default="both",
    )
    # the former name of --expect new
    add("--unseen", argparse.SUPPRESS, action="store_const", dest="expect", const="new")
    add(
        "--take",
        "take this row of the table, such as 'adapter 64 int8', whatever the tests show",
        "NAME",
    )
    add_reading(add)
    add("--report", "write a page (.html) that plots quality against bytes", "FILE")
    add("--json", "write all results (.json)", "FILE")
    add(
        "--save",
        "learn the adapter from all rows and save it, or the raw vectors' thresholds for nearkin "
        "match (.safetensors)",
        "FILE",
    )
    add(
        "--run",
        "write the held-out rankings of the raw vectors and of the recommended ones as TREC runs, "
        "with their qrels",
        "FOLDER",
    )
    add("--seed", "seed of the splits (default: 0)", type=at_least(0), default=0)


@command
def match(add: Add) -> None:
    """Find which rows of two files, or of one, belong together, with an adapter.

    Every row of A is matched with the most similar row of B, or other row of A, if the match is
    certain enough: at least the share --precision of such matches of held-out queries was right,
    with 95 % confidence, for known and for new classes (or one of them: --expect). Rows without a
    match are left out. Several rows of A may have the same match: --one-to-one keeps the most
    probable one. What belongs together is what the adapter was learned from, such as rows with the
    same label, which need not be near duplicates. To find these, learn from pairs of them.

    The output has both rows, by number (the first is 0) or by the column --id, the cosine of their
    adapted vectors, and the probability that they belong together; within one file, each pair once,
    and the number of its cluster: rows that are connected by pairs. The search is approximate in
    files of more than 100,000 rows.

    The precision holds for rows like those held out, in an index of any size: in a larger one than
    they searched, the threshold is higher, or the output says that nothing is promised. If many
    rows have no right match at all, say so when you learn the adapter: nearkin adapt --unanswerable
    SHARE.

    For example:
      nearkin match adapter.safetensors a.parquet b.parquet --precision 0.95 -o pairs.csv
      nearkin match adapter.safetensors a.parquet b.parquet --id sku --one-to-one -o pairs.csv
      nearkin match adapter.safetensors items.parquet --id sku --precision 0.99 -o duplicates.csv
    """
    add("adapter", "a file written by nearkin adapt --save", "ADAPTER")
    add("table", "a file of vectors, as for nearkin adapt", "A")
    add(
        "index",
        "another one, right after A; without it, rows of A are matched with each other",
        "B",
        nargs="?",
    )
    add(
        "--precision",
        "minimum share of right matches (default: 0.95)",
        "SHARE",
        type=_share,
        default=0.95,
    )
    add(
        "--expect",
        "the classes of the rows of A: known ones, new ones, or both (default: those that the "
        "adapter was learned for)",
        choices=["both", "known", "new"],
    )
    add("--one-to-one", "match every row of B with at most one row of A, the most probable one")
    _add_table_output(add)
    add("--id", "name rows by this column of both files", "COLUMN")
    _add_vectors(add)
    add("--json", "write all results except the pairs (.json)", "FILE")
    _add_escaping(add)
    add_reading(add)


@command
def migrate(add: Add) -> None:
    """Keep an index when the embedding model changes, or report that everything must be embedded
    again.

    OLD and NEW hold the same few thousand items, embedded by the old model and by the new one. By
    default, the map takes queries of the new model into the space of the old one, where they search
    the old index. With --into new, it takes documents the other way: `nearkin transform` converts
    the old index, and new queries search it as they are.

    Half of the rows are held out, without judgements at most 4,000. The verdict compares what the
    map finds among these with what the better of both models finds: with --label the items with
    the query's label, with --relevance those that are relevant to the queries. "Migrate" means
    that at least 95 % of that is kept, by the lower end of the 95 % interval; "embed again", less
    than half, by the upper end; "migrate with a loss", anything else. Without labels and judgements
    nobody knows which results are right: "migrate" is then only said if the map finds a share of
    .97 of the new model's own ten neighbours, "embed again" if results of other queries contain as
    many of them, and else "unknown". --save writes the map, whatever the verdict.

    For example:
      nearkin migrate old.parquet new.parquet --id sku --save queries.safetensors
      nearkin migrate old.parquet new.parquet --id sku --label category
      nearkin migrate old.npz new.npz --queries old_q.npz new_q.npz --relevance qrels.tsv
      nearkin migrate old.parquet new.parquet --id sku --into new --save documents.safetensors
      nearkin transform documents.safetensors index.parquet --id sku -o converted.parquet
    """
    vectors = "a file of vectors by the {} model, as for nearkin adapt"
    add("old", vectors.format("old"), "OLD")
    add("new", vectors.format("new"), "NEW")
    add(
        "--id",
        "the column of both files that identifies items (default: by row number)",
        "COLUMN",
    )
    add(
        "--into",
        "old: map queries of the new model into the old index (default); new: map the documents of "
        "the old index into the new model's space",
        choices=["old", "new"],
        default="old",
    )
    add("--label", "a column of OLD with classes, to learn from and to decide by", "COLUMN")
    add(
        "--queries",
        "vectors of the same queries by the old and by the new model; OLD and NEW are documents",
        ("OLD", "NEW"),
        nargs=2,
    )
    add(
        "--relevance",
        "decide by which items are relevant to these queries; see nearkin adapt --help",
        "FILE",
    )
    _add_vectors(add)
    add_reading(add)
    add("--save", "learn the map from all rows and save it (.safetensors)", "FILE")
    add("--json", "write all results (.json)", "FILE")
    add("--seed", "seed of the held-out rows (default: 0)", type=at_least(0), default=0)


def _target(text: str) -> str:
    if text in ("faiss", "torch"):
        raise argparse.ArgumentTypeError(
            f"{text} is no longer written: take npz, and the lines for it in the guide "
            '"Vector databases"'
        )
    return text


@command
def export(add: Add) -> None:
    """Write an adapter in a format for a vector database or another program.

    npz holds arrays for NumPy, onnx a graph from raw vectors to adapted ones or their codes, sql a
    script for PostgreSQL with pgvector. For a faiss index or a sentence-transformers module from
    npz, see the guide "Vector databases".

    For example:
      nearkin export adapter.safetensors --to onnx -o adapter.onnx
      nearkin export adapter.safetensors --to sql --table items --column embedding -o adapter.sql
    """
    add("adapter", "a file written by nearkin adapt or migrate --save", "ADAPTER")
    add(
        "--to",
        "onnx needs nearkin[export]",
        choices=["npz", "onnx", "sql"],
        type=_target,
        required=True,
    )
    add("-o --output", "a file whose name ends in .npz, .onnx or .sql", "OUT", required=True)
    add("--table", "sql: the table to adapt, or SCHEMA.TABLE", "TABLE", dest="sql_table")
    add("--column", "sql: its column of vectors (default: embedding)", "COLUMN")
    add("--into", "sql: the new column (default: COLUMN_adapted)", "COLUMN")


# Where a command is; `predict` and `transform` are in `commands`.
MODULES = {
    "adapt": "vectors.adapt",
    "check": "tables.check",
    "compare": "tables.compare",
    "export": "vectors.export",
    "inspect": "inspect",
    "match": "vectors.match",
    "migrate": "vectors.migrate",
}
NEEDED = ("pandas", "rich", "matplotlib", "pyarrow", "safetensors")
# The option that was probably meant if its value stands alone after a command's files.
MEANT = {
    "compare": "--target",
    "check": "--target",
    "adapt": "--label",
    "migrate": "--id",
    "predict": "-o",
    "transform": "-o",
    "match": "-o",
    "inspect": "--picture",
}
ALWAYS = ("arguments", "command", "dask", "quiet")
# The options that a command also takes with a folder, and why it takes no others.
OF_FOLDERS = {
    "compare": (
        (
            *("table", "target", "score", "methods", "all", "no_references", "keep_twins"),
            *("neighbors", "folds", "repeats", "quick", "no_scaling", "seed", "time_budget"),
            *("report", "json", "save", "picture"),
        ),
        "Folders hold complete numbers, and classes: leave such options out.",
    ),
    "predict": (
        ("model", "table", "output", "id", "search", "coverage"),
        "Parquet files are read and written one by one: give one file, or leave such options out.",
    ),
    "transform": (
        ("model", "table", "output", "id", "picture"),
        "Parquet files are read and written one by one: give one file, or leave such options out.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; report unsuitable input in one line."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options, surplus = PARSER.parse_known_args(arguments, argparse.Namespace(arguments=arguments))
    refusal = _not_understood(options, surplus) if surplus else _unfit(options)
    if refusal:
        return fail(refusal, BAD_INPUT)
    from .output import check_outputs, refuse_overwriting

    module = MODULES.get(options.command, "commands")
    try:
        with signals_raise():
            refuse_overwriting(options)
            check_outputs(options)
            if getattr(options, "dask", None) is not None:
                import_module("..dask", __package__)  # an error that names the missing extra
                module = "folders.compare" if options.command == "compare" else module
            code: int = getattr(import_module(f".{module}", __package__), options.command)(options)
        return code
    except (TableError, OSError, ImportError) as error:
        return fail(str(error), BAD_INPUT)
    except MemoryError as error:
        return fail(f"out of memory ({error}): take fewer rows or columns", BAD_INPUT)
    except KeyboardInterrupt:
        return ended_by(signal.SIGINT)
    except Terminated as end:
        return ended_by(end.args[0])


def _not_understood(options: argparse.Namespace, surplus: Sequence[str]) -> str:
    """Return a line on unknown arguments of a command, and what was probably meant."""
    first, command = surplus[0], options.command
    known = COMMANDS.choices[command]._option_string_actions  # argparse offers no public way
    meant = ""
    if first.startswith("-"):
        close = difflib.get_close_matches(first.partition("=")[0], list(known), n=1)
        meant = f": did you mean {close[0]}?" if close else ""
    elif command == "match" and options.index is None:  # argparse takes B only right after A
        meant = f": did you mean {options.table} {first}, both before the options?"
    elif command in MEANT:
        option = MEANT[command]
        if getattr(options, known[option].dest) in (None, "-"):
            meant = f": did you mean {option} {first}?"
    return f"{command} has no argument {' '.join(surplus)}{meant} (nearkin {command} --help)"


def _unfit(options: argparse.Namespace) -> str | None:
    """Return why a command cannot run, if that is known before anything is loaded."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return f"the command needs {', '.join(missing)}: pip install 'nearkin[app]'"
    if getattr(options, "dask", None) is not None:
        taken, reason = OF_FOLDERS[options.command]
        default = COMMANDS.choices[options.command].get_default
        given = [
            name
            for name, value in vars(options).items()
            if name not in (*ALWAYS, *taken) and value != default(name)
        ]
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            return f"{names}: not available with --dask. {reason}"
    for name in ("model", "adapter"):
        if name in options and is_absent(saved := getattr(options, name)):
            return (
                f"{saved} cannot be read: no such file; give one saved by nearkin compare, adapt "
                "or migrate."
            )
    for name in ("index", "pairs", "queries", "relevance", "old", "new"):
        paths: Any = getattr(options, name, None) or STANDARD_INPUT
        for path in paths if isinstance(paths, list) else [paths]:
            if absent := missing_file(path):
                return absent
    is_table = "table" in options and getattr(options, "dask", None) is None
    return missing_file(options.table) if is_table else None
