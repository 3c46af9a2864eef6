"""Maps of encoded tables: where a descent begins, and how one of many rows ends."""

import numpy as np
import pytest

from nearkin import NCARegressor
from nearkin.tables import members, predictors
from nearkin.tables.members import ADDED, SHORT, SPARE, along_own_axes, with_room


def drawn(lengths, p=20, seed=0):
    """Return a map of axes of these lengths, turned."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(len(lengths), len(lengths))))[0]
    V = np.linalg.qr(rng.normal(size=(p, len(lengths))))[0]
    return U @ np.diag(lengths) @ V.T


class TestAxes:
    def test_own_axes_keep_the_metric(self):
        A = drawn([3.0, 2.0, 0.5, 0.0])
        own = along_own_axes(A)
        assert own.shape == (3, 20)
        np.testing.assert_allclose(own.T @ own, A.T @ A, atol=1e-12)
        np.testing.assert_allclose(own @ own.T, np.diag([9, 4, 0.25]), atol=1e-12)

    def test_a_map_of_zeros(self):
        assert not along_own_axes(np.zeros((3, 5))).any()
        assert with_room(np.zeros((3, 5)), np.eye(5)).shape == (5, 5)

    def test_long_axes_and_some_short_ones(self):
        lengths = [4.0, 3.0, *np.full(12, SHORT)]
        start = with_room(drawn(lengths), np.eye(14, 20))
        assert start.shape == (2 + SPARE, 20)
        np.testing.assert_allclose(np.linalg.norm(start, axis=1), lengths[: 2 + SPARE])

    def test_where_there_are_too_few_short_ones_others_are_added(self):
        A, init = drawn([4.0, 3.0]), 7 * np.eye(14, 20)
        start = with_room(A, init)
        np.testing.assert_allclose(start[:2].T @ start[:2], A.T @ A, atol=1e-12)
        np.testing.assert_allclose(start[2:], 4 * ADDED * np.eye(SPARE, 20))

    def test_there_are_not_more_than_the_init_has(self):
        assert with_room(drawn([4.0, 3.0, 2.0]), np.eye(4, 20)).shape == (4, 20)


@pytest.fixture
def few_steps(monkeypatch):
    """Call 200 rows many, and take short rounds."""
    monkeypatch.setattr(predictors, "MAX_ROWS", 200)
    monkeypatch.setattr(members, "STEPS", 40)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, np.sin(3 * X[:, 0])


class TestManyRows:
    def descents(self, monkeypatch, interrupt_at=0):
        """Return a list that grows by the number of steps of each descent."""
        adam, steps = members.adam, []

        def recorded(estimate, start, **options):
            steps.append(options["n_batches"])
            if len(steps) == interrupt_at:
                raise KeyboardInterrupt
            return adam(estimate, start, **options)

        monkeypatch.setattr(members, "adam", recorded)
        return steps

    def test_half_a_round_ends_the_fit(self, monkeypatch, few_steps):
        steps = self.descents(monkeypatch)
        NCARegressor(n_bins=8, random_state=0).fit(*few_steps)
        assert len(steps) > 2
        assert set(steps[:-1]) == {40}
        assert steps[-1] == 20

    def test_held_out_rows_are_learned_from_at_last(self, monkeypatch, few_steps):
        penalty, sizes = members.Ridge, []

        def recorded(alpha, n, groups):
            sizes.append(n)
            return penalty(alpha, n, groups=groups)

        monkeypatch.setattr(members, "Ridge", recorded)
        model = NCARegressor(n_bins=8, random_state=0).fit(*few_steps)
        assert len(model.held_out_rows_) == 120
        assert sizes[-1] == 600
        assert max(sizes[:-1]) == 480

    @pytest.mark.long
    def test_an_interrupt_keeps_finished_rounds(self, monkeypatch, few_steps):
        steps = self.descents(monkeypatch)
        whole = NCARegressor(n_bins=8, random_state=0).fit(*few_steps)
        monkeypatch.undo()
        monkeypatch.setattr(predictors, "MAX_ROWS", 200)
        monkeypatch.setattr(members, "STEPS", 40)
        self.descents(monkeypatch, interrupt_at=len(steps))
        model = NCARegressor(n_bins=8, random_state=0)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*few_steps)
        assert model.alpha_ == whole.alpha_
        np.testing.assert_array_equal(model.held_out_votes_, whole.held_out_votes_)
        assert model.score(*few_steps) > 0.99
