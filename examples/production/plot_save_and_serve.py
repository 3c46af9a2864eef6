"""
Save a model, and serve it with NumPy alone
===========================================

What has to be installed where predictions are made? ``nearkin compare --save`` writes a safetensors
file: arrays, and a header with numbers and words. ``nearkin predict`` labels new rows with it. This
example then repeats the prediction with NumPy alone: scale, multiply by a matrix, let the nearest
rows vote. The picture shows which training rows voted for the label that was hardest to decide.
"""

# %%
# Compare, save, predict
# ----------------------
# The table of wines is written as CSV files, one to learn from and one of new rows, without the
# cultivar. To keep this quick, a single method is compared.
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from safetensors import safe_open
from sklearn.datasets import load_wine

from nearkin.plotting import COLORS, MARKERS

wines = (
    load_wine(as_frame=True)
    .frame.rename(columns={"target": "cultivar"})
    .sample(frac=1, random_state=0)
)
train, new, truth = (
    wines[:120],
    wines[120:].drop(columns="cultivar"),
    wines.cultivar[120:].to_numpy(),
)

with TemporaryDirectory() as folder:
    train.to_csv(Path(folder, "wines.csv"), index=False)
    new.to_csv(Path(folder, "new.csv"), index=False)
    for command in (
        "compare wines.csv --target cultivar --methods nmmp --quick --no-references --save "
        "wines.safetensors",
        "predict wines.safetensors new.csv -o labels.csv",
    ):
        print("$ nearkin", command)
        run = [sys.executable, "-m", "nearkin", *command.split()]
        subprocess.run(run, cwd=folder, check=True, capture_output=True)
    labels = pd.read_csv(Path(folder, "labels.csv"))
    with safe_open(Path(folder, "wines.safetensors"), framework="numpy") as file:
        header = json.loads(file.metadata()["nearkin"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
labels.head(3)

# %%
# What is in the file
# -------------------
# The map, what scales the features, and the training rows that vote, in learned coordinates.
print(f"{header['method']}, vote of {header['n_neighbors']} rows, soft: {header['soft']}")
print({name: array.shape for name, array in arrays.items()})

# %%
# With NumPy alone
# ----------------
X = (new.to_numpy() - arrays["mean"]) / arrays["scale"]
Z = X @ arrays["components"].T - arrays["offset"]
distances = np.linalg.norm(Z[:, None] - arrays["voters"], axis=2)
nearest = np.argsort(distances, axis=1)[:, : header["n_neighbors"]]
votes = arrays["answers"][nearest]
predicted = np.array([header["classes"][np.bincount(row).argmax()] for row in votes])
same, accuracy = np.mean(predicted == labels.label), np.mean(predicted == truth)
print(f"{same:.0%} of {len(labels)} labels as by nearkin predict, {accuracy:.1%} right")

# %%
# The picture
# -----------
row = labels.vote.argmin()
fig, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for cultivar in np.unique(arrays["answers"]):
    voters = arrays["voters"][arrays["answers"] == cultivar]
    ax.plot(
        voters[:, 0],
        voters[:, 1],
        MARKERS[cultivar],
        color=COLORS[cultivar],
        alpha=0.6,
        label=f"cultivar {cultivar}",
    )
for voter in arrays["voters"][nearest[row]]:
    ax.plot(*np.transpose([Z[row, :2], voter[:2]]), color="black", linewidth=1)
ax.plot(Z[row, 0], Z[row, 1], "k*", markersize=16, label="new wine")
ax.set(xlabel="first learned coordinate", ylabel="second learned coordinate")
ax.legend()
ax.set_title(
    f"The {header['n_neighbors']} voters of the new wine that is hardest to label:\n"
    f"cultivar {labels.label[row]} with {labels.vote[row]:.0%} of the votes (it is {truth[row]})"
)
plt.show()

# %%
# Lines lead to the nearest training rows. They are the nearest in all learned coordinates, of which
# two are drawn, so other rows may look nearer. ``labels.csv`` names them in the columns
# ``nearest_1`` to ``nearest_5``, with their distances: the cases on which the label rests.
#
# The NumPy code holds for a linear map, a vote of k rows that count alike, and a table of numbers
# without missing cells, as here. For words, dates, missing cells and soft votes, let ``nearkin
# predict`` do it.
#
# .. seealso::
#
#    :doc:`/guide/serving` says what a model file holds, and why it is safe to open one from somebody else.
