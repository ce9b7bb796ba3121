// Asks the server again and again: every 2 s of what is live, every 3 s of the rest, which may be resumed, not while nobody looks.
import { useEffect, useRef, useState } from "preact/hooks";

export const LIVE_MS = 2000;
export const IDLE_MS = 3000;
const PATIENCE_MS = 15000;

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

interface Kept {
  etag: string;
  data: unknown;
}

const kept = new Map<string, Kept>();
const MOST_KEPT = 60;

function keep(url: string, etag: string | null, data: unknown): void {
  kept.delete(url);
  if (!etag) return;
  kept.set(url, { etag, data });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
}

async function refusal(response: Response): Promise<Refused> {
  const words = await response.json().then(
    (body: { detail?: unknown; message?: unknown; error?: unknown }) => body.detail ?? body.message ?? body.error,
    () => null,
  );
  return new Refused(response.status, typeof words === "string" ? words : response.statusText);
}

/** What `url` answers; the same object as before when nothing changed. */
export async function ask<T>(url: string, signal?: AbortSignal): Promise<T> {
  const before = kept.get(url);
  const headers: HeadersInit = before ? { "If-None-Match": before.etag } : {};
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const response = await fetch(url, {
    headers,
    credentials: "same-origin",
    signal: signal ? AbortSignal.any([signal, patience]) : patience,
  });
  if (response.status === 304 && before) return before.data as T;
  if (!response.ok) throw await refusal(response);
  const data: unknown = await response.json();
  keep(url, response.headers.get("ETag"), data);
  return data as T;
}

// Whether the last question reached the server: said once, at the top of the page.
const listeners = new Set<(since: number | null) => void>();
let lostSince: number | null = null;
let lastHeard = Date.now() / 1000;

function heard(isThere: boolean): void {
  if (isThere) lastHeard = Date.now() / 1000;
  const since = isThere ? null : lastHeard;
  if (since === lostSince) return;
  lostSince = since;
  listeners.forEach((each) => each(since));
}

/** When the server was last heard, in seconds since 1970; null while it answers. */
export function useLost(): number | null {
  const [lost, setLost] = useState(lostSince);
  useEffect(() => {
    listeners.add(setLost);
    return () => void listeners.delete(setLost);
  }, []);
  return lost;
}

export interface Answer<T> {
  data: T | null;
  refused: Refused | null;
  /** The answer is to an earlier question (another search, another range). */
  isOld: boolean;
}

/** Polls `url` (null: asks nothing). What was answered last stays while the server cannot be reached. */
export function usePolled<T>(url: string | null, pause: (data: T | null) => number): Answer<T> {
  const [answer, setAnswer] = useState<{ url: string | null; data: T | null; refused: Refused | null }>({
    url: null,
    data: null,
    refused: null,
  });
  const pausing = useRef(pause);
  pausing.current = pause;
  useEffect(() => {
    if (url === null) return undefined;
    const stopped = new AbortController();
    let timer = 0;
    let isAsking = false;
    const tell = (data: T | null, refused: Refused | null) =>
      setAnswer((old) =>
        old.url === url && old.data === data && old.refused?.message === refused?.message ? old : { url, data, refused },
      );
    const again = async () => {
      clearTimeout(timer);
      if (isAsking || document.hidden || stopped.signal.aborted) return;
      isAsking = true;
      let last: T | null = null;
      try {
        last = await ask<T>(url, stopped.signal);
        if (stopped.signal.aborted) return;
        heard(true);
        tell(last, null);
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (error instanceof Refused) {
          heard(true);
          setAnswer((old) => ({ url, data: old.url === url ? old.data : null, refused: error }));
        } else heard(false);
      } finally {
        isAsking = false;
        if (!stopped.signal.aborted) timer = window.setTimeout(again, lostSince !== null ? LIVE_MS : pausing.current(last));
      }
    };
    void again();
    document.addEventListener("visibilitychange", again);
    return () => {
      stopped.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [url]);
  return { data: answer.data, refused: answer.url === url ? answer.refused : null, isOld: answer.url !== url };
}

export const pauseOf = (isLive: boolean | undefined) => () => (isLive ? LIVE_MS : IDLE_MS);

export function address(path: string, query: Record<string, string | number | null | undefined> = {}): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([key, value]) => [key, String(value)]);
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

export const runPath = (id: string, rest = ""): string => `/api/runs/${encodeURIComponent(id)}${rest}`;
