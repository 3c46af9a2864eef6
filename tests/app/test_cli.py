"""The command as a user meets it: what it prints, what it writes, how it fails."""

import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

import nearkin
from nearkin.app import cli, console
from nearkin.app.cli import main
from nearkin.evaluation import RAW, default_methods

CSV = "width,height,unit,kind\n" + "".join(f"{i % 7},{i**2},5,{'ab'[i > 19]}\n" for i in range(40))
QUICK = ["--repeats", "1", "--folds", "2"]
NO_TIME = ["--time-budget", "0.000001"]  # for no method but the raw features


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(CSV)
    return tmp_path


def test_ranking_verdict_and_picture(here, capsys, monkeypatch):
    methods = [method for method in default_methods() if method.name in (RAW, "PCA", "DNE")]
    monkeypatch.setattr("nearkin.evaluation.comparison.default_methods", lambda *_, **__: methods)
    assert main(["compare", "table.csv", "--target", "kind", *QUICK]) == 0
    out, err = capsys.readouterr()
    assert "table: 40 rows, 2 features, 2 classes of 20 to 20 rows" in out
    assert "ignored, constant: unit" in out
    for method in methods:
        assert f"\n{method.name} " in out
    assert "baseline" in out
    assert "held-out rows" in out
    assert "Picture: table-nearkin.png" in out
    assert "DNE: 2 folds in" in err  # progress stays out of standard output
    assert max(map(len, out.splitlines())) < 250
    assert (here / "table-nearkin.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in here.iterdir()) == ["table-nearkin.png", "table.csv"]


def test_options(here, capsys):
    options = ["--picture", "p.png", "--neighbors", "1", "--no-scaling", "--seed", "7", *NO_TIME]
    assert main(["compare", "table.csv", "--target", "kind", *QUICK, *options]) == 0
    out = capsys.readouterr().out
    assert "1-NN on unscaled features, 2 held-out folds, seed 7" in out
    assert "NMMP skipped: expected to take" in out
    assert (here / "p.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.csv", "--target", "kind"], "nearkin: nope.csv: no such file"),
        (["table.csv", "--target", "kid"], "table.csv has no 'kid' (did you mean 'kind'?)"),
        (["table.csv", "--target", "kind", "--picture", "p.jpg"], "let its name end in .png"),
        (["table.csv", "--target", "kind", "--picture", "no/where.png"], "choose another place with --picture"),
        (
            ["table.csv", "--target", "kind", "--groups", "unit"],
            "table: groups holds 1 groups: at least 3 are needed",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(here, capsys, arguments, message):
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in out + err
    assert [path.name for path in here.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["compare", "iris", "--folds", "1"], "must be at least 2, got 1"),
        (["compare", "iris", "--repeats", "x"], "invalid"),
        (["compare", "iris", "--time-budget", "-3"], "must be positive, got -3"),
    ],
)
def test_usage(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_version_and_help(capsys):
    for arguments, expected in [
        (["--version"], nearkin.__version__),
        (["compare", "--help"], "nearkin compare balance"),
    ]:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        assert expected in capsys.readouterr().out


def test_what_a_table_contains_is_never_markup(here, capsys):
    (here / "odd.csv").write_text(CSV.replace("unit", "[red]unit[/]"))
    assert main(["compare", "odd.csv", "--target", "kind", *QUICK, *NO_TIME]) == 0
    assert "ignored, constant: [red]unit[/]" in capsys.readouterr().out


def test_names_are_never_formulas(here):
    (here / "$we_{ird$.csv").write_text(CSV.replace("a\n", "$a_{$\n"))
    assert main(["compare", "$we_{ird$.csv", "--target", "kind", *QUICK, *NO_TIME]) == 0
    assert (here / "$we_{ird$-nearkin.png").exists()


def test_a_narrow_terminal_gets_fewer_columns_and_whole_figures(here, capsys, monkeypatch):
    monkeypatch.setattr(console, "_console", lambda stderr=False: Console(stderr=stderr, width=50))
    assert main(["compare", "table.csv", "--target", "kind", *QUICK, *NO_TIME]) == 0
    out = capsys.readouterr().out
    assert "balanced" not in out
    assert "…" not in out


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX pipe")
def test_a_reader_that_leaves_early_still_gets_its_picture(here):
    command = "from nearkin.app.cli import main; raise SystemExit(main())"
    arguments = ["compare", "table.csv", "--target", "kind", *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here
    )
    with process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert (here / "table-nearkin.png").exists()


def test_missing_extras_are_named(monkeypatch, capsys):
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "rich" else object())
    assert main(["compare", "iris"]) == 2
    assert capsys.readouterr().err == "nearkin: the command needs rich: pip install 'nearkin[app]'\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_control_c_prints_what_is_finished(here):
    command = [sys.executable, "-c", "from nearkin.app.cli import main; raise SystemExit(main())"]
    process = subprocess.Popen(
        [*command, "compare", "digits", "--repeats", "20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
    )
    for line in process.stderr:  # the baseline is finished: now the second method is at work
        if line.startswith("raw k-NN"):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "raw k-NN" in out
    assert f"Interrupted: 1 of {len(default_methods())} methods were finished, no winner was fitted." in out
    assert "Traceback" not in err
    assert [path.name for path in here.iterdir()] == ["table.csv"]
