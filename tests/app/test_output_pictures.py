"""Pictures of labels in any script."""

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager, rcParams

from nearkin.app.cli import main
from nearkin.app.output import draw_displays
from nearkin.plotting import FeatureDisplay

NAMES = ["木材", "🐘 size", "länge"]
SQUARES = "no installed font has '木', '材', '🐘': drawn as squares"


def displays():
    return [FeatureDisplay(np.array([2.0, 1.0, 0.5]), NAMES, "NCA")]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a font with boxes for some letters."""

    def install(name, letters):
        pen = TTGlyphPen(None)
        pen.moveTo((0, 0))
        for corner in ((0, 700), (500, 700), (500, 0)):
            pen.lineTo(corner)
        pen.closePath()
        glyphs = {".notdef": pen.glyph(), "box": pen.glyph()}
        font = FontBuilder(1000, isTTF=True)
        font.setupGlyphOrder(list(glyphs))
        font.setupCharacterMap({ord(letter): "box" for letter in letters})
        font.setupGlyf(glyphs)
        font.setupHorizontalMetrics(dict.fromkeys(glyphs, (600, 0)))
        font.setupHorizontalHeader(ascent=800, descent=-200)
        font.setupNameTable({"familyName": name, "styleName": "Regular"})
        font.setupOS2()
        font.setupPost()
        font.save(tmp_path / f"{name}.ttf")
        monkeypatch.setattr(fonts, "ttflist", list(fonts.ttflist))
        fonts.addfont(tmp_path / f"{name}.ttf")

    fonts = font_manager.fontManager
    return install


@pytest.mark.slow
def test_letters_without_a_font_are_one_remark(tmp_path):
    assert draw_displays("t", displays(), tmp_path / "p.png") == [SQUARES]


@pytest.mark.long
def test_letters_are_drawn_in_the_fonts_that_have_them(tmp_path, installed):
    before = list(rcParams["font.family"])
    draw_displays("t", displays(), tmp_path / "squares.png")
    installed("Beasts", "🐘")
    installed("Trees", "木材")
    assert draw_displays("t", displays(), tmp_path / "p.png") == []
    assert (tmp_path / "p.png").read_bytes() != (tmp_path / "squares.png").read_bytes()
    assert rcParams["font.family"] == before


@pytest.mark.slow
def test_a_font_that_was_removed_is_none(tmp_path, installed):
    installed("Trees", "🐘木材")
    (tmp_path / "Trees.ttf").unlink()
    assert draw_displays("t", displays(), tmp_path / "p.png") == [SQUARES]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_a_comparison_of_names_without_a_font(tmp_path, monkeypatch, capsys, quiet):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = "".join(f"{rng.normal() + i % 2:.3f},{NAMES[i % 2]}\n" for i in range(40))
    (tmp_path / "木材🐘.csv").write_text(f"size,kind\n{rows}")
    words = [
        "compare",
        "木材🐘.csv",
        "--target",
        "kind",
        "--quick",
        "--methods",
        "PCA",
        "--no-references",
    ]
    assert main([*words, *quiet]) == 0
    out, err = capsys.readouterr()
    assert ("Picture: 木材🐘-nearkin.png" in out) == (SQUARES in out) == (not quiet)
    assert "Glyph" not in out + err
