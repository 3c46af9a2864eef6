"""
What every column of a table does
=================================

``NCARegressor`` and ``NCAClassifier`` predict from a data frame as it is, including words, dates
and missing cells. Which columns do their predictions depend on, and how? The picture shows how far
each column moves a row in the learned space, and where the values of each column lie in it.

The table has 442 people with diabetes, in ten columns, and how far the disease had advanced after a
year (Efron et al. 2004, as scikit-learn ships it). To make it more like ordinary tables, the sex is
a word here and some blood pressures are missing.
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_score

from nearkin import NCARegressor
from nearkin.plotting import ColumnsDisplay

people, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
missing = np.random.default_rng(0).random(len(people)) < 0.05
people = people.assign(sex=people.sex.map({1.0: "one", 2.0: "other"}), bp=people.bp.mask(missing))
people.columns = [
    *("age", "sex", "body mass index", "blood pressure", "cholesterol", "LDL", "HDL"),
    *("cholesterol / HDL", "log triglycerides", "blood sugar"),
]
people.head()

# %%
# Is it any good?
# ---------------
# The R² on held-out rows tells, beside that of a random forest with default settings, which needs
# numbers in place of words.
r2 = {
    "NCARegressor": cross_val_score(NCARegressor(), people, progression, cv=3).mean(),
    "random forest": cross_val_score(
        RandomForestRegressor(random_state=0),
        pd.get_dummies(people, dtype=float),
        progression,
        cv=3,
    ).mean(),
}
for name, mean in r2.items():
    print(f"{name:14s} R² {mean:.3f} in three folds")

# %%
# One picture
# -----------
# The space is learned from all rows. :class:`~nearkin.plotting.ColumnsDisplay` draws the columns,
# and the curves of those whose values lie farthest apart.
model = NCARegressor().fit(people, progression)
effects = pd.Series(model.feature_effects_, model.feature_names_in_).sort_values(ascending=False)

fig, ax = plt.subplots(figsize=(9, 5.6), layout="constrained")
ColumnsDisplay.from_estimator(model, ax=ax)
fig.suptitle(
    f"Progression of diabetes: {effects.index[0]} and {effects.index[1]} move people farthest\n"
    f"(held-out R² {r2['NCARegressor']:.2f}, random forest {r2['random forest']:.2f})"
)
plt.show()

# %%
# Bars: a short bar means that the predictions hardly depend on the column. Curves: people whose
# values lie at one height count as alike; a steep curve sets them apart. The thick curve is the
# direction in which the values of a column differ most, the thin one the second. The dotted line is
# a missing blood pressure.
#
# The numbers behind the picture are ``model.feature_effects_`` and ``model.curves()``.
effects.round(2)

# %%
# .. seealso::
#
#    :doc:`/guide/tables` has the encoding and the vote, :doc:`/measured/tables` a comparison on 48 tables.
