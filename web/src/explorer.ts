// The explorer: any metric as a matrix of arms and conditions, a chart above it, and controls for both. All of it follows the state.

import type { Store } from "./data.js";
import { chart, second } from "./charts.js";
import { h, select } from "./dom.js";
import { pixels, save, standalone } from "./downloads.js";
import { capital } from "./format.js";
import { conditionsOf, csv, matrix, metricOf, remarks, showsOf, type Entry, type Matrix } from "./matrix.js";
import type { Show, State, View } from "./state.js";

const TITLES: Record<View, string> = {
  bars: "Bars",
  heat: "Heat map",
  scatter: "Scatter plot",
  box: "Box plots",
  cdf: "Distribution (CDF)",
  time: "Over time",
  table: "Table only",
};
const ROLES = { primary: "", other: "explains", watched: "what it cost and what was watched" };

export class Explorer {
  private readonly controls = h("div", { class: "controls" });
  private readonly picture = h("figure", { class: "picture" });
  private readonly table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The matrix of arms and conditions" });
  private readonly said = h("p", { class: "meta", role: "status" });
  private drawing: SVGSVGElement | null = null;
  private found: Matrix | undefined;
  private asked = "";

  constructor(
    private readonly store: Store,
    private readonly root: HTMLElement,
    private state: State,
    private readonly change: (change: Partial<State>) => void,
    private readonly open: (arm: number, condition: number) => void,
  ) {
    const button = (title: string, what: () => void) => h("button", { type: "button", onclick: what }, title);
    this.root.append(
      this.controls,
      this.picture,
      this.table,
      this.said,
      h("div", { class: "downloads", role: "group", "aria-label": "Take along what is shown" },
        h("span", {}, "Take along: "),
        button("CSV", () => this.found && save(this.file("csv"), new Blob([csv(this.store, this.found)], { type: "text/csv" }))),
        button("SVG", () => this.drawing && save(this.file("svg"), new Blob([standalone(this.drawing)], { type: "image/svg+xml" }))),
        button("PNG", () => void this.png()),
        button("Copy a link to this view", () => void this.copy()),
      ),
      h("p", { class: "meta" }, this.store.report.legend),
    );
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.picture.clientWidth - width) < 8) return;
      width = this.picture.clientWidth;
      this.draw();
    }).observe(this.picture);
  }

  private file(kind: string): string {
    return `${[this.store.report.study, this.store.metricKey(this.found?.metric ?? 0), this.state.show].join("-").replace(/[^\w.-]+/g, "_")}.${kind}`;
  }

  private async png(): Promise<void> {
    if (this.drawing) save(this.file("png"), await pixels(this.drawing));
  }

  private async copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(location.href);
      this.said.textContent = "The link is copied.";
    } catch {
      this.said.textContent = "The browser does not let a page copy; the address above is the link.";
    }
  }

  /** Shows that state. */
  show(state: State): void {
    this.state = state;
    this.found = matrix(this.store, state);
    this.choices();
    const field = this.controls.querySelector<HTMLInputElement>('[data-control="filter"]');
    if (field && field.value !== state.filter) field.value = state.filter; // it is not made again while words are typed
    this.rows(this.found);
    this.draw();
  }

  private draw(): void {
    const { found, state } = this;
    if (!found) return;
    const width = Math.max(300, Math.min(1500, this.picture.clientWidth || 800));
    const made = chart(this.store, state, found, width, this.open);
    this.drawing = made.drawing;
    const keys = made.legend.map((one) =>
      h("li", {}, swatch(one.colour, one.dash, one.fill), one.arm),
    );
    this.picture.replaceChildren(
      ...(made.drawing ? [h("div", { class: "scroll", tabindex: Number(made.drawing.getAttribute("width")) > this.picture.clientWidth ? 0 : undefined }, made.drawing)] : []),
      ...(keys.length > 0 ? [h("ul", { class: "keys", "aria-label": "Colours of the arms" }, ...keys)] : []),
      ...(made.caption ? [h("figcaption", {}, made.caption)] : []),
    );
    this.picture.hidden = this.picture.childElementCount === 0;
    for (const button of this.root.querySelectorAll<HTMLButtonElement>(".downloads button")) if (button.textContent === "SVG" || button.textContent === "PNG") button.disabled = made.drawing === null;
  }

  /** The controls are made again where another set of choices is needed, and keep the focus else. */
  private choices(): void {
    const { state, store, found } = this;
    if (!found) return;
    const { metrics } = store.report;
    const asked = JSON.stringify([found.metric, found.show, state.view, state.per, state.log, state.against, state.conditions]);
    if (asked === this.asked) return;
    this.asked = asked;
    const focused = document.activeElement instanceof HTMLElement && this.controls.contains(document.activeElement) ? document.activeElement.dataset["control"] : undefined;
    const options = metrics.map((one, place) => ({ value: store.metricKey(place), title: capital(one.title), group: `${one.workload}${ROLES[one.role] ? `: ${ROLES[one.role]}` : ""}` }));
    const known = conditionsOf(store, found.metric, []);
    const shown = conditionsOf(store, found.metric, state.conditions);
    const children: (Node | null)[] = [
      select("metric", "Metric", options, store.metricKey(found.metric), (metric) => this.change({ metric, sort: state.sort === "arm" ? "arm" : "" })),
      select("show", "Show", showsOf(store, found.about).map((one) => ({ value: one.show, title: capital(one.title) })), found.show, (show) => this.change({ show: show as Show })),
      select("view", "As", Object.entries(TITLES).map(([value, title]) => ({ value, title })), state.view, (view) => this.change({ view: view as View })),
      state.view === "scatter" ? select("against", "Against", options.filter((one) => one.value !== store.metricKey(found.metric)), store.metricKey(second(store, state)), (against) => this.change({ against })) : null,
      state.view === "box" || state.view === "cdf"
        ? select("per", "Of", [{ value: "trial", title: "Trials" }, ...(store.series(found.metric) ? [{ value: "step", title: `Steps of ${store.series(found.metric)!.step} s` }] : [])], state.per, (per) => this.change({ per: per as State["per"] }))
        : null,
      state.view === "table" || state.view === "heat" ? null : select("axis", "Axis", [{ value: "linear", title: "Linear" }, { value: "log", title: "Logarithmic" }], state.log ? "log" : "linear", (axis) => this.change({ log: axis === "log" })),
      this.filter(),
      known.length > 1 ? this.conditions(known, shown) : null,
    ];
    this.controls.replaceChildren(...children.filter((one) => one !== null));
    if (focused) this.controls.querySelector<HTMLElement>(`[data-control="${focused}"]`)?.focus();
  }

  private filter(): HTMLLabelElement {
    const field = h("input", { type: "search", value: this.state.filter, placeholder: "one, or another, -none", "data-control": "filter", oninput: (event) => this.change({ filter: (event.target as HTMLInputElement).value }) });
    return h("label", { class: "field" }, h("span", {}, "Filter arms"), field);
  }

  private conditions(known: number[], shown: number[]): HTMLFieldSetElement {
    const boxes = known.map((place) => {
      const key = this.store.conditionKey(place);
      const box = h("input", {
        type: "checkbox",
        value: key,
        checked: shown.includes(place),
        "data-control": `in ${key}`,
        onchange: () => {
          const wanted = known.map((one) => this.store.conditionKey(one)).filter((one) => (one === key ? box.checked : shown.some((each) => this.store.conditionKey(each) === one)));
          this.change({ conditions: wanted.length === known.length ? [] : wanted });
        },
      });
      return h("label", { title: this.store.report.conditions[place]!.title }, box, this.store.report.conditions[place]!.name);
    });
    return h("fieldset", { class: "conditions" }, h("legend", {}, "Conditions"), ...boxes);
  }

  private rows(found: Matrix): void {
    const { store, state } = this;
    const focused = document.activeElement instanceof HTMLElement && this.table.contains(document.activeElement) ? document.activeElement.dataset["focus"] : undefined;
    const head = (key: string, title: string) => {
      const sorted = state.sort === key && key !== "";
      const sort = () => this.change(!sorted ? { sort: key, descending: false } : state.descending ? { sort: "", descending: false } : { descending: true });
      return h("th", { scope: "col", "aria-sort": sorted ? (state.descending ? "descending" : "ascending") : undefined }, h("button", { type: "button", class: "sort", "data-focus": `sort ${key}`, onclick: sort }, title));
    };
    const caption = `${capital(found.about.title)} (${found.about.workload}), ${showsOf(store, found.about).find((one) => one.show === found.show)?.title ?? ""}`;
    if (found.rows.length === 0) {
      this.table.replaceChildren(h("p", {}, state.filter ? "No arm fits the filter." : "This metric has no value over a whole window; choose box plots, the distribution, or over time."));
    } else {
      this.table.replaceChildren(
        h("table", { class: "matrix" },
          h("caption", {}, caption),
          h("thead", {}, h("tr", {}, head("arm", "arm"), found.conditions.map((one) => head(store.conditionKey(one), store.report.conditions[one]!.name)))),
          h("tbody", {}, found.rows.map((row) =>
            h("tr", { class: row.arm === store.report.reference ? "reference" : undefined },
              h("th", { scope: "row" }, store.report.arms[row.arm]!.label),
              row.entries.map((one) => h("td", {}, one ? this.button(one, found.show) : "")),
            ),
          )),
        ),
      );
    }
    if (focused) [...this.table.querySelectorAll<HTMLElement>("[data-focus]")].find((one) => one.dataset["focus"] === focused)?.focus();
    const { left_out, series_left_out } = store.report;
    this.said.textContent = `${found.rows.length} of ${store.report.arms.length} arms, ${found.conditions.length} of ${store.report.conditions.length} ${store.report.conditions.length === 1 ? "condition" : "conditions"}.${store.report.ranked ? "" : " The A/A pair does not allow to rank these arms."}${left_out.length > 0 ? ` Values of single trials are not in this page for: ${left_out.join(", ")}.` : ""}${series_left_out.length > 0 ? ` Values inside of the windows are not in it for: ${series_left_out.join(", ")}.` : ""}`;
  }

  private button(one: Entry, show: Show): HTMLButtonElement {
    const words = one.text || (one.arm === this.store.report.reference && show !== "value" ? one.cell.text : one.cell.verdict);
    return h("button", {
      type: "button",
      class: `cell verdict-${one.cell.verdict.replaceAll(" ", "-")}`,
      "data-focus": `${one.arm}/${one.condition}`,
      "aria-haspopup": "dialog",
      onclick: () => this.open(one.arm, one.condition),
    }, h("span", { class: "value" }, words), remarks(this.store, one, show).filter((said) => said !== words).map((said) => h("span", { class: "small" }, said)));
  }

  /** Puts the focus on a cell's button, from which its trials were opened. */
  focus(arm: number, condition: number): void {
    [...this.table.querySelectorAll<HTMLElement>("[data-focus]")].find((one) => one.dataset["focus"] === `${arm}/${condition}`)?.focus();
  }

  /** The metric that is shown. */
  get metric(): number {
    return metricOf(this.store, this.state.metric);
  }
}

/** How an arm is drawn: a dot with a `fill`, else a line. */
function swatch(stroke: string, dash: string, fill?: string): SVGSVGElement {
  const element = (name: string, attributes: Record<string, string>) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made as SVGSVGElement;
  };
  const made = element("svg", { class: "swatch", width: "26", height: "10", "aria-hidden": "true" });
  if (fill !== undefined) made.append(element("circle", { cx: "13", cy: "5", r: "4", stroke, "stroke-width": "2", fill }));
  else made.append(element("line", { x1: "1", x2: "25", y1: "5", y2: "5", stroke, "stroke-width": "3", ...(dash ? { "stroke-dasharray": dash } : {}) }));
  return made;
}
