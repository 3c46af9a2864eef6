"""The command: `nearkin`, or `python -m nearkin`."""

import sys

from .app import endings


def main() -> int:
    """Run the command and return its exit code."""
    endings.begin()
    from .app import cli  # a signal that comes meanwhile is one line

    try:
        return endings.finish(cli.main())
    except SystemExit as end:  # of argparse
        raise SystemExit(endings.finish(end.code)) from None


if __name__ == "__main__":
    sys.exit(main())
