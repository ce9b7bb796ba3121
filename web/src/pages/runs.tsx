// All runs: how they go, sorted and filtered, and some of them ticked to be compared.
import { useMemo, useState } from "preact/hooks";
import { address, IDLE_MS, LIVE_MS, usePolled } from "../api";
import { Guard } from "../parts/guard";
import { Choice, Empty, Notice, Progress, Search, Status } from "../parts/small";
import { go } from "../route";
import type { Run, RunsAnswer } from "../types";
import { counted, duration, moment, number, UNKNOWN } from "../words";
import { useTitle } from "./title";

type Key = string | number | null;

interface Column {
  key: string;
  title: string;
  by: (run: Run) => Key;
  isNumber?: boolean;
  startsDown?: boolean;
}

const COLUMNS: Column[] = [
  { key: "name", title: "Run", by: (run) => run.name.toLowerCase() },
  { key: "status", title: "Status", by: (run) => run.status },
  { key: "progress", title: "Progress", by: (run) => run.fraction, startsDown: true },
  { key: "best", title: "Best", by: (run) => run.best?.value ?? null, isNumber: true },
  { key: "loss", title: "Loss", by: (run) => run.loss, isNumber: true },
  { key: "duration", title: "Duration", by: (run) => run.duration_s, isNumber: true, startsDown: true },
  { key: "workers", title: "Workers", by: (run) => run.workers.length, isNumber: true, startsDown: true },
  { key: "started", title: "Started", by: (run) => run.started, isNumber: true, startsDown: true },
];

const PAGE = 100;
const MOST_COMPARED = 8;

interface Order {
  key: string;
  isDown: boolean;
}

function inOrder(runs: Run[], order: Order): Run[] {
  const by = (COLUMNS.find((column) => column.key === order.key) ?? (COLUMNS[0] as Column)).by;
  const sign = order.isDown ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === y) return a.name < b.name ? -1 : 1;
    if (x === null) return 1; // what is not known comes last, either way
    if (y === null) return -1;
    return x < y ? -sign : sign;
  });
}

function fits(run: Run, words: string[], status: string): boolean {
  if (status && run.status !== status) return false;
  const text = [run.name, run.where, run.model, run.command, run.said, run.message].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** What was ticked stays while other pages are looked at; the filter is in the address. */
let kept = new Set<string>();

function changeFilter(next: Filter): void {
  go(address("/", { filter: next.text, status: next.status }), true);
}

interface Filter {
  text: string;
  status: string;
}

export function RunsPage({ query }: { query: URLSearchParams }) {
  const { data, refused } = usePolled<RunsAnswer>("/api/runs", (last) =>
    last && !last.runs.some((run) => run.is_live) ? IDLE_MS : LIVE_MS,
  );
  const [text, status] = [query.get("filter") ?? "", query.get("status") ?? ""];
  const [order, setOrder] = useState<Order>({ key: "started", isDown: true });
  const [most, setMost] = useState(PAGE);
  const [ticked, setTicked] = useState<Set<string>>(kept);
  useTitle("Runs");
  const runs = data?.runs ?? [];
  const statuses = useMemo(() => [...new Set([...runs.map((run) => run.status), status].filter(Boolean))].sort(), [runs, status]);
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return inOrder(runs.filter((run) => fits(run, words, status)), order);
  }, [runs, text, status, order]);
  const compared = runs.filter((run) => ticked.has(run.id)).map((run) => run.id);
  const tick = (id: string) =>
    setTicked((old) => {
      const next = new Set(old);
      if (!next.delete(id)) next.add(id);
      kept = next;
      return next;
    });
  const live = runs.filter((run) => run.is_live).length;
  return (
    <>
      <div class="title">
        <h1>Runs</h1>
        <p class="sub" role="status">
          {data ? `${counted(found.length, "run")}${found.length < runs.length ? ` of ${number(runs.length)}` : ""}, ${live} running` : "Reading the runs."}
        </p>
      </div>
      <div class="bar" role="search">
        <Search label="Filter by name, model, place" value={text} onValue={(next) => changeFilter({ text: next, status })} />
        <Choice
          label="Status"
          value={status}
          onValue={(next) => changeFilter({ text, status: next })}
          options={[["", "Every status"], ...statuses.map((each): [string, string] => [each, each])]}
        />
        <button
          type="button"
          class="main"
          disabled={compared.length < 2 || compared.length > MOST_COMPARED}
          onClick={() => go(`/compare?ids=${compared.map(encodeURIComponent).join(",")}`)}
        >
          Compare{compared.length ? ` ${compared.length}` : ""}
        </button>
        <span class="hint">
          {compared.length > MOST_COMPARED ? `At most ${MOST_COMPARED} at once.` : compared.length < 2 ? "Tick two or more to compare them." : ""}
        </span>
      </div>
      {refused && <Notice tone="bad">{refused.message}</Notice>}
      {data?.problems.map((problem) => (
        <Notice tone="warn" key={problem.where + problem.message}>
          {problem.where ? `${problem.where}: ` : ""}
          {problem.message}
        </Notice>
      ))}
      {data && !runs.length && (
        <Empty>
          No runs here yet. A training writes one: <code>elasticdl train ... --output=my_run</code>
        </Empty>
      )}
      {data && runs.length > 0 && !found.length && <Empty>No run fits the filter.</Empty>}
      {found.length > 0 && (
        <RunsTable runs={found.slice(0, most)} order={order} onOrder={setOrder} ticked={ticked} onTick={tick} />
      )}
      {found.length > most && (
        <button type="button" onClick={() => setMost(most + PAGE)}>
          Show {Math.min(PAGE, found.length - most)} more
        </button>
      )}
    </>
  );
}

interface TableProps {
  runs: Run[];
  order: Order;
  onOrder: (order: Order) => void;
  ticked: Set<string>;
  onTick: (id: string) => void;
}

// The roles are said although they are those of a table: a phone's style makes cards of the rows, and browsers then forget them.
function RunsTable({ runs, order, onOrder, ticked, onTick }: TableProps) {
  return (
    <table class="runs card" role="table" aria-label="Runs">
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col" class="tick">
            <span class="spoken">Compare</span>
          </th>
          {COLUMNS.map((column) => (
            <Heading key={column.key} column={column} order={order} onOrder={onOrder} />
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {runs.map((run) => (
          <Guard key={run.id} of={run} instead={<BrokenRow run={run} />}>
            <Row run={run} isTicked={ticked.has(run.id)} onTick={onTick} />
          </Guard>
        ))}
      </tbody>
    </table>
  );
}

function Heading({ column, order, onOrder }: { column: Column; order: Order; onOrder: (order: Order) => void }) {
  const isSorted = order.key === column.key;
  const sort = isSorted ? (order.isDown ? "descending" : "ascending") : "none";
  const turn = () => onOrder({ key: column.key, isDown: isSorted ? !order.isDown : column.startsDown === true });
  return (
    <th role="columnheader" scope="col" aria-sort={sort} class={column.isNumber ? "num" : ""}>
      <button type="button" class="sort" onClick={turn}>
        {column.title}
        <span class="arrow" aria-hidden="true">
          {isSorted ? (order.isDown ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

function BrokenRow({ run }: { run: Run }) {
  return (
    <tr role="row">
      <td role="cell" class="tick" />
      <th role="rowheader" scope="row" class="name">
        <a href={`/run/${encodeURIComponent(run.id)}`}>{String(run.name)}</a>
      </th>
      <td role="cell" colSpan={COLUMNS.length - 1} class="state">
        This run cannot be shown: what it tells is not as it should be.
      </td>
    </tr>
  );
}

function Row({ run, isTicked, onTick }: { run: Run; isTicked: boolean; onTick: (id: string) => void }) {
  const left = run.is_live && run.eta_s !== null ? `${duration(run.eta_s)} left` : null;
  const epochs = run.epoch !== null && run.num_epochs !== null ? `epoch ${run.epoch} of ${run.num_epochs}` : null;
  return (
    <tr role="row" class={isTicked ? "ticked" : ""}>
      <td role="cell" class="tick">
        <input type="checkbox" aria-label={`Compare ${run.name}`} checked={isTicked} onChange={() => onTick(run.id)} />
      </td>
      <th role="rowheader" scope="row" class="name">
        <a href={`/run/${encodeURIComponent(run.id)}`}>{run.name}</a>
        <small title={run.where}>{[run.command, run.model].filter(Boolean).join(" · ") || run.where}</small>
      </th>
      <td role="cell" class="state">
        <Status run={run} />
      </td>
      <td role="cell" class="far">
        <Progress run={run} />
        <small>{[epochs, left].filter(Boolean).join(", ") || (run.step === null ? "" : `step ${number(run.step)}`)}</small>
      </td>
      <td role="cell" class="num" data-label="Best">
        {run.best ? (
          <>
            {number(run.best.value)}
            <small title={run.best.metric}>{run.best.metric}</small>
          </>
        ) : (
          UNKNOWN
        )}
      </td>
      <td role="cell" class="num" data-label="Loss">
        {number(run.loss)}
      </td>
      <td role="cell" class="num" data-label="Duration">
        {duration(run.duration_s)}
      </td>
      <td role="cell" class="num" data-label="Workers">
        {run.num_workers === null && !run.workers.length ? UNKNOWN : run.workers.length}
        {run.num_workers !== null && <small title={run.num_workers}>of {run.num_workers}</small>}
      </td>
      <td role="cell" class="num when" data-label="Started">
        {moment(run.started)}
      </td>
    </tr>
  );
}
