"""
Which match is right, and which query has none
==============================================

A search always returns something. From which cosine on is the best match right, and when should the
answer be "none"? A threshold that looks good on the rows by which it was chosen is too low for new
ones. Here :class:`~nearkin.Matcher` learns an adapter and a threshold from labelled images of
digits, and new images show whether its promise is kept.
"""

# %%
# A promise, made by held-out rows
# --------------------------------
# Four times the matcher learns an adapter from a part of the rows, and searches for the others.
# Those searches say which precision a threshold reaches, and which it reaches at least, with a
# confidence of 95 %. The digits 8 and 9 are left out: they are queries that have no answer, as we
# expect a fifth of them to be.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nearkin import EmbeddingAdapter, Matcher

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
is_query = rng.random(len(y)) < 0.3
has_answer = y < 8
index = ~is_query & has_answer

adapter = EmbeddingAdapter(16, start="pca")
matcher = Matcher(adapter, expect="known", unanswerable=0.2).fit(X[index], y[index])
promised = 0.95
threshold = matcher.threshold(promised)

# %%
# New queries, with an answer and without
# ---------------------------------------
answered = matcher.best_match(X[is_query & has_answer], X[index], precision=promised)
unanswered = matcher.best_match(X[is_query & ~has_answer], X[index], precision=promised)
accepted = answered.rows >= 0
right = y[index][answered.rows] == y[is_query & has_answer]

print(f"promised: at least {promised:.0%} of the matches are right")
print(f"observed: {right[accepted].mean():.1%} of {accepted.sum()} matches, "
      f"{(right & accepted).mean():.1%} of the queries answered")  # fmt: skip
print(f"queries without an answer: {np.mean(unanswered.rows < 0):.1%} are told so")

# %%
# The picture
# -----------
# Left: the cosine of the best match of new queries. Right: what the held-out rows say about a
# threshold; the shaded part is what the bound takes off.
fig, (left, right_) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
bins = np.linspace(0.4, 1, 31)
left.hist(answered.similarities, bins, color="#0072B2", alpha=0.7, label="digits 0 to 7")
left.hist(unanswered.similarities, bins, color="#D55E00", alpha=0.7, label="8, 9: no answer")
left.axvline(threshold, color="black", linewidth=1, linestyle="--", label=f"{threshold:.2f}")
left.set_xlabel("cosine of the best match")
left.set_ylabel("new queries")
left.legend(loc="upper left")

curve = matcher.pair_rules_.every.curve
right_.fill_between(curve.thresholds, curve.bound, curve.expected, color="#009E73", alpha=0.3)
right_.plot(curve.thresholds, curve.expected, color="#009E73", label="precision")
right_.plot(curve.thresholds, curve.recall, color="#CC79A7", label="recall")
right_.plot(curve.thresholds, curve.false_answers, ":", color="gray", label="false answers")
right_.axvline(threshold, color="black", linewidth=1, linestyle="--")
right_.set_xlabel("least cosine of a match")
right_.set_ylim(0, 1.02)
right_.legend(loc="lower left")
plt.show()

# %%
# The matches of new queries are at least as precise as promised, and most queries of the two digits
# that the index does not hold are told that there is no match. A search looks at more than the
# cosine: at how near the other candidates are, and at the original rows. ``nearkin adapt`` prints
# such thresholds, and ``nearkin match`` finds the matches between two files.
#
# .. seealso::
#
#    :doc:`/guide/embeddings` has the commands; :doc:`/measured/adapt` the figures of sentence embeddings.
