"""A small comparison, with and without references."""

import pytest

from nearkin.comparison import default_references

from .tables import hidden, quick


@pytest.fixture(scope="module")
def comparison():
    return quick(*hidden(), references=default_references()[:2], n_repeats=2)


@pytest.fixture(scope="module")
def alone():
    """The same without references, and with more time than it needs."""
    return quick(*hidden(), n_repeats=2, time_budget=1e6)
