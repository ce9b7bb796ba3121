// Two pictures: the ledger (which records were applied, exactly once) and where the time went.
import { pauseOf, runPath, usePolled } from "../api";
import type { Goodput, LedgerAnswer, Run } from "../types";
import { counted, duration, number, percent, UNKNOWN } from "../words";

interface Part {
  name: string;
  size: number;
  said: string;
}

/** A bar whose parts add up to all, with its legend as the words for it. */
function Parts({ parts, label }: { parts: Part[]; label: string }) {
  const all = parts.reduce((sum, part) => sum + part.size, 0) || 1;
  return (
    <div class="parts">
      <div class="stack" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.name} class={`part ${part.name.replace(/ .*/, "")}`} style={{ width: `${(100 * part.size) / all}%` }} />
        ))}
      </div>
      <ul class="legend" aria-label={label}>
        {parts.map((part) => (
          <li key={part.name}>
            <span class={`swatch ${part.name.replace(/ .*/, "")}`} aria-hidden="true" />
            {part.name} <b>{part.said}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function Ledger({ run }: { run: Run }) {
  const { data } = usePolled<LedgerAnswer>(runPath(run.id, "/ledger"), pauseOf(run.is_live));
  if (!data || (!data.epochs.length && !data.tasks)) return null;
  const { epochs, tasks } = data;
  const done = epochs.filter((epoch) => epoch.finished !== null);
  const open = run.is_live && run.epoch !== null ? run.epoch - 1 : null;
  const isExact = done.length > 0 && done.every((epoch) => epoch.applied_once);
  const records = done.reduce((sum, epoch) => sum + (epoch.records ?? 0), 0);
  const all = Math.max(run.num_epochs ?? 0, ...epochs.map((epoch) => epoch.epoch + 1));
  const byNumber = new Map(epochs.map((epoch) => [epoch.epoch, epoch]));
  return (
    <section aria-labelledby="ledger" class="card">
      <h2 id="ledger">Ledger</h2>
      <p>
        {counted(done.length, "epoch")} of {all} finished, {counted(records, "record")} applied
        {isExact ? ", each exactly once." : "."}
      </p>
      {all <= 400 && (
        <ol class="epochs" aria-label="Epochs">
          {Array.from({ length: all }, (_, i) => {
            const epoch = byNumber.get(i);
            const isDone = epoch !== undefined && epoch.finished !== null;
            const state = isDone ? (epoch.applied_once === false ? "wrong" : "done") : i === open ? "open" : "todo";
            const words = `epoch ${i + 1}: ${WORDS[state]}${epoch?.records ? `, ${counted(epoch.records, "record")}` : ""}`;
            return (
              <li key={i} class={state} title={words}>
                <span class="spoken">{words}</span>
              </li>
            );
          })}
        </ol>
      )}
      {tasks && (
        <>
          <h3>{run.is_live ? "Tasks of this epoch" : "Tasks of the last epoch"}</h3>
          <Parts
            label="Tasks"
            parts={[
              { name: "done", size: tasks.done, said: number(tasks.done) },
              { name: "leased", size: tasks.leased, said: number(tasks.leased) },
              { name: "to do", size: tasks.todo, said: number(tasks.todo) },
            ]}
          />
          <p class="hint">{tasks.redone ? `${counted(tasks.redone, "task")} done again.` : "No task was done again."}</p>
        </>
      )}
    </section>
  );
}

const WORDS: Record<string, string> = {
  done: "every record applied once",
  wrong: "not every record applied once",
  open: "going on",
  todo: "to come",
};

export function GoodputView({ goodput }: { goodput: Goodput | null }) {
  if (!goodput || !goodput.total_s) return null;
  const [stalled, evaluating] = [goodput.stalled_s ?? 0, goodput.evaluating_s ?? 0];
  const training = Math.max(0, goodput.total_s - stalled - evaluating);
  return (
    <section aria-labelledby="goodput" class="card">
      <h2 id="goodput">Goodput</h2>
      <p>
        <b class="big">{percent(goodput.fraction, 1)}</b> of {duration(goodput.total_s)} the training went on.
      </p>
      <Parts
        label="Where the time went"
        parts={[
          { name: "training", size: training, said: duration(training) },
          { name: "evaluating", size: evaluating, said: duration(evaluating) },
          { name: "stalled", size: stalled, said: duration(stalled) },
        ]}
      />
      <p class="hint">
        {goodput.redone_steps === null ? UNKNOWN : goodput.redone_steps ? `${counted(goodput.redone_steps, "step")} done again.` : "No step was done again."}
      </p>
    </section>
  );
}
