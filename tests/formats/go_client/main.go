// A reader with Pulsar's Go client: one request in JSON a line on standard input, one answer a line on standard output.
//
//	{"type": "AVRO", "writer": TEXT, "reader": TEXT, "payloads": [HEX, ...]}   payloads of the writer, read into structs of the reader
//	{"print": TEXT}                                                            the definition that a producer or consumer registers
//	{"has": 8}                                                                 whether the client has a schema of the type with this number
//	{"encode": "INT16", "number": 1}                                           a message of a number
//
// Readers have the types that avrogen of github.com/hamba/avro derives from a definition; `strict` has int32 for int, as
// `avrogen -strict-types` does. Readers of JSON have numbers for times, and json.Number for decimals.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/hamba/avro/v2"
	log "github.com/sirupsen/logrus"
)

type request struct {
	Type     string
	Writer   string
	Reader   string
	Strict   bool
	Payloads []string
	Print    string
	Has      *int
	Encode   string
	Number   int64
}

type answer struct {
	Read  string `json:"read,omitempty"`
	Error string `json:"error,omitempty"`
	Text  string `json:"text,omitempty"`
}

func main() {
	log.SetOutput(io.Discard)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		var result any
		switch {
		case asked.Print != "":
			result = printAgain(asked.Print)
		case asked.Has != nil:
			_, err := pulsar.NewSchema(pulsar.SchemaType(*asked.Has), []byte(`"string"`), nil)
			result = answer{Text: fmt.Sprint(err == nil)}
		case asked.Encode != "":
			result = encode(asked.Encode, asked.Number)
		default:
			answers := []answer{}
			for _, payload := range asked.Payloads {
				answers = append(answers, read(asked, payload))
			}
			result = answers
		}
		if err := output.Encode(result); err != nil {
			panic(err)
		}
	}
}

func printAgain(text string) answer {
	schema, err := pulsar.NewAvroSchemaWithValidation(text, nil)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Text: schema.GetSchemaInfo().Schema}
}

func encode(name string, number int64) answer {
	var payload []byte
	var err error
	switch name {
	case "INT8":
		payload, err = pulsar.NewInt8Schema(nil).Encode(int8(number))
	case "INT16":
		payload, err = pulsar.NewInt16Schema(nil).Encode(int16(number))
	case "INT32":
		payload, err = pulsar.NewInt32Schema(nil).Encode(int32(number))
	case "INT64":
		payload, err = pulsar.NewInt64Schema(nil).Encode(number)
	case "FLOAT":
		payload, err = pulsar.NewFloatSchema(nil).Encode(float32(number))
	case "DOUBLE":
		payload, err = pulsar.NewDoubleSchema(nil).Encode(float64(number))
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Text: hex.EncodeToString(payload)}
}

func read(asked request, text string) (result answer) {
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Error: fmt.Sprint("panic: ", reason)}
		}
	}()
	payload, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	parsed, err := avro.ParseWithCache(asked.Reader, "", &avro.SchemaCache{})
	if err != nil {
		return answer{Error: err.Error()}
	}
	value := reflect.New(typeOf(parsed, asked.Type == "JSON", asked.Strict))
	if asked.Type == "JSON" {
		// A consumer decodes JSON by the struct alone.
		err = (&pulsar.JSONSchema{}).Decode(payload, value.Interface())
	} else {
		// As message.GetSchemaValue does: with the schema of the version that the message carries.
		var schema *pulsar.AvroSchema
		if schema, err = pulsar.NewAvroSchemaWithValidation(asked.Writer, nil); err == nil {
			err = schema.Decode(payload, value.Interface())
		}
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Read: render(value.Elem())}
}

func typeOf(schema avro.Schema, isJSON bool, isStrict bool) reflect.Type {
	inner := func(schema avro.Schema) reflect.Type { return typeOf(schema, isJSON, isStrict) }
	switch schema := schema.(type) {
	case *avro.RefSchema:
		return inner(schema.Schema())
	case *avro.RecordSchema:
		fields := []reflect.StructField{}
		for index, field := range schema.Fields() {
			tag := fmt.Sprintf("avro:%q json:%q", field.Name(), field.Name())
			fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", index), Type: inner(field.Type()), Tag: reflect.StructTag(tag)})
		}
		return reflect.StructOf(fields)
	case *avro.ArraySchema:
		return reflect.SliceOf(inner(schema.Items()))
	case *avro.MapSchema:
		return reflect.MapOf(reflect.TypeFor[string](), inner(schema.Values()))
	case *avro.UnionSchema:
		if !schema.Nullable() {
			return reflect.TypeFor[any]()
		}
		for _, branch := range schema.Types() {
			if branch.Type() != avro.Null {
				return reflect.PointerTo(inner(branch))
			}
		}
	case *avro.EnumSchema:
		return reflect.TypeFor[string]()
	case *avro.FixedSchema:
		if isJSON {
			return leafOf("bytes", schema.Logical(), isJSON, isStrict)
		}
		if logical := schema.Logical(); logical != nil && logical.Type() != avro.UUID {
			return leafOf("fixed", logical, isJSON, isStrict)
		}
		return reflect.ArrayOf(schema.Size(), reflect.TypeFor[byte]())
	case *avro.PrimitiveSchema:
		return leafOf(schema.Type(), schema.Logical(), isJSON, isStrict)
	}
	return reflect.TypeFor[any]()
}

func leafOf(kind avro.Type, logical avro.LogicalSchema, isJSON bool, isStrict bool) reflect.Type {
	if logical != nil {
		switch logical.Type() {
		case avro.Decimal:
			if isJSON {
				return reflect.TypeFor[json.Number]()
			}
			return reflect.TypeFor[*big.Rat]()
		case avro.Duration:
			if !isJSON {
				return reflect.TypeFor[avro.LogicalDuration]()
			}
		case avro.TimeMillis, avro.TimeMicros:
			if !isJSON {
				return reflect.TypeFor[time.Duration]()
			}
		case avro.Date, avro.TimestampMillis, avro.TimestampMicros, avro.LocalTimestampMillis, avro.LocalTimestampMicros:
			if !isJSON {
				return reflect.TypeFor[time.Time]()
			}
		}
	}
	switch kind {
	case avro.Boolean:
		return reflect.TypeFor[bool]()
	case avro.Int:
		if isStrict {
			return reflect.TypeFor[int32]()
		}
		return reflect.TypeFor[int]()
	case avro.Long:
		return reflect.TypeFor[int64]()
	case avro.Float:
		return reflect.TypeFor[float32]()
	case avro.Double:
		return reflect.TypeFor[float64]()
	case avro.String:
		return reflect.TypeFor[string]()
	case avro.Bytes:
		return reflect.TypeFor[[]byte]()
	}
	return reflect.TypeFor[any]()
}

// render returns a value as text, so that equal values have equal texts.
func render(value reflect.Value) string {
	switch known := value.Interface().(type) {
	case time.Time:
		return known.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return known.String()
	case *big.Rat:
		if known == nil {
			return "null"
		}
		return known.RatString()
	case big.Rat:
		return known.RatString()
	case json.Number:
		if rat, ok := new(big.Rat).SetString(known.String()); ok {
			return rat.RatString()
		}
		return known.String()
	case []byte:
		return hex.EncodeToString(known)
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return "null"
		}
		return render(value.Elem())
	case reflect.Interface:
		// The reader has to know the type that it gets.
		if value.IsNil() {
			return "null"
		}
		return fmt.Sprintf("%s(%s)", value.Elem().Type(), render(value.Elem()))
	case reflect.Struct:
		parts := []string{}
		for index := range value.NumField() {
			name := value.Type().Field(index).Tag.Get("avro")
			parts = append(parts, name+":"+render(value.Field(index)))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Map:
		parts := []string{}
		for _, key := range value.MapKeys() {
			parts = append(parts, key.String()+":"+render(value.MapIndex(key)))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Array:
		parts := []string{}
		for index := range value.Len() {
			parts = append(parts, render(value.Index(index)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.String:
		return fmt.Sprintf("%q", value.String())
	}
	return fmt.Sprint(value.Interface())
}
