"""Write a TypedDict for each record, as `decode_one` returns it and `encode_one` takes it."""

from __future__ import annotations

import itertools
import keyword
import re
from typing import Final

from schemactl.codegen.spark_types import (
    PYTHON_TYPES,
    Atomic,
    Decimal,
    SparkArray,
    SparkMap,
    SparkType,
    Struct,
    literal,
)

_TYPE_MODULES: Final = {
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "typing": ("Any", "Literal", "TypedDict"),
}
"""The types that need an import, by their modules."""

_RESERVED_NAMES: Final = {
    *PYTHON_TYPES.values(),
    *("Any", "Decimal", "Literal", "TypedDict", "dict", "list", "annotations"),
    *("KeyValue", "Kind", "Kinds", "Numbers", "Options", "SCHEMA", "Schema", "TargetNumbers", "Topic"),
}
"""Names of a module that no record may have."""


class RowTypes:
    """The row types of one module.

    Attributes:
        definitions: the text of each record's TypedDict, after the types that it uses.
    """

    def __init__(self, variable: str) -> None:
        """Create the types of a module that has a variable of this name."""
        self.definitions: list[str] = []
        self._names_by_record: dict[str, str] = {}
        self._imports: set[str] = set()
        self._reserved_names = {*_RESERVED_NAMES, variable}

    def render(self, spark_type: SparkType, *, nullable: bool, place: str = "Row") -> str:
        """Return the type of a value; `place` is the name of a record without a name."""
        annotation = self._annotate(spark_type, place)
        return f"{annotation} | None" if nullable and annotation != "None" else annotation

    def reserve_name(self, name: str) -> str:
        """Return the name of a class that no record has, as close to `name` as possible."""
        words = re.sub(r"\W", "_", name, flags=re.ASCII).split("_")
        name = "".join(word[:1].upper() + word[1:] for word in words) or "Record"
        name = f"_{name}" if name[0].isdigit() else name
        candidates = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
        free_name = next(
            candidate
            for candidate in candidates
            if candidate not in self._reserved_names and not keyword.iskeyword(candidate)
        )
        self._reserved_names.add(free_name)
        return free_name

    def make_imports(self) -> str:
        """Return the import statements of the types."""
        used_names = {*self._imports, *(["TypedDict"] if self.definitions else [])}
        imports = {module: [name for name in names if name in used_names] for module, names in _TYPE_MODULES.items()}
        return "".join(f"from {module} import {', '.join(names)}\n" for module, names in imports.items() if names)

    def use(self, name: str) -> str:
        """Return `name`, and import it."""
        self._imports.add(name)
        return name

    def _annotate(self, spark_type: SparkType, place: str) -> str:
        match spark_type:
            case Atomic(symbols=symbols) if symbols:
                return f"{self.use('Literal')}[{', '.join(map(literal, symbols))}]"
            case Atomic(name):
                return self.use(PYTHON_TYPES[name])
            case Decimal(is_int=is_int):
                return self.use("int" if is_int else "Decimal")
            case SparkArray(element, contains_null):
                return f"list[{self.render(element, nullable=contains_null, place=place)}]"
            case SparkMap(value, contains_null, key):
                return f"dict[{self._annotate(key, place)}, {self.render(value, nullable=contains_null, place=place)}]"
            case Struct():
                return self._name_record(spark_type, place)

    def _name_record(self, record: Struct, place: str) -> str:
        """Return the name of a record's TypedDict, which is defined at the first use."""
        # Structs are equal regardless of their names, which count here, at every depth.
        key = repr(record)
        if key not in self._names_by_record:
            name = self.reserve_name(record.name or place)
            types = {
                field.name: self.render(field.type, nullable=field.nullable, place=f"{name}_{field.name}")
                for field in record.fields
            }
            self._names_by_record[key] = name
            if all(map(self._is_attribute_name, types)):
                attributes = "".join(f"    {field}: {annotation}\n" for field, annotation in types.items())
                definition = f"class {name}(TypedDict):\n" + (attributes or "    pass\n")
            else:
                items = "".join(f"        {literal(field)}: {annotation},\n" for field, annotation in types.items())
                definition = f'{name} = TypedDict(\n    "{name}",\n    {{\n{items}    }},\n)\n'
            self.definitions.append(definition)
        return self._names_by_record[key]

    def _is_attribute_name(self, name: str) -> bool:
        """Return whether a class can have an attribute of this name, which neither hides a type nor is mangled."""
        return (
            name.isascii()
            and name.isidentifier()
            and not keyword.iskeyword(name)
            and not name.startswith("__")
            and name not in self._reserved_names
        )
