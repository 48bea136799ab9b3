// The report's data as the page holds it (`tunnelmark.report.web_data`), and what is asked of it. Pure.

export interface Metric {
  workload: string;
  name: string;
  title: string;
  unit: string;
  better: "higher" | "lower";
  compare: "ratio" | "difference";
  /** What of the machine and its links reaches its values: by that an attempt is graded. */
  feels: string;
  role: "primary" | "other" | "watched";
}

export interface Condition {
  name: string;
  title: string;
  profile: string;
  topology: string;
}

export interface Arm {
  name: string;
  label: string;
  title: string;
}

type Column<T> = T[];

export interface CellColumns {
  metric: Column<number>;
  condition: Column<number>;
  arm: Column<number>;
  rank: Column<[number, number] | null>;
  median: Column<number | null>;
  low: Column<number | null>;
  high: Column<number | null>;
  text: Column<string>;
  spread: Column<string>;
  effect: Column<number | null>;
  effect_low: Column<number | null>;
  effect_high: Column<number | null>;
  effect_text: Column<string>;
  verdict: Column<string>;
  ceiling: Column<string>;
  bound: Column<string>;
  why: Column<string>;
  apart: Column<string>;
  remarks: Column<string>;
  missing: Column<string>;
  good: Column<number>;
  disturbed: Column<number>;
  void: Column<number>;
  failed: Column<number>;
}

export interface AttemptColumns {
  block: Column<number>;
  position: Column<number>;
  attempt: Column<number>;
  arm: Column<number>;
  condition: Column<number>;
  workload: Column<number>;
  outcome: Column<string>;
  grade: Column<string>;
  grades: Column<number>;
  counts: Column<0 | 1>;
  said: Column<number>;
  trial: Column<string>;
  files: Column<number>;
  texts: string[];
  file_lists: string[][];
  /** Grades that are not good, by what metrics feel. */
  grade_lists: Record<string, string>[];
  workloads: string[];
}

export interface Report {
  schema: number;
  study: string;
  title: string;
  reference: number | null;
  blocks: number;
  ranked: boolean;
  legend: string;
  arms: Arm[];
  conditions: Condition[];
  metrics: Metric[];
  cells: Partial<CellColumns>;
  attempts: Partial<AttemptColumns>;
  /** Places of attempts, in lists that several metrics share. */
  attempt_lists: number[][];
  values: { metric: number; attempts: number; values: (number | null)[] }[];
  series: { metric: number; step: number; attempts: number; values: (number | null)[][] }[];
  /** Titles of the metrics for whose values of single trials, or inside of windows, the page has no room. */
  left_out: string[];
  series_left_out: string[];
}

export type Cell = { [K in keyof CellColumns]: CellColumns[K][number] };

export interface Attempt {
  place: number;
  block: number;
  position: number;
  attempt: number;
  arm: number;
  condition: number;
  workload: string;
  outcome: string;
  /** What it is worth by the metric that it was asked for. */
  grade: string;
  counts: boolean;
  said: string;
  files: { name: string; path: string }[];
}

export const SCHEMA = 1;

/** What is looked up often, by place. */
export class Store {
  readonly report: Report;
  private readonly cells = new Map<string, Cell>();
  private readonly attemptsOf = new Map<string, number[]>();

  constructor(report: Report) {
    if (report.schema !== SCHEMA) throw new Error(`the page's data has schema ${report.schema}, and this reads ${SCHEMA}`);
    this.report = report;
    const columns = report.cells;
    const names = Object.keys(columns) as (keyof CellColumns)[];
    (columns.metric ?? []).forEach((_, row) => {
      const cell = Object.fromEntries(names.map((name) => [name, columns[name]?.[row]])) as unknown as Cell;
      this.cells.set(`${cell.metric}/${cell.arm}/${cell.condition}`, cell);
    });
    const tried = report.attempts;
    (tried.block ?? []).forEach((_, row) => {
      const key = `${tried.workloads?.[tried.workload?.[row] ?? -1]}/${tried.arm?.[row]}/${tried.condition?.[row]}`;
      const rows = this.attemptsOf.get(key);
      if (rows) rows.push(row);
      else this.attemptsOf.set(key, [row]);
    });
  }

  /** From what the page holds: JSON, or base64 of a zlib stream of it. */
  static async from(text: string): Promise<Store> {
    return new Store(JSON.parse(text.startsWith("{") ? text : await unpacked(text)) as Report);
  }

  metricKey(metric: number): string {
    const found = this.report.metrics[metric];
    return found ? `${found.workload}.${found.name}` : "";
  }

  metricOf(key: string): number {
    return this.report.metrics.findIndex((_, place) => this.metricKey(place) === key);
  }

  conditionKey(condition: number): string {
    const found = this.report.conditions[condition];
    return found ? `${found.profile}/${found.topology}` : "";
  }

  conditionOf(key: string): number {
    return this.report.conditions.findIndex((_, place) => this.conditionKey(place) === key);
  }

  armOf(name: string): number {
    return this.report.arms.findIndex((arm) => arm.name === name);
  }

  cell(metric: number, arm: number, condition: number): Cell | undefined {
    return this.cells.get(`${metric}/${arm}/${condition}`);
  }

  /** Whether anything is known by that metric under that condition. */
  has(metric: number, condition: number): boolean {
    return this.report.arms.some((_, arm) => this.cell(metric, arm, condition) !== undefined);
  }

  /** Every attempt at a cell, by block and attempt. */
  attempts(metric: number, arm: number, condition: number): Attempt[] {
    const { workload = "", feels = "" } = this.report.metrics[metric] ?? {};
    const rows = this.attemptsOf.get(`${workload}/${arm}/${condition}`) ?? [];
    return rows.map((row) => this.attempt(row, workload, feels)).sort((a, b) => a.block - b.block || a.attempt - b.attempt);
  }

  private attempt(row: number, workload: string, feels: string): Attempt {
    const from = this.report.attempts as AttemptColumns;
    const [arm, condition, block, attempt] = [from.arm[row] ?? -1, from.condition[row] ?? -1, from.block[row] ?? 0, from.attempt[row] ?? 1];
    const where = this.report.conditions[condition];
    const usual = [String(block).padStart(3, "0"), this.report.arms[arm]?.name, where?.profile, where?.topology, workload].join(".");
    const outcome = from.outcome[row] ?? "";
    const folder = `raw/${from.trial[row] || usual}${attempt > 1 ? `~${attempt}` : ""}/`;
    return {
      place: row,
      block,
      position: from.position[row] ?? 0,
      attempt,
      arm,
      condition,
      workload,
      outcome,
      grade: outcome === "ok" ? (from.grade_lists[from.grades[row] ?? -1]?.[feels] ?? "good") : (from.grade[row] ?? ""),
      counts: from.counts[row] === 1,
      said: from.texts[from.said[row] ?? 0] ?? "",
      files: (from.file_lists[from.files[row] ?? -1] ?? []).map((name) => {
        const path = name.startsWith("/") ? name.slice(1) : folder + name;
        return { name: path.slice(path.lastIndexOf("/") + 1), path: path.split("/").map(encodeURIComponent).join("/") };
      }),
    };
  }

  /** Whether the page has no room for a metric's values of single trials, or for those inside of windows. */
  isLeftOut(metric: number, what: "left_out" | "series_left_out"): boolean {
    const about = this.report.metrics[metric];
    return about !== undefined && this.report[what].includes(`${about.title} (${about.workload})`);
  }

  /** By attempt, its value of a metric over the whole window. */
  values(metric: number): Map<number, number> {
    const found = new Map<number, number>();
    const column = this.report.values.find((one) => one.metric === metric);
    this.report.attempt_lists[column?.attempts ?? -1]?.forEach((place, row) => {
      const value = column?.values[row];
      if (value != null) found.set(place, value);
    });
    return found;
  }

  /** By attempt, its values inside of the window, and the step between them in seconds. */
  series(metric: number): { step: number; of: Map<number, (number | null)[]> } | undefined {
    const column = this.report.series.find((one) => one.metric === metric);
    if (!column) return undefined;
    return { step: column.step, of: new Map((this.report.attempt_lists[column.attempts] ?? []).map((place, row) => [place, column.values[row] ?? []])) };
  }
}

async function unpacked(text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}
