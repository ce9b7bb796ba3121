// Which page is shown: the browser's address says it, so that a page can be kept, shared and gone back to.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  path: string;
  query: URLSearchParams;
  tab: string;
}

const here = (): Route => ({
  path: location.pathname,
  query: new URLSearchParams(location.search),
  tab: location.hash.slice(1),
});

export function go(to: string, isReplacing = false): void {
  if (isReplacing) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event("routechange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(here);
  useEffect(() => {
    const changed = () => setRoute(here());
    const names = ["popstate", "hashchange", "routechange"];
    names.forEach((name) => window.addEventListener(name, changed));
    return () => names.forEach((name) => window.removeEventListener(name, changed));
  }, []);
  return route;
}

/** A link within the page follows without loading it again; with a modifier key the browser does as it is used to. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.origin !== location.origin || event.button || event.defaultPrevented) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.hasAttribute("download")) return;
  if (/^\/(api|metrics|static|healthz)/.test(link.pathname)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
  window.scrollTo(0, 0);
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
}
