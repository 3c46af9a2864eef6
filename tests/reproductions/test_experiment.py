"""How numbers are printed, and how the document keeps what a run did not renew."""

import re
from pathlib import Path

import numpy as np
import pytest

from reproductions import EXPERIMENTS, Data, Run, document
from reproductions.document import heading, renewed
from reproductions.experiment import Printed, mean_std, paired, table


def test_z_counts_the_papers_standard_deviations():
    printed = Printed(90.0, 2.0)
    assert printed.z([90, 90]) == 0
    assert printed.z([93, 95]) == pytest.approx(2)
    assert printed.z([85, 87]) == pytest.approx(-2)


def test_numbers_have_the_papers_decimals():
    assert Printed(96.5, 1.5).beside([95, 98]) == "96.5 (96.5; z +0.0)"
    assert Printed(94.5, 0.25).beside([95, 95]) == "95.00 (94.50; z +2.0)"


def test_mean_and_deviation_of_splits():
    values = np.random.default_rng(0).normal(50, 3, 20)
    mean, std = map(float, mean_std(values, 6).split(" ± "))
    assert mean == pytest.approx(np.mean(values))
    assert std == pytest.approx(np.sqrt(np.sum((values - values.mean()) ** 2) / 19))


def test_paired_difference_is_blind_to_what_both_share():
    rng = np.random.default_rng(0)
    a, b, shared = rng.normal(size=(3, 12))
    assert paired(a, b, 6) == paired(a + shared, b + shared, 6)
    assert paired(np.maximum(a, b), np.minimum(a, b), 6) == f"+{mean_std(abs(a - b), 6)}"
    assert paired(np.minimum(a, b), np.maximum(a, b), 6) == f"-{mean_std(abs(a - b), 6)}"
    assert paired([3, 4], [1, 2]) == "+2.0 ± 0.0"
    assert paired([3, 4], [3, 4]) == "+0.0 ± 0.0"
    assert paired([1, 2], [2.004, 2.996], 2) == "-1.00 ± 0.01"


def test_tables_are_markdown():
    lines = table(["a", "b"], [[1, "x"], [2, "y"]]).splitlines()
    assert lines == ["| a | b |", "| --- | --- |", "| 1 | x |", "| 2 | y |"]


def test_experiments_are_named_after_paper_and_thing():
    assert len(EXPERIMENTS) >= 10
    for name, experiment in EXPERIMENTS.items():
        assert re.fullmatch(r"[a-z]+-[a-z]+[0-9]*(-[0-9]+)?", name)
        assert name == experiment.name
        assert experiment.title
        assert experiment.settings
        assert not any(
            isinstance(setting, tuple) or len(setting) < 10 for setting in experiment.settings
        )


def test_they_use_public_names_only():
    for path in Path(document.__file__).parent.rglob("*.py"):
        imported = re.findall(
            r"^ *(?:from|import) (nearkin\S*)(?: import (.*))?", path.read_text(), re.MULTILINE
        )
        for module, names in imported:
            assert not re.search(r"(^|[., ])_(?!_)", f"{module} {names}"), (
                f"{path.name}: {module} {names}"
            )
            assert module != "nearkin.app"


def test_first_splits_do_not_depend_on_their_number(tmp_path):
    run = Run(Data(), tmp_path)
    few, many = ([rng.random() for _, rng in run.repeat("draws", n)] for n in (2, 5))
    assert few == many[:2]
    assert len(set(many)) == 5


def test_number_of_splits(tmp_path):
    assert Run(Data(), tmp_path).splits(100) == 100
    assert Run(Data(), tmp_path, quick=True).splits(100, quick=4) == 4
    assert Run(Data(), tmp_path, n_splits=7, quick=True).splits(100) == 7


def test_progress_is_reported(tmp_path):
    calls = []
    list(Run(Data(), tmp_path, progress=lambda *what: calls.append(what)).repeat("draws", 2))
    assert calls == [("draws", 1, 2), ("draws", 2, 2)]


NAMES = list(EXPERIMENTS)


class TestDocument:
    def test_renewed_keeps_other_sections(self, tmp_path):
        path = tmp_path / "papers.md"
        path.write_text(
            renewed(path, {NAMES[2]: "third", NAMES[0]: "first, old"}), encoding="utf-8"
        )
        text = renewed(path, {NAMES[0]: "first, new", NAMES[1]: "## second\n\n| a |\n| --- |"})
        assert "old" not in text
        assert text.index("first, new") < text.index("## second") < text.index("third")
        assert text.startswith("# Reproductions of the papers")
        path.write_text(text, encoding="utf-8")
        assert renewed(path, {}) == text

    def test_sections_are_in_the_order_of_the_registry(self, tmp_path):
        text = renewed(tmp_path / "new.md", {name: f"section {name}." for name in reversed(NAMES)})
        assert sorted(NAMES, key=lambda name: text.index(f"section {name}.")) == NAMES

    def test_heading_says_command_and_settings(self):
        experiment = EXPERIMENTS["tdl-figure1"]
        text = heading(experiment, "python -m reproductions tdl-figure1")
        assert text.startswith(f"## {experiment.title}\n")
        assert "    python -m reproductions tdl-figure1\n" in text
        assert all(f"- {setting}" in text for setting in experiment.settings)
