"""Diagnostics, fixes, explanations and completions for editors. Only `server` knows the protocol."""
