// What is done to a page: its tables become sortable, and the explorer draws what the state asks for.

import { beforeEach, describe, expect, test } from "vitest";
import { chart } from "../src/charts.js";
import { Explorer } from "../src/explorer.js";
import { matrix } from "../src/matrix.js";
import { START, VIEWS, type State } from "../src/state.js";
import { compare, SortableTable, tables, UNSORTED } from "../src/tables.js";
import { made } from "./made.js";

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

test("a chart of what is not there says so", () => {
  const state = { ...START, view: "time" as const };
  expect(chart(store, state, matrix(store, state), 800, () => undefined)).toMatchObject({ drawing: null, caption: "This metric has no values inside of the windows." });
});
