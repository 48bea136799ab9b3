// The trials behind one cell, in a dialog: each attempt's value, what it is worth, and the files that it left.

import type { Attempt, Store } from "./data.js";
import { h } from "./dom.js";
import { capital, scale, shown } from "./format.js";
import { strip } from "./trial_charts.js";

export class Trials {
  private readonly dialog = h("dialog", { class: "trials", "aria-labelledby": "trials-title" });
  private cell = "";

  constructor(
    private readonly store: Store,
    private readonly closed: () => void,
  ) {
    this.dialog.addEventListener("close", () => {
      this.cell = "";
      this.closed();
    });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close(); // next to it
    });
    document.body.append(this.dialog);
  }

  /** Opens the trials of a cell; closes them where there is none. */
  show(metric: number, arm: number, condition: number): void {
    const wanted = `${metric}/${arm}/${condition}`;
    if (this.dialog.open && this.cell === wanted) return;
    const cell = this.store.cell(metric, arm, condition);
    if (!cell) {
      this.hide();
      return;
    }
    this.cell = wanted;
    this.dialog.replaceChildren(...this.content(metric, arm, condition));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
  }

  hide(): void {
    if (this.dialog.open) this.dialog.close();
  }

  private content(metric: number, arm: number, condition: number): Node[] {
    const { store } = this;
    const about = store.report.metrics[metric]!;
    const cell = store.cell(metric, arm, condition)!;
    const attempts = store.attempts(metric, arm, condition);
    const values = store.values(metric);
    const by = scale(about.unit, attempts.flatMap((one) => values.get(one.place) ?? []));
    const facts: [string, string][] = [
      ["median over blocks", cell.text ? `${cell.text} (${cell.spread})` : ""],
      [`against ${store.report.reference === null ? "direct" : store.report.arms[store.report.reference]!.name}`, arm === store.report.reference ? "" : cell.effect_text],
      ["verdict", cell.verdict],
      ["rank", cell.rank ? (cell.rank[0] === cell.rank[1] ? String(cell.rank[0]) : cell.rank.join("–")) : ""],
      ["bound by", cell.bound ? `${cell.bound}${cell.why ? `: ${cell.why}` : ""}` : cell.ceiling],
      ["caution", cell.apart ? `${cell.apart}: this ratio measures the machine` : ""],
      ["remarks", cell.remarks],
      ["missing blocks", cell.missing],
      ["trials", (["good", "disturbed", "void", "failed"] as const).filter((name) => cell[name] > 0).map((name) => `${cell[name]} ${name}`).join(", ")],
    ];
    const drawn = strip(store, metric, arm, condition);
    return [
      h("div", { class: "head" },
        h("h2", { id: "trials-title" }, `${store.report.arms[arm]!.label}: ${about.title} (${about.workload})`),
        h("button", { type: "button", class: "close", autofocus: true, onclick: () => this.dialog.close() }, "Close"),
      ),
      h("p", { class: "meta" }, store.report.conditions[condition]!.title),
      h("dl", { class: "facts" }, facts.filter(([, text]) => text).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
      ...(drawn ? [h("figure", {}, h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Values by block" }, drawn), h("figcaption", {}, "Each trial’s value by block, next to direct’s in grey."))] : []),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Trials of this cell" },
        h("table", {},
          h("thead", {}, h("tr", {}, ["block", "value", "worth", "place", "files"].map((title) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, attempts.map((one) => this.row(one, values.has(one.place) ? shown(values.get(one.place)!, by) : ""))),
        ),
      ),
      h("p", { class: "meta" }, "Of the whole run: ",
        h("a", { href: "environment.json" }, "environment.json"), ", ", h("a", { href: "inputs/" }, "inputs/"), ", ", h("a", { href: "plan.json" }, "plan.json"), ", ", h("a", { href: "journal.jsonl" }, "journal.jsonl"),
        ". Links lead to the files as long as this page lies in its results folder."),
    ];
  }

  private row(one: Attempt, value: string): HTMLTableRowElement {
    const worth = one.outcome === "ok" ? one.grade : one.outcome;
    const spoilt = one.outcome === "ok" && one.grade === "void";
    const said = worth === "good" ? "" : one.said;
    const small = [one.counts ? "" : "made again", spoilt ? "for this metric: the value is not used" : "", said];
    return h("tr", {},
      h("th", { scope: "row" }, `${one.block}${one.attempt > 1 ? `, attempt ${one.attempt}` : ""}`),
      h("td", {}, value || "–"),
      h("td", { class: one.outcome === "ok" && !spoilt ? "" : "bad" }, capital(worth), small.filter(Boolean).map((text) => h("span", { class: "small" }, text))),
      h("td", {}, String(one.position)),
      h("td", {}, one.files.flatMap((file, place) => [place > 0 ? ", " : "", h("a", { href: file.path }, file.name)])),
    );
  }
}
