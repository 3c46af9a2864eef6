"""The code in README and docs runs, block after block as a reader would paste it; links lead
somewhere.

Blocks that need what is not installed for the tests are marked `py` in place of `python`, and do
not run.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from benchmarks.tools.document import anchor
from nearkin.app.cli import main

ROOT = Path(__file__).parents[2]
PATHS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PATHS}
BLOCKS = {
    name: re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for name, text in PAGES.items()
}
QUICK = {"README.md", "docs/guide/kernels.md"}
LONG = {
    *(f"docs/start/{name}.md" for name in ("embeddings", "picture")),
    *(f"docs/guide/{name}.md" for name in ("embeddings", "many_rows", "networks", "pictures")),
    *(f"docs/guide/{name}.md" for name in ("python", "tables", "vector_databases")),
}


def tier(page):
    """Return the marks of a page by what its examples take."""
    if page in QUICK:
        return ()
    return pytest.mark.long if page in LONG else pytest.mark.slow


@pytest.mark.filterwarnings("ignore:faiss was imported before")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=tier(page), id=page) for page, blocks in BLOCKS.items() if blocks],
)
def test_python_examples(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pd = pytest.importorskip("pandas")
    if page == "docs/guide/networks.md":
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    if page == "docs/guide/vector_databases.md":
        write_adapters(pd)
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    names = {
        "X": X,
        "y": y,
        "X_train": X_train,
        "X_test": X_test,
        "y_train": y_train,
        "y_test": y_test,
    }
    names |= {"pairs": np.stack([X[:5], X[5:10]], axis=1), "X_new": X_test}
    names |= {"frame": pd.DataFrame(X_train), "labels": y_train, "new_frame": pd.DataFrame(X_test)}
    for block in BLOCKS[page]:
        exec(block, names)
    plt.close("all")


def write_adapters(pd):
    """Write what the commands of the page write."""
    for package in ("faiss", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    X, y = load_wine(return_X_y=True)
    pd.DataFrame({"embedding": list(X), "intent": y}).to_parquet("vectors.parquet")
    take = ["--sizes", "4", "--take", "adapter 4", "--quiet"]
    assert (
        main(
            [
                "adapt",
                "vectors.parquet",
                "--label",
                "intent",
                "--save",
                "adapter.safetensors",
                *take,
            ]
        )
        == 0
    )
    assert main(["transform", "adapter.safetensors", "vectors.parquet", "-o", "short.parquet"]) == 0
    for target in ("npz", "onnx"):
        assert (
            main(["export", "adapter.safetensors", "--to", target, "-o", f"adapter.{target}"]) == 0
        )


def anchors(text):
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    for target, section in re.findall(
        r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text(encoding="utf-8")
    ):
        page = path.parent / target if target else path
        assert page.exists(), target
        assert not section or section in anchors(page.read_text(encoding="utf-8")), (
            f"{target}#{section}"
        )


@pytest.mark.parametrize("page", PAGES)
def test_pages_install_from_the_checkout(page):
    """`pip install nearkin` finds nothing as long as nothing is published."""
    assert not re.findall(r"pip install [\"']?nearkin", PAGES[page])


def test_the_gallery_shows_the_whole_text_of_an_example():
    """sphinx-gallery drops what follows `# %%` in its line."""
    examples = {
        path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("examples/*/*.py")
    }
    assert examples
    assert [
        name for name, text in examples.items() if re.search("^# %%.", text, re.MULTILINE)
    ] == []


def test_messages_are_quoted_as_they_are():
    """Every message that troubleshooting explains is one of the library, but for what stands for
    `...`.
    """
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", source)  # strings of several lines
    text = PAGES["docs/troubleshooting.md"].partition("## Messages")[2]
    headings = re.findall(r"^(`.*)\n: ", text, re.MULTILINE)
    assert len(headings) > 10
    for message in re.findall("`([^`]+)`", " ".join(headings)):
        assert all(part.strip() in source for part in message.split("...")), message


@pytest.mark.parametrize("page", PAGES)
def test_excerpts_of_the_code_are_found(page):
    """The lines between which a page shows the code stand in the file that it names."""
    for target, options in re.findall(
        r"^```{literalinclude} (.*)\n((?:^:.*\n)*)", PAGES[page], re.MULTILINE
    ):
        source = ((ROOT / page).parent / target).read_text(encoding="utf-8")
        for _, line in re.findall(r"^:(start|end)-at: (.*)$", options, re.MULTILINE):
            assert line in source, line
