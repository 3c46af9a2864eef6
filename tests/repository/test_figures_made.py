"""The table of figures (`benchmarks/figures.toml`) has every command and picture of the
documentation, and its command makes them.
"""

import re
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks import figures
from benchmarks.figures import Figure, digest, read_figures, read_record
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
    for path in figure.code:
        assert (ROOT / path).exists(), path
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


def test_what_is_recorded_is_in_the_table():
    assert set(read_record()) <= set(FIGURES)


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


def test_the_digest_is_of_the_code(tmp_path):
    code = 'def f(x):\n    """Say."""\n    if x:\n        x = 1\n    return x\n'
    same = "# why\ndef f(\n    x,\n):\n    if x: x = (1)  # so\n    return x\n"
    moved = code.replace("    return", "        return")
    digests = []
    for name, text in (("a", code), ("b", same), ("c", moved), ("d", code.replace("1", "2"))):
        path = tmp_path / name / "f.py"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        digests.append(digest(path))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert digest(tmp_path / "a") != digest(tmp_path / "b")  # a file moves with its folder


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A checkout of its own: two scripts, a page, and no record."""
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    code = "print('| other | score |\\n|---|---|\\n| new | 20 |')\n"
    (tmp_path / "one.py").write_text(code, encoding="utf-8")
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    table = {
        "bad": Figure("bad", ("python bad.py",), ("bad.py",), by_hand=("page.md#first",)),
        "poor": Figure(
            "poor", ("python one.py",), ("one.py",), needs=("NEARKIN_DATA", "no_such_package")
        ),
        "one": Figure(
            "one", ("A=b python one.py",), ("one.py",), prints=("page.md#first",), keeps="kept.json"
        ),
    }
    monkeypatch.delenv("NEARKIN_DATA", raising=False)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(program, "read_figures", lambda: table)
    digest.cache_clear()
    return tmp_path


def test_all_that_is_older_is_made(small, capfd):
    (small / "kept.json").write_text("of other code", encoding="utf-8")
    assert program.main(["all"]) == 1
    said = capfd.readouterr().out
    assert "poor: skipped, it needs NEARKIN_DATA, no_such_package" in said
    assert "failed: bad" in said
    assert "| new | 20 |" in (small / "page.md").read_text(encoding="utf-8")
    assert not (small / "kept.json").exists()
    assert set(read_record()) == {"one"}
    assert program.main([]) == 0
    assert "; current" in capfd.readouterr().out

    (small / "one.py").write_text("print('changed')\n", encoding="utf-8")
    digest.cache_clear()
    assert program.main([]) == 0
    assert "older than one.py" in capfd.readouterr().out


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


def test_a_name_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        program.main(["nonsense"])
    assert "no such figure" in capsys.readouterr().err
