// What all charts are made of: colours of arms, parts for conditions, a drawing with its words, clicks on its marks.

import { plot, text } from "@observablehq/plot";
import type { Markish, PlotOptions, RenderFunction } from "@observablehq/plot";
import type { Store } from "./data.js";

/** A drawing, what its marks mean in words, and the colours of its arms where those tell arms apart. */
export interface Chart {
  drawing: SVGSVGElement | null;
  caption: string;
  /** With a `fill`, an arm is a dot, else a line. */
  legend: { arm: string; colour: string; dash: string; fill?: string }[];
}

export type Open = (arm: number, condition: number) => void;

const COLOURS = 8; // in report.css: --c0 to --c7
const DASHES = ["", "6 3", "2 2", "8 2 2 2"];
const FILLS = ["var(--paper)", null, "var(--faint)", "var(--ink)"]; // of dots, which have no dashes; null: in their own colour
const ROW = 22; // pixels of an arm's row

/** A cell with its words. */
export interface Place {
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

/** What a dot of an arm is filled with, which distinguishes arms of one colour. */
export function fill(store: Store, arm: number): string {
  const own = colour(store, arm);
  return FILLS[DASHES.indexOf(own.dash)] ?? own.colour;
}

export function drawn(options: PlotOptions, words: string): SVGSVGElement {
  const drawing = plot({
    style: { background: "none", overflow: "visible", fontFamily: "var(--sans)", fontSize: "12px", color: "var(--ink)" },
    ...options,
  }) as SVGSVGElement;
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${words} The numbers are in the table below.`);
  for (const inner of drawing.querySelectorAll("[aria-label]")) inner.removeAttribute("aria-label"); // of parts, which are not images of their own
  for (const inner of drawing.querySelectorAll("[aria-description]")) inner.removeAttribute("aria-description");
  return drawing;
}

/** A click on a mark opens its cell. */
export function clicks<T extends { arm: number; condition: number }>(data: T[], open: Open): RenderFunction {
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

export function name(store: Store, condition: number): string {
  return store.report.conditions[condition]?.name ?? "";
}

export function left(labels: string[]): number {
  return Math.min(220, 16 + 7.2 * Math.max(4, ...labels.map((label) => label.length)));
}

/** A heading above each condition's part, where there are several. */
export function headings(names: string[]): Markish[] {
  return names.length < 2 ? [] : [text(names, { fy: (one: string) => one, text: (one: string) => one, frameAnchor: "top-left", dy: -18, dx: 2, fontWeight: 600, fill: "var(--ink)" })];
}

export function facets(names: string[], rows: number, width: number, labels: string[]): PlotOptions {
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

export function legend(store: Store, arms: number[]): Chart["legend"] {
  return arms.map((arm) => ({ arm: store.report.arms[arm]!.label, ...colour(store, arm) }));
}

/** A sentence on values that a logarithmic axis cannot show. */
export function unplaced(count: number): string {
  return count > 0 ? ` ${count} of zero or less have no place on a logarithmic axis.` : "";
}
