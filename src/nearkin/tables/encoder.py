"""Encoding of raw data frames as rows of numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import compress
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._messages import counted, listed, note, quoted, shortened, shown, similar, warn_user
from .._validation import check_bool, check_choice, check_integer, weighted_rows
from .cells import REASONS, Cells, Text, read_cells
from .columns import (
    Column,
    Learned,
    NumberColumn,
    ReadColumn,
    Rules,
    column_from,
    indicator_names,
    learn_columns,
)
from .gaps import indicated_features, median_known
from .numbers import DECIMAL_MARKS


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a raw table, with text, dates and missing cells, as rows of numbers.

    The encoding is decided for each column as a whole:

    - Numbers and booleans stay as they are; durations are converted to days.
    - Text becomes numbers if at least half of its filled cells are numbers: with thousands
      separators ("1,234.5", "1 234.5", "1'234.5"), with the same currency before or after
      ("€12.30", "12 USD"), with a percent sign ("12.3%" is 0.123), in parentheses as a minus sign
      ("(12.30)"), with the other decimal mark ("12,5"), or as truth values ("true"). Whole numbers
      that begin with 0, such as ZIP codes, make a column categories.
    - So does text with a unit ("72.1 kg", "1,163 sqft", "7/10"; units of one kind, such as "g" and
      "kg", are converted), with a limit or a mark ("<0.1", "0.196*"), durations ("3h 12min",
      "31:05:09", converted to days), and ranges that do not overlap ("10-19", replaced by their
      middle). Of several units without a known factor ("23.4 kmpl", "17.3 km/kg"), the number is
      read, and an indicator of each unit is added. Text that looks like these but may be something
      else stays text, with a remark.
    - So do dates in one layout: "2024-03-12" (which may also occur among those of another layout),
      "12.03.2024", "03/12/2024", "12 Mar 2024", "Mar 12, 2024", each with an optional time "10:30",
      "10:30:05", "10:30 PM" and an optional zone. If both orders of day and month are possible, "/"
      has the month first (the day with `decimal=","`) and "." and "-" the day, with a remark.
      Columns of a date or time type are taken as they are. Dates become the days since 1970 (in
      UTC), and sine and cosine of the position in the year (if they span more than 60 days), in the
      week (if at least 5 weekdays occur and not all dates are the first of a month) and in the day
      (if times of day differ). "10:30" alone is the position in the day.
    - Of these readings, that of most cells is taken. The other cells are missing, and a remark
      counts them. A word that at least 5 of them hold also gets an indicator, such as
      "mileage=Unknown". Beside words there must be at least 3 different numbers; fewer, as in
      "0", "1" and "unknown", are categories.
    - Other text, and columns of a categorical type, become one column of zeros and ones per value,
      stripped of surrounding spaces; a value not seen in `fit` is all zeros. Text of more than 100
      values, a category of more than `max_categories`, and text that differs in nearly all rows,
      such as names, titles and addresses, have such a column only for the values that at least two
      rows share. If the text has words, columns such as "title (words 1)" follow, at most 30: a
      truncated singular value decomposition of the TF-IDF of its n-grams of 3 and 4 characters,
      which is similar for texts that share parts of their words [1]_. At most 500 characters of a
      text are read, and at most 2,000 n-grams are learned.
    - Lists, "balcony, garage" (also with ";" or "|"), become one column of zeros and ones for each
      item that occurs in at least 5 rows, such as "extras has garage".
    - Constant and empty columns are left out, as is text of many values without words that all
      differ, or with more than 500 characters. Unless `drop_identifiers` is False, so are columns
      that number the rows, columns of whole numbers that are named as identifiers ("customer_id")
      and differ in nearly all rows, and text without words that differs in nearly all rows, such as
      keys and links.

    A missing category is a category of its own if `fit` has seen one. A missing date is at the
    centre of its circles.

    Parameters
    ----------
    missing : {"impute", "keep"}, default="impute"
        "keep" leaves missing numbers and days as NaN. "impute" replaces them by the median of the
        column in `fit`; if `fit` has seen at least 5 missing and 5 known values, it also appends an
        indicator such as "age (missing)" after all other columns. Columns that are missing in the
        same rows share an indicator, and there is at most one for every 10 rows
        (`nearkin.tables.indicated_features`).
    missing_values : sequence of str, optional
        Texts that count as missing in every column, besides empty cells. By default, these are the
        usual marks of spreadsheets, in columns that otherwise hold numbers or dates: NA, N/A,
        n/a, NaN, null, None, <NA>, ?, -, ., #N/A, #DIV/0!, #VALUE!, #REF! and the like, also k.A.,
        n.v., n.d. and s/d. In a column of categories, where "None" and "NA" may well be values,
        only empty cells are missing by default.
    max_categories : int, default=1000
        Maximum number of values of a column that become columns of their own, the most frequent
        ones. Of more than 134,000 rows there are fewer, so that they take at most a gigabyte, but
        at least 100.
    decimal : {".", ","}, default="."
        The decimal mark of text. The other mark is used for a column that cannot be read with this
        one.
    drop_identifiers : bool, default=True
        Whether to leave out columns that only identify rows.
    strict : bool, default=False
        Whether text becomes numbers or dates only if all its cells are, and what does not fit is an
        error in new rows.

    Attributes
    ----------
    columns_ : list of Column
        The kept columns: name, kind ("number", "date", "category", "text" or "list") and encoding.
        Columns of numbers come first, then the others, both in the order of the table.
    dropped_ : dict of str to str
        The columns that are left out, each with the reason.
    remarks_ : list of str
        Human-readable remarks on the encoding.
    medians_ : ndarray
        With `missing="impute"`, the median of the known values of each feature that may be missing,
        and 0 for the others.
    indicated_ : ndarray of int
        The features that have an indicator of missing values; none with `missing="keep"`.
    n_features_in_, feature_names_in_
        As in scikit-learn; columns of an array are named x0, x1, ...

    Raises
    ------
    ValueError
        If an array has infinite numbers; if new rows lack more than half of the columns; with
        `strict`, if they lack any, or if a cell in a column of numbers is not a number, or in a
        column of dates not a date, or if a data frame has infinite numbers.

    Notes
    -----
    New rows may have their columns in another order, and additional ones. Columns that they lack,
    and cells that do not fit their column, are missing; `transform` then warns once, as
    it does of columns that it reads with the other decimal mark than in `fit`. Columns of a data
    frame whose names occur twice are numbered as by pandas.read_csv, "a" and "a.1"; lists in
    cells become text, "a, b".

    Cost: O(n p), with p the number of features; a text that occurs often is parsed once. Labels are
    not used, but medians and words depend on the rows of `fit`: fit the encoder inside the folds,
    in a pipeline, or keep missing numbers and impute them there.

    References
    ----------
    .. [1] Scott Deerwester, Susan T. Dumais, George W. Furnas, Thomas K. Landauer and Richard
       Harshman, "Indexing by latent semantic analysis", Journal of the American Society for
       Information Science 41(6), 1990.

    Examples
    --------
    >>> import pandas as pd
    >>> from nearkin import TableEncoder
    >>> visits = pd.DataFrame({
    ...     "price": ["€1,200.50", "€80.00", "n/a", "€75.20"],
    ...     "day": ["12.03.2024", "24.04.2024", "02.05.2024", "30.04.2024"],
    ...     "colour": ["red", "blue ", "red", "blue"],
    ... })
    >>> encoder = TableEncoder().fit(visits)
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'day (days since 1970)', 'colour=blue', 'colour=red']
    >>> encoder.transform(visits)[:3]
    array([[1.2005e+03, 1.9794e+04, 0.0000e+00, 1.0000e+00],
           [8.0000e+01, 1.9837e+04, 1.0000e+00, 0.0000e+00],
           [8.0000e+01, 1.9845e+04, 0.0000e+00, 1.0000e+00]])
    >>> for remark in encoder.remarks_:
    ...     print(remark)
    read as numbers: price ('€1,200.50')
    read as dates: day ('12.03.2024', day first)
    one-hot encoded: colour (2 values)
    missing values, filled by the median: price (1 row)
    """

    def __init__(
        self,
        missing: str = "impute",
        missing_values: Any = None,
        max_categories: int = 1000,
        decimal: str = ".",
        drop_identifiers: bool = True,
        strict: bool = False,
    ) -> None:
        self.missing = missing
        self.missing_values = missing_values
        self.max_categories = max_categories
        self.decimal = decimal
        self.drop_identifiers = drop_identifiers
        self.strict = strict

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def rules(self) -> Rules:
        """Return the parameters that define how cells are read."""
        missing = self.missing_values
        if missing is not None:
            missing = tuple(str(value).strip() for value in missing)
        return Rules(missing, self.max_categories, self.decimal, self.drop_identifiers, self.strict)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the contents of the columns.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow) or array of shape (n, p)
        y : ignored
        sample_weight : array of shape (n,), default=None
            At least 0. In the medians and in the decomposition of words, a row of weight 2 counts
            as two equal rows and a row of weight 0 is left out; only the ratios matter. The kind of
            each column, and which values, items and missing cells have an indicator, depend on the
            number of rows, whatever their weights.

        Returns
        -------
        self
        """
        weights = sample_weight
        if weights is not None and not isinstance(X, Cells):
            X, _, weights, _ = weighted_rows(X, None, weights)
        self._check_parameters()
        cells = self._cells(X, reset=True)
        if weights is not None:
            text = {name: replace(column, weights=weights) for name, column in cells.text.items()}
            cells = replace(cells, text=text)
        learned = learn_columns(cells, self.rules)
        columns = {name: one.column for name, one in learned.items() if one.column is not None}
        numbers = [name for name in cells.number_names if name in columns]
        texts = [name for name in cells.names if name in cells.text and name in columns]
        self.columns_: list[Column] = [columns[name] for name in (*numbers, *texts)]
        self._n_plain = len(numbers)  # these came as numbers
        left_out = [name for name in cells.names if name in learned and name not in columns]
        left_out.sort(key=lambda name: REASONS.index(learned[name].reason))
        self.dropped_ = {name: learned[name].reason for name in left_out}
        notes: dict[str, list[str]] = defaultdict(list)
        for name, reason in self.dropped_.items():
            notes[f"ignored, {reason}"].append(shortened(name))
        for name, one in learned.items():
            for what, item in one.notes:
                notes[what].append(item.replace(name, shortened(name)))
        self.remarks_ = [line for what, items in notes.items() for line in note(what, items)]
        self.remarks_ += cells.infinite
        if not self.columns_:
            reasons = [f"{name} ({reason})" for name, reason in self.dropped_.items()]
            few = "; X has 1 sample" if cells.n_rows == 1 else ""
            raise ValueError(
                f"no feature columns are left: {listed(reasons) or 'there are none'}{few}: add "
                "columns whose values vary."
            )
        self.indicated_ = np.empty(0, dtype=int)
        if self.missing == "impute":
            self._learn_gaps(learned, weights)
        self._check_names()
        return self

    def _check_parameters(self) -> None:
        check_choice(self.missing, "missing", ("impute", "keep"))
        check_choice(self.decimal, "decimal", DECIMAL_MARKS)
        check_integer(self.max_categories, "max_categories", 1)
        check_bool(self.drop_identifiers, "drop_identifiers")
        check_bool(self.strict, "strict")
        if self.missing_values is not None and not isinstance(
            self.missing_values, list | tuple | set | np.ndarray
        ):
            raise TypeError(f"missing_values must be a list of texts, got {self.missing_values!r}.")

    def _check_names(self) -> None:
        counts = Counter(self.get_feature_names_out().tolist())
        if repeated := [name for name, count in counts.items() if count > 1]:
            raise ValueError(
                f"encoded features have {quoted(repeated)} more than once: rename a column."
            )

    def _learn_gaps(self, learned: dict[str, Learned], weights: np.ndarray | None) -> None:
        """Learn the medians of features, and which features get an indicator."""
        self.medians_ = np.zeros(len(self._names))
        missing, gaps, start = dict[int, np.ndarray](), list[str](), 0
        for column in self.columns_:
            if column.may_miss:
                numbers = learned[column.name].numbers
                self.medians_[start], is_missing = median_known(numbers, weights), np.isnan(numbers)
                if is_missing.any():
                    missing[start] = is_missing
                    n_rows = counted(int(is_missing.sum()), "row")
                    gaps.append(f"{shortened(column.name)} ({n_rows})")
            start += len(column.names)
        self.remarks_ += note("missing values, filled by the median", gaps)
        if missing:
            chosen = indicated_features(np.column_stack(list(missing.values())))
            self.indicated_ = np.array(list(missing))[chosen]

    def transform(self, X: Any) -> Any:
        """Return rows of numbers, shape (n, number of features), float64, or float32 if X is that.

        Parameters
        ----------
        X : data frame or array
            With the columns that `fit` kept, by name; for an array, in the same order.

        Warns
        -----
        UserWarning
            Once, if cells of X do not fit their columns, or if X lacks columns: both count as
            missing.
        """
        return self.encode_and_warn(X)

    def encode_and_warn(self, X: Any, effects: Any = None) -> Any:
        """Return the result of `transform`, given how much each column matters, see `encode`."""
        encoded, faults, _ = self.encode(X, effects)
        if faults:
            warn_user("\n".join(faults))
        return encoded

    def encode(
        self, X: Any, effects: Any = None, *, strict: bool | None = None
    ) -> tuple[Any, list[str], list[str]]:
        """Return the result of `transform`, and two kinds of remarks instead of a warning.

        Parameters
        ----------
        X : data frame or array
        effects : array of shape (number of columns,), default=None
            How much each of `columns_` matters. X may lack columns that have at most half of all
            effects; by default, all columns have the same.
        strict : bool, default=None
            Used instead of the parameter.

        Returns
        -------
        encoded : array of shape (n, number of features)
        faults : list of str
            Remarks on cells that count as missing since they do not fit their columns, and on
            columns that X lacks.
        unknown : list of str
            Remarks on values of categories not seen in `fit`.
        """
        check_is_fitted(self)
        strict = self.strict if strict is None else strict
        cells = self._cells(X, reset=False)
        faults = [*cells.infinite, *self._lacking(cells, effects, strict)]
        # the columns that were numbers in `fit` are moved in place, if all of them are numbers here
        plain = [column.name for column in self.columns_[: self._n_plain]]
        n_plain = len(plain) if all(name in cells.positions for name in plain) else 0
        # the others are copied first, since `in_place` overwrites the memory of the numbers
        given = [self.given(cells, column) for column in self.columns_[n_plain:]]
        n_names = len(self._names)
        out = cells.in_place(plain[:n_plain], n_names + len(self.indicated_))
        unknown, new, start = list[str](), list[str](), n_plain
        others = defaultdict[str, list[str]](list)  # columns in another form, by this form
        for column, values in zip(self.columns_[n_plain:], given, strict=True):
            stop = start + len(column.names)
            own = out[:, start:stop]
            start = stop
            column = self._by_mark_of(cells, column)
            written = column.write(own, values)
            is_odd = len(written.unread) > 0 and not strict
            if is_odd and isinstance(column, ReadColumn) and (other := column.in_form_of(values)):
                column, form = other
                own[:] = 0
                written = column.write(own, values)
                others[form].append(shortened(column.name))
            if len(written.unread):
                faults.append(self._unread(cells, column, values, written.unread, strict))
            unknown += [written.unknown] * bool(written.unknown)
            new += [shortened(column.name)] * written.all_new
        for form, names in others.items():
            faults += note(f"read with {form}, unlike in training", names)
        for block in row_blocks(*out.shape) if self.missing == "impute" else []:
            features = out[block, :n_names]
            missing = np.isnan(features)
            out[block, n_names:] = missing[:, self.indicated_]
            np.copyto(features, self.medians_.astype(out.dtype), where=missing)
        remarks = note("values not seen in training", unknown)
        expect = "expect worse predictions than for held-out rows"
        return out, faults, [*remarks, *(f"every {name} is new: {expect}" for name in new)]

    def _by_mark_of(self, cells: Cells, column: Column) -> Column:
        """Return a column, if it has the decimal mark of its table, with that of other cells."""
        if isinstance(column, NumberColumn) and column.decimal == self.decimal:
            return replace(column, decimal=cells.decimal or self.decimal)
        return column

    def misses_mark_of(self, cells: Cells) -> bool:
        """Return whether some column of cells has another decimal mark than the table they are of.

        Columns with another mark than their table in `fit` do not count.
        """
        plain = [self._by_mark_of(cells, one) for one in self.columns_ if one.name in cells.text]
        return any(
            isinstance(column, NumberColumn)
            and column.decimal == cells.decimal
            and column.misses_mark_of(self.given(cells, column))
            for column in plain
        )

    def _lacking(self, cells: Cells, effects: Any, strict: bool) -> list[str]:
        """Return a remark on columns that the cells lack; raise an error if they matter."""
        lacking = [column.name not in cells.known for column in self.columns_]
        names = [column.name for column in compress(self.columns_, lacking)]
        effects = np.ones(len(lacking)) if effects is None else np.asarray(effects)
        if not names:
            return []
        given = {*getattr(self, "feature_names_in_", ())}
        close = similar(names[0], [name for name in cells.names if name not in given])
        what = f"{cells.called} lacks {quoted(names, 5)}"
        what += f" ({shown(names[0])} may be {close})" * bool(close)
        what += ", which the training rows had"
        if strict or 2 * effects[lacking].sum() > effects.sum():
            raise ValueError(f"{what}: add or rename columns.")
        return [f"{what}, taken as missing in every row: expect worse predictions"]

    def _unread(
        self, cells: Cells, column: Column, given: np.ndarray | Text, rows: np.ndarray, strict: bool
    ) -> str:
        """Return a remark on the cells of a column that do not fit it, or raise an error."""
        assert isinstance(column, ReadColumn)
        examples = list[str]()
        for row in rows[: 1 if strict else 3].tolist():
            if isinstance(given, Text):
                cell = shown(given.values[given.codes[row]])
            else:
                cell = f"the number {given[row]:.15g}"
            examples.append(f"{cell} {cells.place(row)}")
        if strict:
            raise ValueError(
                f"{shown(column.name)} holds {examples[0]}, but {column.holds} were expected "
                f"there: give {column.holds}."
            )
        return f"{column.misfits(len(rows))}, taken as missing: {', '.join(examples)}"

    def given(self, cells: Cells, column: Column) -> np.ndarray | Text:
        """Return the cells of a column for encoding, with text cleaned; of one that lacks, none."""
        if column.name in cells.text:
            return self.rules.cleaned(cells.text[column.name], numeric=column.ordered)
        if column.name in cells.positions:
            return cells.numbers[:, cells.positions[column.name]].copy()
        return Text([], np.full(cells.n_rows, -1))

    @property
    def _names(self) -> list[str]:
        """Return the names of the features, without the indicators of missing cells."""
        return [name for column in self.columns_ for name in column.names]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features.

        Examples are "width", "colour=red", "day (year, sin)" and "age (missing)".

        Parameters
        ----------
        input_features : array of str, optional
            Must be the names of the columns in `fit`.
        """
        # refuses names that are not those of fit
        OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array(
            [*self._names, *indicator_names(self.columns_, self.indicated_.tolist())], dtype=object
        )

    def _cells(self, X: Any, *, reset: bool) -> Cells:
        """Return the cells of X, with columns named as in `fit`.

        Numbers that count as missing become NaN. With `reset`, the names are learned.
        """
        cells = X if isinstance(X, Cells) else read_cells(X, strict=self.strict)
        if reset:
            self.n_features_in_ = len(cells.known)
            self.__dict__.pop("feature_names_in_", None)
            if cells.named:
                names = [name for name in cells.names if name in cells.known]
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            if not (cells.named and hasattr(self, "feature_names_in_")):
                if len(cells.names) != self.n_features_in_:
                    raise ValueError(
                        f"X has {len(cells.names)} features, but {type(self).__name__} is "
                        f"expecting {self.n_features_in_} features as input."
                    )
                numbered = [f"x{at}" for at in range(self.n_features_in_)]
                cells = cells.renamed(getattr(self, "feature_names_in_", numbered))
        marks = self.rules.missing_numbers
        for block in row_blocks(*cells.numbers.shape) if marks else []:
            cells.numbers[block][np.isin(cells.numbers[block], marks)] = np.nan
        return cells

    def to_dict(self) -> dict[str, Any]:
        """Return the state as numbers, texts, lists and dicts, which JSON can hold.

        It lacks `dropped_` and `remarks_`.
        """
        check_is_fitted(self)
        given = self.rules.missing_values
        names = getattr(self, "feature_names_in_", None)
        return {
            "parameters": self.get_params()
            | {"missing_values": None if given is None else list(given)},
            "names": None if names is None else names.tolist(),
            "n_features": self.n_features_in_,
            "numbers": [column.name for column in self.columns_[: self._n_plain]],
            "columns": [column.to_dict() for column in self.columns_[self._n_plain :]],
            "indicated": self.indicated_.tolist(),
            "medians": self.medians_.tolist() if self.missing == "impute" else [],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return an encoder from the result of `to_dict`.

        A column that is not among the names raises a ValueError.
        """
        encoder = cls(**state["parameters"])
        plain = [NumberColumn(name, encoder.decimal, plain=True) for name in state["numbers"]]
        encoder.columns_ = [*plain, *map(column_from, state["columns"])]
        encoder._n_plain = len(plain)
        names = [column.name for column in encoder.columns_]
        if state["names"] is not None and (strange := set(names) - set(state["names"])):
            raise ValueError(f"columns.names lacks {quoted(strange)}")
        encoder.n_features_in_ = state["n_features"]
        encoder.dropped_, encoder.remarks_ = {}, []
        if state["names"] is not None:
            encoder.feature_names_in_ = np.array(state["names"], dtype=object)
        encoder.indicated_ = np.array(state["indicated"], int)
        encoder.medians_ = np.array(state["medians"], float)
        encoder._check_names()
        return encoder
