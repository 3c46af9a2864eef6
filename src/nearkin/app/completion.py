"""The scripts by which shells complete the command; what they have in common is shtab's."""

from __future__ import annotations

from shlex import join, quote
from typing import Any

from ..evaluation import TASKS, all_methods
from .options import COMMANDS, PARSER
from .places import BUNDLED

FILES = ("ADAPTER", "FILE", "MODEL", "OUT", "VECTORS")  # what options and arguments call the files that they take
# How a script calls its functions for tables (files and bundled sets) and for methods with commas between them.
TABLES, METHODS = (
    {"bash": name, "zsh": name, "fish": f"({name})"} for name in ("_nearkin_table_files", "_nearkin_methods")
)
FUNCTIONS = {
    "bash": """\
_nearkin_table_files() {{
  compgen -f -- "$1"
  compgen -W {tables} -- "$1"
}}
_nearkin_methods() {{
  local last="${{1##*,}}" name
  for name in {escaped}; do
    if [[ "$name" == "$last"* ]]; then echo "${{1%"$last"}}$name"; fi
  done
}}
""",
    "zsh": """\
_nearkin_table_files() {{ _alternative 'files:file:_files' 'sets:bundled set:('{tables}')' }}
_nearkin_methods() {{ _values -s , method {methods} }}
""",
    "fish": """\
function _nearkin_table_files
  __fish_complete_path (commandline -ct)
  string split ' ' {tables}
end
function _nearkin_methods
  __fish_complete_list , 'string split , "{commas}"'
end
""",
}


def script(shell: str) -> str:
    """Return what a shell has to read."""
    import shtab

    for parser in COMMANDS.choices.values():
        for action in parser._actions:
            completed: Any = {"table": TABLES, "methods": METHODS}.get(action.dest)
            completed = shtab.FILE if action.metavar in FILES else completed
            if completed:
                action.complete = completed  # type: ignore[attr-defined] # where shtab looks for it
    names = list(
        dict.fromkeys(m.name.lower() for task in TASKS for m in all_methods(task, semi_supervised=True, balanced=True))
    )
    functions = FUNCTIONS[shell].format(
        tables=quote(" ".join(BUNDLED)),
        methods=join(names),
        escaped=join(name.replace(" ", "\\ ") for name in names),
        commas=",".join(names),
    )
    return str(shtab.complete(PARSER, shell, preamble=functions))
