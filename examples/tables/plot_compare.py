"""
Which method for my table?
==========================

:func:`nearkin.comparison.compare` answers by measuring: every method on the same held-out rows, by the vote of the
nearest training rows, with dimension, parameters and vote chosen inside the training rows. The
answer may be that no method is better than k-NN on the raw features. The picture shows a ranking,
and which of its differences could be chance.
"""

# %%
# Compare
# -------
# ``balance_scale`` is bundled: which side of a scale goes down, by two weights and two distances.
# To keep this quick, only a few methods are compared here. By default raw k-NN, LDA and NCA tables
# are compared, beside references such as a random forest, and ``extend`` adds all other methods.
import matplotlib.pyplot as plt

from nearkin.comparison import all_methods, compare
from nearkin.datasets import load
from nearkin.plotting import RankingDisplay

scale = load("balance_scale")
methods = [method for method in all_methods() if method.name in ("PCA", "LDA", "LDE", "NCA")]
comparison = compare(
    scale.X, scale.y, methods=methods, references=[], n_repeats=1, refit=False, n_jobs=1
)
print(comparison)

# %%
# The picture
# -----------
# :class:`~nearkin.plotting.RankingDisplay` draws the mean score of each method, and from the dashed
# line of the raw features the 95 % interval of the difference, paired by row.
display = RankingDisplay.from_comparison(comparison)
for place, result in enumerate(comparison.results):
    if result.status != "baseline":
        display.ax_.annotate(
            f"p = {result.p_value:.2g}",
            (100 * result.score.mean(), place),
            (0, 8),
            textcoords="offset points",
            ha="center",
        )
plt.show()

# %%
# How to read it
# --------------
# - "better" and "worse" appear where p is below 0.05, "unclear" where the difference may be chance.
#   Holm's method corrects p for the number of methods compared, so that one of many methods is not
#   found better by luck. The interval is that of one method alone; it may lie clear of the line
#   where the corrected p does not.
# - The training sets of the folds overlap. The test corrects for it, which is why the intervals are
#   wider than the spread of the folds suggests.
# - The best line of a ranking was picked on the rows on which it is scored. The automatic choice
#   (diamond) was not: in every fold it takes the method that inner folds of the training rows
#   prefer. Its score is what you may expect on new rows.
# - "Unclear" does not mean "equal". A true difference of about this size would be shown by this
#   table in four of five cases:
print(f"{100 * comparison.least_difference:.1f} points")

# %%
# .. seealso::
#
#    :doc:`/guide/compare` is about the command that does the same for a file, :doc:`/measured/comparison` a study of
#    24 data sets.
