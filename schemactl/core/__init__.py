"""Define the types, errors and process functions that all packages share; imports no other package."""
