"""Tests of `serve`; a package, so that no other tests have its fixtures."""
