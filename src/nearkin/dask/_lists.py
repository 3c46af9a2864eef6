"""Approximate search among rows in lists: a query looks through the nearest of all lists, in the blocks that hold them.

So it looks through what it would on one machine, however many blocks there are, and a block meets only those that hold
lists of its queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from distributed import Future

from .._blocks import row_blocks
from ..neighbors.ivf import n_ranked
from ..neighbors.quantizer import import_faiss
from ..neighbors.search import SMALL_CLASS
from ._search import Found, Lists, among_kin, members_by_class, per_row, with_found
from ._shared_index import FiledRows, FiledTable, SharedIndex
from ._work import Work

ROUNDING = 1e-3  # relative, of a distance in few dimensions


def nearest_in_lists(work: Work, table: FiledTable, kind: str, k: Any) -> list[Future]:
    """Return the lists of about the k nearest rows of every row, as `nearest` does.

    O(n L d) time to choose among L lists in d dimensions, and to look through n_probes / L of all rows.
    """
    catalogues = [table.catalogue] * len(table.rows)
    probes = work.map(probed, table.rows, catalogues, kind=kind, k=k)
    meet = work.results(work.map(met, table.rows, probes, catalogues, kind=kind, spans=table.spans))
    found = []
    for block, (queries, of_queries) in enumerate(zip(table.rows, probes, strict=True)):
        lists = None  # a block asks all others before the next one asks: so few are in use at a time
        others = np.flatnonzero(meet[block])
        for other in sorted(others, key=lambda other: other != block):  # its own, which has the nearest, first
            among = table.rows[other], table.catalogue
            lists = work.submit(with_listed, lists, queries, of_queries, *among, kind=kind, k=k)
        found.append(lists)
    return found


# Tasks.


def probed(rows: FiledRows, catalogue: SharedIndex, *, kind: str, k: Any) -> np.ndarray:
    """Return the numbers of the lists that every row looks through, -1 for no more; shape (b, at least n_probes)."""
    Z, wanted = catalogue.projected(rows.X), _n_found(rows, catalogue, kind, per_row(k, rows))
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for group, members in members_by_class(catalogue.group_of[rows.codes]):
        lists = _lists_for(group, kind, catalogue)
        if len(lists):
            parts += _nearest_lists(Z, members, wanted, lists, catalogue)
    probes = np.full((len(Z), max((found.shape[1] for _, found in parts), default=0)), -1, np.int32)
    for block, found in parts:
        probes[block, : found.shape[1]] = found
    return probes


def met(rows: FiledRows, probes: np.ndarray, catalogue: SharedIndex, *, kind: str, spans: np.ndarray) -> np.ndarray:
    """Say for every block whether some rows look for neighbours there; in their own they do."""
    wanted = np.zeros(len(catalogue.sizes) + 1, dtype=bool)
    wanted[probes] = True
    if kind == "kin" and _is_small(rows, catalogue).any():
        wanted[catalogue.lists_of(catalogue.shared_group)] = True
    wanted[-1], wanted[rows.lists[0]] = False, True
    return np.array([wanted[first : last + 1].any() for first, last in spans])


def with_listed(
    lists: Lists | None,
    queries: FiledRows,
    probes: np.ndarray,
    candidates: FiledRows,
    catalogue: SharedIndex,
    *,
    kind: str,
    k: Any,
) -> Lists:
    """Return the lists of some rows after they have looked through those lists of one block more that are theirs."""
    each = per_row(k, queries)
    found = _found(queries, probes, candidates, catalogue, kind, each)
    return with_found(lists, queries, candidates, kind, each, found)


def _found(
    queries: FiledRows, probes: np.ndarray, candidates: FiledRows, catalogue: SharedIndex, kind: str, k: np.ndarray
) -> Iterator[Found]:
    if kind == "kin":  # rows of a small class are compared with all their kin: lists that it shares may hold none
        yield from among_kin(queries, candidates, k, np.unique(queries.codes[_is_small(queries, catalogue)]))
    first, last = candidates.lists[[0, -1]]
    here = (probes >= first) & (probes <= last)
    asking = np.flatnonzero(here.any(axis=1))
    if not len(asking):
        return
    faiss = import_faiss()
    Y, names = catalogue.projected(candidates.X), (candidates.lists - first).astype(np.int64)
    n_lists = max(int(last - first) + 1, probes.shape[1])  # faiss misreads more probes than lists
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(Y.shape[1]), Y.shape[1], n_lists)
    index.is_trained, index.nprobe = True, probes.shape[1]  # who looks through which list is known
    index.add_core(len(Y), faiss.swig_ptr(Y), None, faiss.swig_ptr(names))
    wanted = _n_found(queries, catalogue, kind, k)
    for block in row_blocks(len(asking), int(wanted.max())):  # with_found compares them with what they know
        i = asking[block]
        theirs = np.where(here[i], probes[i] - first, -1).astype(np.int64)
        r = min(int(wanted[i].max()), len(Y))
        unused = np.zeros(theirs.shape, np.float32)  # faiss 1.9 wants an array
        squares, at = index.search_preassigned(catalogue.projected(queries.X[i]), r, theirs, unused)
        yield i, at, np.sqrt(squares) * (1 - ROUNDING)  # in fewer dimensions rows are nearer, never farther


def _n_found(rows: FiledRows, catalogue: SharedIndex, kind: str, k: np.ndarray) -> np.ndarray:
    """Return how many rows every row has to find: k, or more to rank them again, and those that may not count."""
    again, kin = n_ranked(catalogue.n_rerank, k), catalogue.class_sizes[rows.codes]
    # itself; or its kin, where these are in the lists that it looks through
    others = 1 if kind == "kin" else np.where(_is_small(rows, catalogue), kin, 0)
    return np.minimum(again + others, kin if kind == "kin" else catalogue.class_sizes.sum())


def _is_small(rows: FiledRows, catalogue: SharedIndex) -> np.ndarray:
    return catalogue.class_sizes[rows.codes] <= SMALL_CLASS


def _lists_for(group: int, kind: str, catalogue: SharedIndex) -> np.ndarray:
    """Return the numbers of the lists among which the rows of a group choose."""
    everything, own, small = np.arange(len(catalogue.sizes)), catalogue.lists_of(group), group == catalogue.shared_group
    if kind == "kin":
        return everything[:0] if small else everything[own]
    return everything if small else np.delete(everything, own)


def _nearest_lists(
    Z: np.ndarray, asking: np.ndarray, wanted: np.ndarray, lists: np.ndarray, catalogue: SharedIndex
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield queries, and the nearest of some lists to each: n_probes, or more where these hold too few rows."""
    coarse = import_faiss().IndexFlatL2(Z.shape[1])
    coarse.add(catalogue.filing.centres[lists])
    n_probes = catalogue.n_probes
    while len(asking):
        n_probes, lacking = min(n_probes, len(lists)), []
        for block in row_blocks(len(asking), n_probes):
            i = asking[block]
            probes = lists[coarse.search(Z[i], n_probes)[1]].astype(np.int32)
            enough = (n_probes == len(lists)) | (catalogue.sizes[probes].sum(axis=1) >= wanted[i])
            yield i[enough], probes[enough]
            lacking.append(i[~enough])
        asking, n_probes = np.concatenate(lacking), 4 * n_probes
