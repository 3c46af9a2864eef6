"""What a shell completes, in bash as it calls the script; of zsh and fish, what their scripts say."""

import shutil
import subprocess
import sys

import pytest

from nearkin.app.cli import main
from nearkin.app.completion import script

pytest.importorskip("shtab")
ASK = """
source ./script
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shtab_nearkin
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script").write_text(script("bash"), encoding="utf-8")
    for name in ("irises.csv", "m.safetensors", "my table.csv"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ([""], {"compare", "predict", "transform", "inspect", "adapt", "export"}),
        (["compare", "iris", "--pic"], {"--picture"}),
        (["compare", "iris", "--task", ""], {"classification", "regression"}),
        (["compare", "i"], {"iris", "irises.csv"}),
        (["compare", "my"], {"my table.csv"}),
        (["compare", "iris", "--methods", "nm"], {"nmmp", "nmmp\\ ratio\\ trace"}),
        (["compare", "iris", "--methods", "pca,nm"], {"pca,nmmp", "pca,nmmp\\ ratio\\ trace"}),
        (["predict", "m"], {"m.safetensors", "my table.csv"}),
        (["predict", "m.safetensors", "w"], {"wine"}),
        (["adapt", "i"], {"irises.csv"}),
        (["export", "m.safetensors", "--table", "i"], {""}),
        (["--print-completion", ""], {"bash", "zsh", "fish"}),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, list) else "",
)
@pytest.mark.usefixtures("here")
def test_bash(words, completions):
    command = ["bash", "--norc", "-c", ASK, "bash", "nearkin", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.removesuffix("\n").split("\n")) == completions


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.usefixtures("here")
def test_bash_knows_the_command():
    command = ["bash", "--norc", "-c", "source ./script; complete -p nearkin"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith(" nearkin\n")


def test_other_shells():
    assert "_values -s , method 'raw k-nn' pca " in script("zsh")
    assert "'string split , \"raw k-nn,pca," in script("fish")


def test_the_command_prints_it(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--print-completion", "bash"])
    assert capsys.readouterr().out == script("bash") + "\n"


def test_absent_packages_are_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit, match="2"):
        main(["--print-completion", "bash"])
    assert capsys.readouterr().err == "nearkin: completion needs shtab: pip install 'nearkin[app]'\n"
