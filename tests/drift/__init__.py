"""Tests of drift."""
