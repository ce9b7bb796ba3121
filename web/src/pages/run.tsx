// One run: how far it is, its curves, its workers, and all that is known of it.
import type { ComponentChildren } from "preact";
import { pauseOf, runPath, usePolled } from "../api";
import { Curves } from "../parts/curves";
import { Events, Logs } from "../parts/events";
import { Configuration, Files, Report } from "../parts/facts";
import { Guard } from "../parts/guard";
import { GoodputView, Ledger } from "../parts/ledger";
import { Empty, Notice, Progress, Status } from "../parts/small";
import { Workers } from "../parts/workers";
import { go } from "../route";
import type { RunDetail } from "../types";
import { duration, moment, number, percent } from "../words";
import { useTitle } from "./title";

const TABS: [string, string][] = [
  ["overview", "Overview"],
  ["events", "Events"],
  ["logs", "Logs"],
  ["configuration", "Configuration"],
  ["files", "Files"],
  ["report", "Report"],
];

export function RunPage({ id, tab }: { id: string; tab: string }) {
  const { data: run, refused } = usePolled<RunDetail>(runPath(id), (last) => pauseOf(last?.is_live ?? true)());
  useTitle(run ? `${run.is_live && run.fraction !== null ? `${percent(run.fraction)} · ` : ""}${run.name}` : "Run");
  if (!run)
    return refused ? (
      <>
        <h1>Run</h1>
        <Notice tone="bad">{refused.status === 404 ? "This run is not there. Its directory may have been removed or renamed." : refused.message}</Notice>
        <a href="/">All runs</a>
      </>
    ) : (
      <>
        <h1>Run</h1>
        <Empty>Reading the run.</Empty>
      </>
    );
  const tabs = TABS.filter(([key]) => key !== "report" || run.report);
  const shown = tabs.some(([key]) => key === tab) ? tab : "overview";
  return (
    <>
      <Part run={run} name="The head">
        <Head run={run} />
      </Part>
      <div class="said" role="status">
        {refused && (
          <Notice tone="bad">
            {refused.status === 404 ? "The run is gone: its directory was removed or renamed. This is what was known last." : refused.message}
          </Notice>
        )}
        {run.message && <Notice tone={run.status === "failed" || run.status === "killed" ? "bad" : "calm"}>{run.message}</Notice>}
        {run.warning && <Notice tone="warn">{run.warning}</Notice>}
        {run.problems.map((problem) => (
          <Notice tone="warn" key={problem}>
            {problem}
          </Notice>
        ))}
      </div>
      <Tabs tabs={tabs} shown={shown} />
      <div role="tabpanel" id={`panel-${shown}`} aria-labelledby={`tab-${shown}`} class="panel">
        {shown === "overview" && (
          <>
            <Part run={run} name="The curves">
              <Curves id={run.id} isNeeded={!isBrief(run)} isLive={run.is_live} started={run.started} />
            </Part>
            <Part run={run} name="The workers">
              <Workers run={run} />
            </Part>
            <div class="pair">
              <Part run={run} name="The ledger">
                <Ledger run={run} />
              </Part>
              <Part run={run} name="The goodput">
                <GoodputView goodput={run.goodput} />
              </Part>
            </div>
          </>
        )}
        <Part key={shown} run={run} name="This">
          {shown === "events" && <Events id={run.id} isLive={run.is_live} />}
          {shown === "logs" && <Logs run={run} />}
          {shown === "configuration" && <Configuration run={run} />}
          {shown === "files" && <Files run={run} />}
          {shown === "report" && run.report && <Report url={run.report.url} />}
        </Part>
      </div>
    </>
  );
}

function Part({ run, name, children }: { run: RunDetail; name: string; children: ComponentChildren }) {
  const words = `${name} cannot be shown: what the run tells is not as it should be.`;
  return (
    <Guard of={run} instead={<Notice tone="warn">{words}</Notice>}>
      {children}
    </Guard>
  );
}

/** An evaluation and a prediction have no steps: what they do not know is not shown. */
const isBrief = (run: RunDetail): boolean => run.command === "evaluate" || run.command === "predict";

function Head({ run }: { run: RunDetail }) {
  const metrics = Object.entries(run.metrics).filter(([name]) => name !== "loss");
  const has = (value: number | null): boolean => value !== null || !isBrief(run);
  return (
    <header class="run-head">
      <div class="title">
        <h1>{run.name}</h1>
        <span role="status">
          <Status run={run} />
        </span>
      </div>
      <p class="sub">{[run.command, run.model, run.where].filter(Boolean).join(" · ")}</p>
      <Progress run={run} isLarge />
      <dl class="facts">
        {has(run.step) && <Fact name="Step" value={number(run.step)} note={run.total_steps ? `of ${number(run.total_steps)}` : ""} />}
        {has(run.epoch) && <Fact name="Epoch" value={number(run.epoch)} note={run.num_epochs ? `of ${number(run.num_epochs)}` : ""} />}
        {run.is_live ? (
          <Fact name="Time left" value={duration(run.eta_s)} note={`${duration(run.duration_s)} so far`} />
        ) : (
          <Fact name="Duration" value={duration(run.duration_s)} note={run.started === null ? "" : moment(run.started)} />
        )}
        {has(run.loss) && <Fact name="Loss" value={number(run.loss)} />}
        {run.best && (
          <Fact name={`Best ${run.best.metric}`} value={number(run.best.value)} note={run.best.step === null ? "" : `at step ${number(run.best.step)}`} />
        )}
        {metrics.slice(0, 3).map(([name, value]) => (
          <Fact key={name} name={`Last ${name}`} value={number(value)} />
        ))}
        {has(run.examples_per_s) && (
          <Fact name="Examples/s" value={number(run.examples_per_s === null ? null : Math.round(run.examples_per_s))} />
        )}
        {run.num_workers !== null && <Fact name="Workers" value={number(run.workers.length)} note={`${run.num_workers} wanted`} />}
      </dl>
    </header>
  );
}

function Fact({ name, value, note = "" }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt title={name}>{name}</dt>
      <dd>
        {value}
        <small>{note}</small>
      </dd>
    </div>
  );
}

function Tabs({ tabs, shown }: { tabs: [string, string][]; shown: string }) {
  const show = (key: string) => go(`${location.pathname}#${key}`, true);
  const keyed = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([key]) => key === shown);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!next) return;
    show(next[0]);
    document.getElementById(`tab-${next[0]}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Of this run" onKeyDown={keyed}>
      {tabs.map(([key, words]) => (
        <button
          key={key}
          type="button"
          role="tab"
          id={`tab-${key}`}
          aria-selected={key === shown}
          aria-controls={key === shown ? `panel-${key}` : undefined}
          tabIndex={key === shown ? 0 : -1}
          onClick={() => show(key)}
        >
          {words}
        </button>
      ))}
    </div>
  );
}
