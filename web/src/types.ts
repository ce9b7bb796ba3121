// What the server answers under /api/: docs/reference/dashboard_api.md.

export type Values = Record<string, number | null>;

export interface Best {
  metric: string;
  value: number;
  step: number | null;
  mode: string;
}

export interface Run {
  id: string;
  name: string;
  where: string;
  command: string;
  status: string;
  said: string;
  message: string | null;
  model: string | null;
  is_live: boolean;
  step: number | null;
  epoch: number | null;
  num_epochs: number | null;
  total_steps: number | null;
  fraction: number | null;
  eta_s: number | null;
  loss: number | null;
  metrics: Values;
  best: Best | null;
  started: number | null;
  ended: number | null;
  duration_s: number | null;
  workers: string[];
  num_workers: string | null;
  examples_per_s: number | null;
  warning: string | null;
}

export interface Problem {
  where: string;
  message: string;
}

export interface RunsAnswer {
  runs: Run[];
  problems: Problem[];
  now: number;
}

export interface Setting {
  key: string;
  value: unknown;
  is_default: boolean;
}

export interface Artifact {
  name: string;
  path: string;
  kind: string;
  bytes: number | null;
  modified: number | null;
}

export interface Goodput {
  fraction: number | null;
  stalled_s: number | null;
  evaluating_s: number | null;
  redone_steps: number | null;
  total_s: number | null;
}

export interface RunDetail extends Run {
  config: Setting[];
  model_summary: string | null;
  artifacts: Artifact[];
  commands: { purpose: string; command: string }[];
  links: { name: string; command?: string | null; url?: string | null }[];
  report: { url: string } | null;
  logs: { name: string; bytes: number | null }[];
  goodput: Goodput | null;
  problems: string[];
}

export type Point = [number | null, number | null, number | null];

export interface Series {
  key: string;
  label: string;
  kind: string;
  points: Point[];
  total: number;
}

export interface Span {
  from: number;
  to: number | null;
  end: string | null;
  reason: string | null;
}

export interface Worker {
  name: string;
  node: string | null;
  pid: number | null;
  spans: Span[];
  examples_per_s: number | null;
  is_here: boolean;
}

export interface Group {
  time: number;
  members: string[];
  stall_s: number | null;
  step: number | null;
  redone: number | null;
  /** What changed, in words. */
  text: string | null;
}

export interface WorkersAnswer {
  workers: Worker[];
  groups: Group[];
}

export interface Epoch {
  epoch: number;
  records: number | null;
  examples: number | null;
  applied_once: boolean | null;
  /** When it ended; null of one that goes on or is to come. */
  finished: number | null;
}

export interface LedgerAnswer {
  epochs: Epoch[];
  tasks: { todo: number; leased: number; done: number; redone: number } | null;
}

export interface EventLine {
  number: number;
  time: number | null;
  event: string;
  level: string;
  text: string;
  fields: Record<string, unknown>;
}

export interface EventsAnswer {
  events: EventLine[];
  total: number;
  matched: number;
  broken_lines: number;
}

export interface LogAnswer {
  lines: { number: number; text: string }[];
  bytes: number;
  is_cut: boolean;
}

export interface CompareAnswer {
  runs: Run[];
  config: { key: string; values: unknown[]; differs: boolean }[];
  metrics: { name: string; values: (number | null)[]; best: number | null }[];
}
