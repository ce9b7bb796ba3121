// Small things of all pages: a status, progress, a button that copies, what to say when there is nothing.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useLost } from "../api";
import type { Run } from "../types";
import { percent } from "../words";

const TONES: Record<string, string> = {
  running: "going",
  completed: "good",
  stopped: "good",
  interrupted: "warn",
  preempted: "warn",
  failed: "bad",
  killed: "bad",
};

const SIGNS: Record<string, string> = { going: "●", good: "✓", warn: "‖", bad: "✕", calm: "○" };

export const toneOf = (status: string): string => TONES[status] ?? "calm";

export function Status({ run }: { run: Run }) {
  const isOld = useLost() !== null && run.is_live;
  const tone = isOld ? "calm" : toneOf(run.status);
  return (
    <span class={`status ${tone}`} title={run.said}>
      <span aria-hidden="true">{SIGNS[tone]}</span> {run.said || run.status || "unknown"}
      {isOld && " when last heard"}
    </span>
  );
}

export function Progress({ run, isLarge = false }: { run: Run; isLarge?: boolean }) {
  const share = run.fraction === null ? null : Math.min(1, Math.max(0, run.fraction));
  return (
    <span class={isLarge ? "progress large" : "progress"}>
      <span
        class="track"
        role="progressbar"
        aria-label={`Progress of ${run.name}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share === null ? undefined : Math.round(share * 100)}
      >
        <span class={`fill ${toneOf(run.status)}`} style={{ width: `${(share ?? 0) * 100}%` }} />
      </span>
      <span class="share">{percent(share)}</span>
    </span>
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text); // a page over plain HTTP from elsewhere has no clipboard
  }
}

function copiedByHand(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "spoken";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    setSaid((await copied(text)) ? "Copied" : "Select and copy it by hand");
    setTimeout(() => setSaid(""), 2500);
  };
  return (
    <span class="copy">
      <button type="button" class="small" onClick={copy} aria-label={`Copy ${what}`}>
        {said || "Copy"}
      </button>
      <span class="spoken" role="status">
        {said}
      </span>
    </span>
  );
}

export function Command({ text, what }: { text: string; what: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} aria-label={what}>
        <code>{text}</code>
      </pre>
      <Copy text={text} what={what} />
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Notice({ tone, children }: { tone: "warn" | "bad" | "calm"; children: ComponentChildren }) {
  return <p class={`notice ${tone}`}>{children}</p>;
}

interface FieldProps {
  label: string;
  value: string;
  onValue: (value: string) => void;
}

/** `/` goes to the first of these. */
export function Search({ label, value, onValue }: FieldProps) {
  return (
    <input
      type="search"
      class="search"
      placeholder={label}
      aria-label={label}
      value={value}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onValue(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
    />
  );
}

export function Choice({ label, value, onValue, options }: FieldProps & { options: [string, string][] }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
      {options.map(([key, words]) => (
        <option key={key} value={key}>
          {words}
        </option>
      ))}
    </select>
  );
}
