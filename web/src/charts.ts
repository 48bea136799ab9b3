// Charts of the matrix that is shown, and of the trials behind it, as SVG by Observable Plot.

import { axisX, axisY, barX, boxX, cell as cellMark, dot, line, plot, ruleX, ruleY, text } from "@observablehq/plot";
import type { Markish, PlotOptions, RenderFunction } from "@observablehq/plot";
import type { Store } from "./data.js";
import { axisOf, axisText, matches, matrix, metricOf, quantile, conditionsOf, type Entry, type Matrix } from "./matrix.js";
import { capital } from "./format.js";
import type { State } from "./state.js";

/** A drawing, what its marks mean in words, and the colours of its arms where those tell arms apart. */
export interface Chart {
  drawing: SVGSVGElement | null;
  caption: string;
  legend: { arm: string; colour: string; dash: string; symbol: string }[];
}

type Open = (arm: number, condition: number) => void;

const COLOURS = 8; // in report.css: --c0 to --c7
const DASHES = ["", "6 3", "2 2", "8 2 2 2"];
const ROW = 22; // pixels of an arm's row
const MOST_THIN = 150; // lines of single trials that can still be told from each other
const MOST_POINTS = 300; // of one line of a distribution

interface Place {
  arm: number;
  condition: number;
  label: string;
  where: string;
}

export function colour(store: Store, arm: number): { colour: string; dash: string } {
  if (arm === store.report.reference) return { colour: "var(--soft)", dash: "" };
  const place = store.report.arms.slice(0, arm).filter((_, at) => at !== store.report.reference).length;
  return { colour: `var(--c${place % COLOURS})`, dash: DASHES[Math.floor(place / COLOURS) % DASHES.length]! };
}

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

function drawn(options: PlotOptions, words: string): SVGSVGElement {
  const drawing = plot({
    style: { background: "none", overflow: "visible", fontFamily: "var(--sans)", fontSize: "12px", color: "var(--ink)" },
    ...options,
  }) as SVGSVGElement;
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${words} The numbers stand in the table below.`);
  for (const inner of drawing.querySelectorAll("[aria-label]")) inner.removeAttribute("aria-label"); // of parts, which are no images of their own
  for (const inner of drawing.querySelectorAll("[aria-description]")) inner.removeAttribute("aria-description");
  return drawing;
}

/** A click on a mark opens its cell. */
function clicks<T extends { arm: number; condition: number }>(data: T[], open: Open): RenderFunction {
  return (index, scales, values, dimensions, context, next) => {
    const group = next?.(index, scales, values, dimensions, context) ?? null;
    [...(group?.children ?? [])].forEach((mark, at) => {
      const one = data[index[at] ?? -1];
      if (!one) return;
      mark.classList.add("clickable");
      mark.addEventListener("click", () => open(one.arm, one.condition));
    });
    return group;
  };
}

function name(store: Store, condition: number): string {
  return store.report.conditions[condition]?.name ?? "";
}

function left(labels: string[]): number {
  return Math.min(220, 16 + 7.2 * Math.max(4, ...labels.map((label) => label.length)));
}

/** A heading above each condition's part, where there are several. */
function headings(names: string[]): Markish[] {
  return names.length < 2 ? [] : [text(names, { fy: (one: string) => one, text: (one: string) => one, frameAnchor: "top-left", dy: -18, dx: 2, fontWeight: 600, fill: "var(--ink)" })];
}

function facets(names: string[], rows: number, width: number, labels: string[]): PlotOptions {
  const each = rows * ROW + (names.length > 1 ? 34 : 0);
  return {
    width,
    height: 64 + names.length * each,
    marginLeft: left(labels),
    marginRight: 24,
    marginTop: names.length > 1 ? 40 : 14,
    marginBottom: 44,
    y: { domain: labels, label: null, padding: 0.25 },
    fy: { domain: names, axis: null, padding: names.length > 1 ? 34 / each : 0 },
  };
}

function title(found: Matrix): string {
  const what = found.show === "value" ? "" : found.about.compare === "ratio" && found.show === "effect" ? ", ratio" : ", difference";
  return `${capital(found.about.title)}${what}`;
}

function label(found: Matrix): string {
  return `${title(found)} (${found.axis.unit || "1"}; ${found.about.better === "higher" ? "more is better" : "less is better"}) →`;
}

interface Bar extends Place {
  value: number;
  low: number | null;
  high: number | null;
  text: string;
  reference: boolean;
}

function flat(store: Store, found: Matrix): Bar[] {
  const { factor } = found.axis;
  const by = (value: number | null) => (value === null ? null : value / factor);
  return found.rows.flatMap((row) =>
    row.entries.flatMap((one): Bar[] =>
      one?.value == null
        ? []
        : [{ ...place(store, one), value: one.value / factor, low: by(one.low), high: by(one.high), text: one.text, reference: one.arm === store.report.reference }],
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
    caption: `${state.log ? "Dot" : "Bar"}: ${found.show === "effect" ? "the estimate over blocks" : "the median over blocks"}; line: ${what}.${dropped > 0 ? ` ${dropped} of zero or less have no place on a logarithmic axis.` : ""} Click on ${state.log ? "a dot" : "a bar"} for its trials.`,
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
  const up = found.about.better === "higher";
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
                cellMark(data, { x: "where", y: "label", fill: (one: Bar) => (base !== null && (one.value > base) !== up && one.value !== base ? "var(--red)" : "var(--blue)"), fillOpacity: shade, title: tip, render: clicks(data, open) }),
                text(data, { x: "where", y: "label", text: short, fill: "var(--ink)", pointerEvents: "none" }),
              ],
            },
            `${title(found)} by arm and condition, as a heat map.`,
          ),
    caption: base === null ? "The stronger the shade, the larger the median." : "Blue: better than direct; red: worse; the stronger, the farther from it. Click on a field for its trials.",
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
  const data = flat(store, found).flatMap((one): Point[] => {
    const other = others.get(`${one.arm}/${one.condition}`);
    const fits = other && !(state.log && (one.value <= 0 || other.value <= 0));
    return fits ? [{ ...one, y: one.value, x: other.value, text: `${one.text} and ${other.text}` }] : [];
  });
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
                dot(data, { x: "x", y: "y", r: 5, stroke: (one: Point) => colour(store, one.arm).colour, strokeWidth: 2, fill: "var(--paper)", ...(several ? { symbol: "where" } : {}), title: (one: Point) => `${one.label}, ${one.where}: ${one.text}`, render: clicks(data, open) }),
                ...(data.length > 40 ? [] : [text(data, { x: "x", y: "y", text: (one: Point) => (several ? `${one.label}, ${one.where}` : one.label), textAnchor: "start", dx: 9, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 3, pointerEvents: "none" })]),
              ],
            },
            `${title(found)} against ${across.about.title}, a point for each arm${several ? " and condition" : ""}.`,
          ),
    caption: `A point for each arm${several ? " and condition" : ""}: medians over blocks${found.show === "value" ? "" : ", compared with direct"}.${data.length > 40 ? " The pointer on a point tells its arm and condition, and a click opens its trials; fewer of either have their names beside them." : ""}`,
    legend: legend(store, [...new Set(data.map((one) => one.arm))]),
  };
}

function legend(store: Store, arms: number[]): Chart["legend"] {
  return arms.map((arm) => ({ arm: store.report.arms[arm]!.label, ...colour(store, arm), symbol: "" }));
}

interface Value extends Place {
  value: number;
}

/** Values of trials, or of steps inside of them, of the arms and conditions that are shown. */
export function valuesOf(store: Store, state: State, metric: number): { values: (Place & { all: number[] })[]; step: number | null } {
  const series = store.series(metric);
  const whole = store.values(metric);
  const byStep = series !== undefined && (state.per === "step" || whole.size === 0);
  const found: (Place & { all: number[] })[] = [];
  for (const condition of conditionsOf(store, metric, state.conditions)) {
    store.report.arms.forEach((arm, at) => {
      if (!matches(state.filter, arm.label, arm.title)) return;
      const attempts = store.attempts(metric, at, condition).filter((one) => one.counts && one.grade !== "void");
      const all = attempts.flatMap((one) => (byStep ? (series.of.get(one.place) ?? []).filter((value) => value !== null) : (whole.get(one.place) ?? [])));
      if (all.length > 0) found.push({ arm: at, condition, label: arm.label, where: name(store, condition), all });
    });
  }
  return { values: found, step: byStep ? series.step : null };
}

function distribution(store: Store, state: State, found: Matrix, width: number): Chart {
  const { values, step } = valuesOf(store, state, found.metric);
  const by = axisOf(found.about, "value", values.flatMap((one) => [one.all.reduce((most, each) => Math.max(most, Math.abs(each)), 0)]));
  const names = [...new Set(values.map((one) => one.where))];
  const labels = [...new Set(values.map((one) => one.label))];
  const of = step === null ? "trials’ values" : `means of ${step} s inside of the windows`;
  const x = `${capital(found.about.title)} (${by.unit || "1"}) →`;
  const kept = (value: number) => !state.log || value > 0;
  const type = state.log ? "log" : "linear";
  if (values.length === 0) return { drawing: null, caption: "There are no values of single trials of this metric.", legend: [] };
  if (state.view === "box") {
    const data = values.flatMap((one) => one.all.filter(kept).map((value): Value => ({ ...one, value: value / by.factor })));
    return {
      drawing: drawn({ ...facets(names, labels.length, width, labels), x: { type, grid: true }, marks: [axisX({ label: x, labelAnchor: "left", tickSize: 0, labelOffset: 38 }), axisY({ tickSize: 0 }), ...headings(names), boxX(data, { x: "value", y: "label", fy: "where", fill: "var(--bar)", stroke: "var(--blue)", r: 2 })] }, `Box plots of ${of}: ${found.about.title}.`),
      caption: `Of ${of}: the box holds the middle half, the line in it is the median; whiskers reach to the last value within one and a half box lengths, dots are beyond.`,
      legend: [],
    };
  }
  const lines = values.map((one) => {
    const ordered = one.all.filter(kept).sort((a, b) => a - b);
    const count = Math.min(MOST_POINTS, ordered.length);
    const points = Array.from({ length: count }, (_, at) => {
      const share = count === 1 ? 1 : at / (count - 1);
      return { x: quantile(ordered, share) / by.factor, y: 100 * share, where: one.where };
    });
    const { colour: stroke, dash } = colour(store, one.arm);
    return line(points, { x: "x", y: "y", fy: "where", stroke, strokeWidth: 1.8, ...(dash ? { strokeDasharray: dash } : {}), title: () => `${one.label}, ${one.where}` });
  });
  return {
    drawing: drawn({ width, height: 70 + names.length * (names.length > 1 ? 250 : 340), marginLeft: 52, marginBottom: 46, marginTop: names.length > 1 ? 44 : 30, marginRight: 20, x: { type, grid: true, label: x, labelAnchor: "left", labelOffset: 40 }, y: { grid: true, label: "↑ % of them are up to this", domain: [0, 100] }, fy: { domain: names, axis: null, padding: 0.18 }, marks: [...headings(names), ...lines] }, `Distribution of ${of}: ${found.about.title}.`),
    caption: `Of ${of}: how many of 100 are up to a value.`,
    legend: legend(store, [...new Set(values.map((one) => one.arm))]),
  };
}

function overTime(store: Store, state: State, found: Matrix, width: number): Chart {
  const series = store.series(found.metric);
  if (!series) return { drawing: null, caption: "This metric has no values inside of the windows.", legend: [] };
  const chosen = conditionsOf(store, found.metric, state.conditions).flatMap((condition) =>
    store.report.arms.flatMap((arm, at) => {
      if (!matches(state.filter, arm.label, arm.title)) return [];
      const trials = store.attempts(found.metric, at, condition).flatMap((one) => (one.counts && series.of.has(one.place) ? [series.of.get(one.place)!] : []));
      return trials.length > 0 ? [{ arm: at, condition, where: name(store, condition), trials }] : [];
    }),
  );
  const by = axisOf(found.about, "value", chosen.flatMap((one) => one.trials.flatMap((trial) => trial.filter((value) => value !== null))));
  const kept = (value: number | null) => (value === null || (state.log && value <= 0) ? Number.NaN : value / by.factor);
  const names = [...new Set(chosen.map((one) => one.where))];
  const thin = chosen.reduce((sum, one) => sum + one.trials.length, 0) <= MOST_THIN;
  const marks = chosen.flatMap((one): Markish[] => {
    const { colour: stroke, dash } = colour(store, one.arm);
    const length = Math.max(...one.trials.map((trial) => trial.length));
    const middle = Array.from({ length }, (_, at) => {
      const here = one.trials.flatMap((trial) => trial[at] ?? []).sort((a, b) => a - b);
      return { x: at * series.step, y: here.length > 0 ? kept(quantile(here, 0.5)) : Number.NaN, where: one.where };
    });
    const each = one.trials.flatMap((trial, z) => trial.map((value, at) => ({ x: at * series.step, y: kept(value), z, where: one.where })));
    const shared = { x: "x", y: "y", fy: "where", stroke } as const;
    return [
      ...(thin ? [line(each, { ...shared, z: "z", strokeWidth: 0.7, strokeOpacity: 0.35 })] : []),
      line(middle, { ...shared, strokeWidth: 2, ...(dash ? { strokeDasharray: dash } : {}), title: () => `${store.report.arms[one.arm]!.label}, ${one.where}` }),
    ];
  });
  if (chosen.length === 0) return { drawing: null, caption: "Nothing of it is shown by this filter.", legend: [] };
  return {
    drawing: drawn({ width, height: 70 + names.length * (names.length > 1 ? 250 : 340), marginLeft: 60, marginBottom: 46, marginTop: names.length > 1 ? 44 : 30, marginRight: 20, x: { grid: true, label: "Seconds since the measuring window began →", labelAnchor: "left", labelOffset: 40 }, y: { type: state.log ? "log" : "linear", grid: true, zero: !state.log, label: `↑ ${capital(found.about.title)} (${by.unit || "1"})` }, fy: { domain: names, axis: null, padding: 0.18 }, marks: [...headings(names), ...marks] }, `${capital(found.about.title)} over time.`),
    caption: `Means of ${series.step} s. Thick: the median of an arm’s blocks.${thin ? " Thin: each trial." : " Choose fewer arms or conditions to see each trial."}`,
    legend: legend(store, [...new Set(chosen.map((one) => one.arm))]),
  };
}

/** Each trial's value by block beside direct's; null where there are none. */
export function strip(store: Store, metric: number, arm: number, condition: number): SVGSVGElement | null {
  const values = store.values(metric);
  const about = store.report.metrics[metric]!;
  const of = (one: number) => store.attempts(metric, one, condition).flatMap((each) => (values.has(each.place) && each.grade !== "void" ? [{ block: each.block, value: values.get(each.place)! }] : []));
  const own = of(arm);
  const direct = store.report.reference === null || store.report.reference === arm ? [] : of(store.report.reference);
  if (own.length === 0) return null;
  const by = axisOf(about, "value", [...own, ...direct].map((one) => one.value));
  const scaled = (all: typeof own) => all.map((one) => ({ ...one, value: one.value / by.factor }));
  return drawn(
    {
      width: Math.min(640, Math.max(260, document.documentElement.clientWidth - 100)),
      height: 200,
      marginLeft: 56,
      marginBottom: 38,
      marginTop: 28,
      x: { label: "Block →", tickFormat: "d", labelAnchor: "left", labelOffset: 34, ...(store.report.blocks < 13 ? { ticks: Array.from({ length: store.report.blocks }, (_, at) => at + 1) } : {}) },
      y: { grid: true, zero: true, label: `↑ ${capital(about.title)} (${by.unit || "1"})` },
      marks: [
        dot(scaled(direct), { x: "block", y: "value", r: 3, stroke: "var(--soft)" }),
        dot(scaled(own), { x: "block", y: "value", r: 4, fill: "var(--blue)", title: (one: { block: number; value: number }) => `block ${one.block}: ${axisText(one.value * by.factor, by)}` }),
      ],
    },
    `Values by block: ${about.title}.`,
  );
}
