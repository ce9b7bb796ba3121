// The curves of a run: losses in one chart, then a chart for each metric, then how fast it went.
import { useMemo, useRef, useState } from "preact/hooks";
import { address, pauseOf, runPath, usePolled } from "../api";
import type { Series } from "../types";
import { Chart, type Look, type Range } from "./chart";
import { extent, ordered, prolonged, type Line } from "./lines";
import { LookControls, useLook } from "./look";
import { Empty } from "./small";

interface Group {
  title: string;
  series: Series[];
}

interface Drawn {
  title: string;
  isSpeed: boolean;
  lines: Line[];
}

const ORDER = ["loss", "metric", "speed", "workers"];
const TITLES: Record<string, string> = { loss: "Loss", speed: "Examples a second", workers: "Workers" };

/** `val_accuracy` and `accuracy` measure the same thing. */
const measured = (series: Series): string => series.key.replace(/^val_/, "");

function grouped(all: Series[]): Group[] {
  const groups = new Map<string, Group & { rank: number }>();
  for (const series of all) {
    if (!series.points.length) continue;
    const key = series.kind === "metric" ? `metric ${measured(series)}` : series.kind;
    const title = TITLES[series.kind] ?? measured(series);
    const rank = ORDER.indexOf(series.kind);
    const group = groups.get(key) ?? { title, series: [], rank: rank < 0 ? ORDER.length : rank };
    group.series.push(series);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => a.rank - b.rank);
}

export function lineOf(series: Series, x: Look["x"], started: number, colour: number, label = series.label): Line {
  const points = series.points.map(([step, time, value]): [number | null, number | null] => [
    x === "step" ? step : time === null ? null : time - started,
    value,
  ]);
  return { key: series.key + label, label, colour, points: ordered(points), isStepped: series.kind === "workers" };
}

/** What a range on the chart is for the server: seconds since 1970 where the chart says seconds since the start. */
export function asked(range: Range, look: Look, started: number): { start?: number; end?: number } {
  if (!range) return {};
  const shift = look.x === "time" ? started : 0;
  return { start: range[0] + shift, end: range[1] + shift };
}

/** When the first point was: a resumed run has curves from before it was started. */
export function begun(all: Series[], known: number): number {
  return Math.min(known, ...all.map(({ points }) => points[0]?.[1] ?? Infinity));
}

interface Props {
  id: string;
  isLive: boolean;
  started: number | null;
  /** Whether it is worth a word that there are none. */
  isNeeded: boolean;
}

export function Curves({ id, isLive, started, isNeeded }: Props) {
  const [look, setLook] = useLook();
  const [range, setRange] = useState<Range>(null);
  const earliest = useRef(Infinity);
  const query = { points: 800, x: look.x, ...asked(range, look, Math.min(earliest.current, started ?? Infinity)) };
  const { data } = usePolled<{ series: Series[] }>(address(runPath(id, "/series"), query), pauseOf(isLive));
  const from = (earliest.current = begun(data?.series ?? [], Math.min(earliest.current, started ?? Infinity)));
  const groups = useMemo(() => grouped(data?.series ?? []), [data]);
  const [charts, domain, densest] = useMemo((): [Drawn[], Range, number] => {
    const drawn = groups.map(({ title, series }) => ({ title, isSpeed: series[0]?.kind === "speed", lines: series.map((each, i) => lineOf(each, look.x, from, i)) }));
    const all = extent(drawn.flatMap(({ lines }) => lines));
    const ended = drawn.map(({ lines, ...rest }) => ({ ...rest, lines: all ? lines.map((line) => prolonged(line, all[1])) : lines }));
    return [ended, all, Math.max(1, ...ended.flatMap(({ lines }) => lines.map((line) => line.points.length)))];
  }, [groups, look.x, from]);
  if (!charts.length && !isNeeded) return null;
  return (
    <section aria-labelledby="curves">
      <div class="head">
        <h2 id="curves">Curves</h2>
        <LookControls look={look} onLook={setLook} range={range} onRange={setRange} />
      </div>
      {!charts.length && <Empty>{data ? "No steps were told yet." : "Reading the curves."}</Empty>}
      <div class="charts">
        {charts.map((chart) => (
          <Chart
            key={chart.title}
            title={chart.title}
            lines={chart.lines}
            look={chart.isSpeed ? { ...look, isLog: false } : look}
            range={range}
            onRange={setRange}
            domain={domain}
            densest={densest}
          />
        ))}
      </div>
    </section>
  );
}
