"""What the figures are made of."""

from reproductions.dne import experiments as dne


class TestDNE:
    def test_many_rows_make_all_eigenvalues_negative_but_not_of_five_classes_in_one_place(self):
        counts = [
            dne.n_negative(X, y, 1) for seed in (0, 1) for X, y in dne.cases(seed, 1000).values()
        ]
        assert counts == [4, 2, 0, 4, 2, 0]
