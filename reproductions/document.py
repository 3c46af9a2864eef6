"""The record of all experiments: a Markdown file, of which a run renews the sections of what it
ran.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .experiment import Experiment
from .registry import EXPERIMENTS

HEAD = """\
# Reproductions of the papers

Every table and figure of the five papers for which data are available, written by `python -m reproductions`. Lists say
what the paper leaves open or cannot be had. Accuracies are percentages, means over random splits; ± is the standard
deviation over these, in brackets is the paper's figure, z their difference in standard deviations of the paper's
splits: up to 1 it is reproduced.
"""


def heading(experiment: Experiment, command: str) -> str:
    """Return how the section of an experiment begins: how it was run, and what the paper leaves
    open.
    """
    settings = "\n".join(f"- {setting}" for setting in experiment.settings)
    return f"## {experiment.title}\n\n    {command}\n\n{settings}"


def renewed(path: Path, sections: Mapping[str, str], *, keep_older: bool = False) -> str:
    """Return the document with these sections in the place of older ones, or of none, in the order
    of the papers.
    """
    older = _sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = {**sections, **older} if keep_older else {**older, **sections}
    parts = [f"<!-- {name} -->\n\n{known[name]}" for name in EXPERIMENTS if name in known]
    return "\n\n".join([HEAD.strip(), *parts]) + "\n"


def _sections(text: str) -> dict[str, str]:
    pieces = re.split(r"^<!-- ([a-z0-9-]+) -->$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
