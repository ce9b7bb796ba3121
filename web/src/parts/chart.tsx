// One chart: lines over steps or time, with values under the pointer, zoom by dragging, and the same by keyboard.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onColours } from "../theme";
import { duration, number, UNKNOWN } from "../words";
import { aligned, sampled, spoken, type Line } from "./lines";

export type Range = [number, number] | null;

export interface Look {
  x: "step" | "time";
  smoothing: number;
  isLog: boolean;
}

interface Props {
  title: string;
  lines: Line[];
  look: Look;
  range: Range;
  onRange: (range: Range) => void;
  /** What is shown when nothing was zoomed, so that charts below each other have the same axis. */
  domain?: Range;
  height?: number;
  /** The number of points of the longest line, here and in the charts beside it. */
  densest?: number;
}

/** Ticks at whole seconds, minutes, hours and days. */
const TIME_STEPS = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

const PALETTE = 8;

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const hue = (at: number): string => colour(`--line-${at % PALETTE}`);

/** Lines past the palette's end are dashed, so that no two look alike. */
const dash = (at: number): number[] => (at < PALETTE ? [] : [6, 4]);

const STEPPED = uPlot.paths.stepped?.({ align: 1 });

function drawnSeries(lines: Line[], isSmoothed: boolean, hidden: Set<string>): uPlot.Series[] {
  return lines.flatMap((line) => {
    const main: uPlot.Series = {
      label: line.label,
      show: !hidden.has(line.key),
      stroke: hue(line.colour),
      dash: dash(line.colour),
      width: 2,
      ...(line.isStepped ? { paths: STEPPED } : {}),
      points: { show: line.points.length < 40, size: 5 },
    };
    if (!isSmoothed) return [main];
    const raw: uPlot.Series = { ...main, width: 1, alpha: 0.28, points: { show: false } };
    return [raw, { ...main, points: { show: false } }];
  });
}

function padded(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  return low === high ? [low - (Math.abs(low) / 2 || 1), high + (Math.abs(high) / 2 || 1)] : [low, high];
}

export function Chart({ title, lines, look: wanted, range, onRange, domain = null, height = 210, densest }: Props) {
  // The number of workers is neither smoothed nor drawn on a logarithmic scale.
  const isCount = lines.every((line) => line.isStepped);
  const look = isCount ? { ...wanted, smoothing: 0, isLog: false } : wanted;
  const longest = densest ?? Math.max(1, ...lines.map((line) => line.points.length));
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [isKeyed, setKeyed] = useState(false);
  const [colours, setColours] = useState(0);
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const data = useMemo(() => aligned(lines, look.smoothing, look.isLog, longest), [lines, look.smoothing, look.isLog, longest]);
  const perLine = look.smoothing ? 2 : 1;
  const sayX = (x: number) => (look.x === "time" ? duration(x) : `step ${number(x)}`);
  const hasLog = look.isLog && data.slice(1).some((values) => [...values].some((y) => typeof y === "number" && y > 0));
  const shape = JSON.stringify([lines.map((l) => [l.key, l.label, l.colour, l.points.length < 40]), look.x, perLine, hasLog, colours, [...hidden]]);
  const ranged = useRef(onRange);
  ranged.current = onRange;
  const current = useRef<Range>(range);
  current.current = range ?? domain;

  useEffect(() => onColours(() => setColours((count) => count + 1)), []);

  useEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const [ink, grid, font] = [colour("--ink-2"), colour("--grid"), "12px system-ui, sans-serif"];
    const axis: uPlot.Axis = {
      stroke: ink,
      font,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 4 },
    };
    const made = new uPlot(
      {
        width: host.clientWidth || 300,
        height,
        legend: { show: false },
        padding: [8, 10, 0, 0],
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false },
          focus: { prox: 24 },
          bind: { dblclick: () => () => (ranged.current(null), null) },
        },
        scales: {
          x: { time: false, range: (_, low, high) => current.current ?? padded(low, high) },
          y: hasLog ? { distr: 3, log: 10 } : {},
        },
        axes: [
          {
            ...axis,
            values: (_, ticks) => ticks.map((x) => (look.x === "time" ? duration(x) : Number.isInteger(x) ? number(x) : "")),
            size: 32,
            ...(look.x === "time" ? { incrs: TIME_STEPS } : {}),
            space: look.x === "time" ? 80 : 64,
          },
          { ...axis, size: 58, values: (_, ticks) => ticks.map((y) => (y === null || (isCount && !Number.isInteger(y)) ? "" : number(y))) },
        ],
        series: [{}, ...drawnSeries(lines, perLine === 2, hidden)],
        hooks: {
          setCursor: [(u) => setAt(u.cursor.idx ?? null)],
          setSelect: [
            (u) => {
              if (u.select.width < 6) return;
              const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              ranged.current([from, to]);
            },
          ],
        },
      },
      data,
      host,
    );
    plot.current = made;
    // Screen readers get the words beside it; a canvas has none.
    made.root.setAttribute("aria-hidden", "true");
    const fit = new ResizeObserver(() => {
      if (host.clientWidth) made.setSize({ width: host.clientWidth, height });
    });
    fit.observe(host);
    return () => {
      fit.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data), [data, range, domain?.[0], domain?.[1]]);

  const xs = data[0] as number[];
  const shown = at !== null && at < xs.length ? at : null;

  const move = (by: number) => {
    const u = plot.current;
    if (!u || !xs.length) return;
    const next = Math.min(xs.length - 1, Math.max(0, (shown ?? (by > 0 ? -1 : xs.length)) + by));
    setKeyed(true);
    setAt(next);
    u.setCursor({ left: u.valToPos(xs[next] as number, "x"), top: 10 }, false);
  };

  const zoom = (factor: number) => {
    const [low, high] = range ?? domain ?? padded(xs[0] ?? null, xs[xs.length - 1] ?? null);
    const centre = shown === null ? (low + high) / 2 : (xs[shown] as number);
    onRange([centre - (centre - low) * factor, centre + (high - centre) * factor]);
  };

  const keyed = (event: KeyboardEvent) => {
    const many = Math.max(1, Math.round(xs.length / 20));
    const acts: Record<string, () => void> = {
      ArrowLeft: () => move(event.shiftKey ? -many : -1),
      ArrowRight: () => move(event.shiftKey ? many : 1),
      Home: () => move(-xs.length),
      End: () => move(xs.length),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => onRange(null),
      Escape: () => onRange(null),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };

  /** The line's value at the cursor, or the last one before it: lines have their points at different steps. */
  const valueAt = (line: number): number | null => {
    const values = data[1 + line * perLine + perLine - 1];
    if (!values) return null;
    for (let i = shown ?? values.length - 1; i >= 0; i -= 1) {
      const value = values[i];
      if (typeof value === "number") return value;
    }
    return null;
  };

  const where = shown === null ? "latest" : sayX(xs[shown] as number);
  const words = lines.map((line) => spoken(line, sayX, number)).join(" ");
  return (
    <figure class="chart card">
      <figcaption>
        <h3>{title}</h3>
        <span class="at">{where}</span>
      </figcaption>
      <ul class="legend" aria-live={isKeyed ? "polite" : "off"}>
        {isKeyed && shown !== null && <li class="spoken">{where}</li>}
        {lines.map((line, i) => (
          <li key={line.key}>
            <LegendName line={line} isHidden={hidden.has(line.key)} onTurn={lines.length > 1 ? () => setHidden(turned(hidden, line.key)) : null} />{" "}
            <b>{number(valueAt(i))}</b>
          </li>
        ))}
      </ul>
      <div
        ref={box}
        class="plot"
        tabIndex={0}
        role="group"
        aria-roledescription="chart"
        aria-label={`${title}. ${words} Arrow keys read values, plus and minus zoom, zero shows all.`}
        onKeyDown={keyed}
        onBlur={() => setKeyed(false)}
      />
      <details class="values">
        <summary>Values as a table</summary>
        <ValueTable lines={lines} isTime={look.x === "time"} />
      </details>
    </figure>
  );
}

function turned(hidden: Set<string>, key: string): Set<string> {
  const next = new Set(hidden);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** Where there are several lines, pressing a name hides its line. */
function LegendName({ line, isHidden, onTurn }: { line: Line; isHidden: boolean; onTurn: (() => void) | null }) {
  const words = (
    <>
      <Swatch colour={line.colour} />
      <span class="label">{line.label}</span>
    </>
  );
  if (!onTurn) return words;
  return (
    <button type="button" class="turn" aria-pressed={!isHidden} title={isHidden ? "Show this line" : "Hide this line"} onClick={onTurn}>
      {words}
    </button>
  );
}

export function Swatch({ colour }: { colour: number }) {
  return <span class={`swatch line-${colour % PALETTE}${colour >= PALETTE ? " dashed" : ""}`} aria-hidden="true" />;
}

function ValueTable({ lines, isTime }: { lines: Line[]; isTime: boolean }) {
  const [xs, ...columns] = aligned(lines, 0, false, 1);
  const rows = sampled([...(xs ?? [])].map((x, i) => ({ x: x as number, i })), 25);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Values">
      <table>
        <thead>
          <tr>
            <th scope="col">{isTime ? "Time" : "Step"}</th>
            {lines.map((line) => (
              <th scope="col" key={line.key} class="num">
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ x, i }) => (
            <tr key={i}>
              <th scope="row">{isTime ? duration(x) : number(x)}</th>
              {columns.map((column, c) => (
                <td class="num" key={c}>
                  {typeof column[i] === "number" ? number(column[i] as number) : UNKNOWN}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
