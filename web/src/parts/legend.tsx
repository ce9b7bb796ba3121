// The words of a chart: its lines by name with their values, and all values as a table.
import { duration, number, UNKNOWN } from "../words";
import { aligned, sampled, type Line } from "./lines";
import { PALETTE } from "./plot";

const MOST_ROWS = 25;

export function Swatch({ colour }: { colour: number }) {
  return <span class={`swatch line-${colour % PALETTE}${colour >= PALETTE ? " dashed" : ""}`} aria-hidden="true" />;
}

interface Props {
  lines: Line[];
  values: (number | null)[];
  /** Where the values are, told when keys moved there. */
  spoken: string | null;
  hidden: Set<string>;
  onHidden: (hidden: Set<string>) => void;
}

export function Legend({ lines, values, spoken, hidden, onHidden }: Props) {
  const turn = (key: string) => {
    const next = new Set(hidden);
    if (!next.delete(key)) next.add(key);
    onHidden(next);
  };
  return (
    <ul class="legend" aria-live={spoken === null ? "off" : "polite"}>
      {spoken !== null && <li class="spoken">{spoken}</li>}
      {lines.map((line, i) => (
        <li key={line.key}>
          <Name line={line} isHidden={hidden.has(line.key)} onTurn={lines.length > 1 ? () => turn(line.key) : null} />{" "}
          <b>{number(values[i])}</b>
        </li>
      ))}
    </ul>
  );
}

/** Where there are several lines, pressing a name hides its line. */
function Name({ line, isHidden, onTurn }: { line: Line; isHidden: boolean; onTurn: (() => void) | null }) {
  const words = (
    <>
      <Swatch colour={line.colour} />
      <span class="label" title={line.label}>
        {line.label}
      </span>
    </>
  );
  if (!onTurn) return words;
  return (
    <button type="button" class="turn" aria-pressed={!isHidden} title={isHidden ? "Show this line" : "Hide this line"} onClick={onTurn}>
      {words}
    </button>
  );
}

export function ValueTable({ lines, isTime }: { lines: Line[]; isTime: boolean }) {
  const [xs, ...columns] = aligned(lines, 0, false, 1);
  const rows = sampled([...(xs ?? [])].map((x, i) => ({ x: x as number, i })), MOST_ROWS);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Values">
      <table>
        <thead>
          <tr>
            <th scope="col">{isTime ? "Time" : "Step"}</th>
            {lines.map((line) => (
              <th scope="col" key={line.key} class="num" title={line.label}>
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
