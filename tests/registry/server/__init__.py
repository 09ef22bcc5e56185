"""Tests of `serve`; a package, so that its fixtures are its own."""
