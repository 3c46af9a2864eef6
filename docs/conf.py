"""How the documentation is built: `sphinx-build -q -W docs docs/_build/html`.

The pages need no network, neither to be built nor to be read: formulas become MathML, which
browsers draw by themselves, in a font that lies in `_static/fonts`, and the theme brings its fonts
and its search along.
"""

import json
import os
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator
from sphinx_gallery.sorting import ExplicitOrder

os.environ["OMP_NUM_THREADS"] = "1"  # the examples are small: threads only wait for each other

import nearkin

project = "nearkin"
author = "The nearkin developers"
copyright = "2026, the nearkin developers"
version = release = nearkin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"  # of blocks that name none: formulas
default_role = "py:obj"  # `NCA` links to its page, `X` is set as code

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc states the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": ExplicitOrder(
        [
            f"../examples/{name}"
            for name in ("tables", "vectors", "few_labels", "pictures", "methods", "production")
        ]
    ),
    "doc_module": ("nearkin",),
    "backreferences_dir": "gallery/backreferences",
    "reference_url": {"nearkin": None},
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "nearkin"
html_static_path = ["_static"]
html_css_files = ["nearkin.css"]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not copied
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    # Docstrings, output of the command and tables of measurements take the width of the page.
    "secondary_sidebar_items": {
        page: ["page-toc"] for page in ("guide/*", "theory/*", "troubleshooting")
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}


def mathml(formula: str, *, as_block: bool = False) -> str:
    """Return a formula as MathML, the bars of a norm as high as a letter: browsers would stretch
    one of the two.
    """
    text = tex2mathml(formula.strip(), as_block=as_block)
    text = text.replace('<mo class="mathopen">‖</mo>', '<mo form="prefix" stretchy="false">‖</mo>')
    return text.replace("<mo>‖</mo>", '<mo form="postfix" stretchy="false">‖</mo>')


def inline_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display_math(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own in a box that scrolls if the screen is narrow."""
    self.body.append(f'<div class="math-block">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def mark_formulas(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the indented formulas of a docstring letter by letter: a `::` before each makes a
    literal block of it.
    """
    marked: list[str] = []
    indent = 0  # of the paragraph before
    for line in lines:
        here = len(line) - len(line.lstrip())
        if line.strip():
            if here > indent and marked and not marked[-1].strip():
                marked += [" " * indent + "::", ""]
            indent = here
        marked.append(line)
    lines[:] = marked


def is_inherited(
    app: Sphinx, what: str, name: str, member: object, skip: bool, options: object
) -> bool | None:
    """Leave out the methods of scikit-learn's base classes, which its own documentation describes."""
    module = getattr(member, "__module__", None) or ""
    return True if not module.startswith("nearkin") and callable(member) else None


def add_texts(
    app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object
) -> None:
    """Give the page of the search its order, and the texts that it quotes."""
    if page == "search":
        for script in ("page_texts.js", "search.js"):
            app.add_js_file(script, loading_method="defer")


def text_of(paragraph: nodes.paragraph) -> str:
    """Return the words of a paragraph, without comments; none of the note above examples that they
    can be downloaded.
    """
    if "sphx-glr-download-link-note" in paragraph.parent["classes"]:
        return ""
    words = [
        text.astext()
        for text in paragraph.findall(nodes.Text)
        if not isinstance(text.parent, nodes.raw)
    ]
    return " ".join("".join(words).split())


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write the paragraphs of all pages into a script: a page that is read from a file must not
    fetch others.
    """
    if error is not None or app.builder.format != "html":
        return
    texts = {
        page: " ".join(map(text_of, app.env.get_doctree(page).findall(nodes.paragraph)))
        for page in app.env.found_docs
    }
    script = f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
    Path(app.outdir, "_static", "page_texts.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas, what is done to docstrings, and the search."""
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("autodoc-process-docstring", mark_formulas, priority=100)
    app.connect("autodoc-skip-member", is_inherited)
    app.connect("html-page-context", add_texts)
    app.connect("build-finished", write_texts)


html_math_renderer = "mathml"
