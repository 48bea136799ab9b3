// The contents stay in sight: a list next to the page, or a menu on a small screen, and the section that is read is marked.

import { h } from "./dom.js";

export function navigation(nav: HTMLElement, went: (section: string) => void): void {
  const links = [...nav.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')];
  const list = nav.querySelector<HTMLElement>(".list");
  if (list) {
    list.id = "contents-list";
    const menu = h("button", { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": list.id }, "Contents");
    const open = (yes: boolean) => {
      menu.setAttribute("aria-expanded", String(yes));
      nav.classList.toggle("open", yes);
    };
    menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
    nav.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && nav.classList.contains("open")) {
        open(false);
        menu.focus();
      }
    });
    for (const link of links) link.addEventListener("click", () => open(false));
    nav.prepend(menu);
  }
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.('a[href^="#"]');
    const section = link?.getAttribute("href")?.slice(1);
    if (!section || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    went(section);
    goTo(section);
  });
  mark(links);
}

/** Brings a section into sight, and the keyboard with it. */
export function goTo(section: string, atOnce = false): void {
  const target = document.getElementById(section);
  if (!target) return;
  for (let at = target.parentElement; at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  target.scrollIntoView({ behavior: still || atOnce ? "instant" : "smooth", block: "start" });
  if (!target.hasAttribute("tabindex")) target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
}

function mark(links: HTMLAnchorElement[]): void {
  if (!("IntersectionObserver" in window)) return;
  const inSight = new Set<string>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const id = entry.target.getAttribute("aria-labelledby") ?? "";
        if (entry.isIntersecting) inSight.add(id);
        else inSight.delete(id);
      }
      const first = links.find((link) => inSight.has(link.hash.slice(1)));
      if (first) for (const link of links) (link === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
    },
    { rootMargin: "-10% 0px -60% 0px" },
  );
  for (const section of document.querySelectorAll("section[aria-labelledby]")) observer.observe(section);
}

/** What is wider than its place can be scrolled by keyboard, and only that is a stop on its way. */
export function reachable(places: Iterable<HTMLElement>): void {
  const look = (place: HTMLElement) => {
    if (place.scrollWidth > place.clientWidth + 1) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  };
  const observer = new ResizeObserver((entries) => {
    for (const entry of entries) look(entry.target as HTMLElement);
  });
  for (const place of places) observer.observe(place);
}

/** Opens what belongs on paper and is folded on a screen while the page is printed. */
export function unfoldOnPaper(page: Window): void {
  let folded: HTMLDetailsElement[] = [];
  page.addEventListener("beforeprint", () => {
    folded = [...page.document.querySelectorAll<HTMLDetailsElement>("details.print:not([open])")];
    for (const one of folded) one.open = true;
  });
  page.addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
}
