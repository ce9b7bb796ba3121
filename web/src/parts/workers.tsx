// The workers over time: who was there, who was lost and why, and when nobody trained because of it.
import { pauseOf, runPath, usePolled } from "../api";
import type { Group, Run, Span, Worker, WorkersAnswer } from "../types";
import { counted, duration, moment, number } from "../words";

interface Frame {
  from: number;
  to: number;
}

function frameOf({ workers, groups }: WorkersAnswer, run: Run): Frame {
  const times = workers.flatMap((worker) => worker.spans.flatMap((span) => [span.from, span.to ?? span.from]));
  times.push(...groups.map((group) => group.time));
  if (run.started !== null) times.push(run.started);
  if (run.started !== null && run.duration_s !== null) times.push(run.started + run.duration_s);
  if (run.ended !== null) times.push(run.ended);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  return { from, to: Math.max(to, from + 1) };
}

const place = (frame: Frame, from: number, to: number) => {
  const all = frame.to - frame.from;
  const left = Math.min(100, Math.max(0, (100 * (from - frame.from)) / all));
  return { left: `${left}%`, width: `${Math.min(100 - left, Math.max(0, (100 * (to - from)) / all))}%` };
};

const ENDS: Record<string, [string, string]> = { lost: ["✕", "was lost"], left: ["→", "left"], ended: ["", "ended"] };

const because = (span: Span): string => (span.reason ? `: ${span.reason}` : "");

interface Stall extends Frame {
  members: string[];
}

interface Change {
  time: number;
  tone: string;
  what: string;
  why: string;
}

function changesOf({ workers, groups }: WorkersAnswer): Change[] {
  const changes: Change[] = [];
  for (const worker of workers)
    for (const span of worker.spans) {
      changes.push({ time: span.from, tone: "good", what: `${worker.name} joined`, why: "" });
      const end = span.end ? ENDS[span.end] : undefined;
      if (end && span.to !== null && span.end !== "ended")
        changes.push({ time: span.to, tone: span.end === "lost" ? "bad" : "warn", what: `${worker.name} ${end[1]}`, why: span.reason ?? "" });
    }
  groups.forEach((group, i) =>
    changes.push({ time: group.time, tone: "calm", what: together(group.members), why: i ? stalled(group) : "" }),
  );
  return changes.sort((a, b) => b.time - a.time);
}

const together = (members: string[]): string =>
  members.length === 1 ? `${members[0]} trains alone` : `${counted(members.length, "worker")} train together`;

function stalled(group: Group): string {
  const redone = group.redone ? `, ${counted(group.redone, "step")} done again` : "";
  return group.stall_s === null ? redone.slice(2) : `after a stall of ${duration(group.stall_s)}${redone}`;
}

function Row({ worker, frame, stalls }: { worker: Worker; frame: Frame; stalls: Stall[] }) {
  return (
    <tr>
      <th scope="row" title={worker.name}>
        <span class={worker.is_here ? "here" : "gone"} aria-hidden="true">
          ●
        </span>{" "}
        {worker.name}
        <span class="spoken">{worker.is_here ? " (here)" : " (gone)"}</span>
        <small>{[worker.pid === null ? "" : `process ${worker.pid}`, worker.node ? `on ${worker.node.slice(0, 8)}` : ""].filter(Boolean).join(" ")}</small>
      </th>
      <td class="time">
        <div class="track" title={worker.node ? `node ${worker.node}` : undefined}>
          {worker.spans.map((span, i) => (
            <span
              key={i}
              class={`span ${span.end ?? "here"}`}
              style={place(frame, span.from, span.to ?? frame.to)}
              title={`${moment(span.from)} to ${span.to === null ? "now" : moment(span.to)}${span.end ? `, ${ENDS[span.end]?.[1] ?? span.end}${because(span)}` : ""}`}
            >
              <i class="spoken">
                {moment(span.from)} to {span.to === null ? "now" : moment(span.to)}
                {span.end && `, ${ENDS[span.end]?.[1] ?? span.end}${because(span)}`}
              </i>
              {span.end && ENDS[span.end]?.[0] && (
                <b class="end" aria-hidden="true">
                  {ENDS[span.end]?.[0]}
                </b>
              )}
            </span>
          ))}
          {stalls.filter((stall) => stall.members.includes(worker.name)).map((stall) => (
            <span key={stall.from} class="stall" style={place(frame, stall.from, stall.to)} aria-hidden="true" />
          ))}
        </div>
      </td>
      <td class="num">{number(worker.examples_per_s === null ? null : Math.round(worker.examples_per_s))}</td>
    </tr>
  );
}

export function Workers({ run }: { run: Run }) {
  const { data } = usePolled<WorkersAnswer>(runPath(run.id, "/workers"), pauseOf(run.is_live));
  if (!data || !data.workers.length) return null;
  const frame = frameOf(data, run);
  // The first group is where the training began: nothing stood still for it.
  const stalls = data.groups
    .slice(1)
    .flatMap(({ time, stall_s, members }): Stall[] => (stall_s ? [{ from: time - stall_s, to: time, members }] : []));
  const changes = changesOf(data);
  const here = data.workers.filter((worker) => worker.is_here).length;
  return (
    <section aria-labelledby="workers">
      <div class="head">
        <h2 id="workers">Workers</h2>
        <p class="hint">
          {run.is_live ? `${here} here now` : counted(data.workers.length, "worker")}
          {run.num_workers ? `, ${run.num_workers} wanted` : ""}
        </p>
      </div>
      <div class="card">
        <div class="scroll timeline" tabIndex={0} role="group" aria-label="Timeline of the workers">
          <table>
            <thead>
              <tr>
                <th scope="col">Worker</th>
                <th scope="col" class="time">
                  <span class="ends">
                    <span>{moment(frame.from)}</span>
                    <span>{duration((frame.to - frame.from) / 2)}</span>
                    <span>{duration(frame.to - frame.from)}</span>
                  </span>
                </th>
                <th scope="col" class="num">
                  Examples/s
                </th>
              </tr>
            </thead>
            <tbody>
              {data.workers.map((worker) => (
                <Row key={worker.name} worker={worker} frame={frame} stalls={stalls} />
              ))}
            </tbody>
          </table>
        </div>
        <p class="key" aria-hidden="true">
          <span class="box here" /> there <span class="box stall" /> stalled: the group was formed again <b class="bad">✕</b> lost <b class="warn">→</b> left
        </p>
        <details class="history" open={changes.length <= 12}>
          <summary>What changed ({number(changes.length)})</summary>
          <ol class="changes">
            {changes.slice(0, 200).map((change, i) => (
              <li key={i}>
                <time>{moment(change.time)}</time> <span class={change.tone}>{change.what}</span>{" "}
                {change.why && <span class="why">{change.why}</span>}
              </li>
            ))}
          </ol>
        </details>
      </div>
    </section>
  );
}
