// Numbers as the report's tables write them (`tunnelmark.report.formatting`): prefixes, three significant digits, a true minus sign. Pure.

export interface Scale {
  factor: number;
  unit: string;
}

const RATES: [number, string][] = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const TIMES: [number, string][] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
export const SECONDS: Record<string, number> = { s: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6 };

/** The scale that suits the largest of these values; a unit without prefixes stays as it is. */
export function scale(unit: string, values: Iterable<number>): Scale {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  if (unit === "bit/s") {
    const found = RATES.find(([size]) => largest >= 2 * size);
    return found ? { factor: found[0], unit: found[1] } : { factor: 1, unit };
  }
  const base = SECONDS[unit];
  if (base !== undefined) {
    const found = TIMES.find(([size]) => largest * base >= 0.5 * size);
    if (found) return { factor: found[0] / base, unit: found[1] };
    return largest > 0 ? { factor: 1e-6 / base, unit: "µs" } : { factor: 1, unit };
  }
  return { factor: 1, unit };
}

export function number(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return "";
  if (value === 0) return "0";
  const rounded = Number(Math.abs(value).toExponential(digits - 1));
  const places = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(rounded))));
  const text = value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  return Number(text.replaceAll(",", "")) === 0 ? "0" : text.replace("-", "−");
}

export function withUnit(text: string, unit: string): string {
  return unit ? `${text}\u00a0${unit}` : text;
}

/** A value in the scale, with its unit. */
export function shown(value: number, by: Scale): string {
  return withUnit(number(value / by.factor), by.unit);
}

export function capital(text: string): string {
  return text ? text[0]!.toUpperCase() + text.slice(1) : text;
}

const PREFIXES: Record<string, number> = { "Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, s: 1, ms: 1e-3, "µs": 1e-6, min: 60, h: 3600, KiB: 1024, MiB: 1 << 20, GiB: 2 ** 30, kB: 1e3, MB: 1e6, GB: 1e9 };

const NUMBER = String.raw`[−+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?`;
/** A sign or words that tables put before a number, the number, the end of its range, and what follows; no version, date or address. */
const BEGIN = new RegExp(String.raw`^(?:[▲▼=?<>≤≥]{1,2}\s*|(more than a factor of|more than|a factor of|keeps|becomes|changes by)\s)?(${NUMBER})(?:\s?(?:–|to)\s?${NUMBER})?(?![\d.:-]*\d)\s*([A-Za-zµ%×/]+)?`);
const COUNTS = ["block", "blocks", "trial", "trials", "attempt", "attempts", "of", "in"]; // behind a number that says how often and not how much

/** What a cell of a table is sorted by: the number that it begins with, with its prefix; a share of a count as such; null where there is none. */
export function sortable(text: string): number | null {
  const said = text.trim();
  const share = /^(\d+)\/(\d+)(?![\d/])/.exec(said);
  if (share) return Number(share[2]) > 0 ? Number(share[1]) / Number(share[2]) : null;
  const time = /^(\d+)\s(h|min)\s(\d+)\s(min|s)(?!\w)/.exec(said);
  if (time) return Number(time[1]) * PREFIXES[time[2]!]! + Number(time[3]) * PREFIXES[time[4]!]!;
  const found = BEGIN.exec(said);
  if (!found || COUNTS.includes(found[3] ?? "")) return null;
  const value = Number(found[2]!.replaceAll(",", "").replace("−", "-"));
  if (found[1]?.endsWith("factor of")) return 100 * (value - 1); // smaller ones are in per cent
  return value * (PREFIXES[found[3] ?? ""] ?? 1);
}
