// One chart: lines over steps or time, with values under the pointer, zoom by dragging, and the same by keyboard.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onColours } from "../theme";
import { duration, number } from "../words";
import { Legend, ValueTable } from "./legend";
import { aligned, spoken, type Line } from "./lines";
import { drawn, FEW_POINTS, fitted, padded, type Range } from "./plot";

export type { Range } from "./plot";

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

/** Counts up when the theme changes. */
function useColours(): number {
  const [count, setCount] = useState(0);
  useEffect(() => onColours(() => setCount((old) => old + 1)), []);
  return count;
}

const hasPositive = (data: uPlot.AlignedData): boolean =>
  data.slice(1).some((values) => [...values].some((y) => typeof y === "number" && y > 0));

/** The value at a place, or the last one before it: lines have their points at different steps. */
function valueAt(values: uPlot.AlignedData[number] | undefined, at: number): number | null {
  for (let i = at; values && i >= 0; i -= 1) {
    const value = values[i];
    if (typeof value === "number") return value;
  }
  return null;
}

export function Chart({ title, lines, look: wanted, range, onRange, domain = null, height = 210, densest }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [isKeyed, setKeyed] = useState(false);
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const colours = useColours();
  // The number of workers is neither smoothed nor drawn on a logarithmic scale.
  const isCount = lines.every((line) => line.isStepped);
  const { x, smoothing, isLog } = isCount ? { ...wanted, smoothing: 0, isLog: false } : wanted;
  const longest = densest ?? Math.max(1, ...lines.map((line) => line.points.length));
  const data = useMemo(() => aligned(lines, smoothing, isLog, longest), [lines, smoothing, isLog, longest]);
  const [isTime, isSmoothed, canLog] = [x === "time", smoothing > 0, isLog && hasPositive(data)];
  const latest = useRef({ range, domain, onRange });
  latest.current = { range, domain, onRange };

  // A chart is made anew when its parts change; new points are only given to it.
  const parts = lines.map((line) => [line.key, line.label, line.colour, line.points.length < FEW_POINTS]);
  const shape = JSON.stringify([parts, isTime, isSmoothed, canLog, colours, [...hidden]]);
  useEffect(() => {
    if (!box.current) return undefined;
    const made = drawn(box.current, data, {
      ...{ lines, isTime, isLog: canLog, isSmoothed, isCount, hidden, height },
      shown: () => latest.current.range ?? latest.current.domain,
      onRange: (next) => latest.current.onRange(next),
      onPoint: setAt,
    });
    plot.current = made;
    const unfit = fitted(made, box.current, height);
    return () => {
      unfit();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data, range, domain?.[0], domain?.[1]]);

  const xs = data[0] as number[];
  const shown = at !== null && at < xs.length ? at : null;
  const move = (by: number) => {
    if (!plot.current || !xs.length) return;
    const next = Math.min(xs.length - 1, Math.max(0, (shown ?? (by > 0 ? -1 : xs.length)) + by));
    setKeyed(true);
    setAt(next);
    plot.current.setCursor({ left: plot.current.valToPos(xs[next] as number, "x"), top: 10 }, false);
  };
  const zoom = (factor: number) => {
    const [low, high] = range ?? domain ?? padded(xs[0] ?? null, xs[xs.length - 1] ?? null);
    const centre = shown === null ? (low + high) / 2 : (xs[shown] as number);
    onRange([centre - (centre - low) * factor, centre + (high - centre) * factor]);
  };
  const keyed = keysOf(xs.length, move, zoom, () => onRange(null));

  const sayX = (value: number) => (isTime ? duration(value) : `step ${number(value)}`);
  const where = shown === null ? "latest" : sayX(xs[shown] as number);
  const perLine = isSmoothed ? 2 : 1;
  const values = lines.map((_, i) => valueAt(data[(i + 1) * perLine], shown ?? xs.length - 1));
  const words = lines.map((line) => spoken(line, sayX, number)).join(" ");
  return (
    <figure class="chart card">
      <figcaption>
        <h3 title={title}>{title}</h3>
        <span class="at">{where}</span>
      </figcaption>
      <Legend lines={lines} values={values} spoken={isKeyed && shown !== null ? where : null} hidden={hidden} onHidden={setHidden} />
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
        <ValueTable lines={lines} isTime={isTime} />
      </details>
    </figure>
  );
}

function keysOf(length: number, move: (by: number) => void, zoom: (factor: number) => void, showAll: () => void) {
  const many = Math.max(1, Math.round(length / 20));
  return (event: KeyboardEvent): void => {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => move(event.shiftKey ? -many : -1),
      ArrowRight: () => move(event.shiftKey ? many : 1),
      Home: () => move(-length),
      End: () => move(length),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": showAll,
      Escape: showAll,
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
}
