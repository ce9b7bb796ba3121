// Events and logs: what happened, with search; the newest of both where one looks first.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, ask, pauseOf, runPath, usePolled } from "../api";
import type { EventLine, EventsAnswer, LogAnswer, RunDetail } from "../types";
import { bytes, counted, moment, number, plain } from "../words";
import { Choice, Empty, Notice, Search } from "./small";

const LEVELS: [string, string][] = [
  ["", "Every level"],
  ["info", "Info and above"],
  ["warning", "Warnings and errors"],
  ["error", "Errors"],
];
const PAGE = 200;

/** A text that is asked for when typing pauses. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

export function Events({ id, isLive }: { id: string; isLive: boolean }) {
  const [text, setText] = useState("");
  const [level, setLevel] = useState("");
  const search = useSettled(text);
  const query = { limit: PAGE, search, level };
  const { data, refused, isOld } = usePolled<EventsAnswer>(address(runPath(id, "/events"), query), pauseOf(isLive));
  const [older, setOlder] = useState<EventLine[]>([]);
  useEffect(() => setOlder([]), [search, level]);
  const all = merged(older, data?.events ?? []);
  const more = async () => {
    const first = all[0];
    if (!first) return;
    const answer = await ask<EventsAnswer>(address(runPath(id, "/events"), { ...query, before: first.number })).catch(() => null);
    if (answer) setOlder((old) => merged(answer.events, old));
  };
  return (
    <section aria-label="Events" aria-busy={isOld}>
      <div class="bar" role="search">
        <Search label="Search the events" value={text} onValue={setText} />
        <Choice label="Level" value={level} onValue={setLevel} options={LEVELS} />
        <span class="hint" role="status">
          {data && `${number(data.matched)} of ${counted(data.total, "event")}, the newest first`}
        </span>
      </div>
      {refused && <Notice tone="bad">{refused.message}</Notice>}
      {data && data.broken_lines > 0 && (
        <Notice tone="warn">{counted(data.broken_lines, "line")} of events.jsonl cannot be read and {data.broken_lines === 1 ? "is" : "are"} left out.</Notice>
      )}
      {data && !all.length && <Empty>{data.total ? "No event fits." : "No events yet."}</Empty>}
      {all.length > 0 && (
        <ol class="events card">
          {all.toReversed().map((event) => (
            <EventRow key={event.number} event={event} />
          ))}
        </ol>
      )}
      {data && all.length < data.matched && (
        <button type="button" onClick={more}>
          Show older events
        </button>
      )}
    </section>
  );
}

function merged(older: EventLine[], newer: EventLine[]): EventLine[] {
  const byNumber = new Map([...older, ...newer].map((event) => [event.number, event]));
  return [...byNumber.values()].sort((a, b) => a.number - b.number);
}

function EventRow({ event }: { event: EventLine }) {
  return (
    <li>
      <details>
        <summary>
          <time>{moment(event.time)}</time> <span class={`level ${event.level}`}>{event.event}</span> <span class="text">{event.text}</span>
        </summary>
        <dl>
          {Object.entries(event.fields).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{plain(value)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </li>
  );
}

export function Logs({ run }: { run: RunDetail }) {
  const [name, setName] = useState(run.logs[0]?.name ?? "");
  const [text, setText] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const search = useSettled(text);
  const url = name ? address(runPath(run.id, `/logs/${encodeURIComponent(name)}`), { tail: 1000, search }) : null;
  const { data, refused } = usePolled<LogAnswer>(url, pauseOf(run.is_live));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [data, isFollowing]);
  if (!run.logs.length) return <Empty>No logs: a training in one process prints to its own terminal.</Empty>;
  return (
    <section aria-label="Logs">
      <div class="bar" role="search">
        <Choice label="Log" value={name} onValue={setName} options={run.logs.map((log) => [log.name, `${log.name} (${bytes(log.bytes)})`])} />
        <Search label="Search the log" value={text} onValue={setText} />
        <label class="check">
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.currentTarget.checked)} />
          Follow
        </label>
        <span class="hint" role="status">
          {data?.is_cut && `The last ${counted(data.lines.length, "line")} of ${bytes(data.bytes)}`}
        </span>
      </div>
      {refused && <Notice tone="bad">{refused.message}</Notice>}
      {data && !data.lines.length && <Empty>{search ? "No line fits." : "The log is empty."}</Empty>}
      {data && data.lines.length > 0 && (
        <div class="log card" ref={box} tabIndex={0} role="group" aria-label={`Log ${name}`}>
          {data.lines.map((line) => (
            <div key={line.number}>
              <span class="number" aria-hidden="true">
                {line.number}
              </span>
              <span>{line.text}</span>
            </div>
          ))}
        </div>
      )}
    </section>
  );
}
