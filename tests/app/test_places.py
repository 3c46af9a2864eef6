"""What is known of a table before anything is loaded."""

from nearkin.app import cli, places
from nearkin.comparison import TASKS
from nearkin.datasets import BUNDLED


def test_what_is_known_before_anything_is_loaded():
    assert places.BUNDLED == BUNDLED
    assert list(TASKS) == list(cli.TASKS)
