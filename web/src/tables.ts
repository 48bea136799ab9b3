// The page's own tables become sortable, and long ones get a filter; how each is sorted is in the address.

import { h } from "./dom.js";
import { sortable } from "./format.js";
import { matches } from "./matrix.js";
import type { TableState } from "./state.js";

const LONG = 10; // rows from which on a filter helps
const ROWS = 3; // fewer are not worth sorting

export const UNSORTED: TableState = { column: -1, descending: false, filter: "" };

/** What a table's row is sorted by in a column: a number where the page gives one, or the text begins with one; else the text. "" is not a value. */
export function keyOf(row: HTMLTableRowElement, column: number): number | string {
  const cell = row.cells[column];
  if (!cell) return "";
  const given = cell.dataset["sort"];
  if (given !== undefined) return given === "" ? "" : Number(given);
  const text = cell.textContent?.trim() ?? "";
  if (text === "–") return "";
  return cell.tagName === "TH" ? text : (sortable(text) ?? text);
}

/** Numbers before texts, empty ones last whichever way. */
export function compare(a: number | string, b: number | string, way: 1 | -1): number {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return way * (a - b);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return way * String(a).localeCompare(String(b), undefined, { numeric: true });
}

export class SortableTable {
  private readonly rows: HTMLTableRowElement[];
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly field: HTMLInputElement | undefined;
  private readonly count = h("span", { role: "status" });
  private state = UNSORTED;

  constructor(
    private readonly table: HTMLTableElement,
    private readonly changed: (state: TableState) => void,
  ) {
    this.rows = [...(table.tBodies[0]?.rows ?? [])];
    [...(table.tHead?.rows[0]?.cells ?? [])].forEach((head, column) => {
      if (!head.textContent?.trim()) return;
      const button = h("button", { type: "button", class: "sort", onclick: () => this.sortBy(column) }, ...head.childNodes);
      head.replaceChildren(button);
      this.buttons[column] = button;
    });
    if (this.rows.length >= LONG) {
      this.field = h("input", { type: "search", placeholder: "one, or another, -none", oninput: () => this.put({ ...this.state, filter: this.field?.value ?? "" }) });
      const box = table.closest(".scroll") ?? table;
      box.before(h("div", { class: "filter tool" }, h("label", { class: "field" }, h("span", {}, "Filter rows"), this.field), this.count));
    }
  }

  static worthIt(table: HTMLTableElement): boolean {
    const body = table.tBodies[0];
    const plain = [...table.querySelectorAll("td, th")].slice(0, 200).every((cell) => (cell as HTMLTableCellElement).colSpan === 1 && (cell as HTMLTableCellElement).rowSpan === 1);
    return table.tHead?.rows.length === 1 && (body?.rows.length ?? 0) >= ROWS && plain;
  }

  private sortBy(column: number): void {
    const { state } = this;
    if (state.column !== column) this.put({ ...state, column, descending: false });
    else if (!state.descending) this.put({ ...state, descending: true });
    else this.put({ ...state, column: -1, descending: false });
  }

  private put(state: TableState): void {
    this.show(state);
    this.changed(state);
  }

  /** Sorts and filters as asked. */
  show(state: TableState): void {
    this.state = state;
    if (this.field && this.field.value !== state.filter) this.field.value = state.filter;
    let rows = this.rows;
    if (state.column >= 0) {
      const keyed = rows.map((row) => ({ row, key: keyOf(row, state.column) }));
      keyed.sort((a, b) => compare(a.key, b.key, state.descending ? -1 : 1));
      rows = keyed.map(({ row }) => row);
    }
    let left = 0;
    for (const row of rows) {
      row.hidden = state.filter !== "" && !matches(state.filter, row.textContent ?? "");
      if (!row.hidden) left += 1;
    }
    this.table.tBodies[0]?.append(...rows);
    this.buttons.forEach((button, column) => {
      const head = button.parentElement;
      if (column === state.column) head?.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else head?.removeAttribute("aria-sort");
    });
    this.count.textContent = state.filter === "" ? "" : `${left} of ${rows.length} rows`;
  }
}

/** All tables of the page that are worth it, by the name that they have in the address; those that are read from top to bottom stay as they are. */
export function tables(root: ParentNode, changed: (name: string, state: TableState) => void): Map<string, SortableTable> {
  const found = new Map<string, SortableTable>();
  [...root.querySelectorAll<HTMLTableElement>(".scroll > table:not(.still)")].forEach((table, place) => {
    const name = `t${place}`;
    if (SortableTable.worthIt(table)) found.set(name, new SortableTable(table, (state) => changed(name, state)));
  });
  return found;
}
