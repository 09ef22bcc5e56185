"use strict";
(() => {
  const MOST = 40;
  const root = document.body.dataset.root;
  const tools = document.querySelector(".tools");
  const search = tools.querySelector("input");
  const found = document.getElementById("found");
  const said = tools.querySelector("[role=status]");
  let index = [];
  let loading = null;

  const load = () => loading ??= new Promise((ready) => {
    const script = document.createElement("script");
    script.src = `${root}search.js`;
    script.onload = () => { index = prepared(window.schemactlIndex); ready(); };
    document.head.append(script);
  });

  // One line for each thing that can be found: its page, its name, what else is known of it, and its rank among equal matches.
  const prepared = ({ topics, types, namespaces, owners }) => {
    const lines = [];
    const counted = (count) => `${count} topic${count === 1 ? "" : "s"}`;
    for (const [url, name, owner, description, type, fields] of topics) {
      lines.push({ kind: "topic", url, name, more: [type, owner && `owner ${owner}`, description].filter(Boolean).join(", "), rank: 1 });
      fields.forEach(([field, type, doc], at) => lines.push({ kind: "field", url: `${url}#f${at}`, name: field, more: [`${type} in ${name}`, doc].filter(Boolean).join(", "), rank: 3 }));
    }
    for (const [url, name, count] of types) lines.push({ kind: "type", url, name, more: `used by ${counted(count)}`, rank: 2 });
    for (const [url, name, count] of namespaces) lines.push({ kind: "space", url, name, more: `namespace with ${counted(count)}`, rank: 0 });
    for (const [url, name, count] of owners) lines.push({ kind: "owner", url, name, more: `owns ${counted(count)}`, rank: 0 });
    for (const line of lines) { line.low = line.name.toLowerCase(); line.text = `${line.low} ${line.more.toLowerCase()}`; }
    return lines;
  };

  const score = (line, words) => {
    const last = line.low.split(/[/.]/).pop();
    const exact = words.some((word) => last === word) ? 0 : words.some((word) => line.low.includes(word)) ? 1 : 2;
    return exact * 10 + line.rank;
  };

  const show = async () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { found.hidden = true; found.replaceChildren(); said.textContent = ""; return; }
    await load();
    const hits = index.filter((line) => words.every((word) => line.text.includes(word)));
    hits.sort((one, other) => score(one, words) - score(other, words) || one.name.length - other.name.length);
    found.replaceChildren(...hits.slice(0, MOST).map((line) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = root + line.url;
      for (const [name, text] of [["kind", line.kind], ["", line.name], ["soft", line.more]]) {
        link.append(Object.assign(document.createElement("span"), { className: name, textContent: text }), " ");
      }
      item.append(link);
      return item;
    }));
    found.hidden = false;
    said.textContent = hits.length ? `${hits.length} found` : "nothing found";
    if (!hits.length) found.append(Object.assign(document.createElement("li"), { textContent: "No name and no documentation matches." }));
  };

  const step = (by) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement) + by;
    if (at < 0) search.focus(); else if (links[at]) links[at].focus();
  };

  const theme = (name) => {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("schemactl-theme", name); } catch { /* A page from a file may not keep anything. */ }
  };
  try { const kept = localStorage.getItem("schemactl-theme"); if (kept) theme(kept); } catch { /* The same. */ }

  search.addEventListener("focus", load);
  search.addEventListener("input", show);
  tools.querySelector("[data-do=theme]").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme;
    const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    theme(dark ? "light" : "dark");
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target === search || found.contains(event.target);
    if (event.key === "Escape" && inside) { search.value = ""; show(); search.focus(); }
    if (inside && event.key === "ArrowDown") { event.preventDefault(); step(1); }
    if (inside && event.key === "ArrowUp") { event.preventDefault(); step(-1); }
    if (event.key === "/" && !event.target.matches("input")) { event.preventDefault(); search.focus(); }
    if (event.key === "Enter" && event.target === search) found.querySelector("a")?.click();
  });
  document.addEventListener("click", (event) => {
    if (!found.contains(event.target) && event.target !== search) found.hidden = true;
  });
  for (const block of document.querySelectorAll(".copied")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  tools.hidden = false;
})();
