// Light or dark: as the system says, or as was chosen here, which the browser remembers.

export type Theme = "system" | "light" | "dark";

const KEY = "elasticdl-theme";
export const THEMES: Theme[] = ["system", "light", "dark"];

const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: Theme = remembered();

function remembered(): Theme {
  try {
    const kept = localStorage.getItem(KEY) as Theme | null;
    return kept && THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system"; // a browser that keeps nothing for this page
  }
}

export const chosenTheme = (): Theme => chosen;

export function applyTheme(): void {
  const shown = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
  document.documentElement.setAttribute("data-theme", shown);
  listeners.forEach((each) => each());
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  applyTheme();
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // it holds until the page is left
  }
}

export function followSystem(): void {
  system.addEventListener("change", applyTheme);
}

/** Calls back when the colours change, for what is drawn rather than styled. */
export function onColours(callback: () => void): () => void {
  listeners.add(callback);
  return () => void listeners.delete(callback);
}
