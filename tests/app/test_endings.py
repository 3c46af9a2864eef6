"""However the command ends: one line, the exit code that the help names, and nothing half written."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nearkin.app import endings
from nearkin.app.cli import main
from nearkin.app.output import BLOCK

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals and shells"),
    pytest.mark.usefixtures("default_signals"),
]
NEARKIN = [sys.executable, "-m", "nearkin"]
QUICK = ["compare", "iris", "--repeats", "1", "--folds", "2", "--methods", "PCA", "--no-references"]
USAGE = "usage: nearkin [-h] [--version] COMMAND ...\n"
FILES = ["--save", "m.safetensors", "--report", "r.html", "--json", "j.json", "--picture", "p.png"]


WORDS = {signal.Signals(number).name: words for number, words in endings.SIGNALS.items()}


def shell(folder, line, **environment):
    """Run a line of the shell, in which $nearkin stands for the command and $quick for a
    comparison.
    """
    words = {"nearkin": " ".join(NEARKIN), "quick": " ".join([*NEARKIN, *QUICK])}
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=os.environ | words | environment,
        capture_output=True,
        text=True,
    )


def python(code):
    """Run a program that begins as the command does."""
    code = f"from nearkin.app import endings; endings.begin(); {code}"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Files that cannot be written


def broken(method):
    """Return a method of a path that fails for files of some names as on a full disk."""

    def write(path, *arguments, **cli):
        if path.name.startswith(("m.safetensors.", "r.html.")) and arguments[0] != bytes(BLOCK):
            raise OSError(errno.ENOSPC, "No space")
        return method(path, *arguments, **cli)

    return write


@pytest.mark.long
def test_what_can_still_be_written_is_written(here, capsys, monkeypatch):
    for name in ("write_text", "write_bytes"):
        monkeypatch.setattr(Path, name, broken(getattr(Path, name)))
    assert main([*QUICK, *FILES]) == endings.UNWRITTEN
    out, err = capsys.readouterr()
    assert "raw k-NN" in out
    assert [line for line in err.splitlines() if line.startswith("nearkin: ")] == [
        f"nearkin: {name} could not be written (No space left on device): free some space, or "
        f"choose another place with {option}."
        for name, option in (("m.safetensors", "--save"), ("r.html", "--report"))
    ]
    assert "Picture: p.png\nJSON: j.json\n" in out
    assert sorted(path.name for path in here.iterdir()) == ["j.json", "p.png"]


@pytest.mark.long
def test_a_file_that_may_not_grow(here):
    done = shell(here, f"ulimit -f 20; $quick {' '.join(FILES)}")
    assert done.returncode == 1
    assert "raw k-NN" in done.stdout
    assert (
        "nearkin: r.html could not be written (File too large): free some space, or choose another"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["j.json", "m.safetensors"]


def test_a_folder_that_is_gone_when_the_work_is_done(here, capsys, monkeypatch):
    (here / "out").mkdir()
    monkeypatch.setattr("nearkin.app.tables.compare._show", lambda summary: (here / "out").rmdir())
    assert main([*QUICK, "--picture", "out/p.png", "--json", "j.json"]) == 1
    said = (
        "nearkin: out/p.png could not be written (No such file or directory): choose another place "
        "with --picture.\n"
    )
    assert capsys.readouterr().err.endswith(said)
    assert [path.name for path in here.iterdir()] == ["j.json"]


# Standard streams


def test_a_stream_spells_what_its_encoding_lacks(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    assert python("print('1 ± 2 █ R² é', '\\udc80')").communicate() == (
        "1 +- 2 # R2 \\xe9 \\udc80\n",
        "",
    )


def test_streams_that_are_closed_are_none_of_the_files_that_are_opened(here):
    code = (
        "import sys; from nearkin.app import endings; endings.begin(); print('lost'); "
        "print('lost', file=sys.stderr); "
    )
    code += "f = open('file', 'w'); print(f.fileno() > 2, sys.stdin.read() == '', file=f)"
    subprocess.run(
        ["bash", "-c", f'{sys.executable} -c "{code}" <&- >&- 2>&-'], cwd=here, check=True
    )
    assert (here / "file").read_text() == "True True\n"


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("$nearkin --help | head -1; exit ${PIPESTATUS[0]}", 0, USAGE, ""),
        ("$nearkin --help | true; exit ${PIPESTATUS[0]}", 0, "", ""),
        ("$nearkin --help >&-", 0, "", ""),
        ("$nearkin compare no.csv 2>&1 | true; exit ${PIPESTATUS[0]}", 2, "", ""),
        (
            "$nearkin --help > /dev/full",
            1,
            "",
            "nearkin: standard output could not be written (No space left on device): free some "
            "space, or choose another place.\n",
        ),
    ],
)
def test_readers_that_leave_and_disks_that_are_full(here, line, code, out, err):
    done = shell(here, line)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$quick <&-", 0),
        ("$quick >&-", 0),
        ("$quick 2>&-", 0),
        ("$quick | head -1", 0),
        ("$quick 2>&1 | true", 0),
        ("$quick > /dev/full", 1),
        ("$nearkin compare - --target y <&-", 2),
    ],
)
def test_a_comparison_goes_on_without_its_streams(here, line, code):
    done = shell(here, f"{line}; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert code == 2 or (here / "iris-nearkin.png").exists()


# Signals


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_a_signal_ends_the_command_at_once_while_it_loads(name, words):
    number = getattr(signal, name)
    process = python(f"import os, time; os.kill(os.getpid(), {number:d}); time.sleep(9)")
    assert process.communicate() == ("", f"nearkin: {words}\n")
    assert process.returncode == 128 + number


def test_a_signal_that_is_ignored_stays_ignored():
    """As by nohup."""
    code = (
        "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); from nearkin.app import "
        "endings; "
    )
    code += "endings.begin(); os.kill(os.getpid(), signal.SIGHUP)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_removes_what_is_not_complete(here, capsys, monkeypatch, name):
    def interrupted(model, path):
        path.write_text("half")
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(9)

    monkeypatch.setattr("nearkin.app.tables.compare.save_model", interrupted)
    handler = signal.getsignal(getattr(signal, name))
    assert main([*QUICK, *FILES]) == 128 + getattr(signal, name)
    out, err = capsys.readouterr()
    assert "raw k-NN" in out
    assert err.endswith(f"nearkin: {WORDS[name]}\n")
    assert list(here.iterdir()) == []
    assert signal.getsignal(getattr(signal, name)) == handler


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_a_signal_while_standard_input_is_read_leaves_nothing(here, monkeypatch, name):
    monkeypatch.setenv("TMPDIR", str(here))
    command = [*NEARKIN, "compare", "-", "--target", "y"]
    with subprocess.Popen(
        command, cwd=here, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not list(here.glob("nearkin-*/stdin")):
            time.sleep(0.05)
        process.send_signal(getattr(signal, name))
        assert process.wait(30) == 128 + getattr(signal, name)
        assert process.stderr.read() == f"nearkin: {WORDS[name]}\n"
    assert list(here.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_a_signal_to_all_processes_is_one_line(here, name):
    """As a terminal sends it, while folds are worked on by processes of their own."""
    show = (
        "console.Progress.__call__ = lambda self, *done: print(*done, file=sys.stderr, flush=True)"
    )
    code = (
        f"import sys; from nearkin.__main__ import main; from nearkin.app import console; {show}; "
        "sys.exit(main())"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "compare",
        "digits",
        "--methods",
        "PCA",
        "--no-references",
    ]
    with subprocess.Popen(
        command,
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while "comparing" not in process.stderr.readline():
            pass
        process.stderr.readline()
        os.killpg(process.pid, getattr(signal, name))
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert err.endswith(f"nearkin: {WORDS[name]}\n")
    assert "Traceback" not in err
    assert list(here.iterdir()) == []
