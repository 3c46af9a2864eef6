"""Hostile inputs, as a user would give them: each ends with the exit code and the words that the
table says.

And whatever happens: no traceback, one line where the input is refused, and nothing left behind
half written.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkin.app.cli import main

from . import battery
from .battery import QUICK, SIGNALS

GROUPS = (
    *(
        "ENCODINGS",
        "LAYOUTS",
        "MISSING",
        "LABELS",
        "VALUES",
        "PARQUET",
        "NPZ",
        "MODELS",
        "CHECKED",
        "ROWS",
        "OPTIONS",
    ),
    "ENDINGS",
)
CASES = {name: case for group in GROUPS for name, case in getattr(battery, group).items()}
FAST = (
    *(
        "plain",
        "random bytes",
        "a NUL in a cell",
        "empty",
        "an open quote",
        "a long row",
        "no such column",
        "one class",
    ),
    *(
        "lists of other lengths",
        "pickled objects",
        "a sound model",
        "a cut model",
        "a newer model",
        "new rows",
    ),
)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The bytes of a model that was learned from plain rows."""
    folder = tmp_path_factory.mktemp("battery")
    (folder / "t.csv").write_text(battery.PLAIN)
    files = ["--save", str(folder / "m.safetensors"), "--picture", str(folder / "t.png")]
    assert (
        main(["compare", str(folder / "t.csv"), "--target", "kind", "-q", *QUICK.split(), *files])
        == 0
    )
    return (folder / "m.safetensors").read_bytes()


@pytest.fixture
def here(tmp_path, monkeypatch, model):
    """An empty working directory with a model and new rows, and a folder of its own for what is
    temporary.
    """
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(model)
    (folder / "new.csv").write_text(battery.PLAIN)
    monkeypatch.chdir(folder)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield folder
    folder.chmod(0o755)


@pytest.fixture(scope="session")
def endings(tmp_path_factory):
    """How the command ended by every signal at every moment."""
    folder = tmp_path_factory.mktemp("signals")
    (folder / "t.csv").write_text(battery.PLAIN)
    command = [
        sys.executable,
        str(Path(__file__).with_name("stopped.py")),
        *(case[-1] for case in SIGNALS.values()),
    ]
    return json.loads(
        subprocess.check_output(command, cwd=folder, env={**os.environ, "MPLBACKEND": "agg"})
    )


def write(path, content, model):
    content = content(model) if callable(content) else content
    if isinstance(content, pa.Table):
        parquet.write_table(content, path)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def arguments(file, text):
    """Return the arguments of a case; options alone are those of a quick comparison."""
    if text == "" or text.startswith("--"):
        text = f"compare {file} {QUICK} --target kind {text}"
    return shlex.split(text)


PRELUDE = """set -o pipefail
nearkin() { $nobody "$python" -m nearkin "$@"; }
nobody() { if [ $UID = 0 ]; then nobody="setpriv --bounding-set -dac_override,-dac_read_search"; fi }
"""


def run_line(line, folder):
    """Return the exit code of a line of bash."""
    environment = {
        **os.environ,
        "python": sys.executable,
        "TMPDIR": tempfile.gettempdir(),
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        ["bash", "-c", PRELUDE + line], cwd=folder, env=environment, capture_output=True, text=True
    )
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def run(given):
    """Return the exit code; warnings are shown to a user, and end nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return main(given)
    except SystemExit as end:  # of argparse
        return end.code


def tier(case):
    """Return the marks of a case: those that start processes, and a huge one, are long."""
    if case in FAST:
        return ()
    is_long = case == "100,000 columns" or "".join(CASES[case][4:]).startswith("$")
    return pytest.mark.long if is_long else pytest.mark.slow


@pytest.mark.parametrize("case", [pytest.param(case, marks=tier(case)) for case in CASES])
def test_battery(here, capsys, model, case, request):
    code, says, file, content, *given = CASES[case]
    # these stand in the picture, or are about its file
    if case not in battery.LABELS | battery.ENDINGS:
        request.getfixturevalue("undrawn")
    write(here / file, content, model)
    line = "".join(given)
    found = run_line(line[2:], here) if line.startswith("$") else run(arguments(file, line))
    out, err = capsys.readouterr()
    print(out, err)
    assert found == code
    assert says in out + err
    assert "Traceback" not in out + err
    if code == 2 and "usage:" not in err:
        assert out == "" or out.startswith("t: ")  # the facts of a table that was read
        assert err.startswith("nearkin: ")
        assert err.count("\n") == 1
    assert [*Path(tempfile.gettempdir()).iterdir(), *here.glob("*.part")] == []


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("case", SIGNALS)
def test_signals(endings, case):
    code, says, *_, name = SIGNALS[case]
    ending = endings[name]
    assert ending["code"] == code
    assert ending["err"].startswith("nearkin: ") or "writing" in name
    assert says in ending["err"].splitlines()[-1]
    assert "Traceback" not in ending["err"]
    assert ending["left"] == ["err", "out", "t.csv", "temporary"]
