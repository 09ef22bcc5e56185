"""How does an editor get diagnostics, fixes, explanations and completions? `server` speaks the protocol, the rest does not know it."""
