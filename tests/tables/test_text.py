"""Text as features: the similarity of its words, repeated values, and what has no words."""

import hashlib
import json
import uuid

import numpy as np
import pytest

from nearkin import NCAClassifier, NCARegressor, TableEncoder
from nearkin.neighbors import n_with_twin, twin_groups
from nearkin.tables import features_of, text_as_one_number
from nearkin.tables.text import N_WORDS, Words, has_words, items_of, rounded, separator_of

pd = pytest.importorskip("pandas")

KINDS = ["apartment", "house", "garage", "plot", "office"]
STREETS = ["Oak", "Elm", "Lake", "Hill", "Mill", "Park", "Church", "Station", "Garden", "River"]


def titles(n, seed=0):
    """Return a title for each row, all different, and the kind that it names."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(KINDS), size=n)
    streets = np.array(STREETS)[rng.integers(len(STREETS), size=n)]
    rows = zip(kinds, streets, strict=True)
    return [
        f"{KINDS[kind].title()} in {street} Street {i}" for i, (kind, street) in enumerate(rows)
    ], kinds


def learned(values):
    return Words.learn(values, np.full(len(values), 1 / len(values)))


class TestWords:
    def test_similar_texts_are_near(self):
        values, kinds = titles(300)
        words = learned(values)
        Z = words.transform(values)
        assert Z.shape == (300, N_WORDS)
        new, new_kinds = titles(50, seed=1)
        nearest = np.argmax(words.transform([f"{text} b" for text in new]) @ Z.T, axis=1)
        assert np.mean(kinds[nearest] == new_kinds) > 0.9
        # a word that is spelled a little differently is near, too
        near, far = words.transform(["Appartment in Oak Street", "Garage in Oak Street"])
        centre = words.transform(["Apartment in Oak Street"])[0]
        assert np.linalg.norm(near - centre) < 0.5 * np.linalg.norm(far - centre)

    def test_the_order_of_texts_does_not_matter(self):
        values, _ = titles(200)
        other = np.random.default_rng(0).permutation(200)
        assert learned(values) == learned([values[at] for at in other])

    def test_the_metric_is_that_of_the_reduced_rows(self):
        """With all components, distances are those of unit TF-IDF rows: 0 to 2."""
        values = [f"{one} {other}" for one in KINDS for other in KINDS if one != other]
        words = learned(values)
        np.testing.assert_allclose(np.linalg.norm(words.transform(values), axis=1), 1, atol=0.02)

    def test_weighted_texts_count_as_often(self):
        values, _ = titles(100)
        shares = np.random.default_rng(0).integers(1, 4, 100) / 200
        one, other = Words.learn(values, shares), Words.learn(values, 7 * shares)
        assert one == other
        assert one != learned(values)

    def test_what_is_new_or_missing_has_no_words(self):
        words = learned(titles(100)[0])
        assert not words.transform(["", "zzz", "1234"]).any()

    def test_state(self):
        words = learned(titles(60)[0])
        frame = pd.DataFrame({"title": titles(60)[0], "x": np.arange(60) % 7})
        encoder = TableEncoder().fit(frame)
        again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        assert again.columns_ == encoder.columns_
        assert again.columns_[-1].ngrams == words
        np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))

    def test_few_texts_have_no_words(self):
        assert learned(titles(5)[0]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("uuid", lambda i: str(uuid.uuid5(uuid.NAMESPACE_URL, str(i)))),
        ("hash", lambda i: hashlib.md5(str(i).encode()).hexdigest()),
        ("number", lambda i: f"ORD-2024-{i * 7919 % 100_000:05d}"),
        ("link", lambda i: f"https://homes.example.com/details?home={i * 7919}"),
        ("key", lambda i: f"{i * 7919 % 10000:04}-QX{chr(65 + i % 26)}{i}"),
        ("plate", lambda i: f"{chr(65 + i % 26)}{chr(65 + i // 26 % 26)} {i * 7919 % 1000} XY"),
    ],
)
def test_identifiers_are_no_text(name, value):
    values = [value(i) for i in range(300)]
    assert not has_words(values)
    encoder = TableEncoder().fit(pd.DataFrame({name: values, "x": np.arange(300) % 7}))
    assert encoder.dropped_ == {name: "text that differs in every row"}


def test_a_word_of_most_values_is_one():
    """Whether it is there may be what counts: all terms end, most by a death."""
    ends = np.where(
        np.arange(300) % 5 < 3, "Death", np.where(np.arange(300) % 5 < 4, "Resignation", "Term")
    )
    values = [
        f"18{i % 97:02}.{i % 12 + 1}.{i % 27} - {1900 + i} ({end})" for i, end in enumerate(ends)
    ]
    assert has_words(values)
    assert not has_words([f"Invoice {i * 7919}" for i in range(300)])


def test_rounding_keeps_four_digits():
    numbers = np.array([0.0, 1.0, -0.123456, 98765.4, 1e-9])
    assert rounded(numbers) == [0.0, 1.0, -0.1235, 98770.0, 1e-9]


def test_lists():
    assert items_of(" a,b ,, a", ",") == {"a", "b"}
    assert separator_of(["a;b", "b;c;a", "c", "a;c", "b;c", "a;b;c"]) == ";"
    assert separator_of(["a, b", "c, d", "e, f"]) is None


class TestColumns:
    def test_long_text_is_read(self):
        values = [f"{title}. " + "Nothing else is said. " * 30 for title in titles(80)[0]]
        encoder = TableEncoder().fit(pd.DataFrame({"text": values, "x": np.arange(80) % 7}))
        assert encoder.get_feature_names_out()[1] == "text (words 1)"

    def test_repeated_titles_have_indicators_and_words(self):
        values, _ = titles(150)
        frame = pd.DataFrame({"title": [*values, *values[:20]], "x": np.arange(170) % 7})
        encoder = TableEncoder().fit(frame)
        names = encoder.get_feature_names_out().tolist()
        assert names[1:21] == [f"title={value}" for value in sorted(values[:20])]
        assert names[21:] == [f"title (words {at + 1})" for at in range(N_WORDS)]
        X = encoder.transform(frame.assign(title=None))
        assert not X[:, 1:].any()

    def test_a_category_of_many_values_keeps_all(self):
        values = pd.Series([f"store {i % 400}" for i in range(500)], dtype="category")
        encoder = TableEncoder().fit(pd.DataFrame({"store": values}))
        assert len(encoder.get_feature_names_out()) == 400

    def test_the_most_frequent_values_are_kept(self):
        values = np.repeat([f"s{i}" for i in range(150)], np.arange(150) // 10 + 1)
        frame = pd.DataFrame({"store": values})
        encoder = TableEncoder(max_categories=20).fit(frame)
        assert encoder.columns_[0].values == tuple(f"s{i}" for i in range(130, 150))


def stores(n_stores, rng):
    effects, store, v = (
        rng.normal(size=n_stores),
        rng.integers(n_stores, size=900),
        rng.normal(size=900),
    )
    y = rng.random(900) < 1 / (1 + np.exp(-3 * (effects[store] + 0.5 * v)))
    return pd.DataFrame({"store": [f"s{i}" for i in store], "v": v}), y


class TestPredictors:
    def test_no_cliff_beyond_100_values(self):
        """Of 100 values and of 101, predictions are about as good."""
        scores = []
        for n_stores in (100, 101):
            X, y = stores(n_stores, np.random.default_rng(0))
            model = NCAClassifier(alpha=0.5, n_bins=1, n_members=2).fit(X[:600], y[:600])
            scores.append(model.score(X[600:], y[600:]))
        assert min(scores) > 0.75
        assert abs(np.subtract(*scores)) < 0.06

    def test_titles_predict(self):
        values, kinds = titles(450)
        X = pd.DataFrame({"title": values, "x": np.random.default_rng(0).normal(size=450)})
        model = NCAClassifier(alpha=0.5, n_bins=1, n_members=2).fit(X[:300], kinds[:300])
        assert model.score(X[300:], kinds[300:]) > 0.9
        assert model.feature_effects_[0] > 3 * model.feature_effects_[1]
        assert "title" not in model.curves()
        familiarity = model.familiarity(X[300:])
        assert 0.01 <= np.mean(familiarity <= 0.1) <= 0.2
        assert not model.drift(X[300:]).has_drifted
        assert model.drift(X[300:].assign(title=None)).moved[0] == "title"

    def test_two_repeated_values_among_many(self):
        """Both have a feature: neither is the absence of the other."""
        rng = np.random.default_rng(0)
        values = [*(f"x{i}" for i in range(150)), *["often"] * 100, *["also"] * 100]
        y = np.repeat([0.0, 3.0, -3.0], [150, 100, 100]) + 0.1 * rng.normal(size=350)
        X = pd.DataFrame({"key": values})
        model = NCARegressor(alpha=0.5, n_bins=1, n_members=2).fit(X, y)
        predicted = model.predict(pd.DataFrame({"key": ["often", "also", "new"]}))
        np.testing.assert_allclose(predicted, [3, -3, 0], atol=0.3)

    def test_rare_values_that_are_rarer_later_are_no_drift(self):
        """Values of two rows were chosen by these rows."""
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"store": [f"s{i}" for i in rng.integers(400, size=1200)]})
        X["v"] = rng.normal(size=1200)
        model = NCAClassifier(alpha=0.5, n_bins=1, n_members=2).fit(X[:700], X["v"][:700] > 0)
        assert not model.drift(X[700:]).has_drifted
        assert model.drift(X[700:].assign(store="s1")).moved[0] == "store"


def test_rows_of_one_value_are_no_twins():
    """Each store has few rows, and the indicators of rare values are far apart."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"store": [f"s{i // 4}" for i in range(480)]})
    frame[["v", "w", "z"]] = rng.normal(size=(480, 3))
    frame.loc[479] = frame.loc[478]
    encoder = TableEncoder().fit(frame)
    X, features = encoder.transform(frame), features_of(encoder)
    alike, scale = text_as_one_number(X, features, scale=True)
    assert n_with_twin(twin_groups(alike, scale=scale)) == 2
    assert n_with_twin(twin_groups(X)) > 100
    numbers = frame[["v", "w", "z"]].to_numpy()
    assert text_as_one_number(numbers, None, scale=True)[0] is numbers


def test_tables_without_text_do_not_need_what_reads_it(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "count": rng.integers(9, size=60),
            "is new": rng.random(60) < 0.5,
            "price": [f"€{price:,.2f}" for price in rng.gamma(2, 1000, 60)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(300, size=60), "D"),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], 60)),
        }
    )
    frame.loc[::7, ["size", "price"]] = None
    encoder = TableEncoder("keep")
    expected = encoder.fit_transform(frame)

    def raises(*arguments, **options):
        raise AssertionError("text was read")

    for name in ("has_words", "separator_of", "items_of", "indicators"):
        monkeypatch.setattr(f"nearkin.tables.text.{name}", raises)
        monkeypatch.setattr(f"nearkin.tables.columns.{name}", raises, raising=False)
    monkeypatch.setattr(Words, "learn", raises)
    monkeypatch.setattr(Words, "transform", raises)
    assert TableEncoder("keep").fit_transform(frame).tobytes() == expected.tobytes()
    assert encoder.transform(frame).tobytes() == expected.tobytes()
