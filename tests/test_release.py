"""What a release says of itself agrees: the version, the addresses, the links of its page, the
files of the sdist.
"""

import re
import tomllib
from pathlib import Path

import nearkin
from nearkin._captions import DOCUMENTATION

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
URLS = PYPROJECT["project"]["urls"]
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


def test_every_address_is_one_of_two():
    citation = dict(re.findall(r'^(\S+): "(.+)"$', text_of("CITATION.cff"), re.MULTILINE))
    assert citation["repository-code"] == URLS["Repository"]
    assert citation["url"] == URLS["Documentation"]
    assert DOCUMENTATION.startswith(URLS["Documentation"] + "/")
    for name in ("Issues", "Changelog"):
        assert URLS[name].startswith(URLS["Repository"] + "/")
    path = URLS["Repository"].removeprefix("https://github.com")
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "pyproject.toml"):
        found = re.findall(
            r"https://(?:github|raw\.githubusercontent)\.com(/[\w-]+/[\w-]+)", text_of(name)
        )
        assert set(found) == {path}


def test_links_of_the_page_on_a_package_index_are_absolute_and_lead_to_files():
    page = text_of("README.md")
    for substitution in HATCH["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(substitution["pattern"], substitution["replacement"], page)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert all(link.startswith(("https://", "#")) for link in links)
    ours = [re.match(r"https://[^$]+/v\$HFPR_VERSION/([^#]+)", link) for link in links]
    paths = [match[1] for match in ours if match]
    assert "docs/images/balance_scale.png" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert all(picture.startswith("https://raw.githubusercontent.com/") for picture in pictures)


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
