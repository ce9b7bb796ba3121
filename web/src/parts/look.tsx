// How charts are drawn: over steps or time, smoothed, on a logarithmic scale. The browser remembers it.
import { useState } from "preact/hooks";
import type { Look, Range } from "./chart";

const KEY = "elasticdl-look";
const PLAIN: Look = { x: "step", smoothing: 0, isLog: false };

function remembered(): Look {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Look>;
    return {
      x: kept.x === "time" ? "time" : "step",
      smoothing: typeof kept.smoothing === "number" && kept.smoothing >= 0 && kept.smoothing < 1 ? kept.smoothing : 0,
      isLog: kept.isLog === true,
    };
  } catch {
    return PLAIN;
  }
}

export function useLook(): [Look, (look: Look) => void] {
  const [look, setLook] = useState(remembered);
  const choose = (next: Look) => {
    setLook(next);
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // it holds until the page is left
    }
  };
  return [look, choose];
}

interface Props {
  look: Look;
  onLook: (look: Look) => void;
  range: Range;
  onRange: (range: Range) => void;
}

export function LookControls({ look, onLook, range, onRange }: Props) {
  const over = (x: Look["x"]) => {
    onRange(null); // a range of steps is none of seconds
    onLook({ ...look, x });
  };
  return (
    <div class="controls" role="group" aria-label="How the curves are drawn">
      <fieldset class="choice">
        <legend class="spoken">Horizontal axis</legend>
        {(["step", "time"] as const).map((x) => (
          <label key={x}>
            <input type="radio" name="x" checked={look.x === x} onChange={() => over(x)} />
            <span>By {x}</span>
          </label>
        ))}
      </fieldset>
      <label class="slider">
        Smoothing
        <input
          type="range"
          min="0"
          max="0.98"
          step="0.02"
          value={look.smoothing}
          onInput={(event) => onLook({ ...look, smoothing: Number(event.currentTarget.value) })}
        />
        <output>{look.smoothing ? look.smoothing.toFixed(2) : "off"}</output>
      </label>
      <label class="check">
        <input type="checkbox" checked={look.isLog} onChange={(event) => onLook({ ...look, isLog: event.currentTarget.checked })} />
        Log scale
      </label>
      {range ? (
        <button type="button" class="small" onClick={() => onRange(null)}>
          Show all
        </button>
      ) : (
        <span class="hint">Drag in a chart to zoom, double-click to show all.</span>
      )}
    </div>
  );
}
