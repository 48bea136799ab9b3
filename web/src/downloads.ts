// Files of what is shown, made in the page itself: nothing goes over a network.

import { h } from "./dom.js";

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A figure as a file of its own: colours of the page's theme become plain ones, and its background is that of the page. */
export function standalone(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const style = getComputedStyle(document.documentElement);
  const plain = (text: string) => text.replace(/var\((--[\w-]+)\)/g, (_, name: string) => style.getPropertyValue(name).trim() || "currentColor");
  for (const element of [copy, ...copy.querySelectorAll("*")]) {
    for (const attribute of [...element.attributes]) if (attribute.value.includes("var(")) element.setAttribute(attribute.name, plain(attribute.value));
    if (element.localName === "style") element.textContent = plain(element.textContent ?? "");
  }
  const width = drawing.getAttribute("width") ?? "800";
  const height = drawing.getAttribute("height") ?? "400";
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width, height, fill: plain("var(--paper)") })) paper.setAttribute(name, value);
  copy.prepend(paper);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("color", plain("var(--ink)"));
  copy.setAttribute("font-family", plain("var(--sans)"));
  copy.removeAttribute("class");
  return new XMLSerializer().serializeToString(copy);
}

/** The same as pixels, two for one. */
export async function pixels(drawing: SVGSVGElement, factor = 2): Promise<Blob> {
  const image = new Image();
  const loaded = new Promise<void>((done, failed) => {
    image.onload = () => done();
    image.onerror = () => failed(new Error("the figure cannot be drawn"));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(drawing))}`;
  await loaded;
  const canvas = h("canvas", { width: Math.round(Number(drawing.getAttribute("width")) * factor), height: Math.round(Number(drawing.getAttribute("height")) * factor) });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture was made"))), "image/png"));
}
