// Charts of the values of single trials and inside of their windows: box plots, distributions, over time, by block.

import { axisX, axisY, barX, dot, line, ruleY, tickX } from "@observablehq/plot";
import type { Markish } from "@observablehq/plot";
import { colour, drawn, facets, headings, legend, name, unplaced, type Chart, type Place } from "./chart_parts.js";
import type { Store } from "./data.js";
import { axisOf, conditionsOf, matches, quantile, type Matrix } from "./matrix.js";
import { capital, shown } from "./format.js";
import type { State } from "./state.js";

const NO_ROOM = "The page has no room for this metric’s values inside of the windows; they are in the results folder.";
const REACH = 1.5; // of the length of a box, to which whiskers go
const MOST_THIN = 150; // lines of single trials that can still be distinguished
const MOST_POINTS = 300; // of one line of a distribution

/** Tukey's summary of some values: quartiles, the ends of the whiskers, and what lies beyond. */
interface Box extends Place {
  low: number;
  quarter: number;
  median: number;
  threeQuarters: number;
  high: number;
  beyond: number[];
}

function leastPositive(values: number[]): number {
  return values.reduce((least, value) => (value > 0 && value < least ? value : least), Infinity);
}

/** Why nothing is shown of single trials. */
function noValues(store: Store, metric: number): string {
  const gone = store.isLeftOut(metric, "left_out") || store.isLeftOut(metric, "series_left_out");
  return gone ? "The page has no room for the values of single trials of this metric; they are in the results folder." : "There are no values of single trials of this metric.";
}

/** Values of trials, or of steps inside of them, of the arms and conditions that are shown. */
function valuesOf(store: Store, state: State, metric: number): { values: (Place & { all: number[] })[]; step: number | null } {
  const series = store.series(metric);
  const whole = store.values(metric);
  const byStep = series !== undefined && (state.per === "step" || whole.size === 0);
  const found: (Place & { all: number[] })[] = [];
  for (const condition of conditionsOf(store, metric, state.conditions)) {
    store.report.arms.forEach((arm, at) => {
      if (!matches(state.filter, arm.label)) return;
      const attempts = store.attempts(metric, at, condition).filter((one) => one.counts && one.grade !== "void");
      const all = attempts.flatMap((one) => (byStep ? (series.of.get(one.place) ?? []).filter((value) => value !== null) : (whole.get(one.place) ?? [])));
      if (all.length > 0) found.push({ arm: at, condition, label: arm.label, where: name(store, condition), all });
    });
  }
  return { values: found, step: byStep ? series.step : null };
}

function boxOf({ all, ...place }: Place & { all: number[] }): Box {
  const ordered = [...all].sort((a, b) => a - b);
  const [quarter, median, threeQuarters] = [0.25, 0.5, 0.75].map((q) => quantile(ordered, q)) as [number, number, number];
  const reach = REACH * (threeQuarters - quarter);
  const inside = ordered.filter((value) => value >= quarter - reach && value <= threeQuarters + reach);
  const [low, high] = [inside[0]!, inside[inside.length - 1]!];
  return { ...place, low, quarter, median, threeQuarters, high, beyond: ordered.filter((value) => value < low || value > high) };
}

/** The parts of box plots, in a scale; from `least` on, which is the edge of a logarithmic axis. */
function boxes(all: Box[], factor: number, least: number): Markish[] {
  const shared = { y: "label", fy: "where" } as const;
  const spans = (from: (one: Box) => number, to: (one: Box) => number) =>
    all.flatMap((one) => (to(one) >= least ? [{ ...one, x1: Math.max(from(one), least) / factor, x2: to(one) / factor }] : []));
  const at = (of: (one: Box) => number[]) => all.flatMap((one) => of(one).flatMap((value) => (value >= least ? [{ ...one, x: value / factor }] : [])));
  return [
    ruleY(spans((one) => one.low, (one) => one.high), { ...shared, x1: "x1", x2: "x2", stroke: "var(--blue)" }),
    barX(spans((one) => one.quarter, (one) => one.threeQuarters), { ...shared, x1: "x1", x2: "x2", fill: "var(--bar)" }),
    tickX(at((one) => [one.median]), { ...shared, x: "x", stroke: "var(--blue)", strokeWidth: 2 }),
    dot(at((one) => one.beyond), { ...shared, x: "x", stroke: "var(--blue)", r: 2 }),
  ];
}

/** The steps of a distribution, in per cent of all values: from the first that is at least `least`, thinned where there are many. */
function steps(all: number[], least: number): { value: number; share: number }[] {
  const ordered = [...all].sort((a, b) => a - b);
  const first = ordered.findIndex((value) => value >= least);
  if (first < 0) return [];
  const last = ordered.length - 1;
  const count = Math.min(MOST_POINTS, last - first + 1);
  const places = Array.from({ length: count }, (_, at) => (count === 1 ? last : first + Math.round((at * (last - first)) / (count - 1))));
  const share = (up: number) => (100 * up) / ordered.length;
  return [{ value: ordered[first]!, share: share(first) }, ...places.map((place) => ({ value: ordered[place]!, share: share(place + 1) }))];
}

export function distribution(store: Store, state: State, found: Matrix, width: number): Chart {
  const { values, step } = valuesOf(store, state, found.metric);
  const by = axisOf(found.about, "value", values.flatMap((one) => [one.all.reduce((most, each) => Math.max(most, Math.abs(each)), 0)]));
  const names = [...new Set(values.map((one) => one.where))];
  const labels = [...new Set(values.map((one) => one.label))];
  const of = step === null ? "trials’ values" : `means of ${step} s inside of the windows`;
  const x = `${capital(found.about.title)} (${by.unit || "1"}) →`;
  const least = state.log ? leastPositive(values.flatMap((one) => one.all)) : -Infinity;
  const lost = unplaced(state.log ? values.reduce((sum, one) => sum + one.all.filter((value) => value <= 0).length, 0) : 0);
  const type = state.log ? "log" : "linear";
  if (values.length === 0) return { drawing: null, caption: noValues(store, found.metric), legend: [] };
  if (least === Infinity) return { drawing: null, caption: lost.trim(), legend: [] };
  if (state.view === "box") {
    const cut = lost ? " What reaches to them is cut off at the edge." : "";
    return {
      drawing: drawn({ ...facets(names, labels.length, width, labels), x: { type, grid: true }, marks: [axisX({ label: x, labelAnchor: "left", tickSize: 0, labelOffset: 38 }), axisY({ tickSize: 0 }), ...headings(names), ...boxes(values.map(boxOf), by.factor, least)] }, `Box plots of ${of}: ${found.about.title}.`),
      caption: `Of ${of}: the box holds the middle half, the line in it is the median; whiskers reach to the last value within one and a half box lengths, dots are beyond.${lost}${cut}`,
      legend: [],
    };
  }
  const lines = values.map((one) => {
    const points = steps(one.all, least).map(({ value, share }) => ({ x: value / by.factor, y: share, where: one.where }));
    const { colour: stroke, dash } = colour(store, one.arm);
    return line(points, { x: "x", y: "y", fy: "where", stroke, strokeWidth: 1.8, ...(dash ? { strokeDasharray: dash } : {}), title: () => `${one.label}, ${one.where}` });
  });
  return {
    drawing: drawn({ width, height: 70 + names.length * (names.length > 1 ? 250 : 340), marginLeft: 52, marginBottom: 46, marginTop: names.length > 1 ? 44 : 30, marginRight: 20, x: { type, grid: true, label: x, labelAnchor: "left", labelOffset: 40 }, y: { grid: true, label: "↑ % of them are up to this", domain: [0, 100] }, fy: { domain: names, axis: null, padding: 0.18 }, marks: [...headings(names), ...lines] }, `Distribution of ${of}: ${found.about.title}.`),
    caption: `Of ${of}: how many of 100 are up to a value.${lost}`,
    legend: legend(store, [...new Set(values.map((one) => one.arm))]),
  };
}

export function overTime(store: Store, state: State, found: Matrix, width: number): Chart {
  const series = store.series(found.metric);
  if (!series) return { drawing: null, caption: store.isLeftOut(found.metric, "series_left_out") ? NO_ROOM : "This metric has no values inside of the windows.", legend: [] };
  const chosen = conditionsOf(store, found.metric, state.conditions).flatMap((condition) =>
    store.report.arms.flatMap((arm, at) => {
      if (!matches(state.filter, arm.label)) return [];
      const trials = store.attempts(found.metric, at, condition).flatMap((one) => (one.counts && one.grade !== "void" && series.of.has(one.place) ? [series.of.get(one.place)!] : []));
      return trials.length > 0 ? [{ arm: at, condition, where: name(store, condition), trials }] : [];
    }),
  );
  const all = chosen.flatMap((one) => one.trials.flatMap((trial) => trial.filter((value) => value !== null)));
  const by = axisOf(found.about, "value", all);
  const lost = unplaced(state.log ? all.filter((value) => value <= 0).length : 0);
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
  if (state.log && leastPositive(all) === Infinity) return { drawing: null, caption: lost.trim(), legend: [] };
  return {
    drawing: drawn({ width, height: 70 + names.length * (names.length > 1 ? 250 : 340), marginLeft: 60, marginBottom: 46, marginTop: names.length > 1 ? 44 : 30, marginRight: 20, x: { grid: true, label: "Seconds since the measuring window began →", labelAnchor: "left", labelOffset: 40 }, y: { type: state.log ? "log" : "linear", grid: true, zero: !state.log, label: `↑ ${capital(found.about.title)} (${by.unit || "1"})` }, fy: { domain: names, axis: null, padding: 0.18 }, marks: [...headings(names), ...marks] }, `${capital(found.about.title)} over time.`),
    caption: `Means of ${series.step} s. Thick: the median of an arm’s blocks.${thin ? " Thin: each trial." : " Choose fewer arms or conditions to see each trial."}${lost}`,
    legend: legend(store, [...new Set(chosen.map((one) => one.arm))]),
  };
}

/** Each trial's value by block next to direct's; null where there are none. */
export function strip(store: Store, metric: number, arm: number, condition: number): SVGSVGElement | null {
  const values = store.values(metric);
  const about = store.report.metrics[metric]!;
  const of = (one: number) => store.attempts(metric, one, condition).flatMap((each) => (values.has(each.place) && each.counts && each.grade !== "void" ? [{ block: each.block, value: values.get(each.place)! }] : []));
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
        dot(scaled(own), { x: "block", y: "value", r: 4, fill: "var(--blue)", title: (one: { block: number; value: number }) => `block ${one.block}: ${shown(one.value * by.factor, by)}` }),
      ],
    },
    `Values by block: ${about.title}.`,
  );
}
