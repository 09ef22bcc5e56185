// What Mermaid's own parser and Graphviz read of two graphs, given as JSON on standard input.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/x.js`);
const load = async (path) => import(pathToFileURL(`${process.argv[2]}/node_modules/${path}`));
const { JSDOM } = require("jsdom");
globalThis.window = new JSDOM("").window;
globalThis.document = window.document;
const mermaid = (await load("mermaid/dist/mermaid.core.mjs")).default;
const { instance } = await load("@viz-js/viz/dist/viz.js");
const given = JSON.parse(readFileSync(0, "utf8"));
await mermaid.parse(given.mermaid);
const { db } = await mermaid.mermaidAPI.getDiagramFromText(given.mermaid);
const drawn = (await instance()).renderJSON(given.dot);
console.log(
  JSON.stringify({
    mermaid: [...db.getVertices().values()].map((each) => each.text),
    arrows: db.getEdges().length,
    dot: drawn.objects.map((each) => each.label),
    edges: drawn.edges.length,
  }),
);
