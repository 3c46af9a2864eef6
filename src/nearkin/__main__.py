"""The command: `nearkin`, or `python -m nearkin`."""

import sys

from .app import endings


def main() -> int:
    """Run the command and return its exit code."""
    return endings.run(_command)


def _command() -> int:
    from .app.cli import main  # a signal during this import gives a one-line message

    return main()


if __name__ == "__main__":
    sys.exit(main())
