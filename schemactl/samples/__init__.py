"""Sample messages: plausible ones of a version, and the recorded ones beside declarations."""
