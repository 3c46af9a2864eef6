"""`python -m reproductions` as a user meets it."""

import os

import pytest

from reproductions import EXPERIMENTS, Experiment
from reproductions.pictures import blank

main = pytest.importorskip("reproductions.__main__", reason="rich is not installed").main

DATA = os.environ.get("NEARKIN_DATA", "")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEARKIN_DATA", raising=False)
    return tmp_path


def test_without_names_they_are_listed(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert all(
        experiment.title in line
        for experiment, line in zip(EXPERIMENTS.values(), lines, strict=True)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tdl-figure9"], "tdl-figure9: no such experiment"),
        (["tdl-figure1", "--data", "nowhere"], "nowhere is no folder"),
        (["tdl-figure1", "--document", "papers.txt"], "name a file that ends in .md"),
        (["tdl-figure1", "--document", "nowhere/papers.md"], "in a folder that exists"),
        (["tdl-figure1", "--figures", "file"], "no folder can be made there"),
        (["tdl-figure1", "--splits", "1"], "at least 2, got 1"),
    ],
)
def test_mistakes_are_named_before_the_work(here, capsys, arguments, message):
    (here / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dp-figures2-5", "Skipped: usps: put usps.npz into sets: USPS digits of 16 x 16"),
        # one of two
        (
            "dp-table1",
            "Skipped: mushroom: put mushroom.npz into sets: UCI's mushroom",
        ),
    ],
)
def test_what_is_missing_is_skipped_and_the_old_section_stays(here, capsys, name, line):
    (here / "papers.md").write_text(f"<!-- {name} -->\n\nolder words\n", encoding="utf-8")
    (here / "sets").mkdir()
    assert main([name, "--data", "sets", "--document", "papers.md"]) == 0
    assert line in capsys.readouterr().out
    assert "older words" in (here / "papers.md").read_text(encoding="utf-8")


def test_what_is_skipped_is_listed_with_the_reason(here):
    (here / "sets").mkdir()
    assert main(["dne-figure3", "--data", "sets", "--document", "papers.md"]) == 0
    text = (here / "papers.md").read_text(encoding="utf-8")
    assert "Skipped: umist_28x23: put umist_28x23.npz into sets" in text
    assert "Skipped: the paper's images of 56 x 46 pixels" in text


def test_a_folder_named_by_the_environment(here, capsys, monkeypatch):
    (here / "sets").mkdir()
    monkeypatch.setenv("NEARKIN_DATA", "sets")
    assert main(["tdl-unseen"]) == 0
    assert "put mnist.npz into sets" in capsys.readouterr().out


@pytest.fixture
def toy(monkeypatch):
    """An experiment that costs nothing, in the place of a real one."""

    def run(run):
        for _, rng in run.repeat("draws", run.splits(100)):
            yield f"A draw: {rng.random():.3f}."
        yield run.picture("toy", blank(1, 1), "Nothing")

    monkeypatch.setitem(
        EXPERIMENTS,
        "tdl-figure1",
        Experiment("tdl-figure1", "A toy", ("Everything is open.",), run),
    )


@pytest.mark.usefixtures("toy")
def test_from_the_command_to_document_and_picture(here, capsys):
    (here / "docs").mkdir()
    (here / "docs" / "papers.md").write_text(
        "<!-- tdl-table1 -->\n\nanother section\n", encoding="utf-8"
    )
    where = ["--figures", "docs/images", "--document", "docs/papers.md"]
    assert main(["tdl-figure1", "--splits", "2", *where]) == 0
    out, err = capsys.readouterr()
    text = (here / "docs" / "papers.md").read_text(encoding="utf-8")
    assert "another section" in text
    assert "    python -m reproductions tdl-figure1 --splits 2\n" in text
    assert text.count("A draw: ") == 2
    assert "(images/toy.png)" in text
    assert (here / "docs" / "images" / "toy.png").read_bytes().startswith(b"\x89PNG")
    for line in out.splitlines():
        assert line in text  # what is printed is what is written down
    assert err == ""


@pytest.mark.usefixtures("toy")
def test_pictures_beside_the_document_have_plain_links(here):
    assert main(["tdl-figure1", "--splits", "2", "--document", "papers.md"]) == 0
    assert "(toy.png)" in (here / "papers.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nmmp-figure2", "dne-figure1", "tdl-figure1"])
def test_experiments_that_need_no_files(here, name):
    """The others need a folder of data."""
    assert main([name, "--quick", "--document", "papers.md"]) == 0
    assert f"({name}.png)" in (here / "papers.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.skipif(not DATA, reason="NEARKIN_DATA names no folder of data sets")
@pytest.mark.parametrize(
    "name",
    [
        "nmmp-table1",
        "dne-figure2",
        "nca-figure2",
        "nca-video",
        "dp-table1",
        "dp-values",
        "tdl-table1",
    ],
)
def test_experiments_on_files(here, name):
    """On what the folder holds."""
    assert main([name, "--splits", "2", "--data", DATA, "--document", "papers.md"]) == 0
    assert f"<!-- {name} -->" in (here / "papers.md").read_text(encoding="utf-8")
