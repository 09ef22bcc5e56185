"""Statements on the pages for Java and Go teams are true of the clients."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import brokers
import pytest
from language_reader_table import PROGRAM

from schemactl.codec import Definition
from schemactl.codec.json_names import Names, collect_names, find_absent_fields, get_json_schema

DOCS = Path(__file__).parents[2] / "docs"

PAGE_TEST = """package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

%s

type values struct {
	At    time.Time      `json:"at"`
	Total *big.Rat       `json:"total"`
	Lines []int          `json:"lines"`
	Names map[string]int `json:"names"`
}

type nullable struct {
	X *big.Rat `avro:"x"`
}

func main() {
	text := `{"type": "record", "name": "R", "fields": [{"name": "x", "type": "double", "default": 0.0}]}`
	schema, err := NewRegisteredSchema(text)
	fmt.Println(err, schema.GetSchemaInfo().Schema == text, schema.AvroSchema.GetSchemaInfo().Schema == text)
	payload, err := schema.Encode(map[string]any{"x": 1.5})
	fmt.Println(err, len(payload))
	message, err := json.Marshal(values{At: time.Unix(0, 0).UTC(), Total: big.NewRat(5, 4)})
	fmt.Println(err, string(message))
	decimals, err := pulsar.NewAvroSchemaWithValidation(
		`{"type": "record", "name": "N", "fields": [{"name": "x", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}]}]}`, nil)
	fmt.Println(err)
	var value nullable
	fmt.Println(decimals.Decode([]byte{2, 2, 125}, &value), value.X.RatString())
	for _, schema := range []pulsar.Schema{pulsar.NewStringSchema(nil), pulsar.NewInt8Schema(nil), pulsar.NewInt64Schema(nil), pulsar.NewDoubleSchema(nil)} {
		fmt.Printf("%%q ", schema.GetSchemaInfo().Schema)
	}
	pulsar.NewAvroSchema(`{"type": "record", "name": "R", "fields": [{"name": "größe", "type": "int"}]}`, nil)
	fmt.Println("the process goes on")
}
"""


@pytest.mark.slow
def test_go_code_and_statements_of_the_page(go_program: Path, tmp_path: Path) -> None:
    assert go_program.exists()
    [code] = re.findall(r"```go\n(.*?)```", (DOCS / "how-to/clients.md").read_text(encoding="utf-8"), re.DOTALL)
    for name in ("go.mod", "go.sum"):
        shutil.copy(PROGRAM / name, tmp_path / name)
    (tmp_path / "main.go").write_text(PAGE_TEST % code)
    done = subprocess.run(["go", "run", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "<nil> true false",
        "<nil> 8",
        '<nil> {"at":"1970-01-01T00:00:00Z","total":"5/4","lines":null,"names":null}',
        "<nil>",
        # The value is 1.25.
        "<nil> 0",
        '"" "" "" "" ',
    ], done.stderr


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_the_getters_of_a_java_bean_name_its_json(release: str) -> None:
    jars = brokers.find_jars(brokers.VERSIONS[release])
    program = str(Path(__file__).parent / "BeanNames.java")
    done = subprocess.run(["nice", "java", "-cp", f"{jars}/*", program], capture_output=True, text=True, check=True)
    definition, message = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert {field["name"] for field in json.loads(definition)["fields"]} == {"isActive", "URL", "customerId"}
    assert json.loads(message).keys() == {"active", "url", "customer_id"}
    schema = get_json_schema(Definition("JSON", definition))
    assert schema is not None
    names: Names = {}
    collect_names(schema, [message.encode()], names)
    [absent] = find_absent_fields(schema, names)
    assert {*absent.fields} == {"isActive", "URL", "customerId"}
    assert {*absent.unknown} == {"active", "url", "customer_id"}
