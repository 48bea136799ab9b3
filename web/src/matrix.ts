// The matrix of arms and conditions by one metric: what each cell shows, what is sorted by, and what is filtered out. Pure.

import type { Cell, Metric, Store } from "./data.js";
import { number, scale, withUnit, type Scale } from "./format.js";
import type { Show, State } from "./state.js";

/** What is shown of one arm under one condition; numbers are in the metric's unit, ratios are pure. */
export interface Entry {
  arm: number;
  condition: number;
  cell: Cell;
  value: number | null;
  low: number | null;
  high: number | null;
  text: string;
  /** Of what `low` and `high` are the ends. */
  ends: "least and largest" | "95 % interval" | "least and largest difference";
}

export interface Row {
  arm: number;
  entries: (Entry | undefined)[];
}

export interface Matrix {
  metric: number;
  about: Metric;
  show: Show;
  conditions: number[];
  rows: Row[];
  /** How values of a chart's axis are written. */
  axis: Scale;
}

/** A metric of this report: the one that is asked for, else the first. */
export function metricOf(store: Store, key: string): number {
  return Math.max(0, store.metricOf(key));
}

/** The conditions that are shown: of those asked for, else of all, those in which the metric has values. */
export function conditionsOf(store: Store, metric: number, asked: string[]): number[] {
  const known = store.report.conditions.map((_, place) => place).filter((place) => store.has(metric, place));
  const wanted = known.filter((place) => asked.includes(store.conditionKey(place)));
  return wanted.length > 0 ? wanted : known;
}

/** Whether a name holds all words of a part of a filter, in any order. Commas part it; a word that begins with a minus must not be there at all. */
export function matches(filter: string, name: string): boolean {
  const text = name.toLowerCase();
  const unwanted = (word: string): boolean => word.startsWith("-") && word.length > 1;
  const parts = filter.toLowerCase().split(",").map((part) => part.split(/\s+/).filter(Boolean));
  if (parts.flat().some((word) => unwanted(word) && text.includes(word.slice(1)))) return false;
  const wanted = parts.map((part) => part.filter((word) => !unwanted(word))).filter((part) => part.length > 0);
  return wanted.length === 0 || wanted.some((part) => part.every((word) => text.includes(word)));
}

/** What can be shown of a metric: its values; ratios or differences to direct with intervals; of ratios, also plain differences. */
export function showsOf(store: Store, about: Metric): { show: Show; title: string }[] {
  const direct = store.report.reference === null ? undefined : store.report.arms[store.report.reference]?.name;
  if (direct === undefined) return [{ show: "value", title: "value" }];
  if (about.compare === "difference") return [{ show: "value", title: "value" }, { show: "effect", title: `difference to ${direct}` }];
  return [
    { show: "value", title: "value" },
    { show: "effect", title: `ratio to ${direct}` },
    { show: "difference", title: `difference to ${direct}` },
  ];
}

/** The differences of an arm's values to direct's in the same block, least first. */
export function differences(store: Store, metric: number, arm: number, condition: number): number[] {
  const { reference } = store.report;
  if (reference === null) return [];
  const values = store.values(metric);
  const byBlock = (of: number) => {
    const found = new Map<number, number[]>();
    for (const one of store.attempts(metric, of, condition)) {
      const value = values.get(one.place);
      if (one.counts && one.grade !== "void" && value !== undefined) found.set(one.block, [...(found.get(one.block) ?? []), value]);
    }
    return found;
  };
  const mean = (of: number[]) => of.reduce((sum, each) => sum + each, 0) / of.length;
  const direct = byBlock(reference);
  const found: number[] = [];
  for (const [block, own] of byBlock(arm)) {
    const theirs = direct.get(block);
    if (theirs) found.push(mean(own) - mean(theirs));
  }
  return found.sort((a, b) => a - b);
}

export function quantile(ordered: number[], q: number): number {
  const at = q * (ordered.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, ordered.length - 1);
  return ordered[low]! + (at - low) * (ordered[high]! - ordered[low]!);
}

export function matrix(store: Store, state: State): Matrix {
  const metric = metricOf(store, state.metric);
  const about = store.report.metrics[metric]!;
  const show = showsOf(store, about).some((one) => one.show === state.show) ? state.show : state.show === "difference" ? "effect" : "value";
  const conditions = conditionsOf(store, metric, state.conditions);
  const arms = store.report.arms
    .map((arm, place) => ({ arm, place }))
    .filter(({ arm }) => matches(state.filter, arm.label));
  const entries = arms.map(({ place }) => ({ arm: place, entries: conditions.map((condition) => entry(store, metric, place, condition, show)) }));
  const rows = entries.filter((row) => row.entries.some((one) => one !== undefined));
  const values = rows.flatMap((row) => row.entries.flatMap((one) => (one?.value == null ? [] : [one.value])));
  const axis = axisOf(about, show, values);
  if (show === "difference") for (const row of rows) for (const one of row.entries) if (one?.value != null) one.text = difference(one, axis);
  return { metric, about, show, conditions, rows: sorted(store, rows, conditions, state), axis };
}

function difference(one: Entry, by: Scale): string {
  const signed = (value: number) => `${value > 0 ? "+" : ""}${number(value / by.factor)}`;
  return `${withUnit(signed(one.value!), by.unit)} [${signed(one.low!)} to ${signed(one.high!)}]`;
}

/** In what an axis is written: ratios of what should be high in per cent, of what should be low as a multiple. */
export function axisOf(about: Metric, show: Show, values: number[]): Scale {
  if (show === "effect" && about.compare === "ratio") return about.better === "higher" ? { factor: 0.01, unit: "%" } : { factor: 1, unit: "×" };
  if (show !== "value" && about.unit === "%") return { factor: 1, unit: "points" };
  return scale(about.unit, values);
}

function entry(store: Store, metric: number, arm: number, condition: number, show: Show): Entry | undefined {
  const cell = store.cell(metric, arm, condition);
  if (!cell) return undefined;
  const held = { arm, condition, cell };
  if (show === "value") return { ...held, value: cell.median, low: cell.low, high: cell.high, text: cell.text, ends: "least and largest" };
  if (show === "effect") {
    const own = arm === store.report.reference;
    const text = own ? "" : cell.effect_text;
    return { ...held, value: own ? null : cell.effect, low: own ? null : cell.effect_low, high: own ? null : cell.effect_high, text, ends: "95 % interval" };
  }
  const found = arm === store.report.reference ? [] : differences(store, metric, arm, condition);
  if (found.length === 0) return { ...held, value: null, low: null, high: null, text: "", ends: "least and largest difference" };
  return { ...held, value: quantile(found, 0.5), low: found[0]!, high: found[found.length - 1]!, text: "", ends: "least and largest difference" };
}

/** The rows in the order that is asked for; arms without a value are last. */
export function sorted(store: Store, rows: Row[], conditions: number[], state: State): Row[] {
  if (state.sort === "") return rows;
  const way = state.descending ? -1 : 1;
  if (state.sort === "arm") {
    const name = (row: Row) => store.report.arms[row.arm]?.label ?? "";
    return [...rows].sort((a, b) => way * name(a).localeCompare(name(b)));
  }
  const column = conditions.indexOf(store.conditionOf(state.sort));
  if (column < 0) return rows;
  const value = (row: Row) => row.entries[column]?.value ?? null;
  return [...rows].sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
    return way * (one - other);
  });
}

/** What is under a cell's first line. */
export function remarks(store: Store, one: Entry, show: Show): string[] {
  const { cell } = one;
  const said: string[] = [];
  if (show === "value" && cell.effect_text && one.arm !== store.report.reference) said.push(cell.effect_text);
  if (show !== "value" && cell.text) said.push(cell.text);
  if (cell.rank) said.push(`rank ${cell.rank[0] === cell.rank[1] ? cell.rank[0] : cell.rank.join("–")} of the VPNs`);
  if (cell.bound && cell.bound !== "unknown") said.push(`bound by ${cell.bound}`);
  else if (cell.ceiling) said.push(cell.ceiling);
  if (cell.remarks) said.push(cell.remarks);
  const counts = (["disturbed", "void", "failed"] as const).filter((name) => cell[name] > 0).map((name) => `${cell[name]} ${name}`);
  if (counts.length > 0) said.push(counts.join(", "));
  return said;
}

/** The table as comma-separated values, with a line for each cell: numbers in the metric's unit. Differences are in it where they are shown. */
export function csv(store: Store, found: Matrix): string {
  const quote = (value: unknown) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const head = ["arm", "profile", "topology", "workload", "metric", "unit", "median", "least", "largest", "effect", "effect_low", "effect_high", "compare", "verdict", "rank", "bound_by", "good", "disturbed", "void", "failed", ...(found.show === "difference" ? ["difference", "difference_low", "difference_high"] : [])];
  const lines = found.rows.flatMap((row) =>
    row.entries.flatMap((one) => {
      if (!one) return [];
      const { cell } = one;
      const where = store.report.conditions[one.condition]!;
      const about = found.about;
      return [[store.report.arms[one.arm]!.name, where.profile, where.topology, about.workload, about.name, about.unit, cell.median, cell.low, cell.high, cell.effect, cell.effect_low, cell.effect_high, about.compare, cell.verdict, cell.rank?.join("-"), cell.bound, cell.good, cell.disturbed, cell.void, cell.failed, ...(found.show === "difference" ? [one.value, one.low, one.high] : [])]];
    }),
  );
  return `${[head, ...lines].map((line) => line.map(quote).join(",")).join("\r\n")}\r\n`;
}
