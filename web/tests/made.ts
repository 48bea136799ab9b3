// A report of two arms and direct under two conditions, with two metrics, three blocks, one attempt made again and one failed.

import { Store, type Cell, type CellColumns, type Report } from "../src/data.js";

const ARMS = ["direct", "fast", "slow"];
const CONDITIONS = ["lan", "lossy"];
const FACTORS: Record<string, number> = { "direct/lan": 1, "fast/lan": 0.9, "slow/lan": 0.5, "direct/lossy": 0.2, "fast/lossy": 0.05, "slow/lossy": 0.1 };

export function made(): Store {
  const cells: Cell[] = [];
  const attempts = { block: [] as number[], position: [] as number[], attempt: [] as number[], arm: [] as number[], condition: [] as number[], workload: [] as number[], outcome: [] as string[], grade: [] as string[], grades: [] as number[], counts: [] as (0 | 1)[], said: [] as number[], trial: [] as string[], files: [] as number[] };
  const values: [number, number][] = [];
  CONDITIONS.forEach((where, condition) =>
    ARMS.forEach((name, arm) => {
      const factor = FACTORS[`${name}/${where}`]!;
      const median = 1e9 * factor;
      const effect = factor / FACTORS[`direct/${where}`]!;
      const reference = name === "direct";
      cells.push({ metric: 0, condition, arm, rank: null, median, low: 0.9 * median, high: 1.1 * median, text: `${median / 1e6} Mbit/s`, spread: "", effect: reference ? null : effect, effect_low: reference ? null : 0.95 * effect, effect_high: reference ? null : 1.05 * effect, effect_text: reference ? "" : `▼ ${100 * effect} %`, verdict: reference ? "the bare link" : "worse", ceiling: "", bound: "the sender's core", why: "", apart: "", remarks: "", missing: "", good: 3, disturbed: 0, void: 0, failed: 0 });
      cells.push({ ...cells.at(-1)!, metric: 1, median: 1 / factor, low: null, high: null, text: `${1 / factor} ms` });
      for (const block of [1, 2, 3]) {
        const push = (attempt: number, outcome: string, grade: string, counts: 0 | 1) => {
          const row = { block, position: attempts.block.length + 1, attempt, arm, condition, workload: 0, outcome, grade, grades: 0, counts, said: outcome === "ok" ? 0 : 1, trial: "", files: 0 };
          for (const [key, value] of Object.entries(row)) (attempts[key as keyof typeof attempts] as unknown[]).push(value);
          if (outcome === "ok") values.push([attempts.block.length - 1, median * (0.8 + 0.1 * block)]);
        };
        if (name === "slow" && where === "lan" && block === 2) push(1, "void", "void", 0);
        push(name === "slow" && where === "lan" && block === 2 ? 2 : 1, name === "slow" && where === "lossy" && block === 3 ? "failed" : "ok", "good", 1);
      }
    }),
  );
  const columns = Object.fromEntries(Object.keys(cells[0]!).map((key) => [key, cells.map((one) => one[key as keyof Cell])])) as unknown as CellColumns;
  const metric = (workload: string, name: string, unit: string, better: "higher" | "lower") => ({ workload, name, title: name, unit, better, compare: "ratio" as const, feels: unit === "ms" ? "tail" : "transfer", role: "primary" as const });
  const report: Report = {
    schema: 1,
    study: "made",
    title: "made",
    reference: 0,
    blocks: 3,
    ranked: true,
    legend: "",
    arms: ARMS.map((name) => ({ name, label: name, title: `what ${name} is` })),
    conditions: CONDITIONS.map((name) => ({ name, title: name, profile: name, topology: "pair" })),
    metrics: [metric("tcp", "goodput", "bit/s", "higher"), metric("tcp", "delay", "ms", "lower")],
    cells: columns,
    attempts: { ...attempts, texts: ["", "the link was late"], file_lists: [["client.out", "/raw/link/pröbe 1.out"]], grade_lists: [{}], workloads: ["tcp"] },
    attempt_lists: [values.map(([place]) => place)],
    values: [{ metric: 0, attempts: 0, values: values.map(([, value]) => value) }],
    series: [],
    left_out: [],
    series_left_out: [],
  };
  return new Store(report);
}

/** The same, where the machine spoilt the second block of fast under lan for what feels so. */
export function spoilt(feels: string): Store {
  const store = made();
  store.report.attempts.grade_lists!.push({ [feels]: "void" });
  const { place } = store.attempts(0, 1, 0).find((one) => one.block === 2)!;
  store.report.attempts.grades![place] = 1;
  return store;
}

/** The same without that block's value, or with another one. */
export function changed(value: number | null): Store {
  const store = made();
  const { place } = store.attempts(0, 1, 0).find((one) => one.block === 2)!;
  const [values] = store.report.values;
  values!.values[store.report.attempt_lists[0]!.indexOf(place)] = value;
  return store;
}
