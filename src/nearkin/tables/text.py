"""Text as numbers: how similar it is to other text, and the items of lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy.sparse import diags_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from .._blocks import row_blocks

# Latent semantic analysis (Deerwester et al., "Indexing by latent semantic analysis", 1990) of
# character n-grams, which similar words share.

N_WORDS = 30  # features of a text; 10 were worse for flats to let and homes for sale
NGRAMS = (3, 4)  # characters, also those at the ends of a word
MAX_TERMS = 2000  # the most frequent n-grams
LEAST_TEXTS = 3  # in which an n-gram occurs
MOST_TEXTS = 10_000  # from which n-grams are learned
MAX_READ = 500  # characters of a text
DIGITS = 4  # significant, of what is learned
LETTERS = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![^\W_])")  # without digits beside them
MOST_SHARED = 0.9  # of the values: a word of nearly all of them tells none apart
ROWS_PER_BLOCK = 2**14


def has_words(values: Sequence[str]) -> bool:
    """Return whether text is made of words, rather than of codes such as "4f1c-99a0" or "No. 17".

    At least half of the values have a word of at least three letters that occurs in another value,
    but not in nearly all of them.
    """
    words = [set(LETTERS.findall(value[:MAX_READ].lower())) for value in values]
    counts = Counter(chain.from_iterable(words))
    shared = {word for word, count in counts.items() if 1 < count <= MOST_SHARED * len(values)}
    return 2 * sum(not shared.isdisjoint(own) for own in words) >= len(values)


@dataclass(frozen=True)
class Words:
    """A map of texts to a few numbers, which are close for texts that share parts of their words.

    Attributes
    ----------
    terms : tuple of str
        The n-grams, sorted.
    idf : tuple of float
        Their weights, which are larger for rarer ones.
    components : tuple of tuple of float
        For each n-gram, its place in the space of the numbers.
    """

    terms: tuple[str, ...]
    idf: tuple[float, ...]
    components: tuple[tuple[float, ...], ...]

    @classmethod
    def learn(cls, values: Sequence[str], shares: np.ndarray) -> Self | None:
        """Learn from distinct texts with their shares of the rows; None if they have no words."""
        order = sorted(range(len(values)), key=values.__getitem__)
        order = order[:: -(-len(order) // MOST_TEXTS)]
        texts = [values[at][:MAX_READ] for at in order]
        if len(texts) < 2 * LEAST_TEXTS or not has_words(texts):
            return None
        vectorizer = _vectorizer(min_df=LEAST_TEXTS, max_features=MAX_TERMS)
        try:
            X = vectorizer.fit_transform(texts)
        except ValueError:  # no n-gram occurs often enough
            return None
        width = min(N_WORDS, min(X.shape) - 1)
        if width < 1:
            return None
        rows = diags_array(np.sqrt(shares[order] / shares[order].max()))
        svd = TruncatedSVD(width, random_state=0).fit(rows @ X)
        return cls(
            tuple(vectorizer.get_feature_names_out().tolist()),
            tuple(rounded(vectorizer.idf_)),
            tuple(map(tuple, rounded(svd.components_.T))),
        )

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the map from its attributes, as lists."""
        components = tuple(map(tuple, state["components"]))
        return cls(tuple(state["terms"]), tuple(state["idf"]), components)

    @property
    def width(self) -> int:
        """Return how many numbers a text becomes."""
        return len(self.components[0])

    def transform(self, values: Sequence[str]) -> np.ndarray:
        """Return the numbers of texts, shape (n, width); zeros if they share nothing known."""
        vectorizer, components = self._learned
        out = np.empty((len(values), self.width))
        for block in row_blocks(len(values), 1, ROWS_PER_BLOCK):
            out[block] = vectorizer.transform([v[:MAX_READ] for v in values[block]]) @ components
        return out

    @cached_property
    def _learned(self) -> tuple[TfidfVectorizer, np.ndarray]:
        vectorizer = _vectorizer(vocabulary=self.terms)
        vectorizer.idf_ = np.array(self.idf)
        return vectorizer, np.array(self.components)


def _vectorizer(**options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char_wb", ngram_range=NGRAMS, sublinear_tf=True, **options)


def rounded(numbers: np.ndarray) -> Any:
    """Return numbers with a few significant digits, as lists: a saved model is a third as large."""
    exponent = np.floor(np.log10(np.maximum(np.abs(numbers), 1e-30)))
    unit = 10.0 ** (DIGITS - 1 - exponent)
    return (np.rint(numbers * unit) / unit).tolist()


# Lists in a cell.

SAMPLE = 1000  # values by which lists are recognized
SEPARATORS = (",", ";", "|")


def items_of(value: str, separator: str) -> set[str]:
    """Return the items of a list."""
    return {item.strip() for item in value.split(separator)} - {""}


def separator_of(values: Sequence[str]) -> str | None:
    """Return what separates the items of lists; None if the values are not lists.

    Lists have different lengths, and the same items recur in different combinations.
    """
    few = values[:SAMPLE]
    for separator in SEPARATORS:
        lengths = [value.count(separator) for value in few]
        items = set().union(*(items_of(value, separator) for value in few))
        several = 2 * np.count_nonzero(lengths) > len(few)
        if several and len(set(lengths)) > 1 and 2 * len(items) <= len(few):
            return separator
    return None


def indicators(values: Sequence[str], items: Sequence[str], separator: str) -> np.ndarray:
    """Return which lists have which items, shape (n, number of items)."""
    place = {item: at for at, item in enumerate(items)}
    out = np.zeros((len(values), len(items)))
    for row, value in enumerate(values):
        out[row, [place[item] for item in items_of(value, separator) if item in place]] = 1
    return out
