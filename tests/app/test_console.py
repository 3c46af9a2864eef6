"""No text of a table or a file name commands a terminal, or reorders the text of a page."""

import io
import json
import re
import sys
import unicodedata
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator

from nearkin.app.cli import COMMANDS, main
from nearkin.app.document import to_json
from nearkin.app.endings import printable
from nearkin.app.tables.model import save_model
from nearkin.app.tables.reading import read_table
from nearkin.app.vectors.adapter_file import SavedAdapter, save_adapter
from nearkin.vectors import EmbeddingAdapter, Matcher

from .winners import winner

# All characters that are not seen: controls (C0 and C1), marks of direction, separators of lines.
UNSEEN = [
    chr(code)
    for code in range(1, 0x20000)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp")
]
PIECES = ["".join(UNSEEN[start : start + 4]) for start in range(0, len(UNSEEN), 4)]
TITLE = "\x1b]0;a title of a window\x07"
TABLE, VECTORS = f"{TITLE}t.parquet", f"{TITLE}v.parquet"
QUICK = ["--quick", "--methods", "PCA", "--no-references"]
LINES = {
    "compare": [TABLE, "--target", "kind", *QUICK, "--report", "r.html", "--json", "r.json"],
    "check": [TABLE, "--target", "kind", "--report", "r.html", "--json", "r.json"],
    "predict": ["m.safetensors", TABLE, "--id", "id"],
    "transform": ["m.safetensors", TABLE, "--id", "id"],
    "inspect": ["m.safetensors"],
    "adapt": [
        VECTORS,
        "--label",
        "label",
        "--sizes",
        "4",
        "--report",
        "r.html",
        "--json",
        "r.json",
    ],
    "match": ["a.safetensors", VECTORS, "--id", "id", "--precision", "0.5", "--json", "r.json"],
    "migrate": [VECTORS, VECTORS, "--id", "id", "--json", "r.json"],
    "export": ["a.safetensors", "--to", "npz", "-o", f"{TITLE}e.npz"],
}
STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # that rich writes
N = 90


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def on_a_terminal(monkeypatch, arguments):
    """Run a command whose standard output and error are terminals, and return what they get."""
    streams = [Terminal(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2)]
    monkeypatch.setenv("TERM", "xterm")
    for name, stream in zip(("stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    assert main(arguments) == 0
    return "".join(stream.buffer.getvalue().decode() for stream in streams)


def unseen(text):
    """Return the characters of a text that should have been escaped."""
    return set(UNSEEN) & set(text) - {"\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables whose names, labels and cells hold every such character, and what learned from them."""
    folder = tmp_path_factory.mktemp("unseen")
    rng, piece = np.random.default_rng(0), cycle(PIECES)

    def evil(text):
        return f"{text}{TITLE}{next(piece)}{text}"

    labels, words = ([evil(letter) for letter in letters] for letters in ("ab", "uvw"))
    kinds = np.arange(N) % 2
    X = rng.standard_normal((N, 4)).round(2) + 2 * kinds[:, None]
    X[7] = X[6]  # a contradictory twin
    X[-1] = 99  # far from all others
    frame = pd.DataFrame(X, columns=[evil(f"x{j}") for j in range(4)])
    frame[evil("word")] = [words[(i - i % 2) % 3] for i in range(N)]
    frame[evil("same")] = evil("constant")  # is left out, by name
    frame["id"] = [evil(f"row {i}") for i in range(N)]
    frame["kind"] = [labels[kind] for kind in kinds]
    frame.loc[20, frame.columns[1]] = np.nan
    frame.to_parquet(folder / f"{TITLE}t.parquet")
    vectors = pd.DataFrame(rng.standard_normal((N, 6)), columns=[evil(f"v{j}") for j in range(6)])
    vectors += 4 * np.eye(6)[np.arange(N) % 6]
    groups = [evil(letter) for letter in "cdefgh"]
    vectors["id"], vectors["label"] = frame["id"], [groups[i % 6] for i in range(N)]
    vectors.to_parquet(folder / f"{TITLE}v.parquet")
    save_model(winner("LFDA", read_table(str(folder / TABLE), "kind")), folder / "m.safetensors")
    arrays = {"components": np.eye(6), "bias": np.zeros(6), "scale": np.ones(1)}
    adapter = EmbeddingAdapter.from_arrays({name: a.astype("f") for name, a in arrays.items()})
    names, codes = list(vectors)[:6], np.arange(N) % 6
    matcher = Matcher(FrozenEstimator(adapter)).fit(vectors[names].to_numpy("f"), codes)
    rules = {"pair_rules": matcher.pair_rules_, "list_rules": matcher.list_rules_}
    scores = {"adapter": 0.9, "raw": 0.8, "n_queries": 9, "low": 0.0, "high": 0.2, "p_value": 0.1}
    saved = SavedAdapter(adapter, evil("a"), "", names, "", "", scores, evil("v"), **rules)
    save_adapter(saved, folder / "a.safetensors")
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "adapt")) for name in COMMANDS.choices],
)
@pytest.mark.usefixtures("undrawn")
def test_a_table_does_not_command_the_terminal(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    Path("r.html").unlink(missing_ok=True)
    written = on_a_terminal(monkeypatch, [command, *LINES[command]])
    assert "\\x1b]0;a title" in written
    assert unseen(STYLES.sub("", written).replace("\r", "")) == set()
    for page in Path().glob("r.*"):
        assert unseen(page.read_text()) == set()


@pytest.mark.long
def test_a_file_gets_every_character(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["predict", *LINES["predict"], "-o", "labels.parquet"]) == 0
    given, labels = pd.read_parquet(TABLE), pd.read_parquet("labels.parquet")
    assert labels["id"].tolist() == given["id"].tolist()
    assert set(labels["label"]) <= set(given["kind"])
    assert main(["predict", *LINES["predict"]]) == 0  # standard output is no terminal
    assert UNSEEN[6] in capsys.readouterr().out


def test_characters_that_are_not_seen_are_escaped():
    for mark in UNSEEN:
        assert printable(mark) == ("\n" if mark == "\n" else repr(mark)[1:-1])
    assert json.loads(to_json(UNSEEN)) == UNSEEN


def test_letters_of_every_script_are_seen():
    text = "Ärger 木曜日 \u3000 10\u00a0kg العربية 🐘 e\u0301"
    assert printable(text) == text
