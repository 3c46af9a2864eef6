"""
A messy table, from start to end
================================

A dealer takes used cars in part exchange. Each one is then sold on the forecourt (*retail*), sold
to other dealers (*auction*) or broken up (*scrap*), and somebody writes down what it fetched. Can
the table of past cars say what to do with the next one, and what it will fetch?

This example goes all the way with one table as people keep them: several spellings, dates, units,
empty cells and some wrong labels. It takes ten minutes to read.
"""

# %%
# The table
# ---------
# The cars are made up, so that it is known which labels are wrong, and so that the market can
# change at the end. Skip how they are drawn if you like: for a table of your own, all of this cell
# is ``cars = pd.read_csv("cars.csv")``.
import numpy as np
import pandas as pd

MODELS = pd.DataFrame(
    {
        "model": ["Ford Focus", "VW Golf", "Opel Corsa", "BMW 320", "Skoda Octavia", "Volvo V60"],
        "power": [92, 96, 66, 135, 110, 140],
        "price": [27_000, 31_000, 21_000, 47_000, 33_000, 48_000],
    }
)


def typed(words, rng):
    """Return words as people type them: some in lower case, some without a letter."""
    words = pd.Series(words).copy()
    lower, slip = rng.random(len(words)) < 0.1, rng.random(len(words)) < 0.02
    words[lower] = words[lower].str.lower()
    words[slip] = words[slip].str[:2] + words[slip].str[3:]
    return words


def draw_cars(n, rng, years=8.0, km_a_year=14_000, diesels=0.45, diesel_value=1.0):
    """Return n cars: what is known on arrival, the decision, and the price in euros."""
    new = MODELS.sample(n, replace=True, random_state=rng, ignore_index=True)
    age = 0.5 + rng.gamma(4, years / 4, n)
    km = age * rng.lognormal(np.log(km_a_year), 0.35, n)
    is_diesel = rng.random(n) < diesels
    book = pd.Series(rng.choice(["full", "gaps", "none"], n, p=[0.5, 0.3, 0.2]))
    repair = 50 * rng.gamma(1.5, 1 + 1.2 * age).round()
    owners = 1 + rng.poisson(age / 6)

    value = new["price"] * np.exp(-0.13 * age - km / 300_000)
    value *= book.map({"full": 1, "gaps": 0.9, "none": 0.8})
    value *= np.where(is_diesel, diesel_value, 1) * rng.lognormal(0, 0.08, n)
    price = np.maximum(value - repair, rng.uniform(150, 400, n)).round(-1).astype(int)
    wear = rng.normal(age / 8 + km / 120_000 + repair / 1_500, 0.15)
    decision = np.where(price < 1_500, "scrap", np.where(wear < 2.5, "retail", "auction"))

    registered = pd.Timestamp("2024-06-30") - pd.to_timedelta(age * 365.25, unit="D")
    cars = pd.DataFrame(
        {
            "stock_no": rng.permutation(n) + 10_000,
            "model": typed(new["model"], rng),
            "registered": registered.strftime("%d.%m.%Y"),
            "mileage": [f"{number:,.0f} km" for number in km.round(-2)],
            "power": [f"{number:.0f} kW" for number in new["power"] * rng.choice([1, 1.25], n)],
            "fuel": typed(np.where(is_diesel, "Diesel", "Petrol"), rng),
            "owners": np.where(owners < 4, owners.astype(str), "4+"),
            "service_book": book,
            "repair": [f"€{number:,.0f}" for number in repair],
            "colour": rng.choice(["black", "white", "grey", "blue", "red"], n),
            "branch": rng.choice(["North", "South", "Harbour"], n),
        }
    )
    missing = {"mileage": "n/a", "power": None, "owners": "?", "service_book": None}
    for column, mark in missing.items():
        cars.loc[rng.random(n) < 0.06, column] = mark
    return cars.assign(decision=decision, price=price)


rng = np.random.default_rng(0)
cars = draw_cars(800, rng)
cars.head()

# %%
# There are two things to predict: a class, the decision, and a number, the price. 300 cars are held
# out first. Nothing is learned from them, so they can judge all that follows.
from sklearn.model_selection import train_test_split

train, test = train_test_split(cars, test_size=300, stratify=cars["decision"], random_state=0)
train, test = train.reset_index(drop=True), test.reset_index(drop=True)

# %%
# Among the cars to learn from, one decision in twenty becomes wrong, as by a slip in a list, and
# one mileage gets a zero too many.
true_decision, true_mileage = train["decision"].copy(), train.loc[7, "mileage"]
slips = rng.choice(len(train), 25, replace=False)
for row in slips:
    others = {"retail", "auction", "scrap"} - {true_decision[row]}
    train.loc[row, "decision"] = rng.choice(sorted(others))
train.loc[7, "mileage"] = "1,591,000 km"
print(f"mileage of row 7: {train.loc[7, 'mileage']}, in truth {true_mileage}")

# %%
# What is in the columns?
# -----------------------
# :class:`~nearkin.NCAClassifier` and :class:`~nearkin.NCARegressor` take the frame as it is.
# :class:`~nearkin.TableEncoder`, by which they read it, says in a few lines what becomes of each
# column. Read these lines once for every new table: if numbers were taken for words, it would show
# here.
from nearkin import TableEncoder

encoder = TableEncoder(missing="keep").fit(train.drop(columns=["decision", "price"]))
print(*encoder.remarks_, sep="\n")

# %%
# Dates and units are read, and "n/a" and "?" did not keep their columns from being numbers. Two
# lines ask for something. The stock number only tells cars apart; the encoder leaves it out, but
# the predictors below use each column that they are given, so it has to go. And "VW Golf" and "vw
# golf" should be one model. Words that lack a letter stay as they are: each is a rare value of its
# own.


def features(cars):
    """Return what is known of a car on arrival."""
    known = cars.drop(columns=["stock_no", "decision", "price"], errors="ignore")
    known["model"] = known["model"].str.lower()
    known["fuel"] = known["fuel"].str.lower()
    return known


X, X_test = features(train), features(test)

# %%
# How good is the answer?
# -----------------------
# A score alone says little. Beside the model stand the most frequent decision, a linear model and a
# random forest. Accuracy counts the right labels; the log loss judges the probabilities, and
# smaller is better.
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NCAClassifier

models = {
    "most frequent label": DummyClassifier(),
    "logistic regression": make_pipeline(
        TableEncoder(), StandardScaler(), LogisticRegression(max_iter=1000)
    ),
    "random forest": make_pipeline(TableEncoder(), RandomForestClassifier(random_state=0)),
    "NCAClassifier": NCAClassifier(),
}
scores = pd.DataFrame(index=list(models), columns=["accuracy", "log loss"], dtype=float)
for name, model in models.items():
    model.fit(X, train["decision"])
    accuracy = model.score(X_test, test["decision"])
    scores.loc[name] = accuracy, log_loss(test["decision"], model.predict_proba(X_test))
scores.round(3)

# %%
# The cars come from a formula, so the ranking says nothing about other tables. For your own,
# ``nearkin compare`` makes such a list from a file, on several splits, and says which differences
# may be chance.
#
# What does it rest on?
# ---------------------
# A model that is right for the wrong reason fails later. The bars show how far each column moves a
# car in the learned space; the curves show where its values lie, steep where a small difference
# counts.
import matplotlib.pyplot as plt

from nearkin.plotting import ColumnsDisplay

ColumnsDisplay.from_estimator(models["NCAClassifier"])
plt.show()

# %%
# Colour and branch have no part in the decisions, so a bar as short as theirs means little. Be
# suspicious of a long bar that you did not expect: such a column may not be known yet when the
# prediction is needed. And look at the ends of the axes: no car has gone as far as the axis of the
# mileage reaches, so there is a mistake in the table.
#
# Which labels are worth a look?
# ------------------------------
# :func:`nearkin.label_issues` lets models that have not seen a row vote on its label, and ranks the
# rows by the probability that the given label is wrong. It also names rows far from all others.
from nearkin import label_issues

found = label_issues(X, train["decision"])
first = found.rows[: found.n_issues]
print(f"wrong labels: {found.n_issues} are expected, there are {len(slips)}")
print(f"among the first {len(first)} rows: {np.isin(first, slips).sum()}")
for row, column in zip(found.far.rows, X.columns[found.far.columns], strict=True):
    print(f"far from all others: row {row}, whose {column} is {X.loc[row, column]}")
found.to_frame().head().round(2)

# %%
# Not all of these labels are wrong; some cars are just unusual. So nothing is corrected blindly:
# somebody looks up the rows that are named. Here the truth is known, and what is wrong among them
# is corrected. The slips that were not found stay in the table.
mended = train.copy()
mended.loc[first, "decision"] = true_decision[first]
mended.loc[7, "mileage"] = true_mileage
X = features(mended)
classifier = NCAClassifier().fit(X, mended["decision"])
print(f"before: {scores['accuracy']['NCAClassifier']:.1%} of the held-out decisions are right")
print(f"after:  {classifier.score(X_test, test['decision']):.1%}")

# %%
# How sure is it?
# ---------------
# Where an error is costly, ask for a set of labels instead of one, such that 97 sets in 100 hold
# the right one. A car with one label can go its way; a car with two waits for a person.
sets = classifier.predict_set(X_test, coverage=0.97)
is_right = sets[np.arange(len(test)), classifier.classes_.searchsorted(test["decision"])]
print(f"{is_right.mean():.1%} of the sets of held-out cars hold the right decision")
pd.Series(sets.sum(axis=1), name="labels in the set").value_counts().to_frame("cars")

# %%
# For the price, the answer is an interval. Prices differ by factors rather than by sums, so the
# model learns their logarithms; the ends of an interval are turned back into euros.
from sklearn.ensemble import RandomForestRegressor

from nearkin import NCARegressor

regressor = NCARegressor().fit(X, np.log(mended["price"]))
forest = make_pipeline(TableEncoder(), RandomForestRegressor(random_state=0))
forest.fit(X, np.log(mended["price"]))
for name, model in {"NCARegressor": regressor, "random forest": forest}.items():
    print(f"{name}: R² of held-out log prices {model.score(X_test, np.log(test['price'])):.3f}")

low, high = np.exp(regressor.predict_interval(X_test, coverage=0.9)).T
is_within = test["price"].between(low, high)
print(f"{is_within.mean():.1%} of the prices are within their 90 % interval")
prices = test.assign(low=low.round(-1).astype(int), high=high.round(-1).astype(int))
prices[["model", "registered", "mileage", "low", "high", "price"]].head()

# %%
# Both promises are about all cars together, as long as they are like the training cars. Of a single
# car, or of one kind of car, they say nothing.
#
# A picture
# ---------
# :class:`~nearkin.TDistributedNCA` puts cars near each other that the model considers alike. The
# map is learned from the training cars and shows the held-out ones, so that it cannot flatter; the
# title says how often a vote in this plane is right. Rings mark the cars for which it is wrong.
from nearkin import TDistributedNCA
from nearkin.plotting import EmbeddingDisplay

EmbeddingDisplay.from_estimator(
    TDistributedNCA(estimator=NCAClassifier()),
    pd.concat([X, X_test], ignore_index=True),
    pd.concat([mended["decision"], test["decision"]]),
    split=(np.arange(len(X)), len(X) + np.arange(len(X_test))),
    mark_errors=True,
)
# sphinx_gallery_thumbnail_number = 2
plt.show()

# %%
# *Auction* lies between the other two, and most rings are where two colours meet: the cars that are
# hard to decide are those between two decisions.
#
# Save and load
# -------------
# Both models are scikit-learn estimators, and are saved like any other. A program that uses them
# needs this file, and the same versions of nearkin and scikit-learn. A joblib file can run code
# when it is opened, so open only your own; ``nearkin compare --save`` writes a file that cannot.
# From here on the loaded models are used.
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib

with TemporaryDirectory() as folder:
    path = Path(folder, "cars.joblib")
    joblib.dump((classifier, regressor), path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    classifier, regressor = joblib.load(path)

# %%
# New cars
# --------
# Five cars arrive. In the fourth, somebody has typed two zeros too many, and the last is of a kind
# that was never there before.
new = draw_cars(5, rng).drop(columns=["decision", "price"])
new.loc[3, "mileage"] = "12,500,000 km"
new.loc[4, ["model", "fuel", "power"]] = ["Tesla Model 3", "Electric", "208 kW"]
X_new = features(new)

sets = classifier.predict_set(X_new, coverage=0.97)
low, high = np.exp(regressor.predict_interval(X_new, coverage=0.9)).T
new[["model", "registered", "mileage"]].assign(
    decision=[" or ".join(classifier.classes_[row]) for row in sets],
    low=low.round(-1).astype(int),
    high=high.round(-1).astype(int),
    familiarity=classifier.familiarity(X_new).round(3),
)

# %%
# A familiarity is a p-value: of cars like the training cars, one in twenty has one of at most 0.05.
# The first two are below that: they are old and have gone far, which is rare, but no mistake. That
# of the fourth is smaller by far, so do not use what is predicted for it. The fifth does not stand
# out, since two unknown words among ten columns do not take it far. The encoder names them.
encoder = TableEncoder(missing="keep").fit(X)
print(*encoder.encode(X_new)[1], sep="\n")

# %%
# Why should the third car go where it goes? The training cars that are nearest in the learned space
# have the largest votes. So they are the explanation, and can be looked up.
distances, rows = classifier.kneighbors(X_new[2:3])
nearest = mended.iloc[rows[0]].assign(distance=distances[0].round(2))
shown = ["model", "registered", "mileage", "repair", "decision", "price", "distance"]
pd.concat({"new": new[2:3], "nearest": nearest})[shown]

# %%
# Has anything changed since?
# ---------------------------
# Three months, of 150 cars each. In the first, all is as before. In the second, the cars come from
# a rental company: they are young and have been driven much. In the third, diesels are worth a
# quarter less. ``drift`` compares each column with the training cars, and the familiarity of all
# cars together; it needs no labels. The last two lines of the table need them, so they come when
# the cars are sold.
months = {
    "as before": draw_cars(150, rng),
    "rental cars": draw_cars(150, rng, years=2.5, km_a_year=38_000, diesels=0.8),
    "cheap diesels": draw_cars(150, rng, diesel_value=0.75),
}
report = {}
for name, month in months.items():
    X_month = features(month)
    drift = classifier.drift(X_month)
    low, high = np.exp(regressor.predict_interval(X_month, coverage=0.9)).T
    print(f"{name}: {', '.join(drift.moved) or 'no column'} moved")
    report[name] = {
        "drift": drift.has_drifted,
        "familiarity up to 0.05": f"{np.mean(classifier.familiarity(X_month) <= 0.05):.0%}",
        "decisions right": f"{classifier.score(X_month, month['decision']):.0%}",
        "prices within interval": f"{month['price'].between(low, high).mean():.0%}",
    }
pd.DataFrame(report)

# %%
# No alarm in the first month. In the second, ``drift`` names the columns that have moved. Few cars
# are unusual by themselves; it is all of them together that differ. Whether the predictions suffer
# is another question, which the last two lines answer.
#
# The third month looks like the first. The same kinds of cars arrive, and only what they fetch has
# changed: nothing that looks at arriving cars alone can see that. So write down what became of
# them, and count. Where far fewer prices than promised lie within their intervals, it is time to
# train again.
#
# .. seealso::
#
#    :doc:`/guide/tables` (models, sets, intervals, familiarity and drift), :doc:`/guide/checking`
#    (labels to look at), :doc:`/guide/pictures`, :doc:`/guide/serving` (model files), and
#    :doc:`/guide/compare`, which does the first half for a file by one command.
