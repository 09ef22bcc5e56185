"""The Python types of a topic's values: a TypedDict for each record, as `decode_one` gives them and `encode_one` takes them."""

from __future__ import annotations

import itertools
import keyword
import re
from typing import Final

from schemactl.columns.python_text import PYTHON_TYPES, literal
from schemactl.columns.spark_type import Atomic, Decimal, SparkArray, SparkField, SparkMap, SparkType, Struct

_MODULES: Final = {
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "typing": ("Any", "Literal", "TypedDict"),
}
"""Where the types come from that need an import."""

_TAKEN: Final = {
    *PYTHON_TYPES.values(),
    *("Any", "Decimal", "Literal", "TypedDict", "dict", "list", "annotations"),
    *("KeyValue", "Numbers", "Options", "SCHEMA", "Schema", "Topic"),
}
"""Names of a module that no record takes."""


class RowTypes:
    """The types of one module.

    Attributes:
        definitions: the text of each record's TypedDict, in an order in which all that one uses stands before it.
    """

    def __init__(self, taken: str) -> None:
        """Leave out the name `taken`, which the module gives something else."""
        self.definitions: list[str] = []
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self._taken = {*_TAKEN, taken}

    def of(self, spark_type: SparkType, *, nullable: bool, place: str = "Row") -> str:
        """Return the type of a value; `place` names a record that has no name of its own."""
        found = self._of(spark_type, place)
        return f"{found} | None" if nullable and found != "None" else found

    def imports(self) -> str:
        """Return the lines that import what the types need."""
        used = {*self._used, *(["TypedDict"] if self.definitions else [])}
        chosen = {module: [name for name in names if name in used] for module, names in _MODULES.items()}
        return "".join(
            f"from {module} import {', '.join(names)}\n" for module, names in chosen.items() if names
        )

    def use(self, name: str) -> str:
        """Return `name`, which will be imported."""
        self._used.add(name)
        return name

    def _of(self, spark_type: SparkType, place: str) -> str:
        match spark_type:
            case Atomic(symbols=symbols) if symbols:
                return f"{self.use('Literal')}[{', '.join(map(literal, symbols))}]"
            case Atomic(name):
                return self.use(PYTHON_TYPES[name])
            case Decimal(is_int=is_int):
                return self.use("int" if is_int else "Decimal")
            case SparkArray(element, contains_null):
                return f"list[{self.of(element, nullable=contains_null, place=place)}]"
            case SparkMap(value, contains_null, key):
                return f"dict[{self._of(key, place)}, {self.of(value, nullable=contains_null, place=place)}]"
            case Struct(fields):
                return self._record(spark_type, fields, place)

    def _record(self, record: Struct, fields: tuple[SparkField, ...], place: str) -> str:
        # Records are equal whatever they are called; here names count, at every depth.
        key = repr(record)
        if key not in self._names:
            name = self._new_name(record.name or place)
            types = {
                each.name: self.of(each.type, nullable=each.nullable, place=f"{name}_{each.name}")
                for each in fields
            }
            self._names[key] = name
            self.definitions.append(self._definition(name, types))
        return self._names[key]

    def _new_name(self, wanted: str) -> str:
        parts = re.sub(r"\W", "_", wanted, flags=re.ASCII).split("_")
        name = "".join(part[:1].upper() + part[1:] for part in parts) or "Record"
        name = f"_{name}" if name[0].isdigit() else name
        names = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
        found = next(each for each in names if each not in self._taken and not keyword.iskeyword(each))
        self._taken.add(found)
        return found

    def _definition(self, name: str, types: dict[str, str]) -> str:
        if all(map(self._is_plain, types)):
            return f"class {name}(TypedDict):\n" + (
                "".join(f"    {each}: {types[each]}\n" for each in types) or "    pass\n"
            )
        lines = "".join(f"        {literal(each)}: {kind},\n" for each, kind in types.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}    }},\n)\n'

    def _is_plain(self, name: str) -> bool:
        """Whether a class may have an attribute of that name that takes the place of no type, and is not mangled."""
        return (
            name.isascii()
            and name.isidentifier()
            and not keyword.iskeyword(name)
            and not name.startswith("__")
            and name not in self._taken
        )
