"""The table of figures (`benchmarks/figures.toml`) has every command and picture of the
documentation, its command makes them, and its canaries ring when their numbers would change.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("pandas")

from benchmarks import __main__ as program
from benchmarks import figures
from benchmarks.canaries import CANARIES, changed, moved
from benchmarks.figures import Figure, read_figures, read_record
from benchmarks.tools.document import sections, with_tables

ROOT = Path(__file__).parents[2]
FIGURES = read_figures()
PAGES = [page for page in (ROOT / "docs" / "measured").glob("*.md") if page.stem != "index"]
PAGE = """\
# Page

## First

| set | score |
|---|---|
| old | 1 |

Prose stays.

| other | score |
|---|---|
| old | 2 |

## Second

| set | score |
|---|---|
| old | 3 |
"""


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_spaces(text):
    """Return a text on one line; of a command, without the folder of the data."""
    return re.sub(r"(?:\\?\s)+", " ", text).replace("NEARKIN_DATA=folder ", "").strip()


def commands_of(text):
    """Yield the commands in blocks and between backticks that run a benchmark or an experiment."""
    blocks = re.sub(r"\\\n\s*", "", text)
    for command in re.findall(
        r"(?:^ *|`)((?:[A-Z_]+=\S+ )*python\s[^`]*?)(?:`|$)", blocks, re.MULTILINE
    ):
        if re.search(r"(benchmarks[/.]\w+|-m reproductions \S)", command):
            yield without_spaces(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_in_the_table(page):
    table = [without_spaces(one) for figure in FIGURES.values() for one in figure.commands]
    for command in commands_of(page.read_text(encoding="utf-8")):
        # that of an experiment stands there without the files that it writes
        assert any(f"{one} ".startswith(f"{command} ") for one in table), command


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_a_figure_is_where_the_table_says(figure):
    assert figure.writes or figure.prints or figure.by_hand
    assert bool(figure.canaries) != bool(figure.no_canary)
    assert set(figure.canaries) <= set(CANARIES)
    for place in (*figure.writes, *figure.prints, *figure.by_hand):
        path, _, name = place.partition("#")
        assert (ROOT / path).exists(), path
        if not path.endswith(".md"):
            continue
        text = text_of(path)
        assert not name or name in sections(text), place
        assert place not in figure.prints or "\n|" in sections(text)[name], f"no table in {place}"
        for command in map(without_spaces, figure.commands):
            if "reproductions" in command:
                command = command.partition(" --document")[0]
            if "benchmarks" in command and "benchmarks.tools" not in command:  # these take pictures
                assert command in without_spaces(text), (place, command)


def test_every_picture_is_of_one_figure():
    written = [ROOT / picture for figure in FIGURES.values() for picture in figure.pictures]
    cards = ROOT / "docs" / "images" / "cards"
    written[written.index(cards) : written.index(cards) + 1] = cards.iterdir()
    there = [path for path in (ROOT / "docs" / "images").rglob("*") if path.is_file()]
    assert sorted(written) == sorted(there)


def test_every_canary_is_of_a_figure():
    assert {name for figure in FIGURES.values() for name in figure.canaries} == set(CANARIES)


def test_what_is_recorded_is_in_the_table():
    record = read_record()
    assert set(record) <= set(FIGURES)
    for name, known in record.items():
        assert set(known.get("canaries", ())) <= set(FIGURES[name].canaries), name
        assert {"date", "seconds", "machine", "versions"} <= set(known), name


def test_printed_tables_replace_those_with_their_header():
    printed = "| set | score |\n| --- | --- |\n| new | 10 |\n\nother words\n"
    first, _ = with_tables(PAGE, ["first"], printed)
    assert first == PAGE.replace("|---|---|\n| old | 1 |", "| --- | --- |\n| new | 10 |")
    both, placeless = with_tables(
        PAGE, ["first", "second"], f"{printed}\n{printed.replace('10', '30')}\n| x |\n|---|\n"
    )
    assert "| new | 10 |" in sections(both)["first"]
    assert "| new | 30 |" in sections(both)["second"]
    assert "| old | 2 |" in both
    assert placeless == ["x"]


def test_printed_rows_replace_those_of_their_method():
    page = "# one\n| m | s |\n|---|---|\n| a | 1 |\n| b | 2 |\n| b | 3 |\n| c | 4 |\n"
    some, _ = with_tables(page, ["one"], "| m | s |\n| --- | --- |\n| b | 5 |\n| b | 6 |\n")
    assert some == page.replace("2", "5").replace("3", "6")
    whole = page.replace("1", "7").replace("4", "8")
    assert with_tables(page, ["one"], whole)[0] == whole


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("nothing\n", "no table there"),
        ("| x |\n|---|\n| 1 |\n", "no table there"),
        ("| set | score |\n|---|---|\n| new | 1 |\n", "1 tables are printed, but 2"),
    ],
)
def test_tables_without_their_place_are_refused(printed, message):
    with pytest.raises(ValueError, match=message):
        with_tables(PAGE, ["first", "second"], printed)


@pytest.mark.parametrize(
    ("then", "now", "is_changed"),
    [
        ({"a": [1.0, 1e-9]}, {"a": [1.0 + 1e-6, -1e-9]}, False),  # rounding, and its signs
        ({"a": [1e6]}, {"a": [1e6 + 1]}, False),
        ({"a": [float("inf")]}, {"a": [float("inf")]}, False),
        ({"a": [float("inf")]}, {"a": [1.0]}, True),
        ({"a": [1.0]}, {"a": [1.001]}, True),
        ({"a": [1.0]}, {"a": [-1.0]}, True),
        ({"a": [1.0]}, {"a": [float("nan")]}, True),
        ({"a": [1.0]}, {"a": [1.0, 2.0]}, True),
        ({"a": [1.0]}, {"a": [1.0], "b": []}, True),
        (None, {"a": [1.0]}, True),
        ({"a": [1.0]}, "it needs torch", True),
    ],
)
def test_numbers_are_compared_with_a_tolerance(then, now, is_changed):
    assert bool(changed(then, now)) is is_changed


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A checkout of its own: two scripts, a page, and no record."""
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    code = "print('| other | score |\\n|---|---|\\n| new | 20 |')\n"
    (tmp_path / "one.py").write_text(code, encoding="utf-8")
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    table = {
        "bad": Figure("bad", ("python bad.py",), ("bird",), by_hand=("page.md#first",)),
        "poor": Figure(
            "poor", ("python one.py",), ("bird",), needs=("NEARKIN_DATA", "no_such_package")
        ),
        "timed": Figure("timed", ("python one.py",), no_canary="times"),
        "one": Figure(
            "one", ("A=b python one.py",), ("bird",), prints=("page.md#first",), keeps="kept.json"
        ),
    }
    monkeypatch.delenv("NEARKIN_DATA", raising=False)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(program, "read_figures", lambda: table)
    sings(monkeypatch, 1.0)
    return tmp_path


def sings(monkeypatch, number):
    monkeypatch.setattr(program, "flown", lambda names: {"bird": {"song": [number]}})


@pytest.mark.slow
def test_all_that_is_older_is_made(small, monkeypatch, capfd):
    (small / "kept.json").write_text("of other code", encoding="utf-8")
    assert program.main(["all"]) == 1
    said = capfd.readouterr().out
    assert "poor: skipped, it needs NEARKIN_DATA, no_such_package" in said
    assert "failed: bad" in said
    assert "| new | 20 |" in (small / "page.md").read_text(encoding="utf-8")
    assert not (small / "kept.json").exists()
    assert set(read_record()) == {"one"}
    assert program.main([]) == 0
    said = capfd.readouterr().out
    assert "; current" in said
    assert "renew it by hand: times" in said

    sings(monkeypatch, 2.0)
    assert program.main([]) == 0
    assert "older: bird, song: 1 is now 2" in capfd.readouterr().out


def test_no_figure_is_made_whose_canary_fails(small, monkeypatch, capsys):
    monkeypatch.setattr(program, "flown", lambda names: {"bird": "failed: ValueError"})
    assert program.main(["one"]) == 1
    assert "one: failed: bird failed: ValueError" in capsys.readouterr().out
    assert not read_record()


@pytest.mark.slow
def test_what_was_interrupted_goes_on(small, monkeypatch):
    """Results that the same code kept are not thrown away."""

    def interrupted(command):
        (small / "kept.json").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(program, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.main(["one"])
    assert program.main(["one"]) == 0
    assert (small / "kept.json").read_text(encoding="utf-8") == "half"
    assert "begun" not in read_record()["one"]


def test_other_code_of_ours_leaves_the_results_of_rivals(tmp_path):
    kept = tmp_path / "kept.jsonl"
    program.forget(kept, ["ours"])
    lines = ['{"method": "ours"}\n', '{"method": "theirs"}\n']
    kept.write_text("".join(lines), encoding="utf-8")
    program.forget(kept, ["ours"])
    assert kept.read_text(encoding="utf-8") == lines[1]


def test_a_name_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        program.main(["nonsense"])
    assert "no such figure" in capsys.readouterr().err


# Proofs, on copies of the source: of the canaries FLOWN those ring that a change concerns, no other.

FLOWN = ("exact search", "DNE", "NCA by L-BFGS", "tests of a comparison")
CENTRE = "    X = X - X.mean(axis=0)\n    X -= X.mean(axis=0)\n    return X\n"
SILENT = {
    "a local variable is renamed": [
        (
            "_blocks.py",
            CENTRE,
            "    A = X - X.mean(axis=0)\n    A -= A.mean(axis=0)\n    return A\n",
        )
    ],
    "a function moves to another file": [
        (
            "_blocks.py",
            "def centre(X: np.ndarray) -> np.ndarray:\n",
            "def _of_no_use(X: Any) -> Any:\n",
        ),
        ("_blocks.py", "\n\ndef row_blocks", "from ._elsewhere import centre\n\n\ndef row_blocks"),
        (
            "_elsewhere.py",
            "",
            "import numpy as np\n\n\ndef centre(X):\n"
            f"    X = np.asarray(X, dtype=np.float64)\n{CENTRE}",
        ),
    ],
    "a message is reworded": [
        ("_labels.py", "at least two classes are needed.", "two classes or more are needed.")
    ],
}
RINGING = {
    "the signs in _blocks.centre": (
        [("_blocks.py", CENTRE, CENTRE.replace("X - X", "X + X").replace("-=", "+="))],
        {"DNE", "NCA by L-BFGS"},  # in the span of few rows
        {"nca", "nca-defaults", "two-graphs"},
    ),
    "the default of NCA's alpha": (
        [("estimators/nca.py", "alpha: float = 0.15,", "alpha: float = 0.2,")],
        {"NCA by L-BFGS"},
        {"nca", "nca-defaults"},
    ),
    "which of equally near rows is found first": (
        [
            (
                "neighbors/lists.py",
                "index = self.index(X[candidates] if len(candidates) < X.shape[0] else X, n_found)",
                "candidates = candidates[::-1]; index = self.index(X[candidates], n_found)",
            )
        ],
        {"exact search", "DNE"},  # whose pairs are of neighbours
        {"two-graphs"},
    ),
}


def edited(folder, edits):
    """Return a copy of the source in which passages of files are replaced."""
    source = folder / "src" / "nearkin"
    shutil.copytree(ROOT / "src" / "nearkin", source, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in edits:
        path = source / name
        text = path.read_text(encoding="utf-8") if old else ""
        assert not old or text.count(old) == 1, (name, old)
        path.write_text(text.replace(old, new) if old else new, encoding="utf-8")
    return source.parent


@cache
def sung(source):
    """Return the numbers of the canaries FLOWN, of a folder with the package."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.canaries", *FLOWN],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout)


def rung(source):
    then, now = sung(ROOT / "src"), sung(source)
    return set(moved(then, now))


@pytest.mark.long
@pytest.mark.parametrize("change", SILENT)
def test_what_changes_no_number_outdates_nothing(change, tmp_path):
    assert rung(edited(tmp_path, SILENT[change])) == set()


@pytest.mark.long
@pytest.mark.parametrize("change", RINGING)
def test_what_changes_numbers_outdates_their_figures(change, tmp_path):
    edits, concerned, outdated = RINGING[change]
    ringing = rung(edited(tmp_path, edits))
    assert ringing == concerned
    known = [figure for figure in FIGURES.values() if {*figure.canaries} <= {*FLOWN}]
    assert {figure.name for figure in known if ringing & {*figure.canaries}} == outdated
