// How a chart is drawn on its canvas: uPlot's settings, in the page's colours.
import uPlot from "uplot";
import { duration, number } from "../words";
import type { Line } from "./lines";

export type Range = [number, number] | null;

export const PALETTE = 8;
export const FEW_POINTS = 40;

/** Ticks at whole seconds, minutes, hours and days. */
const TIME_STEPS = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const FONT = "12px system-ui, sans-serif";
const STEPPED = uPlot.paths.stepped?.({ align: 1 });
const SMALLEST_DRAG = 6;

export interface Drawing {
  lines: Line[];
  isTime: boolean;
  isLog: boolean;
  isSmoothed: boolean;
  isCount: boolean;
  hidden: Set<string>;
  height: number;
  shown: () => Range;
  onRange: (range: Range) => void;
  onPoint: (at: number | null) => void;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** What is shown when nothing was zoomed; a single point in the middle. */
export function padded(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  return low === high ? [low - (Math.abs(low) / 2 || 1), high + (Math.abs(high) / 2 || 1)] : [low, high];
}

function seriesOf(line: Line, { isSmoothed, hidden }: Drawing): uPlot.Series[] {
  const main: uPlot.Series = {
    label: line.label,
    show: !hidden.has(line.key),
    stroke: colour(`--line-${line.colour % PALETTE}`),
    dash: line.colour < PALETTE ? [] : [6, 4], // past the palette's end, so that no two look alike
    width: 2,
    points: { show: !isSmoothed && line.points.length < FEW_POINTS, size: 5 },
    ...(line.isStepped ? { paths: STEPPED } : {}),
  };
  return isSmoothed ? [{ ...main, width: 1, alpha: 0.28 }, main] : [main];
}

function axesOf({ isTime, isCount }: Drawing): uPlot.Axis[] {
  const grid = { stroke: colour("--grid"), width: 1 };
  const axis: uPlot.Axis = { stroke: colour("--ink-2"), font: FONT, grid, ticks: { ...grid, size: 4 } };
  const sayX = (x: number) => (isTime ? duration(x) : Number.isInteger(x) ? number(x) : "");
  const sayY = (y: number | null) => (y === null || (isCount && !Number.isInteger(y)) ? "" : number(y));
  return [
    {
      ...axis,
      size: 32,
      space: isTime ? 80 : 64,
      values: (_, ticks) => ticks.map(sayX),
      ...(isTime ? { incrs: TIME_STEPS } : {}),
    },
    { ...axis, size: 58, values: (_, ticks) => ticks.map(sayY) },
  ];
}

function selected(plot: uPlot, onRange: (range: Range) => void): void {
  const { left, width } = plot.select;
  if (width < SMALLEST_DRAG) return;
  const range: Range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onRange(range);
}

/** A chart in `host`, as wide as it is. */
export function drawn(host: HTMLElement, data: uPlot.AlignedData, drawing: Drawing): uPlot {
  const plot = new uPlot(
    {
      width: host.clientWidth || 300,
      height: drawing.height,
      legend: { show: false },
      padding: [8, 10, 0, 0],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        focus: { prox: 24 },
        bind: { dblclick: () => () => (drawing.onRange(null), null) },
      },
      scales: {
        x: { time: false, range: (_, low, high) => drawing.shown() ?? padded(low, high) },
        y: drawing.isLog ? { distr: 3, log: 10 } : {},
      },
      axes: axesOf(drawing),
      series: [{}, ...drawing.lines.flatMap((line) => seriesOf(line, drawing))],
      hooks: {
        setCursor: [(self) => drawing.onPoint(self.cursor.idx ?? null)],
        setSelect: [(self) => selected(self, drawing.onRange)],
      },
    },
    data,
    host,
  );
  plot.root.setAttribute("aria-hidden", "true"); // a canvas has no words; those beside it are read
  return plot;
}

/** Keeps the chart as wide as its host; gives what ends that. */
export function fitted(plot: uPlot, host: HTMLElement, height: number): () => void {
  const watch = new ResizeObserver(() => {
    if (host.clientWidth) plot.setSize({ width: host.clientWidth, height });
  });
  watch.observe(host);
  return () => watch.disconnect();
}
