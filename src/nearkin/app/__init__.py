"""The `nearkin` command: a guest of the library, which does not know that it exists."""
