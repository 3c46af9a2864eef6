"""Which methods are compared for which task."""

from nearkin import NCARegressor
from nearkin.comparison import RAW, all_methods, default_methods


def test_methods_that_answer_first():
    assert [method.name for method in default_methods()] == [RAW, "NCA tables", "LDA"]
    assert [method.name for method in default_methods("regression")] == [RAW, "NCA tables"]
    assert "NCA tables balanced" in [method.name for method in default_methods(balanced=True)]
    assert {"DP", "SDA", "TDL"} < {method.name for method in default_methods(semi_supervised=True)}


def test_default_methods():
    (method,) = (method for method in all_methods("regression") if method.own_vote)
    assert (method.name, type(method.estimator)) == ("NCA tables", NCARegressor)
