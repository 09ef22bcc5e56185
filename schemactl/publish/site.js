"use strict";
(() => {
  const MOST = 40, ROWS = 200;
  const create = (tag, attributes = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };
  // The path of the site's folder as links of the page begin with it.
  const root = document.querySelector(".home").getAttribute("href").replace(/index\.html$/, "");
  const tools = create("div", { className: "tools" });
  document.querySelector(".top").append(tools);
  if (!document.querySelector(".find")) tools.innerHTML = `<div class="find" role="search"></div>`;
  document.querySelector(".foot p").insertAdjacentHTML("beforeend", ` <span class="no-print">Press <kbd>Ctrl K</kbd> or <kbd>/</kbd> to search.</span>`);
  const find = document.querySelector(".find");
  find.innerHTML = `<label class="unseen" for="find">Search topics, fields, symbols, types, clients, commits and documentation</label><span class="i" aria-hidden="true"></span>
    <input type="search" id="find" placeholder="${find.matches(".big") ? "Topic, field, symbol, client, commit" : "Search"}" autocomplete="off" aria-keyshortcuts="Control+K /" aria-controls="found"><kbd aria-hidden="true">Ctrl K</kbd>
    <ol id="found" class="found" hidden></ol><span role="status" class="unseen"></span>`;
  const search = document.getElementById("find");
  const found = document.getElementById("found");
  const said = document.querySelector(".find [role=status]");
  const loadScript = (address, name) => new Promise((ready, failed) => {
    if (window[name]) { ready(window[name]); return; }
    const script = create("script", { src: address, onerror: failed });
    script.onload = () => ready(window[name]);
    document.head.append(script);
  });

  // The index, loaded when it is first used.
  let loading = null;
  const load = () => loading ??= loadScript(`${root}search.js`, "schemactlIndex").then((index) => ({ ...index, lines: listLines(index) }));

  // One line for each thing that can be found: its page, its name, what else is known of it, and its rank among equal matches.
  const listLines = ({ topics, types, namespaces, owners, clients, teams, commits }) => {
    const lines = [];
    const counted = (count) => `${count} topic${count === 1 ? "" : "s"}`;
    const add = (kind, url, name, more, rank, extra = "") => lines.push({ kind, url, name, more: more.filter(Boolean).join(", "), rank, extra });
    for (const [url, name, owner, description, type, fields, labels, , , , verdict] of topics) {
      const short = name.replace("persistent://", "");
      add("topic", url, short, [type, owner && `owner ${owner}`, verdict, description, labels.map((label) => `label ${label}`).join(", ")], 0, name);
      for (const [path, about, doc, since, symbols = [], aliases = []] of fields) {
        const page = url.includes("topics/") ? `${url}#f-${encodeURIComponent(path)}` : url;
        add("field", page, path, [`${about} in ${short}`, since, doc, aliases.length ? `formerly ${aliases.join(" ")}` : ""], 3);
        for (const symbol of symbols) add("symbol", page, symbol, [`of ${path} in ${short}`], 4);
      }
    }
    for (const [url, name, count, symbols] of types) add("type", url, name, [`used by ${counted(count)}`], 2, symbols.join(" "));
    for (const [url, name, count] of namespaces) add("space", url, name, [`namespace with ${counted(count)}`], 1);
    for (const [url, name, count] of owners) add("owner", url, name, [`owns ${counted(count)}`], 1);
    for (const [url, name, more] of clients) add("client", url, name, [more], 1);
    for (const [url, name] of teams) add("team", url, name, ["team of clients"], 1);
    for (const [id, subject, date, url, title] of commits) add("commit", url, subject, [id, date, title], 5);
    for (const line of lines) {
      line.low = line.name.toLowerCase();
      line.last = line.low.split(/[/.]/).pop();
      line.text = `${line.low} ${line.extra.toLowerCase()} ${line.more.toLowerCase()}`;
    }
    return lines;
  };

  // Whether two words differ by at most `most` insertions, deletions, replacements or swaps of neighbors.
  const isNear = (one, other, most) => {
    if (Math.abs(one.length - other.length) > most) return false;
    let [before, previous] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
    for (let i = 1; i <= one.length; i++) {
      const row = [i];
      for (let j = 1; j <= other.length; j++) {
        row[j] = Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (one[i - 1] !== other[j - 1]));
        if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      if (Math.min(...row) > most) return false;
      [before, previous] = [previous, row];
    }
    return previous[other.length] <= most;
  };
  const score = (line, words) => {
    const exact = words.some((word) => line.last === word) ? 0 : words.some((word) => line.last.startsWith(word)) ? 1 : words.some((word) => line.low.includes(word)) ? 2 : 3;
    // Among equal matches, `channel` means the field, and `Channel` the type.
    return exact * 10 + line.rank - (/[A-Z]/.test(search.value) === /[A-Z]/.test(line.name.split(/[/.]/).pop()) ? 1.5 : 0);
  };
  const findHits = (lines, words) => {
    let hits = lines.filter((line) => words.every((word) => line.text.includes(word)));
    if (!hits.length) {
      const most = (word) => (word.length < 4 ? 0 : word.length < 8 ? 1 : 2);
      const fits = (line, word) => line.text.includes(word) || line.low.split(/[^a-z0-9]+/).some((part) => isNear(word, part, most(word)));
      hits = lines.filter((line) => words.every((word) => fits(line, word)));
    }
    return hits.sort((one, other) => score(one, words) - score(other, words) || one.name.length - other.name.length);
  };
  const mark = (text, words) => {
    const low = text.toLowerCase();
    const word = words.find((each) => low.includes(each));
    if (!word) return [text];
    const at = low.indexOf(word);
    return [text.slice(0, at), create("mark", { textContent: text.slice(at, at + word.length) }), text.slice(at + word.length)];
  };
  const show = async () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { found.hidden = true; found.replaceChildren(); said.textContent = ""; return; }
    const { lines } = await load();
    const hits = findHits(lines, words);
    found.replaceChildren(...hits.slice(0, MOST).map((line) => {
      const link = create("a", { href: root + line.url });
      link.append(create("span", { className: "kind", textContent: line.kind }), " ", create("span", {}, ...mark(line.name, words)), " ", create("span", { className: "soft", textContent: line.more }), " ");
      return create("li", {}, link);
    }));
    found.hidden = false;
    said.textContent = hits.length ? `${hits.length} found` : "nothing found";
    const rest = hits.length > MOST ? `${hits.length - MOST} more: add a word.` : hits.length ? "" : "No results.";
    if (rest) found.append(create("li", { textContent: rest }));
  };
  const step = (by) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement) + by;
    if (at < 0) search.focus(); else if (links[at]) links[at].focus();
  };
  find.hidden = false;
  search.addEventListener("focus", load);
  search.addEventListener("input", show);
  for (const line of document.querySelectorAll(".try")) line.hidden = false;
  for (const button of document.querySelectorAll(".try button")) button.addEventListener("click", () => { search.value = button.textContent; search.focus(); show(); });

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); search.focus(); search.select(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target === search || found.contains(event.target);
    if (event.key === "Escape" && inside) { search.value = ""; show(); search.focus(); }
    if (inside && event.key === "ArrowDown") { event.preventDefault(); step(1); }
    if (inside && event.key === "ArrowUp") { event.preventDefault(); step(-1); }
    if (event.key === "/" && !event.target.matches("input, select, textarea")) { event.preventDefault(); search.focus(); }
    if (event.key === "Enter" && event.target === search) found.querySelector("a")?.click();
  });
  document.addEventListener("click", (event) => {
    if (!found.contains(event.target) && event.target !== search && !event.target.closest(".try")) found.hidden = true;
  });

  // The other topics of the namespace, on a site with too many topics to list them on each page.
  const more = document.querySelector("[data-topics-of]");
  if (more) loadScript(root + more.dataset.topicsOf, "schemactlTopics").then((topics) => {
    const current = more.querySelector("[aria-current]")?.textContent;
    for (const item of [...more.children].slice(1)) item.remove();
    for (const [url, name] of topics) {
      const link = create("a", { href: root + url, textContent: name });
      if (name === current) link.setAttribute("aria-current", "page");
      more.append(create("li", {}, link));
    }
  });

  // The day and the commit of a version: the page has them once, in its list of versions or in the title of a link.
  const dated = new Map([...document.querySelectorAll(".fields td a[title]")].map(({ hash, title }) => [hash, title]));
  for (const link of document.querySelectorAll(".fields td a:not([title])")) {
    const row = /^#v\d+$/.test(link.hash) && document.getElementById(link.hash.slice(1));
    if (dated.has(link.hash)) link.title = dated.get(link.hash);
    else if (row) link.title = [...row.querySelectorAll("td:last-child :is(.nowrap, code)")].map((part) => part.textContent).join(", ");
  }

  const approved = document.querySelector("[data-approved]");
  if (approved && window.schemactlApproved) approved.textContent = window.schemactlApproved;

  // Light and dark.
  const theme = (name) => {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("schemactl-theme", name); } catch { /* A page from a file may not keep anything. */ }
  };
  try { const kept = localStorage.getItem("schemactl-theme"); if (kept) theme(kept); } catch { /* The same. */ }
  const switcher = create("button", { type: "button", ariaLabel: "Light or dark", title: "Light or dark" });
  switcher.dataset.do = "theme";
  tools.append(switcher);
  switcher.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme;
    const dark = now ? now === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    theme(dark ? "light" : "dark");
  });

  // Buttons of a group, of which one is pressed.
  const press = (form, button) => {
    for (const other of button.parentElement.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
  };
  const fill = (select, values) => select.replaceChildren(create("option", { value: "", textContent: "all" }), ...[...new Set(values)].filter(Boolean).sort().map((value) => create("option", { value, textContent: value })));

  // The topics: facets and sorting, over all topics of the index.
  const filters = document.querySelector("[data-topics]");
  if (filters) {
    const table = document.querySelector(".sortable");
    const state = { kind: "", sort: "", down: false };
    const columns = { Topic: (t) => t[1], Versions: (t) => t[11].length, Verdict: (t) => ["hurts", "waived", "breaks", "safe", "first", "deleted"].indexOf(t[9]), Type: (t) => t[4], Strategy: (t) => t[7], Owner: (t) => t[2], Clients: (t) => t[12], Changed: (t) => t[13] };
    const chosen = (name) => filters.querySelector(`[data-facet=${name}]`).value;
    const chip = (kind, words) => create("span", { className: `chip ${kind}`, textContent: words });
    const row = (topic) => {
      const [url, name, owner, description, type, , , strategy, number, kind, words, cells, clients, changed, states] = topic;
      const [, space, short] = name.match(/^[a-z]+:\/\/(.*)\/([^/]+)$/);
      const head = create("th", { scope: "row" }, create("span", { className: "space", textContent: `${space}/` }), url.startsWith("topics/") ? create("a", { href: root + url, textContent: short }) : short);
      if (description) head.append(create("p", { textContent: description }));
      const strip = create("span", { className: "strip", role: "img", ariaLabel: `${cells.length} versions` }, ...(cells.match(/(.)\1*/g) ?? []).map((run) => { const cell = create("i", { className: run[0] === "r" ? "" : run[0] }); cell.style.setProperty("--n", run.length); return cell; }));
      const cell = (heading, ...content) => { const td = create("td", {}, ...content); td.dataset.head = heading; return td; };
      const link = owner ? create("a", { textContent: owner, href: root + (ownerPages.get(owner) ?? "index.html") }) : "";
      const line = create("tr", { className: states.includes("gone") ? "gone" : "" }, head, cell("Versions", create("span", { className: "force" }, `${number} `, cells ? strip : "")), cell("Verdict", words ? chip(kind, words) : ""), cell("Type", type), cell("Strategy", strategy), cell("Owner", link), cell("Clients", clients || ""), cell("Changed", changed));
      for (const at of [3, 4]) line.children[at].className = "mono";
      for (const at of [6, 7]) line.children[at].className = "num";
      return line;
    };
    let ownerPages = new Map();
    const render = async () => {
      const { topics, owners } = await load();
      ownerPages = new Map(owners.map(([url, name]) => [name, url]));
      let rows = topics.filter((t) => (state.kind ? t[14].includes(state.kind) : !t[14].includes("gone"))
        && (!chosen("type") || t[4] === chosen("type")) && (!chosen("strategy") || t[7] === chosen("strategy"))
        && (!chosen("owner") || t[2] === chosen("owner")) && (!chosen("label") || t[6].includes(chosen("label"))));
      const key = columns[state.sort] ?? columns.Verdict;
      rows = rows.toSorted((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : one[1] < other[1] ? -1 : 1));
      if (state.down) rows.reverse();
      table.tBodies[0].replaceChildren(...rows.slice(0, ROWS).map(row));
      document.getElementById("listed").textContent = `${rows.length} topic${rows.length === 1 ? "" : "s"}${rows.length > ROWS ? `, the first ${ROWS} of them` : ""}`;
    };
    const start = async () => {
      const { topics } = await load();
      for (const [name, at] of [["type", 4], ["strategy", 7], ["owner", 2]]) fill(filters.querySelector(`[data-facet=${name}]`), topics.map((t) => t[at]));
      fill(filters.querySelector("[data-facet=label]"), topics.flatMap((t) => t[6]));
      for (const select of filters.querySelectorAll("select")) select.parentElement.hidden = select.options.length < 2;
      for (const button of filters.querySelectorAll("[data-state]")) {
        const count = topics.filter((t) => (button.dataset.state ? t[14].includes(button.dataset.state) : !t[14].includes("gone"))).length;
        button.hidden = !count && button.dataset.state !== "";
        button.append(` ${count}`);
      }
      filters.hidden = false;
    };
    for (const button of filters.querySelectorAll("[data-state]")) button.addEventListener("click", () => { press(filters, button); state.kind = button.dataset.state; render(); });
    filters.addEventListener("change", render);
    for (const head of table.tHead.rows[0].cells) {
      const name = head.textContent;
      const button = create("button", { type: "button", textContent: name });
      button.addEventListener("click", () => {
        state.down = state.sort === name && !state.down;
        state.sort = name;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        render();
      });
      head.replaceChildren(button);
    }
    start();
  }

  // The changes: filters over the events of the page.
  const events = document.querySelector("[data-events]");
  if (events) {
    const items = [...document.querySelectorAll(".event")];
    const status = events.querySelector("[role=status]");
    let kind = "";
    const apply = () => {
      const [owner, namespace] = ["owner", "namespace"].map((name) => events.querySelector(`[data-facet=${name}]`).value);
      for (const item of items) {
        const { kind: own, owner: its, namespace: space } = item.dataset;
        const fits = !kind || own === kind || (kind === "breaking" && "breaking" in item.dataset);
        item.hidden = !(fits && (!owner || its === owner) && (!namespace || space === namespace));
      }
      for (const month of document.querySelectorAll(".month")) month.hidden = ![...month.querySelectorAll(".event")].some((item) => !item.hidden);
      status.textContent = `${items.filter((item) => !item.hidden).length} of ${items.length}`;
    };
    for (const button of events.querySelectorAll("button")) {
      const own = button.dataset.kind;
      const count = items.filter((item) => !own || item.dataset.kind === own || (own === "breaking" && "breaking" in item.dataset)).length;
      button.append(` ${count}`);
      button.hidden = !count;
      button.addEventListener("click", () => { press(events, button); kind = own; apply(); });
    }
    for (const name of ["owner", "namespace"]) fill(events.querySelector(`[data-facet=${name}]`), items.map((item) => item.dataset[name]));
    events.addEventListener("change", apply);
    events.hidden = false;
  }

  // Any two versions of a topic, from the script with the differences of all its versions.
  const compare = document.querySelector("[data-compare]");
  if (compare) {
    compare.innerHTML = `<label for="from">Compare</label><select id="from"></select><label for="to">with</label><select id="to"></select><button type="button">Compare</button>`;
    const output = create("div", { id: "difference", tabIndex: -1, hidden: true });
    compare.after(output);
    const [from, to] = compare.querySelectorAll("select");
    let script = null;
    const swapped = { '"': "'", "'": '"' };
    // Each line starts with the number of its pairs of leading spaces, and quotes are swapped.
    const unpack = (text) => !text ? [] : text.replace(/["']/g, (quote) => swapped[quote]).split("\n").map((line) => "  ".repeat(parseInt(line[0], 36)) + line.slice(1));
    const restore = ({ versions }) => {
      const texts = new Map();
      let lines = [];
      for (const [number, day, head, removed, added] of versions) {
        lines = [...lines.slice(0, head), ...unpack(added), ...lines.slice(head + removed)];
        texts.set(number, { day, lines });
      }
      return texts;
    };
    const prepare = () => script ??= loadScript(compare.dataset.compare, "schemactlTopic").then((value) => {
      const texts = restore(value);
      const newest = [...texts.keys()].reverse();
      for (const select of [from, to]) select.replaceChildren(...newest.map((number) => create("option", { value: number, textContent: `v${number}${number === value.force ? ", in force" : ""}` })));
      from.value = newest[1];
      to.value = newest[0];
      return texts;
    });
    // The longest common subsequence of the lines between the equal head and the equal tail.
    const difference = (old, now) => {
      let head = 0, tail = 0;
      while (head < Math.min(old.length, now.length) && old[head] === now[head]) head++;
      while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
      const [a, b] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
      const rows = old.slice(0, head).map((line) => [" ", line]);
      if (a.length * b.length > 4e6) rows.push(...a.map((line) => ["-", line]), ...b.map((line) => ["+", line]));
      else {
        const best = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
        for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
        let [i, j] = [0, 0];
        while (i < a.length || j < b.length) {
          if (i < a.length && j < b.length && a[i] === b[j]) { rows.push([" ", a[i++]]); j++; }
          else if (i < a.length && (j === b.length || best[i + 1][j] >= best[i][j + 1])) rows.push(["-", a[i++]]);
          else rows.push(["+", b[j++]]);
        }
      }
      rows.push(...old.slice(old.length - tail).map((line) => [" ", line]));
      return rows;
    };
    const render = (texts) => {
      const rows = difference(texts.get(Number(from.value)).lines, texts.get(Number(to.value)).lines);
      const near = rows.map((_, at) => rows.slice(Math.max(0, at - 3), at + 4).some(([sign]) => sign !== " "));
      const pre = create("pre", { className: "diff", tabIndex: 0 });
      let gap = false;
      rows.forEach(([sign, line], at) => {
        if (near[at]) pre.append(create("span", { className: { "+": "come", "-": "gone" }[sign] ?? "", textContent: sign + line }));
        else if (!gap) pre.append(create("span", { className: "far", textContent: "\u22EF" }));
        gap = !near[at];
      });
      const changed = rows.some(([sign]) => sign !== " ");
      output.replaceChildren(create("h3", { textContent: `v${from.value} to v${to.value}` }), changed ? pre : create("p", { className: "soft", textContent: "Both have the same definition." }));
      output.hidden = false;
      output.focus();
      history.replaceState(null, "", `#compare=${from.value}..${to.value}`);
    };
    compare.hidden = false;
    compare.querySelector("button").addEventListener("click", () => prepare().then(render));
    prepare().then((texts) => {
      const asked = location.hash.match(/^#compare=(\d+)\.\.(\d+)$/);
      if (asked && texts.has(Number(asked[1])) && texts.has(Number(asked[2]))) { [from.value, to.value] = [asked[1], asked[2]]; render(texts); }
    });
  }

  const addCopyButton = (block) => {
    const button = create("button", { type: "button", textContent: "Copy" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  };
  for (const block of document.querySelectorAll(".copied")) addCopyButton(block);

  // The code to paste, which is the same for all topics of a type except for their names.
  const tabs = document.querySelector("[data-code]");
  if (tabs) loadScript(`${root}code.js`, "schemactlCode").then((code) => {
    const { topic, module } = tabs.dataset;
    const schema = topic.replace(/^[a-z-]+:\/\//, "");
    const name = topic.split("/").pop();
    const names = { topic, schema, name, module, constant: module.split(".").pop().toUpperCase(), table: name.replace(/[^\p{L}\p{N}_]/gu, "_") };
    const replace = (text) => text.replace(/\$(\w+)\$/g, (_, key) => names[key]);
    const panels = code[tabs.dataset.code].map(([label, install, blocks], at) => {
      const panel = create("div", { className: `panel p-${at}` }, create("p", {}, create("code", { textContent: replace(install) })));
      panel.dataset.name = label;
      for (const [heading, html] of blocks) {
        const element = create("code", { innerHTML: html });
        const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) texts.currentNode.data = replace(texts.currentNode.data);
        const block = create("div", { className: "copied" }, create("pre", { tabIndex: 0 }, element));
        addCopyButton(block);
        panel.append(create("h3", { textContent: heading }), block);
      }
      return panel;
    });
    const tab = ({ dataset }, at) => [create("input", { type: "radio", name: "tab", id: `t-${at}`, checked: !at }), create("label", { htmlFor: `t-${at}`, textContent: dataset.name })];
    tabs.append(...panels.flatMap(tab), create("span", { className: "rest" }), ...panels);
  });
})();
