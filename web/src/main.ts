// Makes a tool of the report: the page is complete without it, and what it cannot do it says on the console.

import { Store } from "./data.js";
import { onceAFrame } from "./dom.js";
import { Explorer } from "./explorer.js";
import { goTo, navigation, reachable, unfoldOnPaper } from "./navigation.js";
import { format, parse, type State } from "./state.js";
import { tables, UNSORTED } from "./tables.js";
import { Trials } from "./trials.js";

async function start(): Promise<void> {
  unfoldOnPaper(window);
  const data = document.getElementById("data")?.textContent;
  const section = document.querySelector<HTMLElement>("#explore-section");
  const place = document.querySelector<HTMLElement>("#explorer");
  if (!data || !section || !place) return;
  const store = await Store.from(data);
  document.documentElement.classList.add("script");

  let state = parse(location.hash);
  const write = onceAFrame(() => {
    const wanted = format(state);
    if (wanted !== location.hash && !(wanted === "#" && location.hash === "")) history.replaceState(null, "", wanted === "#" ? location.pathname + location.search : wanted);
  });
  const change = (some: Partial<State>) => {
    state = { ...state, ...some };
    explorer.show(state);
    write();
  };
  const open = (arm: number, condition: number) => {
    change({ cell: `${store.report.arms[arm]!.name} ${store.conditionKey(condition)}` });
    trials.show(explorer.metric, arm, condition);
  };
  const nav = document.querySelector<HTMLElement>("nav.contents");
  if (nav) {
    for (const one of nav.querySelectorAll<HTMLElement>("[hidden]")) one.hidden = false;
    navigation(nav, (to) => {
      state = { ...state, section: to };
      write();
    });
  }
  const all = tables(document.querySelector("main") ?? document, (name, table) => {
    state = { ...state, tables: { ...state.tables, [name]: table } };
    write();
  });
  reachable(document.querySelectorAll<HTMLElement>(".scroll, pre"));
  section.hidden = store.report.metrics.length === 0;
  const trials = new Trials(store, () => {
    const [arm, condition] = cellOf();
    change({ cell: "" });
    if (arm >= 0) explorer.focus(arm, condition);
  });
  const explorer = new Explorer(store, place, state, change, open);
  function cellOf(): [number, number] {
    const [arm = "", condition = ""] = state.cell.split(" ");
    return [store.armOf(arm), store.conditionOf(condition)];
  }
  const restore = () => {
    if (!section.hidden) explorer.show(state);
    for (const [name, table] of all) table.show(state.tables[name] ?? UNSORTED);
    if (state.cell) trials.show(explorer.metric, ...cellOf());
    else trials.hide();
  };
  restore();
  if (state.section && location.hash.includes("?")) goTo(state.section, true);
  window.addEventListener("hashchange", () => {
    state = parse(location.hash);
    restore();
    goTo(state.section);
  });
}

void start();
