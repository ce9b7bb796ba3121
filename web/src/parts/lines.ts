// A chart's numbers: points in order, smoothed, aligned. Pure.
import uPlot from "uplot";

export interface Line {
  key: string;
  label: string;
  colour: number;
  points: [number, number | null][];
  /** A number that holds until the next one, such as that of the workers. */
  isStepped?: boolean;
}

/** Points in order of x. A run that went back to a checkpoint has a step twice: the later one counts. */
export function ordered(points: [number | null, number | null][]): [number, number | null][] {
  const last = new Map<number, number | null>();
  for (const [x, y] of points) if (x !== null && Number.isFinite(x)) last.set(x, y);
  return [...last].sort((a, b) => a[0] - b[0]);
}

/** The exponential mean, corrected for its start; a gap stays a gap and does not pull the rest. */
export function smoothed(values: (number | null)[], weight: number): (number | null)[] {
  let [sum, norm] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}

/** One table for the chart: x, then of each line its values, and before them the raw ones where they are smoothed.
 *
 * `densest` is the number of points of the longest line: a line of ten evaluations is smoothed over as many steps as one
 * of a thousand losses beside it, not over as many points.
 */
export function aligned(lines: Line[], smoothing: number, isLog: boolean, densest: number): uPlot.AlignedData {
  const drawn = (value: number | null) => (isLog && value !== null && value <= 0 ? null : value);
  const tables = lines.map((line) => {
    const xs = line.points.map(([x]) => x);
    const raw = line.points.map(([, y]) => drawn(y));
    return (smoothing ? [xs, raw, smoothed(raw, smoothing ** (densest / Math.max(1, raw.length)))] : [xs, raw]) as uPlot.AlignedData;
  });
  return tables.length ? uPlot.join(tables) : [[]];
}

/** The line in a sentence, for those who do not see it. */
export function spoken(line: Line, sayX: (x: number) => string, sayY: (y: number) => string): string {
  const known = line.points.filter((point): point is [number, number] => point[1] !== null);
  const [first, last] = [known[0], known[known.length - 1]];
  if (!first || !last) return `${line.label}: no values yet.`;
  const low = known.reduce((a, b) => (b[1] < a[1] ? b : a));
  const high = known.reduce((a, b) => (b[1] > a[1] ? b : a));
  return (
    `${line.label}: from ${sayY(first[1])} at ${sayX(first[0])} to ${sayY(last[1])} at ${sayX(last[0])}, ` +
    `lowest ${sayY(low[1])} at ${sayX(low[0])}, highest ${sayY(high[1])} at ${sayX(high[0])}.`
  );
}

/** At most `most` of the rows, evenly spread, with the first and the last. */
export function sampled<T>(rows: T[], most: number): T[] {
  if (rows.length <= most) return rows;
  return Array.from({ length: most }, (_, at) => rows[Math.round((at * (rows.length - 1)) / (most - 1))] as T);
}

/** From where to where the lines go; null of no points. */
export function extent(lines: Line[]): [number, number] | null {
  const ends = lines.flatMap(({ points }) => (points.length ? [points[0]![0], points[points.length - 1]![0]] : []));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low < high ? [low, high] : null;
}

/** Lines of what holds go on to where the others are. */
export function prolonged(line: Line, to: number): Line {
  const last = line.points[line.points.length - 1];
  return line.isStepped && last && last[0] < to ? { ...line, points: [...line.points, [to, last[1]]] } : line;
}
