"""Labels that are probably wrong, contradictory twins and far rows: what is found where the truth
is known.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from nearkin import NCAClassifier, label_issues
from nearkin.tables import issues
from nearkin.tables.issues import contradictory_twins, far_rows, wrong_labels
from nearkin.tables.target import no_classes

pd = pytest.importorskip("pandas")

N, FLIPPED = 90, [4, 17, 33, 48, 62, 85]


def blobs(seed=0, n=N):
    """Return rows of three classes that do not overlap, and their labels."""
    rng, y = np.random.default_rng(seed), np.arange(n) % 3
    X = rng.standard_normal((n, 4))
    X[:, 0] += 7 * y
    X[:, 1] += 7 * (y == 1)
    return X, y


@pytest.fixture(scope="module")
def flipped():
    """Rows, labels of which six are wrong, the right ones, and what is found."""
    X, y = blobs()
    wrong = y.copy()
    wrong[FLIPPED] = (y[FLIPPED] + 1) % 3
    return X, wrong, y, label_issues(X, wrong)


def test_flipped_labels_come_first(flipped):
    _, wrong, y, found = flipped
    assert sorted(found.rows[:6].tolist()) == FLIPPED
    np.testing.assert_array_equal(found.predicted[:6], y[found.rows[:6]])
    np.testing.assert_array_equal(found.labels, wrong[found.rows])
    assert sorted(found.rows.tolist()) == list(range(N))
    assert (np.diff(found.probabilities) <= 1e-12).all()
    assert 4 <= found.n_issues <= 8
    np.testing.assert_allclose(found.expected, np.cumsum(found.probabilities))


@pytest.mark.long
@pytest.mark.parametrize("way", ["twice", "joined", "nearly", "often", "by folds"])
def test_copies_do_not_confirm_each_other(flipped, monkeypatch, way):
    """Of the whole table, or of the wrong rows alone, as a join makes them."""
    X, wrong, _, _ = flipped
    if way == "by folds":
        monkeypatch.setattr(issues, "MAX_ROWS", 60)
    copied = {"joined": FLIPPED, "often": np.repeat(FLIPPED, 20)}.get(way, np.arange(N))
    origin = np.append(np.arange(N), copied)
    rows = X[origin]
    if way == "nearly":
        rows[N:] += 1e-5 * np.random.default_rng(1).standard_normal((N, 4))
    found = label_issues(rows, wrong[origin])
    first = found.rows[: np.isin(origin, FLIPPED).sum()]
    assert np.isin(origin[first], FLIPPED).mean() >= (5 / 6 if way == "by folds" else 1)
    assert (found.probabilities[: len(first) // 3] > 0.9).all()
    assert (origin[found.neighbors] != origin[found.rows[: len(found.neighbors)], None]).all()


@pytest.mark.slow
def test_equal_rows_of_a_small_crosstab_are_cases():
    """Of four distinct rows, each of which has a majority."""
    X = np.repeat([[0.0, 0], [0, 1], [1, 0], [1, 1]], 10, axis=0)
    y = np.repeat([0, 1, 1, 0], 10)
    y[[3, 25]] = [1, 0]
    found = label_issues(X, y)
    assert sorted(found.rows[:2].tolist()) == [3, 25]
    assert len(found.twins) == 2


def test_folds_keep_units_together_and_differ():
    """The units of every class are divided, those of a rare class, too."""
    rng = np.random.default_rng(0)
    units = rng.integers(0, 12, 60)
    units = np.unique(units, return_inverse=True)[1]
    y = np.where(np.isin(units, [2, 5, 8]), 1, 0)
    y[rng.random(60) < 0.3] = 0
    y[[np.flatnonzero(units == unit)[0] for unit in (2, 5, 8)]] = 1
    draws = [issues._folds(y, units, 3, np.random.default_rng(seed)) for seed in (1, 2)]
    for folds in draws:
        assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(60))
        for train, test in folds:
            assert sorted([*train, *test]) == list(range(60))
            assert not set(units[train]) & set(units[test])
            assert len(set(units[test][y[test] == 1])) == 1
    assert not np.array_equal(draws[0][0][1], draws[1][0][1])


@pytest.mark.long
def test_each_round_holds_out_other_groups(monkeypatch):
    X, y = blobs()
    groups = np.random.default_rng(0).integers(0, 20, N)
    seen = []

    class Spy(issues.NCAClassifier):
        def fit_encoded(self, X, y, features, folds, sample_weight):
            seen.append([frozenset(test.tolist()) for _, test in folds])
            return super().fit_encoded(X, y, features, folds, sample_weight)

    monkeypatch.setattr(issues, "NCAClassifier", Spy)
    label_issues(X, y, groups=groups)
    assert len(seen) == 2
    assert set(seen[0]) != set(seen[1])


def test_neighbours_are_near_rows_of_the_right_class(flipped):
    _, wrong, y, found = flipped
    assert found.neighbors.shape == (N, 5)
    assert (found.neighbors != found.rows[:, None]).all()
    np.testing.assert_array_equal(found.neighbor_labels, wrong[found.neighbors])
    assert np.mean(y[found.neighbors] == y[found.rows][:, None]) > 0.95


def test_the_frame_holds_the_ranking(flipped):
    frame = flipped[3].to_frame()
    assert frame.columns.tolist() == ["row", "label", "predicted", "probability", "expected"]
    assert sorted(frame["row"][:6]) == FLIPPED


def test_it_is_shown_in_a_line(flipped):
    text = repr(flipped[3])
    assert text.startswith(f"<LabelIssues: about {flipped[3].n_issues} of {N} labels are probably")
    assert len(text) < 200


@pytest.mark.parametrize("n", [60, 2984])
@pytest.mark.parametrize(
    ("scale", "words"),
    [(1, r"y holds numbers \(.*typing errors"), (100, "y holds numbers"), ("text", "merge some")],
)
def test_what_is_no_class_is_refused(n, scale, words):
    """Prices, whole ones or not; and text of which nearly every row has its own."""
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(12, 0.5, n))
    y = y.round(0 if scale == "text" else 2).astype(str if scale == "text" else float)
    if scale == 100:
        y = y // 100
    with pytest.raises(ValueError, match=words):
        label_issues(rng.normal(size=(n, 2)), y)


def test_numbers_of_many_classes_are_classes():
    """With some rows alone, as mistyped numbers are."""
    y = np.append(np.repeat(np.arange(30), 3), [99, 98, 97])
    assert no_classes(y) is None
    assert no_classes(y[:60].astype(str)) is None
    assert no_classes(np.arange(20) / 2) is None


@pytest.mark.long
def test_names_of_classes_do_not_matter(flipped):
    X, wrong, _, found = flipped
    names = np.array(["rye", "barley", "wheat"], dtype=object)  # in another order
    renamed = label_issues(X, names[wrong])
    assert sorted(renamed.rows[:6].tolist()) == FLIPPED
    assert renamed.classes.tolist() == ["barley", "rye", "wheat"]
    np.testing.assert_array_equal(renamed.labels, names[wrong][renamed.rows])
    np.testing.assert_allclose(
        renamed.probabilities[:6].sum(), found.probabilities[:6].sum(), atol=0.1
    )


@pytest.mark.long
def test_the_order_of_rows_does_not_matter(flipped):
    X, wrong, _, found = flipped
    order = np.random.default_rng(1).permutation(N)
    other = label_issues(X[order], wrong[order])
    assert sorted(order[other.rows[:6]].tolist()) == FLIPPED
    assert other.flip_rate == pytest.approx(found.flip_rate, abs=0.05)  # two rows of 45


@pytest.mark.long
def test_a_column_of_a_data_frame_holds_the_labels(flipped):
    X, wrong, _, _ = flipped
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["u", "v", "w"])[wrong])
    frame.index += 1000  # rows are numbered from 0 all the same
    found = label_issues(frame, "kind")
    assert sorted(found.rows[:6].tolist()) == FLIPPED
    polars = pytest.importorskip("polars")
    same = label_issues(polars.from_pandas(frame), "kind")
    np.testing.assert_array_equal(same.rows, found.rows)


@pytest.mark.long
def test_rows_without_a_label_are_left_out(flipped):
    X, wrong, _, _ = flipped
    labels = wrong.astype(object)
    empty = np.arange(N) % 5 == 1
    labels[empty] = None
    found = label_issues(X, labels)
    alone = label_issues(X[~empty], wrong[~empty])
    assert sorted(found.rows.tolist()) == np.flatnonzero(~empty).tolist()
    np.testing.assert_array_equal(found.rows, np.flatnonzero(~empty)[alone.rows])
    np.testing.assert_array_equal(found.neighbors, np.flatnonzero(~empty)[alone.neighbors])
    np.testing.assert_allclose(found.probabilities, alone.probabilities)


@pytest.mark.long
def test_a_row_alone_in_its_class_has_no_vote():
    X, y = blobs(n=45)
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[20] = "bb"
    found = label_issues(X, labels)
    assert found.alone.tolist() == [20]
    at = found.rows.tolist().index(20)
    assert found.probabilities[at] == found.flip_rate
    assert found.predicted[at] == "bb"
    assert np.isnan(found.votes[at]).all()
    assert (found.neighbor_labels[at] == "c").all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 8])
def test_few_rows(n):
    X, y = blobs(n=n)
    found = label_issues(X, y % 2)
    assert sorted(found.rows.tolist()) == list(range(n))
    assert found.neighbors.shape == (n, min(5, n - 1))
    assert np.isfinite(found.probabilities).all()


@pytest.mark.long
def test_more_rows_are_labelled_by_the_other_folds(flipped, monkeypatch):
    X, wrong, _, _ = flipped
    monkeypatch.setattr(issues, "MAX_ROWS", 60)
    labels = wrong.copy()
    labels[10] = 3  # alone
    done = []
    found = label_issues(X, labels, progress=lambda *fits: done.append(fits))
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert len(set(found.rows[:6].tolist()) & set(FLIPPED)) >= 5  # 40 rows vote for one
    assert found.alone.tolist() == [10]
    assert (found.neighbors != found.rows[:, None]).all()
    np.testing.assert_allclose(np.nansum(found.votes, axis=1)[found.rows != 10], 1)


@pytest.mark.long
@pytest.mark.parametrize("most", [2000, 60])
def test_groups_do_not_label_themselves(monkeypatch, most):
    """A patient of five equal rows with a wrong label would confirm itself."""
    X, y = blobs()
    groups = np.repeat(np.arange(N // 5), 5)
    X[:, 3] = groups  # tells groups apart
    y = groups % 3
    X[:, 0] = 7 * y + 0.1 * X[:, 2]
    X[:, 1] = 7 * (y == 1)
    wrong = y.copy()
    wrong[groups == 7] = (y[groups == 7] + 1) % 3
    monkeypatch.setattr(issues, "MAX_ROWS", most)
    found = label_issues(X, wrong, groups=groups)
    assert (groups[found.rows[:5]] == 7).all()
    assert (groups[found.neighbors] != groups[found.rows][:, None]).all()


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (pd.DataFrame({"a": range(9)}), "kind", "X has no columns 'kind'"),
        (np.arange(18.0).reshape(9, 2), np.linspace(0, 1, 9), "y holds real numbers"),
        (np.arange(18.0).reshape(9, 2), np.zeros(9), "at least two classes"),
        (np.arange(18.0).reshape(9, 2), np.arange(9), "every class has a single row"),
        (np.arange(18.0).reshape(9, 2), np.arange(8) % 2, "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_checked_is_refused(X, y, says):
    with pytest.raises(ValueError, match=says):
        label_issues(X, y)


def test_more_votes_than_memory_are_refused_before_the_work(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(120, 3)), np.repeat(np.arange(40), 3)
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 10**5)
    monkeypatch.setattr(NCAClassifier, "_learn_maps", None)
    with pytest.raises(
        MemoryError, match=r"for each of 40 classes in y needs .*merge or leave out"
    ):
        label_issues(X, y)
    with pytest.raises(MemoryError, match=r"votes for 40 classes in y needs .*merge or leave out"):
        NCAClassifier().fit(X, y)


def test_one_group_is_refused():
    X, y = blobs(n=12)
    with pytest.raises(ValueError, match="groups holds one group"):
        label_issues(X, y, groups=np.zeros(12))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_the_expected_number_is_right_where_its_assumptions_hold(n_classes, rate):
    """Votes that are the distribution of given labels, of classes that overlap here and there."""
    rng, n = np.random.default_rng(3), 4000
    shares = rng.dirichlet(np.full(n_classes, 0.2), size=n)
    shares[: n // 2] = np.eye(n_classes)[rng.integers(n_classes, size=n // 2)]
    true = (shares.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    given = np.where(rng.random(n) < rate, (true + rng.integers(1, n_classes, n)) % n_classes, true)
    votes = (1 - rate) * shares + rate / (n_classes - 1) * (1 - shares)
    p, e = wrong_labels(votes, given)
    wrong = given != true
    assert e == pytest.approx(rate, abs=0.03)
    assert p.sum() == pytest.approx(wrong.sum(), rel=0.2)
    first = np.argsort(-p, kind="stable")[: wrong.sum()]
    assert p[first].sum() == pytest.approx(wrong[first].sum(), rel=0.15)


def test_a_lower_vote_is_never_less_suspicious():
    votes = np.linspace(0, 1, 50)[:, None] * [1, -1] + [0, 1]
    p, _ = wrong_labels(votes, np.zeros(50, dtype=int))
    assert (np.diff(p) <= 0).all()
    assert ((p >= 0) & (p <= 1)).all()


def test_twins_that_contradict_each_other():
    X = np.arange(20.0).reshape(10, 2)
    X[[1, 2, 3, 4]] = X[0]
    X[6] = X[5]
    X[8] = X[7]
    X[7:9, 0] = np.nan  # alike in what is missing
    y = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1])
    found = contradictory_twins(X, y)
    assert [rows.tolist() for rows in found] == [[0, 1, 2, 3, 4], [7, 8]]


def test_far_rows_and_the_column_that_takes_them_there():
    X = np.random.default_rng(0).standard_normal((200, 6))
    assert len(far_rows(X).rows) == 0
    X[30, 4] = 40
    X[70] = -9
    found = far_rows(X)
    assert sorted(found.rows.tolist()) == [30, 70]
    assert found.columns[found.rows == 30] == 4
    assert (found.ratios > 2).all()
    assert len(far_rows(csr_array(X)).rows) == len(far_rows(X[:15]).rows) == 0


@pytest.mark.slow
def test_far_rows_among_many_are_those_of_another_exact_search():
    rng, n = np.random.default_rng(1), 12_000
    X = np.round(rng.standard_t(5, (n, 2)), 2)  # with copies
    X[:6] = X[0] + 90  # six that are near each other are not far from all others
    X[6, 1] = -90
    found = far_rows(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    fifth = KDTree(Z).query(Z, 6)[0][:, 5]  # the first is the row itself
    low, median, high = np.quantile(np.log(fifth[fifth > 0]), [0.25, 0.5, 0.75])
    expected = np.flatnonzero(fifth > np.exp(high + max(3 * (high - low), np.log(2))))
    assert sorted(found.rows.tolist()) == expected.tolist()
    assert 6 in found.rows
    assert not np.isin(np.arange(6), found.rows).any()
    np.testing.assert_allclose(found.ratios, fifth[found.rows] / np.exp(median))


@pytest.mark.slow
def test_fits_to_many_rows_hold_whole_groups_out(monkeypatch):
    """Also the rows by which such a fit chooses its penalty and its temperatures."""
    given = []

    def fit_encoded(model, X, y, features, folds=None, sample_weight=None, split=None):
        given.append((X, folds, split))
        raise StopIteration

    monkeypatch.setattr(NCAClassifier, "fit_encoded", fit_encoded)
    groups = np.repeat(np.arange(1200), 5)
    rng = np.random.default_rng(0)
    X = np.column_stack([groups, rng.normal(size=(6000, 2))])
    with pytest.raises(StopIteration):
        label_issues(X, rng.integers(0, 3, 6000), groups=groups)
    ((rows, ((members, tested),), (rest, held)),) = given
    np.testing.assert_array_equal(tested, held)
    of = rows[:, 0]
    for learned in (members, rest):
        assert not np.isin(of[learned], of[held]).any()
    assert 2000 <= len(members) <= 2003 < len(rest)
    assert len(held) > 500


def test_units_of_a_split_may_be_any_numbers():
    rng, units = np.random.default_rng(0), np.repeat(10 * np.arange(1200), 5)
    split = issues._inner_split(rng.integers(0, 3, 6000), units, rng)["split"]
    assert len(split[1]) == pytest.approx(1200, abs=100)
    assert not np.isin(units[split[0]], units[split[1]]).any()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.array([*"ab", None] * 30, dtype=object), "groups has missing values"),
        (np.array([1, "a", "b"] * 30, dtype=object), "groups.*one type"),
        (np.arange(90) % 3, "groups holds every class out"),
    ],
)
def test_groups_that_leave_nothing_to_learn_from(groups, message):
    X, y = blobs()
    with pytest.raises((TypeError, ValueError), match=message):
        label_issues(X, y, groups=groups)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("distance", "is_bound"), [(6.0, False), (0.0, True), (1.0, True)])
def test_where_classes_overlap_the_number_is_an_upper_bound(distance, is_bound):
    """And where they do not, labels that are wrong stand out."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=160)
    X = rng.normal(size=(160, 3))
    X[:, 0] += distance * y
    wrong = np.arange(160) < 12 * (distance > 1)
    found = label_issues(X, np.where(wrong, 1 - y, y))
    assert found.is_bound is is_bound
    assert (": at most about" in repr(found)) is is_bound
    assert found.n_sure == np.count_nonzero(found.probabilities >= 0.9)
    if not is_bound:
        assert wrong[found.rows[: found.n_issues]].mean() > 0.8
