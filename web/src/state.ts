// What the page shows, as it is written behind the # of its address: `#section?metric=tcp.goodput&view=bars...`. Pure.

export const VIEWS = ["table", "bars", "heat", "scatter", "box", "cdf", "time"] as const;
export type View = (typeof VIEWS)[number];
export const SHOWS = ["value", "effect", "difference"] as const;
export type Show = (typeof SHOWS)[number];

export interface TableState {
  /** By which column, from 0; -1: as it came. */
  column: number;
  descending: boolean;
  filter: string;
}

export interface State {
  section: string;
  metric: string;
  /** By name; empty: all. */
  conditions: string[];
  filter: string;
  show: Show;
  view: View;
  /** The second metric of a scatter plot. */
  against: string;
  /** Of what box plots and distributions are: trials or steps of time. */
  per: "trial" | "step";
  log: boolean;
  /** "": as planned; "arm", or a condition. */
  sort: string;
  descending: boolean;
  /** The cell whose trials are open: arm, a space, condition. */
  cell: string;
  tables: Record<string, TableState>;
}

export const START: State = {
  section: "",
  metric: "",
  conditions: [],
  filter: "",
  show: "value",
  view: "bars",
  against: "",
  per: "trial",
  log: false,
  sort: "",
  descending: false,
  cell: "",
  tables: {},
};

function oneOf<T extends string>(all: readonly T[], given: string | null, other: T): T {
  return all.find((one) => one === given) ?? other;
}

/** What an address says, with its signs behind a `%`; as it is where those are none. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The state of an address's last part; what it does not say, or says wrongly, is as at the start. */
export function parse(hash: string): State {
  const text = hash.startsWith("#") ? hash.slice(1) : hash;
  const mark = text.indexOf("?");
  const said = new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1));
  const tables: Record<string, TableState> = {};
  for (const [key, value] of said) {
    if (/^t\d+$/.test(key)) {
      const [column = "", ...filter] = value.split(",");
      tables[key] = { column: /^\d+/.test(column) ? Number.parseInt(column, 10) : -1, descending: column.endsWith("d"), filter: filter.join(",") };
    }
  }
  return {
    section: decoded(mark < 0 ? text : text.slice(0, mark)),
    metric: said.get("metric") ?? "",
    conditions: said.getAll("in"),
    filter: said.get("arms") ?? "",
    show: oneOf(SHOWS, said.get("show"), START.show),
    view: oneOf(VIEWS, said.get("view"), START.view),
    against: said.get("against") ?? "",
    per: said.get("per") === "step" ? "step" : "trial",
    log: said.get("axis") === "log",
    sort: said.get("sort") ?? "",
    descending: said.has("down"),
    cell: said.get("cell") ?? "",
    tables,
  };
}

/** The same as text; what is as at the start is left out. */
export function format(state: State): string {
  const said = new URLSearchParams();
  const put = (key: string, value: string, start: string) => {
    if (value !== start) said.set(key, value);
  };
  put("metric", state.metric, START.metric);
  for (const one of state.conditions) said.append("in", one);
  put("arms", state.filter, "");
  put("show", state.show, START.show);
  put("view", state.view, START.view);
  put("against", state.against, "");
  put("per", state.per, START.per);
  if (state.log) said.set("axis", "log");
  put("sort", state.sort, "");
  if (state.descending) said.set("down", "");
  put("cell", state.cell, "");
  for (const [key, one] of Object.entries(state.tables)) {
    const column = one.column < 0 ? "" : `${one.column}${one.descending ? "d" : ""}`;
    if (column || one.filter) said.set(key, one.filter ? `${column},${one.filter}` : column);
  }
  const text = said.toString();
  return `#${encodeURIComponent(state.section)}${text ? `?${text}` : ""}`;
}
