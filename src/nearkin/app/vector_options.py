"""What the commands for vectors take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .options import add_reading, at_least, command


def _sizes(text: str) -> tuple[int, ...]:
    read = at_least(1)
    try:
        return tuple(sorted({read(size) for size in text.split(",")}))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"whole numbers with commas between them, such as 32,64; got {text!r}"
        ) from None


@command
def adapt(add: Callable[..., Any]) -> None:
    """Make vectors for search shorter and more accurate, or say that no shorter version is shown to be better.

    Vectors of a language or image model, as they are, truncated, by PCA, and adapted by a linear
    map that is learned from what is known of them, are compared by held-out queries: which
    relevant ones are among the most similar by cosine. Known are the labels of rows (rows of a
    label are relevant to each other), pairs of rows that belong together, or queries with the
    documents that are relevant to them. Of labels, a quarter of the classes is held out, too:
    as "unseen", which is how an adapter does on classes that come later.

    An adapter is taken only if it is shown to be better than the raw vectors, and not worse on
    unseen classes. --save writes it for `nearkin transform` and `nearkin export`.

    For example:
      nearkin adapt vectors.parquet --label intent --save adapter.safetensors --report adapter.html
      nearkin adapt vectors.parquet --label product --unseen
      nearkin adapt documents.npz --queries queries.npz --relevance judged.csv --side query
      nearkin adapt vectors.parquet --id sku --pairs bought_together.csv
      nearkin adapt embeddings/ --label topic --save topics.safetensors
    """
    text = "a Parquet, NPZ or CSV file, or a folder of Parquet files of which a sample is read: a column of lists, or "
    text += "columns of numbers"
    add("table", metavar="VECTORS", help=text)
    add("--label", metavar="COLUMN", help="learn from this column: rows with the same label belong together")
    text = "learn from a table of two columns, rows that belong together, and maybe a third, how much"
    add("--pairs", metavar="FILE", help=text)
    add("--queries", metavar="FILE", help="vectors of queries; VECTORS are those of documents")
    text = "a table of three columns: query, document, and how relevant it is (default 1; 0: not)"
    add("--relevance", metavar="FILE", help=text)
    text = "the column that pairs and judgements name rows by (default: by number, the first row is 0)"
    add("--id", metavar="COLUMN", help=text)
    text = "keep rows of one group on one side of every split, such as parts of one document"
    add("--groups", metavar="COLUMN", help=text)
    add("--vectors", metavar="COLUMN", help="which column of lists holds the vectors, where there are several")
    text = "query: adapt queries alone, so that an index of documents stays as it is (default: both)"
    add("--side", choices=["both", "query"], default="both", help=text)
    text = "dimensions to try (default: 32,64,128,256)"
    add("--sizes", metavar="N,N", type=_sizes, default=(32, 64, 128, 256), help=text)
    text = "what decides (default: precision@10 of labels, nDCG@10 of documents)"
    add("--score", choices=["precision@1", "precision@10", "recall@100", "nDCG@10", "MRR"], metavar="NAME", help=text)
    add("--unseen", action="store_true", help="decide by classes that no training row has, as new ones will come")
    add("--take", metavar="NAME", help="take this row of the table, whatever is shown, such as 'adapter 64 int8'")
    add_reading(add)
    add("--report", metavar="FILE", help="write a page (.html) that draws quality against bytes")
    add("--save", metavar="FILE", help="learn the adapter from all rows and save it (.safetensors)")
    add("--seed", type=at_least(0), default=0, help="seed of the splits (default: 0)")


@command
def export(add: Callable[..., Any]) -> None:
    """Write an adapter in a form that a vector database or another program applies.

    npz holds arrays for NumPy, onnx a graph from raw vectors to adapted ones or their codes, faiss
    an empty index that takes raw vectors, sql a script for PostgreSQL with pgvector, torch a folder
    with a module Dense of sentence-transformers.

    For example:
      nearkin export adapter.safetensors --to onnx -o adapter.onnx
      nearkin export adapter.safetensors --to sql --table items --column embedding -o adapter.sql
    """
    add("adapter", metavar="ADAPTER", help="a file written by nearkin adapt --save")
    text = "onnx needs nearkin[export], faiss nearkin[ann]"
    add("--to", choices=["npz", "onnx", "faiss", "sql", "torch"], required=True, help=text)
    text = ".npz, .onnx, .faiss or .index, .sql; for torch a new folder"
    add("-o", "--output", metavar="OUT", required=True, help=text)
    add("--table", dest="sql_table", metavar="TABLE", help="sql: the table that is adapted, or SCHEMA.TABLE")
    add("--column", metavar="COLUMN", help="sql: its column of vectors (default: embedding)")
    add("--into", metavar="COLUMN", help="sql: the new column (default: COLUMN_adapted)")
