"""The former name of three modules."""

import pytest

from nearkin import comparison, statistics, vectors


def test_the_former_name_holds_all_and_says_where_they_are():
    with pytest.warns(FutureWarning, match=r"comparisons of tables are in nearkin\.comparison"):
        from nearkin import evaluation
    for module in (comparison, statistics, vectors):
        for name in module.__all__:
            assert getattr(evaluation, name) is getattr(module, name)
