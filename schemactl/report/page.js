"use strict";
(() => {
  const tools = document.querySelector(".tools");
  const search = tools.querySelector("input[type=search]");
  const boxes = [...tools.querySelectorAll("input[type=checkbox]")];
  const shown = tools.querySelector("[role=status]");
  const items = [...document.querySelectorAll("[data-find]")];
  const blocks = () => items.filter((each) => each.matches("details") && !each.hidden);
  const root = document.documentElement;

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = boxes.filter((box) => !box.checked).map((box) => box.value);
    for (const each of items) {
      const text = each.textContent.toLowerCase();
      each.hidden = off.includes(each.dataset.find) || !words.every((word) => text.includes(word));
    }
    const left = items.filter((each) => !each.hidden).length;
    shown.textContent = left === items.length ? "" : `${left} of ${items.length} shown`;
  };
  const unfold = (open) => document.querySelectorAll("details").forEach((each) => { each.open = open; });
  const step = (by) => {
    const heads = blocks().map((each) => each.querySelector("summary"));
    const at = heads.indexOf(document.activeElement);
    const next = heads[at < 0 ? (by > 0 ? 0 : heads.length - 1) : Math.min(Math.max(at + by, 0), heads.length - 1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };

  search.addEventListener("input", filter);
  boxes.forEach((box) => box.addEventListener("change", filter));
  tools.querySelector("[data-do=unfold]").addEventListener("click", () => unfold(true));
  tools.querySelector("[data-do=fold]").addEventListener("click", () => unfold(false));
  tools.querySelector("[data-do=theme]").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target === search) { search.value = ""; filter(); search.blur(); return; }
    if (event.target.matches("input")) return;
    if (event.key === "/") { event.preventDefault(); search.focus(); }
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  addEventListener("beforeprint", () => unfold(true));
  tools.hidden = false;
})();
