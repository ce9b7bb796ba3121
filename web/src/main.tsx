// The page's frame: its head, which page is shown, and what is said when the server is away.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLost } from "./api";
import { ComparePage } from "./pages/compare";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { follow, useRoute, type Route } from "./route";
import "./style.css";
import { moment } from "./words";
import { chooseTheme, chosenTheme, followSystem, THEMES, type Theme } from "./theme";

const SIGNS: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };

function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  const choose = () => {
    chooseTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" class="theme" onClick={choose} title={`Change to ${next}`}>
      <span aria-hidden="true">{SIGNS[theme]}</span> Theme: {theme}
    </button>
  );
}

function Page({ route }: { route: Route }) {
  const run = /^\/run\/([^/]+)\/?$/.exec(route.path);
  if (run) return <RunPage key={run[1]} id={decodeURIComponent(run[1] as string)} tab={route.tab} />;
  if (route.path === "/compare") {
    const ids = (route.query.get("ids") ?? "").split(",").filter(Boolean);
    return <ComparePage key={ids.join()} ids={ids} />;
  }
  return <RunsPage query={route.query} />;
}

/** `/` is for searching, as on other pages with lists. */
function searchByKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.matches("input:not([type=checkbox], [type=radio], [type=range]), select, textarea")) return;
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function App() {
  const route = useRoute();
  const lost = useLost();
  useEffect(() => {
    document.addEventListener("keydown", searchByKey);
    return () => document.removeEventListener("keydown", searchByKey);
  }, []);
  return (
    <div onClick={follow}>
      <a class="skip" href="#main" onClick={skip}>
        To the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/static/icon.svg" alt="" width="24" height="24" /> ElasticDL
        </a>
        <nav aria-label="Pages">
          <a href="/" aria-current={route.path === "/" ? "page" : undefined}>
            Runs
          </a>
          <a href="/api/docs">API</a>
        </nav>
        <ThemeSwitch />
      </header>
      <div role="alert" class="lost-box">
        {lost !== null && (
          <p class="lost">
            The dashboard does not answer: it ends with the command that started it. This is what was known at {moment(lost)}. The page
            tries again; later, <code>elasticdl dashboard</code> shows all runs.
          </p>
        )}
      </div>
      <main id="main" tabIndex={-1}>
        <Page route={route} />
      </main>
    </div>
  );
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** The server has made a cookie of the token: it need not stay in the address, which people copy. */
function hideToken(): void {
  const address = new URL(location.href);
  if (!address.searchParams.has("token")) return;
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

const host = document.getElementById("page");
if (host) {
  hideToken();
  followSystem();
  host.replaceChildren();
  render(<App />, host);
}
