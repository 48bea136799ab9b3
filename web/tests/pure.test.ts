// @vitest-environment node
// What is computed without a page: numbers, states, the matrix, files of attempts.

import { describe, expect, test } from "vitest";
import { Store } from "../src/data.js";
import { number, scale, shown, sortable } from "../src/format.js";
import { csv, differences, matches, matrix, quantile, showsOf } from "../src/matrix.js";
import { format, parse, START, type State } from "../src/state.js";
import { made, spoilt } from "./made.js";

const store = made();
const state = (some: Partial<State> = {}): State => ({ ...START, ...some });
const names = (some: Partial<State>) => matrix(store, state(some)).rows.map((row) => store.report.arms[row.arm]!.name);

describe("numbers are written as in the report's tables", () => {
  test.each([[941e6, "941 Mbit/s"], [12.3e9, "12.3 Gbit/s"], [1.2e9, "1,200 Mbit/s"], [0, "0 bit/s"]])("%d bit/s", (value, text) => {
    expect(shown(value, scale("bit/s", [value])).replace("\u00a0", " ")).toBe(text);
  });
  test.each([[0.1234, "123 µs"], [1.5, "1.50 ms"], [1500, "1.50 s"]])("%d ms", (value, text) => {
    expect(shown(value, scale("ms", [value])).replace("\u00a0", " ")).toBe(text);
  });
  test("with a true minus, and no zero of either sign", () => {
    expect(number(-3)).toBe("−3.00");
    expect(number(-1e-9)).toBe("0");
  });
  test.each([["941 Mbit/s", 941e6], ["1,204 kbit/s▲ 3 %", 1204e3], ["▼ 61 % [58–64]", 61], ["?▼ 61 % [58–101]", 61], ["+12.1 points", 12.1], ["−163 µs", -163e-6], ["tinc", null], ["0.9 to 1.2 s", 0.9], ["120 to 300 ms", 0.12], ["4 min 05 s", 245], ["1 h 02 min", 3720], ["5/10", 0.5], ["4/4, 2 void", 1], ["1.4 %", 1.4], ["a factor of 2.2", 120], ["more than a factor of 100", 9900], ["keeps 43.1 % [40–46]", 43.1], ["< 0.0001", 0.0001]])("%s is sorted by %s", (text, value) => {
    const found = sortable(text);
    if (value === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(value, 9);
  });
});

test.each(["8 blocks failed", "0 in 1 of 8 blocks", "wireguard-go 0.0.2", "1.0.36", "2026-11-26", "10.0.0.1"])("%s is no amount to be sorted by", (text) => {
  expect(sortable(text)).toBeNull();
});

describe("the address holds the state", () => {
  test("and gives it back", () => {
    const full = state({ section: "explore", metric: "tcp.goodput", conditions: ["lan/pair", "a b/c&d"], filter: "fast -slow", show: "effect", view: "heat", against: "tcp.delay", per: "step", log: true, sort: "lan/pair", descending: true, cell: "fast lan/pair", tables: { t3: { column: 2, descending: true, filter: "a, b" }, t4: { column: -1, descending: false, filter: "x" } } });
    expect(parse(format(full))).toEqual(full);
  });
  test("a plain place on the page stays as it is", () => {
    expect(format(state({ section: "found" }))).toBe("#found");
    expect(parse("#found")).toEqual(state({ section: "found" }));
  });
  test("an address that is no encoded text is taken as it is", () => {
    expect(parse("#100%?metric=tcp.goodput")).toEqual(state({ section: "100%", metric: "tcp.goodput" }));
  });
  test("what is unknown in it is as at the start", () => {
    expect(parse("#explore?view=pie&show=nothing&per=3")).toEqual(state({ section: "explore" }));
  });
});

describe("the matrix", () => {
  test("has a row for each arm and an entry for each condition", () => {
    const found = matrix(store, state());
    expect(found.rows.map((row) => row.entries.map((one) => one?.text))).toEqual([["1000 Mbit/s", "200 Mbit/s"], ["900 Mbit/s", "50 Mbit/s"], ["500 Mbit/s", "100 Mbit/s"]]);
  });
  test("is sorted by a condition, either way, with arms that have nothing last", () => {
    expect(names({ sort: "lossy/pair" })).toEqual(["fast", "slow", "direct"]);
    expect(names({ sort: "lossy/pair", descending: true })).toEqual(["direct", "slow", "fast"]);
    expect(names({ sort: "lossy/pair", show: "effect" })).toEqual(["fast", "slow", "direct"]);
    expect(names({ sort: "arm", descending: true })).toEqual(["slow", "fast", "direct"]);
  });
  test("is filtered by arms and conditions", () => {
    expect(names({ filter: "a -slow" })).toEqual(["fast"]);
    expect(names({ filter: "what" })).toEqual([]); // it is in titles, which are not shown
    expect(matrix(store, state({ conditions: ["lossy/pair"] })).conditions).toEqual([1]);
    expect(matrix(store, state({ conditions: ["nowhere/pair"] })).conditions).toEqual([0, 1]);
  });
  test("shows ratios in per cent where more is better, and as multiples where less is", () => {
    expect(matrix(store, state({ show: "effect" })).axis.unit).toBe("%");
    expect(matrix(store, state({ metric: "tcp.delay", show: "effect" })).axis.unit).toBe("×");
  });
  test("shows differences within blocks, by their median", () => {
    expect(differences(store, 0, 1, 0).map(Math.round)).toEqual([-110e6, -100e6, -90e6]);
    const one = matrix(store, state({ show: "difference" })).rows[1]!.entries[0]!;
    expect(one.value).toBeCloseTo(-100e6);
    expect(one.text.replaceAll("\u00a0", " ")).toBe("−100 Mbit/s [−110 to −90.0]");
  });
  test("has no ratio where there is no direct", () => {
    const alone = made();
    alone.report.reference = null;
    expect(showsOf(alone, alone.report.metrics[0]!).map((one) => one.show)).toEqual(["value"]);
    expect(matrix(alone, state({ show: "difference" })).show).not.toBe("difference");
  });
  test("as CSV has a line for each cell", () => {
    const lines = csv(store, matrix(store, state())).trim().split("\r\n");
    expect(lines).toHaveLength(7);
    expect(lines[0]).toMatch(/^arm,profile,topology,workload,metric,unit,median/);
    expect(lines[3]).toMatch(/^fast,lan,pair,tcp,goodput,bit\/s,900000000,/);
  });
  test("as CSV has the differences where they are shown", () => {
    const lines = csv(store, matrix(store, state({ show: "difference" }))).trim().split("\r\n").map((line) => line.split(","));
    expect(lines[0]!.slice(-3)).toEqual(["difference", "difference_low", "difference_high"]);
    expect(lines[3]!.slice(-3).map((value) => Math.round(Number(value) / 1e6))).toEqual([-100, -110, -90]);
    expect(lines[1]!.slice(-3)).toEqual(["", "", ""]); // direct itself
    expect(csv(store, matrix(store, state()))).not.toContain("difference");
  });
  test("has no difference to what is void for its metric", () => {
    expect(differences(spoilt("transfer"), 0, 1, 0).map(Math.round)).toEqual([-110e6, -90e6]);
    expect(differences(spoilt("tail"), 0, 1, 0)).toHaveLength(3);
  });
});

test("every attempt at a cell is there, with files below its folder", () => {
  const found = store.attempts(0, 2, 0);
  expect(found.map((one) => [one.block, one.attempt, one.outcome, one.counts])).toEqual([[1, 1, "ok", true], [2, 1, "void", false], [2, 2, "ok", true], [3, 1, "ok", true]]);
  expect(found[1]!.said).toBe("the link was late");
  expect(found[2]!.files.map((file) => file.path)).toEqual(["raw/002.slow.lan.pair.tcp~2/client.out", "raw/link/pr%C3%B6be%201.out"]);
});

test("an attempt's grade is that of the metric that is asked for", () => {
  const store = spoilt("tail");
  expect(store.attempts(0, 1, 0).map((one) => one.grade)).toEqual(["good", "good", "good"]);
  expect(store.attempts(1, 1, 0).map((one) => one.grade)).toEqual(["good", "void", "good"]);
  expect(store.attempts(1, 2, 0).map((one) => one.grade)).toEqual(["good", "void", "good", "good"]); // the whole attempt
});

test("data are read as JSON, and packed", async () => {
  const text = JSON.stringify(store.report);
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
  const packed = btoa(String.fromCharCode(...new Uint8Array(await new Response(stream).arrayBuffer())));
  expect((await Store.from(text)).report).toEqual(store.report);
  expect((await Store.from(packed)).report).toEqual(store.report);
});

test("data of another schema are refused", () => {
  const other = made().report;
  expect(() => new Store({ ...other, schema: 99 })).toThrow("schema 99");
});

test("a filter's words may come in any order, and one with a minus must not be there", () => {
  expect(matches("go wire", "wireguard-go")).toBe(true);
  expect(matches("wire -go", "wireguard-go")).toBe(false);
  expect(matches("", "anything")).toBe(true);
  const shown = ["nebula", "wireguard-go", "tinc", "nebula-again"].filter((name) => matches("nebula, go wire, -again", name));
  expect(shown).toEqual(["nebula", "wireguard-go"]);
  expect(matches("nebula,", "tinc")).toBe(false); // while the second word is typed
});

test("quantiles lie between neighbours in proportion", () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
  expect(quantile([7], 0.9)).toBe(7);
});
