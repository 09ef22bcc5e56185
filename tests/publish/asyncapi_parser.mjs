// What AsyncAPI's own parser says of a document: node asyncapi_parser.mjs FOLDER-OF-NODE_MODULES FILE
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const [folder, file] = process.argv.slice(2);
const require = createRequire(path.join(folder, "node_modules", "x"));
const { Parser } = require("@asyncapi/parser");
const parser = new Parser();
parser.registerSchemaParser(require("@asyncapi/avro-schema-parser").AvroSchemaParser());
parser.registerSchemaParser(require("@asyncapi/protobuf-schema-parser").ProtoBuffSchemaParser());
const { document, diagnostics } = await parser.parse(readFileSync(file, "utf8"));
console.log(
  JSON.stringify({
    diagnostics: diagnostics.map(({ severity, code, message, path }) => ({ severity, code, message, path })),
    channels: document ? document.channels().all().length : 0,
    schemas: document ? document.components().schemas().all().length : 0,
  }),
);
