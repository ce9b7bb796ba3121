// Numbers, times and sizes as people read them.

export const UNKNOWN = "–";

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en");
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 0.001) return String(Number(value.toPrecision(4)));
  return value.toExponential(2);
}

export function percent(fraction: number | null | undefined, digits = 0): string {
  if (fraction === null || fraction === undefined) return UNKNOWN;
  return `${(100 * fraction).toFixed(digits)} %`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return joined(days, "d", hours, "h");
  if (hours) return joined(hours, "h", minutes, "min");
  return joined(minutes, "min", minutes < 30 ? whole % 60 : 0, "s");
}

const joined = (large: number, unit: string, small: number, smaller: string): string =>
  small ? `${large} ${unit} ${small} ${smaller}` : `${large} ${unit}`;

export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${at && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[at]}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** A time of today as a clock, an earlier one with its day; a time of no calendar is not known. */
export function moment(time: number | null | undefined): string {
  if (time === null || time === undefined) return UNKNOWN;
  const date = new Date(time * 1000);
  if (Number.isNaN(date.getTime())) return UNKNOWN;
  const day = DAY.format(date);
  return day === DAY.format(new Date()) ? CLOCK.format(date) : `${day}, ${CLOCK.format(date)}`;
}

export function plain(value: unknown): string {
  if (value === null || value === undefined) return UNKNOWN;
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}
