// Command forms prints for each value its Go type, the definition of its field, and the payload that Pulsar's client writes.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

type value struct {
	F any `json:"f"`
}

func main() {
	at := time.Date(2024, 1, 2, 3, 4, 5, 678901000, time.UTC)
	one := 1
	for _, row := range []struct {
		goType     string
		definition string
		value      any
	}{
		{"bool", `"boolean"`, true},
		{"int32", `"int"`, int32(3)},
		{"int64", `"long"`, int64(math.MaxInt64)},
		{"float32", `"float"`, float32(1.5)},
		{"float64", `"double"`, 1e23},
		{"string", `"string"`, "text"},
		{"string", `{"type":"enum","name":"Level","symbols":["LOW","HIGH"]}`, "HIGH"},
		{"int", `{"type":"enum","name":"Level","symbols":["LOW","HIGH"]}`, 1},
		{"[]byte", `"bytes"`, []byte{1, 2, 255}},
		{"[2]byte", `{"type":"fixed","name":"F","size":2}`, [2]byte{1, 254}},
		{"[]int32", `{"type":"array","items":"int"}`, []int32{1, 2}},
		{"[]int32 (nil)", `{"type":"array","items":"int"}`, []int32(nil)},
		{"map[string]int32", `{"type":"map","values":"int"}`, map[string]int32{"a": 1}},
		{"*int", `["null","int"]`, &one},
		{"*int (nil)", `["null","int"]`, (*int)(nil)},
		{"map[string]any", `["null","int","string"]`, map[string]any{"int": 5}},
		{"int64", `{"type":"long","logicalType":"timestamp-millis"}`, at.UnixMilli()},
		{"time.Time", `{"type":"long","logicalType":"timestamp-millis"}`, at},
		{"time.Time", `{"type":"long","logicalType":"timestamp-micros"}`, at},
		{"time.Time", `{"type":"long","logicalType":"local-timestamp-millis"}`, at},
		{"int32", `{"type":"int","logicalType":"date"}`, int32(19724)},
		{"time.Time", `{"type":"int","logicalType":"date"}`, at},
		{"int32", `{"type":"int","logicalType":"time-millis"}`, int32(3723678)},
		{"time.Duration", `{"type":"int","logicalType":"time-millis"}`, 3723 * time.Second},
		{"time.Duration", `{"type":"long","logicalType":"time-micros"}`, 50 * time.Millisecond},
		{"float64", `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, 12.5},
		{"json.Number", `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, json.Number("12.50")},
		{"*big.Rat", `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`, big.NewRat(25, 2)},
		{"string", `{"type":"string","logicalType":"uuid"}`, "00000000-0000-0001-0000-000000000002"},
	} {
		definition := `{"type":"record","name":"R","fields":[{"name":"f","type":` + row.definition + `}]}`
		payload, err := pulsar.NewJSONSchema(definition, nil).Encode(value{row.value})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\t%s\t%s\n", row.goType, row.definition, payload)
	}
}
