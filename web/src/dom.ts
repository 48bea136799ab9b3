// Small helpers to build elements; text is always text and never markup.

type Attributes = Record<string, string | number | boolean | undefined | ((event: Event) => void)>;
type Child = Node | string | null | undefined | false;

/** An element; an attribute `onX` is a listener, `true` is an attribute without a value, and `false` none. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) made.append(child);
  return made;
}

export interface Option {
  value: string;
  title: string;
  group?: string;
}

/** A labelled choice of one of some values; `name` finds its field again after it was made again. */
export function select(name: string, label: string, options: Option[], value: string, chosen: (value: string) => void): HTMLLabelElement {
  const field = h("select", { "data-control": name, onchange: (event) => chosen((event.target as HTMLSelectElement).value) });
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const one of options) {
    const option = h("option", { value: one.value, selected: one.value === value }, one.title);
    if (one.group === undefined) {
      field.append(option);
      continue;
    }
    let group = groups.get(one.group);
    if (!group) {
      group = h("optgroup", { label: one.group });
      groups.set(one.group, group);
      field.append(group);
    }
    group.append(option);
  }
  return h("label", { class: "field" }, h("span", {}, label), field);
}

/** Calls once after a burst of calls, before the next frame that is drawn. */
export function onceAFrame(what: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      what();
    });
  };
}
