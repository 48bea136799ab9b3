// What is done to a page: its tables become sortable, and the explorer draws what the state asks for.

import { beforeEach, describe, expect, test } from "vitest";
import { colour, fill } from "../src/chart_parts.js";
import { chart } from "../src/charts.js";
import type { Store } from "../src/data.js";
import { Explorer } from "../src/explorer.js";
import { matrix } from "../src/matrix.js";
import { unfoldOnPaper } from "../src/navigation.js";
import { START, VIEWS, type State } from "../src/state.js";
import { compare, SortableTable, tables, UNSORTED } from "../src/tables.js";
import { strip } from "../src/trial_charts.js";
import { Trials } from "../src/trials.js";
import { changed, made, spoilt } from "./made.js";

const store = made();

function table(rows: string): HTMLTableElement {
  document.body.innerHTML = `<main><div class="scroll"><table><thead><tr><th>arm</th><th>rate</th></tr></thead><tbody>${rows}</tbody></table></div></main>`;
  return document.querySelector("table")!;
}

describe("a table of the page", () => {
  const first = (of: HTMLTableElement) => [...of.tBodies[0]!.rows].map((row) => row.cells[0]!.textContent);
  let it: HTMLTableElement;
  let told: unknown;
  beforeEach(() => {
    it = table('<tr><th>b</th><td data-sort="2e9">2 Gbit/s</td></tr><tr><th>a</th><td>90 Mbit/s</td></tr><tr><th>c</th><td></td></tr>');
    told = undefined;
    tables(document, (name, state) => (told = [name, state]));
  });
  test("is sorted by a click, the other way by the next, and stands as it was after the third", () => {
    const button = it.querySelectorAll("button")[1]!;
    button.click();
    expect(first(it)).toEqual(["a", "b", "c"]);
    expect(button.parentElement!.getAttribute("aria-sort")).toBe("ascending");
    button.click();
    expect(first(it)).toEqual(["b", "a", "c"]);
    expect(told).toEqual(["t0", { column: 1, descending: true, filter: "" }]);
    button.click();
    expect(first(it)).toEqual(["b", "a", "c"]);
    expect(button.parentElement!.hasAttribute("aria-sort")).toBe(false);
  });
  test("is left alone where it is too short, or has joined cells", () => {
    expect(SortableTable.worthIt(table("<tr><th>a</th><td>1</td></tr>"))).toBe(false);
    expect(SortableTable.worthIt(table('<tr><th colspan="2">a</th></tr>'.repeat(5)))).toBe(false);
  });
  test("that is read from top to bottom stays as it is", () => {
    it = table("<tr><th>a</th><td>1</td></tr>".repeat(12));
    it.classList.add("still");
    expect(tables(document, () => undefined).size).toBe(0);
    expect(document.querySelector("button, input")).toBeNull();
  });
  test("that is long can be filtered", () => {
    it = table(Array.from({ length: 12 }, (_, at) => `<tr><th>arm ${at}</th><td>${at}</td></tr>`).join(""));
    const [found] = [...tables(document, () => undefined).values()];
    found!.show({ ...UNSORTED, filter: "arm 1" });
    expect([...it.tBodies[0]!.rows].filter((row) => !row.hidden)).toHaveLength(3);
    expect(document.querySelector("[role=status]")!.textContent).toBe("3 of 12 rows");
    expect(document.querySelector("input")!.value).toBe("arm 1");
  });
  test("has what the page says is no value last, whichever way, and never takes its words for a number", () => {
    it = table('<tr><th>a</th><td data-sort="3">3</td></tr><tr><th>b</th><td data-sort="">8 blocks failed</td></tr><tr><th>c</th><td>–</td></tr><tr><th>d</th><td data-sort="20">20</td></tr>');
    const [found] = [...tables(document, () => undefined).values()];
    found!.show({ ...UNSORTED, column: 1 });
    expect(first(it)).toEqual(["a", "d", "b", "c"]);
    found!.show({ ...UNSORTED, column: 1, descending: true });
    expect(first(it)).toEqual(["d", "a", "b", "c"]);
  });
  test("has numbers before texts, and empty fields last", () => {
    expect(["x", "", 3, 2].sort((a, b) => compare(a, b, 1))).toEqual([2, 3, "x", ""]);
    expect(["x", "", 3, 2].sort((a, b) => compare(a, b, -1))).toEqual([3, 2, "x", ""]);
  });
});

describe("the explorer", () => {
  let state: State;
  let opened: [number, number] | undefined;
  let explorer: Explorer;
  let root: HTMLElement;
  beforeEach(() => {
    globalThis.ResizeObserver = class {
      observe() {}
      unobserve() {}
      disconnect() {}
    };
    document.body.innerHTML = "<div></div>";
    root = document.querySelector("div")!;
    state = START;
    explorer = new Explorer(store, root, state, (some) => explorer.show((state = { ...state, ...some })), (arm, condition) => (opened = [arm, condition]));
    explorer.show(state);
  });
  test("shows every cell as a button that opens its trials", () => {
    const cells = [...root.querySelectorAll<HTMLButtonElement>("button.cell")];
    expect(cells).toHaveLength(6);
    cells[3]!.click();
    expect(opened).toEqual([1, 1]);
    expect(cells[3]!.textContent).toContain("50 Mbit/s");
    expect(cells[3]!.textContent).toContain("bound by the sender's core");
  });
  test("follows its controls", () => {
    const choose = (name: string, value: string) => {
      const field = root.querySelector<HTMLSelectElement>(`[data-control="${name}"]`)!;
      field.value = value;
      field.dispatchEvent(new Event("change"));
    };
    choose("show", "effect");
    choose("view", "heat");
    choose("metric", "tcp.delay");
    expect([state.show, state.view, state.metric]).toEqual(["effect", "heat", "tcp.delay"]);
    const box = root.querySelector<HTMLInputElement>('input[value="lan/pair"]')!;
    box.checked = false;
    box.dispatchEvent(new Event("change"));
    expect(state.conditions).toEqual(["lossy/pair"]);
    expect(root.querySelectorAll("button.cell")).toHaveLength(3);
  });
  test("has the words of an address in its filter", () => {
    const field = root.querySelector<HTMLInputElement>('[data-control="filter"]')!;
    explorer.show({ ...state, filter: "fast" });
    expect(root.querySelectorAll("tbody tr")).toHaveLength(1);
    expect(field.value).toBe("fast");
    expect(root.contains(field)).toBe(true);
  });
  test("tells the arms of a scatter plot apart by more than eight colours", () => {
    const many = made();
    many.report.arms.push(...Array.from({ length: 8 }, (_, at) => ({ name: `more-${at}`, label: `more-${at}`, title: "" })));
    const dots = many.report.arms.map((_, arm) => `${colour(many, arm).colour} ${fill(many, arm)}`);
    expect(new Set(dots).size).toBe(dots.length);
    const shown = new Explorer(many, root, START, () => undefined, () => undefined);
    shown.show({ ...START, view: "scatter", metric: "tcp.goodput", against: "tcp.delay" });
    expect(root.querySelectorAll(".keys circle")).toHaveLength(3);
  });
  test("keeps the focus on a heading that sorts", () => {
    const head = [...root.querySelectorAll<HTMLButtonElement>("button.sort")][2]!;
    head.focus();
    head.click();
    expect(state.sort).toBe("lossy/pair");
    expect((document.activeElement as HTMLElement).dataset["focus"]).toBe("sort lossy/pair");
    expect(root.querySelector("tbody th")!.textContent).toBe("fast");
  });
});

test.each(VIEWS.filter((view) => view !== "table" && view !== "time"))("the chart %s is an image with a name, of what is shown", (view) => {
  const state = { ...START, view, metric: "tcp.goodput", against: "tcp.delay" };
  const { drawing, caption } = chart(store, state, matrix(store, state), 800, () => undefined);
  expect(drawing!.getAttribute("role")).toBe("img");
  expect(drawing!.getAttribute("aria-label")).toMatch(/goodput/i);
  expect(drawing!.querySelectorAll("rect, circle, path").length).toBeGreaterThan(3);
  expect(caption).not.toBe("");
});

test("what belongs on paper is unfolded while the page is printed", () => {
  document.body.innerHTML = '<details class="print">a</details><details class="print" open>b</details><details>c</details>';
  const open = () => [...document.querySelectorAll("details")].map((one) => one.open);
  unfoldOnPaper(window);
  window.dispatchEvent(new Event("beforeprint"));
  expect(open()).toEqual([true, true, false]);
  window.dispatchEvent(new Event("afterprint"));
  expect(open()).toEqual([false, true, false]);
});

test("a chart of what is not there says so", () => {
  const state = { ...START, view: "time" as const };
  expect(chart(store, state, matrix(store, state), 800, () => undefined)).toMatchObject({ drawing: null, caption: "This metric has no values inside of the windows." });
});

test("a chart of what found no room says so", () => {
  const full = made();
  full.report.series_left_out = ["goodput (tcp)"];
  const state = { ...START, view: "time" as const };
  expect(chart(full, state, matrix(full, state), 800, () => undefined).caption).toMatch(/^The page has no room for this metric/);
});

/** What is drawn of goodput under lan, and what is said of it. */
function of(store: Store, some: Partial<State>) {
  const state = { ...START, metric: "tcp.goodput", conditions: ["lan/pair"], ...some };
  return chart(store, state, matrix(store, state), 800, () => undefined);
}

describe("what is void for its metric", () => {
  test("is in no chart", () => {
    for (const view of ["box", "cdf"] as const) {
      expect(of(spoilt("transfer"), { view }).drawing!.outerHTML).toBe(of(changed(null), { view }).drawing!.outerHTML);
      expect(of(spoilt("tail"), { view }).drawing!.outerHTML).toBe(of(store, { view }).drawing!.outerHTML);
    }
    expect(strip(spoilt("transfer"), 0, 1, 0)!.querySelectorAll("circle")).toHaveLength(5); // with direct's three
    expect(strip(store, 0, 1, 0)!.querySelectorAll("circle")).toHaveLength(6);
  });
  test("is said to be so in the dialog of its trials", () => {
    HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
      this.open = true;
    };
    const worth = (store: Store) => {
      document.body.innerHTML = "";
      new Trials(store, () => undefined).show(0, 1, 0);
      return [...document.querySelectorAll("dialog tbody tr")].map((row) => row.children[2]!.textContent);
    };
    expect(worth(spoilt("transfer"))).toEqual(["Good", "Voidfor this metric: the value is not used", "Good"]);
    expect(worth(spoilt("tail"))).toEqual(["Good", "Good", "Good"]);
  });
});

describe("a logarithmic axis", () => {
  const zero = changed(0);
  const said = "1 of zero or less have no place on a logarithmic axis.";
  const heights = (drawing: SVGSVGElement) => [...drawing.querySelector('g[stroke="var(--c0)"] path')!.getAttribute("d")!.matchAll(/,([\d.]+)/g)].map((found) => found[1]);
  test("shows shares of all values of a distribution, from the first that has a place on", () => {
    const even = heights(of(zero, { view: "cdf" }).drawing!);
    expect(even).toHaveLength(4);
    expect(heights(of(zero, { view: "cdf", log: true }).drawing!)).toEqual(even.slice(1));
  });
  test("has box plots of all values, cut off at its edge", () => {
    const [even, log] = [of(zero, { view: "box" }), of(zero, { view: "box", log: true })];
    expect(log.drawing!.querySelectorAll("rect")).toHaveLength(even.drawing!.querySelectorAll("rect").length);
    expect(log.drawing!.outerHTML).not.toMatch(/NaN|Infinity/);
    expect(log.caption).toContain(`${said} What reaches to them is cut off at the edge.`);
  });
  test("says in every chart how many values it lacks", () => {
    zero.cell(0, 1, 0)!.median = 0;
    zero.report.series = [{ metric: 0, step: 0.5, attempts: 0, values: zero.report.attempt_lists[0]!.map((place) => (place === 0 ? [0, 5e8] : [4e8, 5e8])) }];
    for (const view of VIEWS.filter((one) => one !== "table" && one !== "heat")) {
      expect(of(zero, { view, log: true, against: "tcp.delay" }).caption, view).toContain(said);
      expect(of(zero, { view, against: "tcp.delay" }).caption, view).not.toContain("no place");
    }
  });
  test("on which nothing has a place is not drawn", () => {
    const none = made();
    none.report.values[0]!.values.fill(0);
    expect(of(none, { view: "box", log: true })).toMatchObject({ drawing: null, caption: expect.stringContaining("9 of zero or less") });
  });
});

test("a heat map of effects has colours for verdicts alone", () => {
  const other = made();
  other.cell(0, 1, 0)!.verdict = "undecided";
  const drawn = of(other, { view: "heat", show: "effect" }).drawing!;
  expect([...drawn.querySelectorAll("rect")].map((one) => one.getAttribute("fill"))).toEqual(["var(--soft)", "var(--red)"]);
});

test.each([["value", "medians over blocks."], ["effect", "estimates over blocks, compared with direct."], ["difference", "median differences to direct within blocks."]] as const)("a scatter plot of %s says what stands for the blocks", (show, said) => {
  expect(of(store, { view: "scatter", show, against: "tcp.delay" }).caption).toContain(`: ${said}`);
});
