"""Predict from a data frame as it is, compare with a random forest, and see what every column does.

    python examples/table.py docs/images/columns.png

442 people with diabetes, ten columns, and how far the disease had advanced after a year (Efron et al. 2004, as
scikit-learn ships it). So that the frame is like those of users, the sex is a word here and some blood pressures are
missing. The picture is a `ColumnsDisplay`.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_score

from nearkin import NCARegressor
from nearkin.plotting import ColumnsDisplay


def people() -> tuple[pd.DataFrame, pd.Series]:
    """Return the table and the target."""
    frame, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    missing = np.random.default_rng(0).random(len(frame)) < 0.05
    words = frame.sex.map({1.0: "one", 2.0: "other"})
    names = {"bp": "blood pressure", "s1": "cholesterol", "s3": "HDL", "s5": "log triglycerides", "s6": "blood sugar"}
    return frame.assign(sex=words, bp=frame.bp.mask(missing)).rename(columns=names), progression


def main() -> dict[str, float]:
    """Print the R2 of held-out rows, and draw the columns; return the former."""
    frame, progression = people()
    numbers = pd.get_dummies(frame, dtype=float)  # a forest takes no words
    explained = {
        "NCARegressor": cross_val_score(NCARegressor(), frame, progression, cv=5).mean(),
        "random forest": cross_val_score(RandomForestRegressor(random_state=0), numbers, progression, cv=5).mean(),
    }
    for name, share in explained.items():
        print(f"{name:14s} R2 {share:.3f} in five folds")
    if len(sys.argv) > 1:
        ColumnsDisplay.from_estimator(NCARegressor().fit(frame, progression)).figure_.savefig(sys.argv[1], dpi=110)
    return explained


if __name__ == "__main__":
    main()
