"""What the studies share: ranks, tests, tables, results that are kept, processes of their own."""

import sys

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from benchmarks.measure import FailedError, Kept, apart, command, timed  # noqa: E402
from benchmarks.report import bold, mean_ranks, signed_rank_tests, table, verdicts  # noqa: E402
from benchmarks.tools.browser import Browser, find_chromium  # noqa: E402


def scores(n_sets=20):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_sets, 3)) / 100
    return pd.DataFrame(values + np.array([0, 1, -1]), columns=["ours", "better", "worse"])


def test_ranks_of_a_set_add_up_and_ties_share_them():
    found = mean_ranks(scores())
    assert found.tolist() == [2, 1, 3]
    assert mean_ranks([[1.0, 1.0, 0.0], [1.0, 1.0 + 1e-9, 2.0]]).tolist() == [2, 2, 2]


def test_a_rival_is_better_worse_or_neither():
    values = scores().assign(same=scores()["ours"])
    found = signed_rank_tests(values, "ours")
    assert verdicts(found) == (["worse"], ["better"], ["same"])
    assert found.loc["same", "p"] == 1
    turned = signed_rank_tests(-values, "ours")
    assert verdicts(turned) == (["better"], ["worse"], ["same"])
    assert (
        signed_rank_tests(values[["ours", "better"]], "ours")["p"] <= found["p"]["better"]
    ).all()  # Holm


def test_what_prints_as_the_best_is_bold():
    values = [0.9501, 0.95, 0.2, np.nan]
    texts = ["0.950", "0.950", "0.200", "-"]
    assert bold(texts, values) == ["**0.950**", "**0.950**", "0.200", "-"]
    assert bold(texts, values, np.nanmin) == ["0.950", "0.950", "**0.200**", "-"]
    assert table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_results_are_kept_and_a_run_goes_on(tmp_path):
    path = tmp_path / "results" / "kept.jsonl"
    Kept(path, "set", "fold").add({"set": "iris", "fold": 0}, {"score": 1.0})
    again = Kept(path, "set", "fold")
    assert again.done == {("iris", 0)}
    again.add({"set": "iris", "fold": 1}, {"status": "failed"})
    assert [line["fold"] for line in Kept(path, "set", "fold").lines] == [0, 1]


def refuses():
    raise ValueError("no\nmore")


def test_a_process_of_its_own_returns_or_says_why():
    assert apart(sum, [1, 2], start="fork") == 3
    with pytest.raises(FailedError, match=r"^failed: ValueError: no$"):
        apart(refuses, start="fork")
    with pytest.raises(FailedError, match="failed: exit code 3"):
        apart(sys.exit, 3, start="fork")
    assert timed(sum, [1, 2], repeats=2).result == 3


def test_options_are_the_parameters_of_a_part(monkeypatch, capsys, tmp_path):
    def first(rows: tuple[int, ...] = (1, 2), name: str = "a", quick: bool = False) -> str:
        return f"{rows} {name} {quick}"

    def second_part(rows: tuple[int, ...] = (5,)) -> str:
        return f"{rows}"

    page = tmp_path / "page.md"
    page.write_text("<!-- second_part -->\nold\n<!-- end of second_part -->\n")
    monkeypatch.setattr(sys, "argv", ["x"])
    command(first, second_part)
    assert capsys.readouterr().out == "(1, 2) a False\n"
    monkeypatch.setattr(sys, "argv", ["x", "all", "--rows", "3", "--quick"])
    command(first, second_part)
    assert capsys.readouterr().out == "[3] a True\n[3]\n"
    monkeypatch.setattr(sys, "argv", ["x", "second-part", "--document", str(page)])
    command(first, second_part)
    assert page.read_text() == "<!-- second_part -->\n(5,)\n<!-- end of second_part -->\n"
    monkeypatch.setattr(sys, "argv", ["x", "third"])
    with pytest.raises(SystemExit):
        command(first, second_part)
    assert "third: no such part" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")
def test_a_page_is_opened_by_a_path_that_goes_up(tmp_path):
    (tmp_path / "page.html").write_text("<title>here</title>")
    with Browser() as browser:
        browser.open(tmp_path / "folder" / ".." / "page.html", width=800)
        assert browser.evaluate("document.title") == "here"
