// Several runs beside each other: one chart, their metrics with the best marked, their settings with the differences.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, ask, IDLE_MS, LIVE_MS, runPath, usePolled } from "../api";
import { Chart, type Range } from "../parts/chart";
import { asked, begun, lineOf } from "../parts/curves";
import { Swatch } from "../parts/legend";
import type { Line } from "../parts/lines";
import { LookControls, useLook } from "../parts/look";
import { Choice, Empty, Notice, Progress, Status } from "../parts/small";
import type { CompareAnswer, Run, Series } from "../types";
import { duration, number, plain } from "../words";
import { useTitle } from "./title";

/** Runs of the same name are told apart by their place. */
function namesOf(runs: Run[]): string[] {
  const counts = new Map<string, number>();
  runs.forEach((run) => counts.set(run.name, (counts.get(run.name) ?? 0) + 1));
  return runs.map((run) => ((counts.get(run.name) ?? 0) > 1 ? `${run.name} (${run.where})` : run.name));
}

/** The curves of all runs, asked again when a run has changed. */
function useSeries(runs: Run[], query: (run: Run) => Record<string, string | number | undefined>): Map<string, Series[]> {
  const [all, setAll] = useState<Map<string, Series[]>>(new Map());
  const urls = runs.map((run) => address(runPath(run.id, "/series"), query(run)));
  const marks = runs.map((run) => `${run.step} ${run.status} ${JSON.stringify(run.metrics)}`).join();
  useEffect(() => {
    const stopped = new AbortController();
    runs.forEach((run, i) => {
      ask<{ series: Series[] }>(urls[i] as string, stopped.signal).then(
        ({ series }) => setAll((old) => (old.get(run.id) === series ? old : new Map(old).set(run.id, series))),
        () => undefined, // the table above says what is wrong with the run
      );
    });
    return () => stopped.abort();
  }, [urls.join(), marks]);
  return all;
}

interface Curve {
  key: string;
  label: string;
  count: number;
}

/** The curves that there are, in the order of the runs, whichever answered first. */
function curvesOf(all: Series[][]): Curve[] {
  const found = new Map<string, Curve>();
  for (const { key, label, points } of all.flat())
    if (points.length) found.set(key, { key, label, count: (found.get(key)?.count ?? 0) + 1 });
  return [...found.values()];
}

/** The loss, else the first of those that most runs have. */
function firstShown(curves: Curve[]): string {
  const most = Math.max(...curves.map((curve) => curve.count));
  return (curves.find(({ key }) => key === "loss") ?? curves.find(({ count }) => count === most))?.key ?? "";
}

const NAMES: Record<string, string> = { duration_s: "duration", examples_per_s: "examples a second" };

export function ComparePage({ ids }: { ids: string[] }) {
  const url = ids.length ? `/api/compare?ids=${ids.map(encodeURIComponent).join(",")}` : null;
  const { data, refused } = usePolled<CompareAnswer>(url, (last) => (last?.runs.some((run) => run.is_live) ? LIVE_MS : IDLE_MS));
  useTitle("Compare");
  return (
    <>
      <div class="title">
        <h1>Compare</h1>
        <a href="/">All runs</a>
      </div>
      {refused && <Notice tone="bad">{refused.status === 404 ? "One of these runs is not there any more." : refused.message}</Notice>}
      {!ids.length && <Empty>Tick two or more runs in the list, then choose Compare.</Empty>}
      {data && (
        <>
          <ComparedCurves runs={data.runs} />
          <Metrics answer={data} />
          <Configs answer={data} />
        </>
      )}
    </>
  );
}

function ComparedCurves({ runs }: { runs: Run[] }) {
  const [look, setLook] = useLook();
  const [range, setRange] = useState<Range>(null);
  const [chosen, setChosen] = useState("");
  const starts = useRef(new Map<string, number>());
  const startOf = (run: Run) => starts.current.get(run.id) ?? run.started ?? 0;
  const series = useSeries(runs, (run) => ({ points: 600, x: look.x, ...asked(range, look, startOf(run)) }));
  for (const run of runs) starts.current.set(run.id, begun(series.get(run.id) ?? [], startOf(run)));
  const names = namesOf(runs);
  const found = useMemo(() => curvesOf(runs.map((run) => series.get(run.id) ?? [])), [series, runs]);
  const keys = found.map(({ key, label }): [string, string] => [key, label]);
  const key = found.some((each) => each.key === chosen) ? chosen : firstShown(found);
  const lines = useMemo(
    () =>
      runs.flatMap((run, i): Line[] => {
        const own = series.get(run.id)?.find((each) => each.key === key);
        return own ? [{ ...lineOf(own, look.x, startOf(run), i, names[i]), key: run.id }] : [];
      }),
    [series, key, look.x, names.join()],
  );
  return (
    <section aria-labelledby="curves">
      <div class="head">
        <h2 id="curves">Curves</h2>
        {keys.length > 0 && <Choice label="Curve" value={key} onValue={setChosen} options={keys} />}
        <LookControls look={look} onLook={setLook} range={range} onRange={setRange} />
      </div>
      {lines.length ? (
        <Chart title={keys.find(([each]) => each === key)?.[1] ?? key} lines={lines} look={look} range={range} onRange={setRange} height={320} />
      ) : (
        <Empty>No curves yet.</Empty>
      )}
    </section>
  );
}

function RunHeads({ runs, first }: { runs: Run[]; first: string }) {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {runs.map((run, i) => (
          <th scope="col" key={run.id}>
            <Swatch colour={i} />
            <a href={`/run/${encodeURIComponent(run.id)}`} title={namesOf(runs)[i]}>
              {namesOf(runs)[i]}
            </a>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Metrics({ answer: { runs, metrics } }: { answer: CompareAnswer }) {
  return (
    <section aria-labelledby="metrics">
      <h2 id="metrics">Metrics</h2>
      <div class="scroll card" tabIndex={0} role="group" aria-label="Metrics of the runs">
        <table class="compared">
          <RunHeads runs={runs} first="Metric" />
          <tbody>
            <tr>
              <th scope="row">status</th>
              {runs.map((run) => (
                <td key={run.id}>
                  <Status run={run} />
                </td>
              ))}
            </tr>
            <tr>
              <th scope="row">progress</th>
              {runs.map((run) => (
                <td key={run.id}>
                  <Progress run={run} />
                </td>
              ))}
            </tr>
            {metrics.map((metric) => (
              <tr key={metric.name}>
                <th scope="row" title={metric.name}>
                  {NAMES[metric.name] ?? metric.name}
                </th>
                {metric.values.map((value, i) => (
                  <td key={i} class={metric.best === i ? "best" : ""}>
                    {metric.name === "duration_s" ? duration(value) : number(value)}
                    {metric.best === i && <small> best</small>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Configs({ answer: { runs, config } }: { answer: CompareAnswer }) {
  const [isAll, setAll] = useState(false);
  const rows = config.filter((each) => isAll || each.differs);
  const differing = config.filter((each) => each.differs).length;
  return (
    <section aria-labelledby="settings">
      <div class="head">
        <h2 id="settings">Settings</h2>
        <label class="check">
          <input type="checkbox" checked={!isAll} onChange={(event) => setAll(!event.currentTarget.checked)} />
          Only differences
        </label>
        <span class="hint">
          {differing} of {config.length} differ
        </span>
      </div>
      {rows.length ? (
        <div class="scroll card" tabIndex={0} role="group" aria-label="Settings of the runs">
          <table class="compared">
            <RunHeads runs={runs} first="Setting" />
            <tbody>
              {rows.map((each) => (
                <tr key={each.key} class={each.differs ? "differs" : ""}>
                  <th scope="row" title={each.key}>
                    {each.key}
                    {each.differs && <span class="spoken"> (differs)</span>}
                  </th>
                  {each.values.map((value, i) => (
                    <td key={i}>{plain(value)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty>These runs were asked for the same.</Empty>
      )}
    </section>
  );
}
