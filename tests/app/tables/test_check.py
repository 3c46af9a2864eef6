"""`nearkin check`: rows whose label is probably wrong, twins, far rows; on the console, as JSON, and
as a page.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.tables import label_issues
from tests.app.sample_document import document_in

N, FLIPPED = 90, [4, 17, 33, 48, 62]
NAMES = np.array(["barley", "wheat", "rye"])


@pytest.fixture(scope="module")
def frame():
    """Three classes that do not overlap; five wrong labels, a contradictory twin, a far row."""
    rng, y = np.random.default_rng(0), np.arange(N) % 3
    X = rng.standard_normal((N, 4)).round(3)
    X[:, 0] += 7 * y
    X[:, 1] += 7 * (y == 1)
    X[20, 3] = 300
    y[FLIPPED] = (y[FLIPPED] + 1) % 3
    frame = pd.DataFrame(X, columns=["length", "width", "weight", "height"])
    frame = frame.assign(plot=[f"plot {i}" for i in range(N)], kind=NAMES[y])
    twin = frame.iloc[[8]].assign(kind="barley", plot="plot 90")
    return pd.concat([frame, twin], ignore_index=True)


@pytest.fixture
def here(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("grain.csv", index=False)
    return tmp_path


def grid(out):
    """Return the lines of the table that was printed, as lists of cells."""
    return [line.split() for line in out.splitlines() if re.match(r" *\d", line)]


@pytest.mark.slow
def test_what_is_found_is_printed_and_written(here, capsys, frame):
    before = (here / "grain.csv").read_bytes()
    outputs = ["--report", "grain.html", "--json", "grain.json"]
    assert main(["check", "grain.csv", "--target", "kind", *outputs]) == 0
    out, err = capsys.readouterr()
    assert "grain: 91 rows, 4 features, 3 classes" in out
    assert "plot" in re.search("ignored.*", out).group()
    lines = grid(out)
    assert len(lines) == 10
    assert sorted(int(line[0]) for line in lines[:6]) == sorted([*FLIPPED, 90])
    assert (
        "equal in all features but not in kind: 2 rows in 1 group: 8 (rye) and 90 (barley)" in out
    )
    assert re.search(r"Far from all others \(.*\): 20 \([\d.]+, height\)", out)
    assert "Report: grain.html\nJSON: grain.json\n" in out
    assert re.fullmatch(r"checked: \d fits in [\d.]+ s\n", err)
    assert (here / "grain.csv").read_bytes() == before
    assert sorted(path.name for path in here.iterdir()) == ["grain.csv", "grain.html", "grain.json"]

    found = json.loads((here / "grain.json").read_text())
    for line, one in zip(lines, found["rows"], strict=False):
        assert line[:3] == [str(one["row"]), one["label"], one["predicted"]]
        assert line[3] == f"{min(max(100 * one['probability'], 1), 99):.0f}%"
        assert line[4] == f"{one['expected']:.1f}"
        near = [f"{near['row']} {near['label']}" for near in one["neighbors"][:3]]
        assert " ".join(line[5:]) == ", ".join(near)
        assert one["label"] == frame["kind"][one["row"]]
        assert one["name"] == frame["plot"][one["row"]]
        assert one["row"] not in [near["row"] for near in one["neighbors"]]
    for text in found["sentences"]:
        assert text in out
    first = (
        r"About \d of 91 labels are probably wrong, or fewer where classes overlap: expect up to "
    )
    assert re.match(first, found["sentences"][0])
    assert found["twins"] == {
        "groups": 1,
        "rows": 2,
        "first": [[{"row": 8, "label": "rye"}, {"row": 90, "label": "barley"}]],
    }
    assert [far["row"] for far in found["far"]["first"]] == [20]
    assert found["table"]["left_out"] == [
        {"column": "plot", "reason": found["table"]["left_out"][0]["reason"]}
    ]
    assert 5 <= found["expected"] <= 10  # of 6: votes of few rows are not sure

    guide = Path(__file__).parents[3] / "docs" / "guide" / "checking.md"
    documented = set(re.findall("`([a-z_]+)`", guide.read_text().partition("## The JSON")[2]))
    inside = {*found["table"], *found["rows"][0], *found["twins"], *found["far"]["first"][0]}
    assert {*found, *inside} <= documented

    page = (here / "grain.html").read_text()
    assert found == document_in(here / "grain.html")
    assert found["sentences"][0] in page.partition("<script")[0]


@pytest.mark.long
def test_rows_are_numbered_as_in_the_file(here, capsys):
    """Empty rows among them count; they have no label."""
    lines = (here / "grain.csv").read_text().splitlines()
    lines[3:3] = [",,,,,", ",,,,,"]
    (here / "gaps.csv").write_text("\n".join(lines) + "\n")
    assert main(["check", "gaps.csv", "--target", "kind", "-q", "--rows", "6"]) == 0
    rows = {int(line[0]) for line in grid(capsys.readouterr().out)}
    assert rows == {row + 2 for row in [*FLIPPED, 90]}
    frame = pd.read_csv("gaps.csv", skip_blank_lines=False)
    assert frame["plot"][92] == "plot 90"


@pytest.mark.long
def test_a_table_without_wrong_labels(here, capsys, frame):
    clean = frame.iloc[:N].copy()
    clean["kind"] = NAMES[np.arange(N) % 3]
    clean.drop(columns="plot").to_csv("clean.csv", index=False)
    assert main(["check", "clean.csv", "--target", "kind"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"No label is likely to be wrong: expect 0\.\d wrong labels among 90\.", out)
    assert "twins" not in out
    assert "nearest rows" not in out
    assert main(["check", "clean.csv", "--target", "kind", "--rows", "3"]) == 0
    assert len(grid(capsys.readouterr().out)) == 3


@pytest.mark.long
def test_an_upper_bound_is_called_so(here, capsys):
    """Where labels are noise, none is known to be wrong."""
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    noise.assign(kind=rng.choice(["x", "y"], 80)).to_csv("noise.csv", index=False)
    assert main(["check", "noise.csv", "--target", "kind", "-q", "--json", "n.json"]) == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(
        r"At most about \d+ of 80 labels are wrong, and probably far fewer, as .*: even", text
    )
    assert "probably wrong" not in " ".join(json.loads((here / "n.json").read_text())["sentences"])


@pytest.mark.parametrize("factor", [1, 100])
def test_numbers_are_refused_in_a_line(factor, here, capsys):
    """Whole prices, too: nearly every row would be a class of its own."""
    rng = np.random.default_rng(0)
    price = np.round(np.exp(rng.normal(8, 1, 300)), 1 if factor == 1 else 0) * factor
    pd.DataFrame({"size": rng.normal(size=300), "price": price}).to_csv("p.csv", index=False)
    assert main(["check", "p.csv", "--target", "price"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nearkin: p.csv: 'price' holds numbers (")
    assert "nearkin compare with --task regression predicts numbers" in line


@pytest.mark.long
@pytest.mark.parametrize("events", [True, False])
def test_rare_events_are_not_called_errors(events, here, capsys):
    """Rows of a rare class among the others, by chance; or errors in the labels of all classes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 12 == 0
    if not events:
        y = np.arange(300) % 2 == 0
        X[:, 0] += 8 * y
        y[rng.choice(300, 20, replace=False)] ^= True
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.assign(left=np.where(y, "yes", "no")).to_csv("r.csv", index=False)
    outputs = ["--json", "r.json", "--report", "r.html"]
    assert main(["check", "r.csv", "--target", "left", *outputs, "-q"]) == 0
    said = "are of the class yes (" in capsys.readouterr().out
    assert said == ("rather than errors." in (here / "r.json").read_text()) == events
    assert ("rather than errors." in (here / "r.html").read_text()) == events


@pytest.mark.long
def test_groups_and_unlabelled_rows(here, capsys, frame):
    cells = frame.assign(field=np.arange(91) // 7)
    cells.loc[5::10, "kind"] = "unknown"
    cells.to_csv("fields.csv", index=False)
    options = ["--groups", "field", "--unlabelled", "unknown", "--json", "f.json"]
    assert main(["check", "fields.csv", "--target", "kind", *options]) == 0
    found = json.loads((here / "f.json").read_text())
    assert found["table"]["labelled"] == 82
    assert found["table"]["groups"] == 13
    assert {one["row"] for one in found["rows"]} == {*cells.index[cells["kind"] != "unknown"]}
    field = cells["field"]
    for one in found["rows"]:
        assert all(field[near["row"]] != field[one["row"]] for near in one["neighbors"])


@pytest.mark.long
def test_a_column_that_predicts_the_target_is_named(here, capsys, frame):
    frame.assign(code=frame["kind"].str[0]).to_csv("leak.csv", index=False)
    assert main(["check", "leak.csv", "--target", "kind", "--json", "leak.json"]) == 0
    assert "suspicious: code" in capsys.readouterr().out
    found = json.loads((here / "leak.json").read_text())
    assert [one["column"] for one in found["table"]["suspicious"]] == ["code"]


@pytest.mark.long
def test_where_classes_overlap_the_headline_is_an_upper_bound(here, capsys):
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=160)
    rows = pd.DataFrame(rng.normal(size=(160, 3)) + kind[:, None] / 2, columns=[*"abc"])
    rows.assign(kind=np.array(["x", "y"])[kind]).to_csv("overlap.csv", index=False)
    assert main(["check", "overlap.csv", "--target", "kind", "-q"]) == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(r"At most about \d+ of 160 labels are wrong, and probably far fewer, as", text)
    assert "are probably wrong" not in text


@pytest.mark.slow
def test_line_breaks_in_names_are_not_printed(here, capsys, frame):
    """The names that are printed are understood, too."""
    names = {"height": "height\n(cm)", "plot": "plot\nof land", "kind": "kind\r\nof grain"}
    broken = frame.rename(columns=names)
    broken["kind\r\nof grain"] = frame["kind"].replace("rye", "winter\n rye")
    broken.to_parquet("broken.parquet")
    options = ["--target", "kind of grain", "--json", "broken.json"]
    assert main(["check", "broken.parquet", *options]) == 0
    out = capsys.readouterr().out
    assert re.search("ignored.*: plot of land\n", out)
    assert "features but not in kind of grain: 2 rows in 1 group: 8 (winter rye) and 90" in out
    assert re.search(r"Far from all others .* height \(cm\)\)\n", out)
    assert len(grid(out)) == 10
    found = json.loads((here / "broken.json").read_text())
    assert found["table"]["target"] == "kind\r\nof grain"


@pytest.mark.slow
def test_rows_that_stand_out_are_printed(here, capsys, monkeypatch):
    def issues(*args, **options):
        found = label_issues(*args, **options)
        of_rows = np.where(np.arange(len(found.rows)) < 12, 0.95, 0.3)
        return replace(found, probabilities=of_rows)

    monkeypatch.setattr("nearkin.app.tables.check.label_issues", issues)
    assert main(["check", "grain.csv", "--target", "kind"]) == 0
    out = capsys.readouterr().out
    assert "look at the first 12, which stand out." in out
    assert len(grid(out)) == 12
