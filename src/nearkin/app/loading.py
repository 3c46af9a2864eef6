"""Saved models and adapters in Python: what `nearkin.load` returns."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ..tables import Cells, check_coverage
from ..vectors import EmbeddingAdapter
from .endings import TableError
from .tables.model import Model, embed, load_model, predict
from .vectors.adapter_file import is_adapter, load_adapter


def load(path: str | PathLike[str]) -> SavedModel | EmbeddingAdapter:
    """Return the model or the adapter in a file, see `nearkin.load`."""
    path = Path(path)
    path.open("rb").close()  # raises the usual OSError
    try:
        if is_adapter(str(path)):
            return load_adapter(path).map
        return SavedModel(load_model(path))
    except TableError as error:
        raise ValueError(str(error)) from error


class SavedModel:
    """A model that `nearkin compare --save` has saved, from `nearkin.load`.

    Like `nearkin predict` and `nearkin transform`, it takes rows as they are: data frames with
    words, dates and missing cells, whose columns are found by name, or arrays with the columns of
    the training table in their order. Encoding, filling and scaling are part of the model.

    Attributes
    ----------
    method : str
        The name of the method, such as "NCA tables".
    classes_ : ndarray of shape (n_classes,)
        Sorted labels; empty for a regression.
    feature_names_in_ : ndarray of str
        Names of the columns of the training table.
    score : str
        The name of the score by which the method was chosen.
    held_out : dict of str to float
        Results of the comparison: "score" is the mean held-out score, "raw" that of k-NN on the raw
        features, "folds" the number of folds. If known, "low" and "high" are the 95 % interval of
        the difference, and "p_value" belongs to it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.method, self.score, self.held_out = model.method, model.score, model.held_out
        self.classes_ = np.array(model.classes)
        self.feature_names_in_ = model.encoder.feature_names_in_

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.method}, {self.score} {self.held_out['score']:.3g}>"

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row, or the number of a regression.

        Parameters
        ----------
        X : data frame, array or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.details(X)["label" if len(self.classes_) else "value"]

    def details(self, X: Any, coverage: float | None = None) -> dict[str, np.ndarray]:
        """Return what `nearkin predict` writes: predictions, how sure they are, and nearest rows.

        Parameters
        ----------
        X : data frame, array or sparse matrix of shape (n, p)
        coverage : float, default=None
            Between 0 and 1: the share of rows whose label set or interval contains the true label
            or number. Only models of NCA tables have held-out rows, which it needs.

        Returns
        -------
        dict of str to ndarray
            "label" with its "vote", or for NCA tables its "probability", and "probability of ..."
            for up to ten classes; or "value" for a regression. For NCA tables "familiarity" and,
            with a coverage, "label_set" (n, n_classes), or "low" and "high". "nearest" (n, k) has
            the rows of the training table that are nearest (the first is 0), "distance" how far
            they are.
        """
        if coverage is not None:
            coverage = check_coverage(coverage)
            if self._model.held_out_rows is None:
                raise ValueError(
                    f"coverage={coverage} needs held-out rows, which this model of {self.method} "
                    "lacks: leave it out, or save a model of NCA tables."
                )
        rows = self._encoded(X)
        with np.errstate(all="ignore"):
            return predict(self._model, rows, coverage=coverage)

    def transform(self, X: Any) -> Any:
        """Return the learned coordinates of rows, as `nearkin transform` writes them.

        Parameters
        ----------
        X : data frame, array or sparse matrix of shape (n, p)

        Returns
        -------
        array of shape (n, m)
            Sparse if the rows are, and the model only scales them.
        """
        rows = self._encoded(X)
        with np.errstate(all="ignore"):
            return embed(self._model, rows)

    def _encoded(self, X: Any) -> Any:
        """Return rows as numbers; an error names cells that the model cannot take."""
        model, names = self._model, self.feature_names_in_.tolist()
        if issparse(X):
            X = Cells(names, csr_array(X, dtype=np.float64), names, {})
            if X.numbers.shape[1] != len(names):
                raise ValueError(f"X has {X.numbers.shape[1]} features, not {len(names)}.")
        rows = model.encoder.encode_and_warn(X, model.arrays.get("effects"))
        if not model.takes_gaps and not issparse(rows) and np.isnan(rows).any():
            raise ValueError(
                f"X has missing values, which this model of {self.method} cannot handle: fill them "
                "first."
            )
        return rows
