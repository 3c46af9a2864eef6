"""The `nearkin` command, built on the library, which does not depend on it."""
