"""What a release says of itself agrees: the version, the addresses, the links of its page, the
files of the sdist.
"""

import re
import tomllib
from pathlib import Path

import nearkin

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HATCH = PYPROJECT["tool"]["hatch"]
MINIMA = {"numpy": "2.0", "scipy": "1.13", "scikit-learn": "1.6", "threadpoolctl": "3.1"}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_and_the_date_are_the_same_everywhere():
    version, date = re.search(
        r"^## (\S+) \((.+)\)$", text_of("CHANGELOG.md"), re.MULTILINE
    ).groups()
    citation = dict(re.findall(r"^(\S+): (.+)$", text_of("CITATION.cff"), re.MULTILINE))
    assert nearkin.__version__ == version == citation["version"]
    assert citation["date-released"] == date


def test_no_address_is_one_that_nobody_owns():
    """Nothing is published yet: a reader must not be sent to a stranger's page."""
    folders = ("src", "tests", "docs", "examples", "benchmarks", "reproductions", ".ci", ".github")
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    paths += [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    ours = re.compile(
        rb"(?:github\.com|githubusercontent\.com)/nearkin|nearkin\.readthedocs|@nearkin\."
    )
    suffixes = {".py", ".md", ".toml", ".cff", ".yml", ".rst", ".html", ".css"}
    found = [
        path.relative_to(ROOT)
        for path in paths
        if path.suffix in suffixes and "_build" not in path.parts and ours.search(path.read_bytes())
    ]
    assert found == []


def test_the_sdist_has_what_its_own_tests_read():
    include = HATCH["build"]["targets"]["sdist"]["include"]
    needed = [
        "src",
        "tests",
        "benchmarks",
        "reproductions",
        "docs",
        "examples",
        ".ci",
        "conftest.py",
        "CITATION.cff",
    ]
    assert {f"/{name}" for name in needed} | {"/*.md"} <= set(include)
    for pattern in include:
        assert list(ROOT.glob(pattern.removeprefix("/"))), pattern


def test_the_oldest_versions_are_those_that_are_tried():
    assert PYPROJECT["project"]["dependencies"] == [
        f"{name}>={version}" for name, version in MINIMA.items()
    ]
    tried = re.search(r"^oldest=\((.+)\)$", text_of(".ci/release"), re.MULTILINE)[1]
    assert tried.split() == [f"'{name}=={version}.*'" for name, version in MINIMA.items()]
    pythons = re.findall(
        r":: (3\.\d+)$", "\n".join(PYPROJECT["project"]["classifiers"]), re.MULTILINE
    )
    assert f"set -- oldest {' '.join(pythons)} sdist" in text_of(".ci/release")
    assert PYPROJECT["project"]["requires-python"] == f">={pythons[0]}"
