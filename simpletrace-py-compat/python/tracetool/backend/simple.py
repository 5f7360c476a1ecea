"""How the `simple` backend records arguments."""

from simpletrace._events import is_string

__all__ = ["is_string"]
