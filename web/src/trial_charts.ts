// Charts of the values of single trials and inside of their windows: box plots, distributions, over time, by block.

import { axisX, axisY, boxX, dot, line } from "@observablehq/plot";
import type { Markish } from "@observablehq/plot";
import { colour, drawn, facets, headings, legend, name, type Chart, type Place } from "./chart_parts.js";
import type { Store } from "./data.js";
import { axisOf, axisText, conditionsOf, matches, quantile, type Matrix } from "./matrix.js";
import { capital } from "./format.js";
import type { State } from "./state.js";

const MOST_THIN = 150; // lines of single trials that can still be told from each other
const MOST_POINTS = 300; // of one line of a distribution

interface Value extends Place {
  value: number;
}

/** Values of trials, or of steps inside of them, of the arms and conditions that are shown. */
function valuesOf(store: Store, state: State, metric: number): { values: (Place & { all: number[] })[]; step: number | null } {
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

export function distribution(store: Store, state: State, found: Matrix, width: number): Chart {
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

export function overTime(store: Store, state: State, found: Matrix, width: number): Chart {
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
