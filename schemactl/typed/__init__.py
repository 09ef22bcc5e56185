"""Classes whose annotations say what a message holds: dataclasses, pydantic models and attrs classes. Generated packages carry this along."""
