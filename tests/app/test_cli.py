"""The command as a user meets it: what it prints, what it writes, how it fails."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import nearkin
from nearkin.app import cli, console
from nearkin.app.cli import main
from nearkin.app.vectors.adapter_file import save_adapter
from nearkin.comparison import CHOICE, RAW

from .vectors.test_export import made, with_rules

CSV = "width,height,unit,kind\n" + "".join(f"{i % 7},{i**2},5,{'ab'[i > 19]}\n" for i in range(40))
QUICK = ["--repeats", "1", "--folds", "2", "--methods", "PCA", "--no-references"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(CSV)
    return tmp_path


@pytest.mark.long
def test_ranking_verdict_and_picture(here, capsys):
    assert (
        main(
            [
                "compare",
                "table.csv",
                "--target",
                "kind",
                "--folds",
                "2",
                "--repeats",
                "1",
                "--methods",
                "pca,dne",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert "table: 40 rows, 2 features, 2 classes of 20 rows each" in out
    assert "ignored, constant: unit" in out
    for name in (RAW, "PCA", "DNE", CHOICE, "majority", "gradient boosting"):
        assert f"\n{name} " in out
    assert "LDA" not in out
    assert re.search(
        r"^method +accuracy % balanced % +dim +vote +fit +vs raw +p +verdict", out, re.MULTILINE
    )
    assert out.index("\nDNE ") < out.index("\n──", out.index("\nDNE ")) < out.index("\nmajority ")
    assert "The best reference, " in out
    assert re.search("only detect a true difference of at least about .* with a power of 80%.", out)
    assert "Picture: table-nearkin.png" in out
    assert "compared: 14 fits in" in err  # progress stays out of standard output
    assert (here / "table-nearkin.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in here.iterdir()) == ["table-nearkin.png", "table.csv"]


@pytest.mark.slow
def test_options(here, capsys, undrawn):
    options = [
        "--picture",
        "p.png",
        "--neighbors",
        "1",
        "--no-scaling",
        "--seed",
        "7",
        "--score",
        "balanced",
    ]
    assert main(["compare", "table.csv", "--target", "kind", *QUICK, *options]) == 0
    out = capsys.readouterr().out
    assert "Balanced accuracy on held-out rows (40 rows, 2 folds, unscaled features, seed 7)" in out
    assert re.search(r"^method +balanced % accuracy %", out, re.MULTILINE)
    assert re.search(r"^raw k-NN .* 1-NN ", out, re.MULTILINE)
    assert "majority" in out
    assert "forest" not in out
    assert (here / "p.png").exists()


@pytest.mark.slow
def test_the_time_budget_is_for_all(here, capsys, undrawn):
    options = ["--methods", "PCA,LDA", "--no-references", "--time-budget", "0.000001"]
    assert main(["compare", "table.csv", "--target", "kind", *options]) == 0
    assert "LDA skipped: the time budget ended" in (out := capsys.readouterr().out)
    assert "The time budget ran out: 1 of 15 folds was finished." in out


@pytest.mark.slow
def test_quick(here, capsys, undrawn):
    options = ["--methods", "PCA", "--no-references", "--quick"]
    assert main(["compare", "table.csv", "--target", "kind", *options]) == 0
    assert "(40 rows, 3 folds, " in capsys.readouterr().out


@pytest.mark.slow
def test_twins_are_kept_on_request(here, capsys, undrawn):
    (here / "twice.csv").write_text(CSV + CSV.partition("\n")[2])
    for options, said in (
        ([], "twins stay on one side"),
        (["--keep-twins"], "they were split like other rows"),
    ):
        assert main(["compare", "twice.csv", "--target", "kind", *QUICK, *options]) == 0
        assert (
            f"100% of the rows have a twin, identical or nearly so: {said}"
            in capsys.readouterr().out
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.csv", "--target", "kind"], "nearkin: nope.csv: no such file"),
        (["table.csv", "--target", "kid"], "table.csv has no 'kid' (did you mean 'kind'?)"),
        (
            ["table.csv", "--target", "kind", "--methods", "PCA,NCB"],
            "--methods does not know 'NCB': name some of raw k-NN, PCA, LDA",
        ),
        (
            ["table.csv", "--target", "kind", "--methods", ","],
            "--methods does not know '': name some of",
        ),
        (
            ["table.csv", "--target", "kind", "--score", "r2"],
            "--score r2 is not a score of classification: give accuracy, b",
        ),
        (["table.csv", "--target", "kind", "--json", "p.txt"], "the name must end in .json"),
        (["table.csv", "--target", "kind", "--picture", "p.jpg"], "the name must end in .png"),
        (
            ["table.csv", "--target", "kind", "--picture", "no/where.png"],
            "choose another place with --picture",
        ),
        (
            ["table.csv", "--target", "kind", "--groups", "unit"],
            "table: groups holds 1 group: at least 3 are needed",
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


@pytest.mark.slow
def test_what_a_table_contains_is_never_markup(here, capsys, undrawn):
    (here / "odd.csv").write_text(CSV.replace("unit", "[red]unit[/]"))
    assert main(["compare", "odd.csv", "--target", "kind", *QUICK]) == 0
    assert "ignored, constant: [red]unit[/]" in capsys.readouterr().out


@pytest.mark.long
def test_names_are_never_formulas(here):
    (here / "$we_{ird$.csv").write_text(CSV.replace("a\n", "$a_{$\n"))
    assert main(["compare", "$we_{ird$.csv", "--target", "kind", *QUICK]) == 0
    assert (here / "$we_{ird$-nearkin.png").exists()


@pytest.mark.slow
def test_a_narrow_terminal_gets_fewer_columns_and_whole_figures(here, capsys, monkeypatch, undrawn):
    monkeypatch.setattr(
        console, "opened_console", lambda stderr=False: Console(stderr=stderr, width=50)
    )
    assert main(["compare", "table.csv", "--target", "kind", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "balanced" not in out
    assert "…" not in out


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX pipe")
def test_a_reader_that_leaves_early_still_gets_its_picture(here):
    arguments = ["compare", "table.csv", "--target", "kind", *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-m", "nearkin", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=here,
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
    assert (
        capsys.readouterr().err == "nearkin: the command needs rich: pip install 'nearkin[app]'\n"
    )


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_control_c_prints_what_is_finished(here, default_signals):
    """As a terminal sends it: to the command and to all of its processes."""
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    frame = pd.DataFrame(rng.standard_normal((300, 5)) + y[:, None])
    frame.assign(kind=y).to_csv("rows.csv", index=False)
    show = (
        "console.Progress.__call__ = lambda self, *done: print(*done, file=sys.stderr, flush=True)"
    )
    code = f"import sys; from nearkin.app import cli, console; {show}; raise SystemExit(cli.main())"
    options = ["--methods", "PCA", "--no-references", "--repeats", "40", "--save", "m.safetensors"]
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": here}
    command = [sys.executable, "-c", code, "compare", "rows.csv", "--target", "kind", *options]
    process = subprocess.Popen(command, start_new_session=True, **files)
    for _ in range(9):  # two fits a fold
        process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("nearkin: interrupted\n")
    assert "Traceback" not in err
    assert "raw k-NN" in out
    assert re.search(r"Interrupted: \d+ of 200 folds were finished. No model was fitted.", out)
    assert sorted(path.name for path in here.iterdir()) == ["rows.csv", "table.csv"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 0, "missing: '?' (8 cells), empty (4 cells)"),
        (["--missing", "-9", "?"], 0, "missing: '?' (8 cells), '-9' (4 cells), empty (4 cells)"),
        (["--missing", "-9"], 0, "height: 8 cells are not numbers, missing there: '?' (8, with an"),
        (
            ["--refuse-missing"],
            2,
            "missing values (empty fields, NA, None and the like) in 'height' (12), first "
            "on line 2",
        ),
        (["--sep", "tab"], 2, "table.csv has no 'kind'"),
        (["--sep", "!"], 2, "table.csv has no 'kind'"),
    ],
)
def test_how_the_table_is_read(here, capsys, undrawn, options, code, says):
    cells = ["", "-9", "3", "1", "7", "4", "2", "?", "5", "?"]
    rows = [f"{7 * i % 11},{cells[i % 10]},{'ab'[i > 19]}\n" for i in range(40)]
    (here / "table.csv").write_text("width,height,kind\n" + "".join(rows))
    assert main(["compare", "table.csv", "--target", "kind", *QUICK, *options]) == code
    assert says in "".join(capsys.readouterr())


@pytest.mark.parametrize("mark", ["", "ab", "x", '"', "§"])
def test_what_separates_no_fields(here, capsys, mark):
    with pytest.raises(SystemExit, match="2"):
        main(["compare", "table.csv", "--target", "kind", "--sep", mark])
    assert "--sep: must be one of comma, semicolon, tab" in capsys.readouterr().err


LOADED = """
import sys
from nearkin.app.cli import main
assert main(sys.argv[1:]) == 0
print("loaded:", *(n for n, m in sys.modules.items() if n.startswith("nearkin") and not hasattr(m, "__path__")))
"""


@pytest.mark.long  # processes of their own
@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        ("export a.safetensors --to npz -o a.npz", 9),
        ("match a.safetensors v.parquet -o pairs.csv", 17),
        ("migrate v.parquet v.parquet --save m.safetensors", 16),
    ],
)
def test_a_command_loads_what_it_needs(tmp_path, arguments, most):
    """Commands for vectors load no pages, no comparison of tables, and few files of the command."""
    save_adapter(with_rules(made()), tmp_path / "a.safetensors")
    X = np.random.default_rng(0).normal(size=(200, 13))
    pd.DataFrame({"embedding": list(X)}).to_parquet(tmp_path / "v.parquet")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    loaded = done.stdout.splitlines()[-1].split()[1:]
    assert not any(name.startswith("nearkin.comparison.") for name in loaded)
    assert len([name for name in loaded if name.startswith("nearkin.app.")]) <= most, loaded
