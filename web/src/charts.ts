// Charts of the matrix that is shown, as SVG by Observable Plot.

import { axisX, axisY, barX, cell as cellMark, dot, ruleX, ruleY, text } from "@observablehq/plot";
import type { Markish } from "@observablehq/plot";
import { clicks, colour, drawn, facets, fill, headings, left, legend, name, unplaced, type Chart, type Open, type Place } from "./chart_parts.js";
import type { Store } from "./data.js";
import { conditionsOf, matrix, metricOf, type Entry, type Matrix } from "./matrix.js";
import { capital } from "./format.js";
import type { State } from "./state.js";
import { distribution, overTime } from "./trial_charts.js";

/** The chart that is asked for, as wide as there is room for. */
export function chart(store: Store, state: State, found: Matrix, width: number, open: Open): Chart {
  switch (state.view) {
    case "table":
      return { drawing: null, caption: "", legend: [] };
    case "bars":
      return bars(store, state, found, width, open);
    case "heat":
      return heat(store, found, width, open);
    case "scatter":
      return scatter(store, state, found, width, open);
    case "box":
    case "cdf":
      return distribution(store, state, found, width);
    case "time":
      return overTime(store, state, found, width);
  }
}

function title(found: Matrix): string {
  const what = found.show === "value" ? "" : found.about.compare === "ratio" && found.show === "effect" ? ", ratio" : ", difference";
  return `${capital(found.about.title)}${what}`;
}

function label(found: Matrix): string {
  return `${title(found)} (${found.axis.unit || "1"}; ${found.about.better === "higher" ? "more is better" : "less is better"})`;
}

/** What is drawn for the blocks of a cell. */
const OVER_BLOCKS = { value: "medians over blocks", effect: "estimates over blocks, compared with direct", difference: "median differences to direct within blocks" };

interface Bar extends Place {
  value: number;
  low: number | null;
  high: number | null;
  text: string;
  verdict: string;
  reference: boolean;
}

function flat(store: Store, found: Matrix): Bar[] {
  const { factor } = found.axis;
  const by = (value: number | null) => (value === null ? null : value / factor);
  return found.rows.flatMap((row) =>
    row.entries.flatMap((one): Bar[] =>
      one?.value == null
        ? []
        : [{ ...place(store, one), value: one.value / factor, low: by(one.low), high: by(one.high), text: one.text, verdict: one.cell.verdict, reference: one.arm === store.report.reference }],
    ),
  );
}

function place(store: Store, one: Entry): Place {
  return { arm: one.arm, condition: one.condition, label: store.report.arms[one.arm]!.label, where: name(store, one.condition) };
}

function tip(one: Bar): string {
  return `${one.label}, ${one.where}: ${one.text}. Click for its trials.`;
}

function baseline(found: Matrix): number | null {
  if (found.show === "value") return null;
  return found.show === "effect" && found.about.compare === "ratio" ? 1 / found.axis.factor : 0;
}

function bars(store: Store, state: State, found: Matrix, width: number, open: Open): Chart {
  const all = flat(store, found);
  const data = state.log ? all.filter((one) => one.value > 0) : all;
  const labels = found.rows.map((row) => store.report.arms[row.arm]!.label).filter((one) => data.some((each) => each.label === one));
  const names = found.conditions.map((one) => name(store, one)).filter((one) => data.some((each) => each.where === one));
  const base = baseline(found);
  const ends = data.filter((one) => one.low !== null && one.high !== null && (!state.log || one.low > 0));
  const shared = { x: "value", y: "label", fy: "where" } as const;
  const marks: Markish[] = [
    axisX({ label: label(found), labelAnchor: "left", tickSize: 0, labelOffset: 38 }),
    axisY({ tickSize: 0 }),
    ...headings(names),
    state.log
      ? dot(data, { ...shared, r: 4, fill: (one: Bar) => (one.reference ? "var(--soft)" : "var(--blue)"), title: tip, render: clicks(data, open) })
      : barX(data, { ...shared, fill: (one: Bar) => (one.reference ? "var(--bar-reference)" : "var(--bar)"), title: tip, render: clicks(data, open) }),
    ruleY(ends, { x1: "low", x2: "high", y: "label", fy: "where", stroke: "var(--ink)", strokeWidth: 1.6, pointerEvents: "none" }),
    ...(state.log ? [] : [dot(data, { ...shared, r: 2.5, fill: "var(--ink)", pointerEvents: "none" })]),
    ...(base === null ? [] : [ruleX([base], { stroke: "var(--soft)", strokeDasharray: "4 3" })]),
  ];
  const dropped = all.length - data.length;
  const what = found.show === "effect" ? "its 95 % interval" : `from the least to the largest ${found.show === "difference" ? "difference in a block" : "block"}`;
  return {
    drawing: data.length === 0 ? null : drawn({ ...facets(names, labels.length, width, labels), x: { type: state.log ? "log" : "linear", grid: true, ...(state.log ? {} : { zero: found.show === "value" }) }, marks }, `${title(found)} by arm${names.length > 1 ? " and condition" : ""}, as bars.`),
    caption: `${state.log ? "Dot" : "Bar"}: ${found.show === "effect" ? "the estimate over blocks" : "the median over blocks"}; line: ${what}.${unplaced(dropped)} Click on ${state.log ? "a dot" : "a bar"} for its trials.`,
    legend: [],
  };
}

function heat(store: Store, found: Matrix, width: number, open: Open): Chart {
  const data = flat(store, found);
  const labels = found.rows.map((row) => store.report.arms[row.arm]!.label);
  const names = found.conditions.map((one) => name(store, one));
  const values = data.map((one) => one.value);
  const [least, largest] = [Math.min(...values), Math.max(...values)];
  const base = baseline(found);
  const hue = (one: Bar): string => (base === null || one.verdict === "better" ? "var(--blue)" : one.verdict === "worse" ? "var(--red)" : "var(--soft)");
  const far = Math.max(...values.map((value) => Math.abs(value - (base ?? 0))), Number.MIN_VALUE);
  const shade = (one: Bar): number => {
    if (base === null) return largest > least ? 0.06 + (0.4 * (one.value - least)) / (largest - least) : 0.2;
    const ratio = found.about.compare === "ratio" && found.show === "effect";
    const size = ratio ? Math.abs(Math.log2(Math.max(one.value / base, 1e-9))) / 2 : Math.abs(one.value - base) / far;
    return 0.05 + 0.4 * Math.min(1, size);
  };
  const short = (one: Bar) => one.text.replace(/\s*\[.*\]/, "");
  const wide = Math.max(110, ...data.map((one) => 7.4 * short(one).length + 14), ...names.map((one) => (names.length > 8 ? 0 : 7 * one.length + 10)));
  const marginLeft = left(labels);
  const inner = Math.min(width - marginLeft - 20, Math.max(names.length * wide, 120));
  const turned = inner / names.length < Math.max(...names.map((one) => 7 * one.length));
  return {
    drawing:
      data.length === 0
        ? null
        : drawn(
            {
              width: Math.max(width, marginLeft + names.length * 58 + 20),
              height: labels.length * 30 + (turned ? 110 : 40),
              marginLeft,
              marginRight: Math.max(20, width - marginLeft - Math.max(inner, names.length * 58)),
              marginTop: turned ? 100 : 30,
              marginBottom: 8,
              x: { domain: names, label: null, axis: "top", tickSize: 0, ...(turned ? { tickRotate: -45 } : {}), padding: 0.03 },
              y: { domain: labels, label: null, tickSize: 0, padding: 0.06 },
              marks: [
                cellMark(data, { x: "where", y: "label", fill: hue, fillOpacity: shade, title: tip, render: clicks(data, open) }),
                text(data, { x: "where", y: "label", text: short, fill: "var(--ink)", pointerEvents: "none" }),
              ],
            },
            `${title(found)} by arm and condition, as a heat map.`,
          ),
    caption: base === null ? "The stronger the shade, the larger the median." : "Blue: better than direct; red: worse; grey: neither is shown; the stronger, the farther from it. Click on a field for its trials.",
    legend: [],
  };
}

interface Point extends Place {
  x: number;
  y: number;
  text: string;
}

/** The second metric of a scatter plot: the one that is asked for, else the first other one that has values under the same conditions. */
export function second(store: Store, state: State): number {
  const first = metricOf(store, state.metric);
  const asked = store.metricOf(state.against);
  if (asked >= 0) return asked;
  const conditions = conditionsOf(store, first, state.conditions);
  const other = store.report.metrics.findIndex((one, place) => place !== first && one.unit !== store.report.metrics[first]?.unit && conditions.some((each) => store.has(place, each)));
  return Math.max(0, other);
}

function scatter(store: Store, state: State, found: Matrix, width: number, open: Open): Chart {
  const across = matrix(store, { ...state, metric: store.metricKey(second(store, state)), sort: "" });
  const others = new Map(flat(store, across).map((one) => [`${one.arm}/${one.condition}`, one]));
  const all = flat(store, found).flatMap((one): Point[] => {
    const other = others.get(`${one.arm}/${one.condition}`);
    return other ? [{ ...one, y: one.value, x: other.value, text: `${one.text} and ${other.text}` }] : [];
  });
  const data = state.log ? all.filter((one) => one.x > 0 && one.y > 0) : all;
  const arms = [...new Set(data.map((one) => one.arm))];
  const several = found.conditions.length > 1;
  const type = state.log ? "log" : "linear";
  return {
    drawing:
      data.length === 0
        ? null
        : drawn(
            {
              width,
              height: Math.min(520, Math.max(320, width * 0.55)),
              marginLeft: 64,
              marginBottom: 46,
              marginTop: 34,
              marginRight: 90,
              x: { type, grid: true, nice: true, label: label(across), labelAnchor: "left", labelOffset: 40 },
              y: { type, grid: true, nice: true, label: `↑ ${label(found).replace(" →", "")}` },
              symbol: { domain: found.conditions.map((one) => name(store, one)) },
              marks: [
                dot(data, { x: "x", y: "y", r: 5, stroke: (one: Point) => colour(store, one.arm).colour, strokeWidth: 2, fill: (one: Point) => fill(store, one.arm), ...(several ? { symbol: "where" } : {}), title: (one: Point) => `${one.label}, ${one.where}: ${one.text}`, render: clicks(data, open) }),
                ...(data.length > 40 ? [] : [text(data, { x: "x", y: "y", text: (one: Point) => (several ? `${one.label}, ${one.where}` : one.label), textAnchor: "start", dx: 9, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 3, pointerEvents: "none" })]),
              ],
            },
            `${title(found)} against ${across.about.title}, a point for each arm${several ? " and condition" : ""}.`,
          ),
    caption: `A point for each arm${several ? " and condition" : ""}: ${OVER_BLOCKS[found.show]}.${unplaced(all.length - data.length)}${data.length > 40 ? " The pointer on a point tells its arm and condition, and a click opens its trials; fewer of either have their names next to them." : ""}`,
    legend: legend(store, arms).map((one, at) => ({ ...one, fill: fill(store, arms[at]!) })),
  };
}
