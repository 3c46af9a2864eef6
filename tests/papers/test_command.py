"""`nearkin papers` as a user meets it."""

import pytest

from nearkin.app.cli import main
from nearkin.papers import EXPERIMENTS


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEARKIN_DATA", raising=False)
    return tmp_path


def test_without_names_they_are_listed(capsys):
    assert main(["papers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert all(experiment.title in line for experiment, line in zip(EXPERIMENTS.values(), lines, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tdl-figure9"], "tdl-figure9: no such experiment; `nearkin papers` lists them, `all` runs them all."),
        (["tdl-figure1", "--data", "nowhere"], "nowhere is no folder"),
        (["tdl-figure1", "--document", "papers.txt"], "let its name end in .md (--document)"),
        (["tdl-figure1", "--figures", "file"], "no folder can be made there"),
    ],
)
def test_mistakes_are_named_before_the_work(here, capsys, arguments, message):
    (here / "file").touch()
    assert main(["papers", *arguments]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dp-figures2-5", "Skipped: usps: put usps.npz into sets: USPS digits of 16 x 16"),
        ("dp-table1", "Skipped: mushroom: put mushroom.npz into sets: UCI's mushroom"),  # one of two
    ],
)
def test_what_is_missing_is_skipped_and_older_words_stay(here, capsys, name, line):
    (here / "papers.md").write_text(f"<!-- {name} -->\n\nolder words\n", encoding="utf-8")
    (here / "sets").mkdir()
    assert main(["papers", name, "--data", "sets", "--document", "papers.md"]) == 0
    assert line in capsys.readouterr().out
    assert "older words" in (here / "papers.md").read_text(encoding="utf-8")


def test_a_folder_named_by_the_environment(here, capsys, monkeypatch):
    (here / "sets").mkdir()
    monkeypatch.setenv("NEARKIN_DATA", "sets")
    assert main(["papers", "tdl-unseen"]) == 0
    assert "put mnist.npz into sets" in capsys.readouterr().out


def test_from_the_command_to_document_and_picture(here, capsys):
    (here / "docs").mkdir()
    (here / "docs" / "papers.md").write_text("<!-- tdl-table1 -->\n\nanother section\n", encoding="utf-8")
    where = ["--figures", "docs/images", "--document", "docs/papers.md"]
    assert main(["papers", "tdl-figure1", "--splits", "2", *where]) == 0
    out, err = capsys.readouterr()
    text = (here / "docs" / "papers.md").read_text(encoding="utf-8")
    assert "another section" in text
    assert "    nearkin papers tdl-figure1 --splits 2\n" in text
    assert "1-NN on the first coordinate, 2 draws:" in text
    assert "(images/tdl-figure1.png)" in text
    assert (here / "docs" / "images" / "tdl-figure1.png").read_bytes().startswith(b"\x89PNG")
    for line in out.splitlines():
        assert line in text  # what is printed is what is written down
    assert err == ""


def test_pictures_beside_the_document_have_plain_links(here):
    assert main(["papers", "tdl-figure1", "--splits", "2", "--document", "papers.md"]) == 0
    assert "(tdl-figure1.png)" in (here / "papers.md").read_text(encoding="utf-8")
