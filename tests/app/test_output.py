"""No output is an input, by whatever path or link: every command, every option that writes."""

import errno
import json
import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import PARSER, main
from nearkin.app.endings import TableError
from nearkin.app.output import (
    READ,
    WRITTEN,
    atomic_folder,
    atomic_write,
    default_picture,
    refuse_overwriting,
)
from nearkin.app.tables.model import save_model
from nearkin.app.tables.reading import read_table

from .winners import winner

RNG = np.random.default_rng(0)
N = 48
COMMANDS = next(
    action for action in PARSER._actions if hasattr(action, "choices") and action.dest == "command"
).choices
FILES = {
    "NEW",
    "OLD",
    "FILE",
    "OUT",
    "TABLE",
    "MODEL",
    "VECTORS",
    "ADAPTER",
    "A",
    "B",
}  # what options that name files call them in the help


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files of every kind that a command reads."""
    folder = tmp_path_factory.mktemp("inputs")
    vectors = RNG.standard_normal((N, 8)).astype(np.float32)
    table = pd.DataFrame(vectors, columns=[f"x{j}" for j in range(8)])
    table.assign(kind=np.arange(N) % 3).to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "new.csv", index=False)
    save_model(winner("LFDA", read_table(str(folder / "t.csv"), "kind")), folder / "m.safetensors")
    table.to_parquet(folder / "q.parquet")
    pd.DataFrame({"a": range(20), "b": range(20, 40)}).to_csv(folder / "pairs.csv", index=False)
    pd.DataFrame({"q": range(20), "d": range(20)}).to_csv(folder / "judged.csv", index=False)
    (folder / "many").mkdir()
    table.assign(kind=np.arange(N) % 3).to_parquet(folder / "many" / "part.parquet")
    return folder


@pytest.fixture
def here(written, monkeypatch, tmp_path):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMPARE = "compare t.csv --target kind"
ADAPT = "adapt q.parquet --queries new.csv --relevance judged.csv"
# A command, an option that writes, how its name must end, and what the command reads.
CASES = [
    (COMPARE, "--report", ".html", ["t.csv"]),
    (COMPARE, "--json", ".json", ["t.csv"]),
    (COMPARE, "--save", ".safetensors", ["t.csv"]),
    (COMPARE, "--picture", ".png", ["t.csv"]),
    ("check t.csv --target kind", "--report", ".html", ["t.csv"]),
    ("check t.csv --target kind", "--json", ".json", ["t.csv"]),
    ("compare many --target kind --dask", "--save", ".safetensors", ["many/part.parquet"]),
    ("compare many --target kind --dask", "--picture", ".png", ["many/part.parquet"]),
    ("adapt many --label kind", "--save", ".safetensors", ["many/part.parquet"]),
    ("adapt q.parquet --pairs pairs.csv", "--save", ".safetensors", ["q.parquet", "pairs.csv"]),
    ("migrate q.parquet new.csv", "--save", ".safetensors", ["q.parquet", "new.csv"]),
    (
        "migrate q.parquet new.csv --queries many/part.parquet pairs.csv --relevance judged.csv",
        "--save",
        ".safetensors",
        ["many/part.parquet", "pairs.csv", "judged.csv"],
    ),
    (ADAPT, "--save", ".safetensors", ["q.parquet", "new.csv", "judged.csv"]),
    (ADAPT, "--report", ".html", ["q.parquet", "new.csv", "judged.csv"]),
    (ADAPT, "--json", ".json", ["q.parquet", "new.csv", "judged.csv"]),
    ("migrate q.parquet new.csv", "--json", ".json", ["q.parquet", "new.csv"]),
    ("match m.safetensors new.csv", "--json", ".json", ["m.safetensors", "new.csv"]),
    ("predict m.safetensors new.csv", "-o", ".csv", ["m.safetensors", "new.csv"]),
    ("transform m.safetensors new.csv", "-o", ".npz", ["m.safetensors", "new.csv"]),
    (
        "transform m.safetensors many --dask",
        "-o",
        ".parquet",
        ["m.safetensors", "many/part.parquet"],
    ),
    (
        "predict m.safetensors many --dask",
        "-o",
        ".parquet",
        ["m.safetensors", "many/part.parquet"],
    ),
    ("transform m.safetensors new.csv", "--picture", ".png", ["m.safetensors", "new.csv"]),
    ("inspect m.safetensors", "--picture", ".png", ["m.safetensors"]),
    (
        "match m.safetensors new.csv q.parquet",
        "-o",
        ".csv",
        ["m.safetensors", "new.csv", "q.parquet"],
    ),
    ("export m.safetensors --to npz", "-o", ".npz", ["m.safetensors"]),
]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(arguments, capsys, folder):
    """Assert that a command ends at once by a line, and changes no file; return the line."""
    before = contents(folder)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert contents(folder) == before
    return err


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(("command", "option", "ending", "inputs"), CASES)
def test_no_output_is_a_link_to_an_input(here, capsys, command, option, ending, inputs, link):
    for number, name in enumerate(inputs):
        output = f"out{number}{ending}"
        link(here / name, here / output)
        line = refused([*command.split(), option, output], capsys, here)
        assert (
            f"{output} is {name}, which is read, and would be overwritten: choose another "
            f"place with {option}" in line
        )


@pytest.mark.parametrize(
    "path", ["new.csv", "./new.csv", "many/../new.csv", "{here}/new.csv", "way/new.csv"]
)
@pytest.mark.parametrize("command", ["predict", "transform"])
def test_no_output_is_the_table(here, capsys, command, path):
    (here / "way").symlink_to(here)
    output = path.format(here=here)
    assert "new.csv" in refused([command, "m.safetensors", "new.csv", "-o", output], capsys, here)
    assert "is read" in refused([command, "m.safetensors", output, "-o", "new.csv"], capsys, here)


def test_no_output_is_standard_input(here, capsys, monkeypatch):
    with (here / "new.csv").open() as file:
        kept = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            line = refused(["predict", "m.safetensors", "-", "-o", "new.csv"], capsys, here)
        finally:
            os.dup2(kept, 0)
            os.close(kept)
    assert "the file of standard input" in line


def test_standard_output_is_no_input(here, capsys):
    with (here / "new.csv").open("a") as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            line = refused(["predict", "m.safetensors", "new.csv"], capsys, here)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    assert "standard output is new.csv, which is read" in line


@pytest.mark.parametrize("exists", [True, False])
def test_no_two_outputs_are_one_file(here, capsys, exists):
    if exists:
        (here / "r.html").write_text("old")
    (here / "r.json").symlink_to(here / "r.html")
    line = refused([*COMPARE.split(), "--report", "r.html", "--json", "r.json"], capsys, here)
    assert (
        "r.json is r.html, which is written by --report, too: choose another place with --json"
        in line
    )


@pytest.mark.parametrize(
    ("command", "picture", "source"),
    [
        (COMPARE, "t-nearkin.png", "t.csv"),
        ("compare many --target kind --dask", "many-nearkin.png", "many/part.parquet"),
        ("inspect m.safetensors", "m-features.png", "m.safetensors"),
    ],
)
def test_the_picture_that_is_drawn_unasked_is_no_input(here, capsys, command, picture, source):
    (here / picture).symlink_to(here / source)
    assert f"{picture} is {source}" in refused(command.split(), capsys, here)


@pytest.mark.long
def test_the_picture_that_is_drawn_unasked_has_the_name_that_is_checked(here, undrawn):
    arguments = [*COMPARE.split(), "--quick", "--methods", "PCA", "--no-references"]
    assert main(arguments) == main(["inspect", "m.safetensors"]) == 0
    for line, name in (
        (arguments, "t-nearkin.png"),
        (["inspect", "m.safetensors"], "m-features.png"),
    ):
        assert default_picture(PARSER.parse_args(line)) == Path(name)
        assert (here / name).exists()


def test_every_option_that_names_a_file_is_checked():
    named = {
        action.dest
        for parser in COMMANDS.values()
        for action in parser._actions
        if action.metavar in FILES
    }
    assert named - {"sql_table"} == {*READ, *WRITTEN}  # the table of a database is no file


def test_a_draft_takes_the_place_of_no_file(here, capsys):
    (here / "out.csv.part").write_text("a download of mine")
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv"]) == 0
    assert (here / "out.csv.part").read_text() == "a download of mine"
    assert [path.name for path in here.glob("out.csv*.part")] == ["out.csv.part"]


def test_a_file_that_is_no_input_is_replaced(here, capsys):
    (here / "many" / "adapter.safetensors").write_text("old")
    refuse_overwriting(
        PARSER.parse_args(
            ["adapt", "many", "--label", "kind", "--save", "many/adapter.safetensors"]
        )
    )
    (here / "out.csv").write_text("old")
    assert main(["predict", "m.safetensors", "new.csv", "-o", "out.csv"]) == 0
    assert (here / "out.csv").read_text() != "old"


# Drafts, permissions and links

PREDICT = ["predict", "m.safetensors", "new.csv", "-q", "-o"]
GONE = 999_999_999  # no process has this number


def test_commands_that_write_one_output_have_drafts_of_their_own(here):
    with atomic_write(here / "out.csv") as one, atomic_write(here / "out.csv") as two:
        assert one != two
        assert one.exists()
        assert two.exists()
        one.write_text("one")
        two.write_text("two")
    assert (here / "out.csv").read_text() == "one"  # the last to end
    assert list(here.glob("*.part")) == []


def test_drafts_of_killed_commands_are_removed(here, capsys):
    ages = {GONE: 0, GONE - 1: 3600, os.getpid(): 3600}
    for process, age in ages.items():
        draft = here / f"out.csv.{process}.0.part"
        draft.touch()
        os.utime(draft, (time.time() - age,) * 2)
    assert main([*PREDICT, "out.csv"]) == 0
    # one may still be written by another machine, one by this process
    left = {f"out.csv.{process}.0.part" for process in (GONE, os.getpid())}
    assert {path.name for path in here.glob("*.part")} == left


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_a_file_keeps_its_permissions(here, mode):
    output = here / "out.csv"
    output.write_text("old")
    output.chmod(mode)
    with atomic_write(output) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        part.write_text("new")
    assert (output.read_text(), stat.S_IMODE(output.stat().st_mode)) == ("new", mode)


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_the_umask(here, mask):
    before = os.umask(mask)
    try:
        assert main([*PREDICT, "out.csv"]) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((here / "out.csv").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_written(here, exists):
    (here / "elsewhere").mkdir()
    if exists:
        (here / "elsewhere" / "out.csv").write_text("old")
    (here / "out.csv").symlink_to("elsewhere/out.csv")
    assert main([*PREDICT, "out.csv"]) == 0
    assert (here / "out.csv").is_symlink()
    assert (here / "elsewhere" / "out.csv").read_text().startswith("row,label")
    assert [path.name for path in (here / "elsewhere").iterdir()] == ["out.csv"]


def test_a_link_to_a_folder_of_results(here):
    (here / "out").symlink_to("elsewhere")
    with atomic_folder(here / "out") as part:
        (part / "a").touch()
    assert (here / "elsewhere" / "a").exists()


def unwritable(kind, here, monkeypatch):
    """Return an output that cannot be written, and why."""
    if kind == "dangling":
        (here / "out.csv").symlink_to("nowhere/out.csv")
        return "out.csv", os.strerror(errno.ENOENT)
    code = {"full": errno.ENOSPC, "read-only": errno.EROFS}[kind]

    def fails(*_):
        raise OSError(code, os.strerror(code))

    if kind == "full":
        monkeypatch.setattr(Path, "write_bytes", fails)
    else:
        monkeypatch.setattr("nearkin.app.output.os.open", fails)
        monkeypatch.setattr(Path, "mkdir", fails)
    return "out.csv", os.strerror(code)


@pytest.mark.parametrize("kind", ["dangling", "full", "read-only"])
def test_what_cannot_be_written_is_refused_before_the_work(here, monkeypatch, capsys, kind):
    output, why = unwritable(kind, here, monkeypatch)
    line = refused([*PREDICT, output], capsys, here)
    assert f"no file can be written there ({why}): choose another place with -o" in line
    why = re.escape(f"no folder can be made there ({why})")
    with pytest.raises(TableError, match=why), atomic_folder(here / output):
        pass
    assert list(here.glob("*.part")) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "command", [[*COMPARE.split(), "--quick", "--methods", "PCA"], ["inspect", "m.safetensors"]]
)
def test_a_picture_that_nobody_asked_for_is_left_out_of_a_read_only_folder(
    here, monkeypatch, capsys, command
):
    before = contents(here)
    unwritable("read-only", here, monkeypatch)
    monkeypatch.setenv("TMPDIR", str(here))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "No picture: " in out
    assert "no file can be written there (Read-only file system): choose another place" in out
    assert contents(here) == before
    line = refused([*command, "--picture", "p.png"], capsys, here)
    assert "choose another place with --picture" in line


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8")
def test_a_file_name_that_is_not_utf_8(here, capsys):
    source = os.fsdecode(b"t\xff.csv")
    (here / "t.csv").rename(here / source)
    files = ["--report", os.fsdecode(b"r\xff.html"), "--json", os.fsdecode(b"j\xff.json")]
    files += ["--save", os.fsdecode(b"m\xff.safetensors")]
    words = ["compare", source, "--target", "kind", "--quick", "--methods", "PCA", *files]
    assert main(words) == 0
    assert "Picture: t\\udcff-nearkin.png" in capsys.readouterr().out
    made = {os.fsdecode(b"t\xff-nearkin.png"), *files[1::2]}
    assert made <= {path.name for path in here.iterdir()}
    assert "t\\udcff" in (here / files[1]).read_text()
    json.loads((here / files[3]).read_text())
    assert main(["inspect", files[5]]) == 0
    assert main(["check", source, "--target", "kind", *files[:4]]) == 0
