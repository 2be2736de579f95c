/**
 * The data of the charts, made of a result.
 *
 * A report of HTML carries the same data, made by `crates/report/src/render/html/chart.rs` from those that a
 * saved run keeps beside its result: with the heat map and every point of the spectrum. A run under way has
 * only its result; `tests/ui-charts.test.ts` compares both.
 */

import type { ChartData, Course, Histogram, Mark, RunData, Span, Spectrum, TimeKey } from "../../src/data.ts";
import { nanos, perSecond, seconds } from "../../src/figure.ts";
import type { Fault, Interval, Result, Summary, Watched } from "../app/result.ts";

/** Points of each series at most: more than a chart has columns. */
const MOST_POINTS = 1_200;
const MOST_MARKS = 200;
/** The shortest interval that has rates, as a part of the longest. */
const SHORTEST = 0.1;
/** Worker threads with a series of their own. */
const MOST_WORKERS = 16;
const PERCENTILES = ["50", "75", "90", "95", "99", "99.9", "99.99"];

const WITHOUT_HISTOGRAMS =
  "Of a run only its result is here, so there is no heat map, and the spectrum goes straight from one " +
  "percentile of the result to the next.";

/** The time that the model of a run is about. */
export function mainTime(result: Result): TimeKey {
  return result.model.kind === "open" ? "response_time" : "service_time";
}

/** The data of the charts of one run. */
export function runDataOf(result: Result, name: string): RunData {
  const times = ["response_time", "service_time"] as const;
  return {
    name,
    is_open: result.model.kind === "open",
    time: mainTime(result),
    course: courseOf(result),
    spans: spansOf(result),
    marks: marksOf(result),
    spectra: times.map((time) => spectrumOf(time, result[time])),
    histograms: times.map((time) => histogramOf(time, result[time])),
    heat: null,
    missing: WITHOUT_HISTOGRAMS,
  };
}

/** The data that a report of HTML has in it; null if it has none. */
export function dataOfReport(html: string): ChartData | null {
  const begin = '<script type="application/json" id="chart-data">';
  const from = html.lastIndexOf(begin);
  const to = html.indexOf("</script>", from);
  if (from < 0 || to < 0) return null;
  try {
    return JSON.parse(html.slice(from + begin.length, to)) as ChartData;
  } catch {
    return null;
  }
}

/** The plan that a report of HTML shows; null if the run was made without one. */
export function planOfReport(html: string): string | null {
  const begin = '<summary>The plan as it was written</summary><pre tabindex="0">';
  const from = html.lastIndexOf(begin);
  const to = html.indexOf("</pre>", from);
  if (from < 0 || to < 0) return null;
  const named: Record<string, string> = { lt: "<", gt: ">", quot: '"', amp: "&" };
  return html
    .slice(from + begin.length, to)
    .replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
      if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
      if (hex !== undefined) return String.fromCodePoint(parseInt(hex, 16));
      return named[name ?? ""] ?? whole;
    });
}

type Value = (interval: Interval) => number | null;

function courseOf(result: Result): Course {
  const intervals = result.intervals.filter(({ length_s }) => length_s > 0);
  const columns = columnsOf(result);
  const [first] = intervals;
  const from_s = first === undefined ? 0 : first.at_s - first.length_s;
  if (intervals.length <= MOST_POINTS) {
    const series = columns.map(([name, of]) => ({ name, values: intervals.map(of) }));
    return { from_s, joined: 1, at_s: intervals.map(({ at_s }) => at_s), series };
  }
  const joined = Math.ceil(intervals.length / (MOST_POINTS / 2));
  const groups = Array.from({ length: Math.ceil(intervals.length / joined) }, (_, number) =>
    intervals.slice(number * joined, (number + 1) * joined),
  );
  const at = (group: Interval[], index: number) => group[index]?.at_s ?? 0;
  return {
    from_s,
    joined,
    at_s: groups.flatMap((group) => [
      at(group, Math.floor((group.length - 1) / 2)),
      at(group, group.length - 1),
    ]),
    series: columns.map(([name, of]) => ({
      name,
      values: groups.flatMap((group) => extremes(group.map(of))),
    })),
  };
}

/** The smallest and the largest value, in the order in which they came. */
export function extremes(values: (number | null)[]): [number | null, number | null] {
  let low: [number, number] | null = null;
  let high: [number, number] | null = null;
  values.forEach((value, index) => {
    if (value === null) return;
    if (low === null || value < low[1]) low = [index, value];
    if (high === null || value > high[1]) high = [index, value];
  });
  const [one, other] = [low as [number, number] | null, high as [number, number] | null];
  if (one === null || other === null) return [null, null];
  return one[0] <= other[0] ? [one[1], other[1]] : [other[1], one[1]];
}

function columnsOf(result: Result): [string, Value][] {
  // A single response in a hundredth of a second would look like a peak.
  const usual = Math.max(0, ...result.intervals.map(({ length_s, joined = 0 }) => length_s / (joined + 1)));
  const rate =
    (of: Value): Value =>
    (interval) =>
      interval.length_s >= SHORTEST * usual ? of(interval) : null;
  const time =
    (name: string): Value =>
    ({ response_time }) =>
      response_time.p[name] ?? null;
  const columns: [string, Value][] = [
    ["achieved_per_s", rate((i) => i.achieved_per_s)],
    ["failed_per_s", rate((i) => i.failed / i.length_s)],
    ["timed_out_per_s", rate((i) => i.timed_out / i.length_s)],
    ["in_flight", (i) => i.in_flight],
    ["connections", (i) => i.connections],
    ["p50", time("50")],
    ["p90", time("90")],
    ["p99", time("99")],
    ["p99.9", time("99.9")],
    ["max", (i) => i.response_time.max],
  ];
  if (result.rate.target_per_s !== null) {
    columns.unshift(["scheduled_per_s", rate((i) => (i.drain ? null : i.scheduled / i.length_s))]);
  }
  const machines = result.intervals.flatMap(({ machine }) => (machine == null ? [] : [machine]));
  const workers = Math.max(0, ...machines.map(({ workers }) => workers.length));
  for (let worker = 0; worker < Math.min(workers, MOST_WORKERS); worker += 1) {
    columns.push([`worker ${worker}`, (i) => i.machine?.workers[worker]?.cpu_share ?? null]);
  }
  if (machines.some(({ target }) => target != null)) {
    columns.push(["target", (i) => i.machine?.target?.cpus ?? null]);
  }
  return [...columns, ...(result.generator.watched ?? []).flatMap(watchedColumns)];
}

/** The name of a server that was watched, for people. */
export function watchedTitle({ name, processes, pids }: Watched): string {
  return processes <= 1 && pids.length === 1 ? `${name} (${pids[0]})` : `${name} (${processes} processes)`;
}

function watchedColumns(server: Watched, number: number): [string, Value][] {
  const used = (interval: Interval) => interval.machine?.watched[number]?.used ?? null;
  const name = watchedTitle(server);
  const columns: [string, Value][] = [];
  // The CPU time of the target is among those of the threads.
  if (!server.is_target) columns.push([`server ${name}`, (i) => used(i)?.cpus ?? null]);
  columns.push([`memory ${name}`, (i) => used(i)?.rss_bytes ?? null]);
  if (server.found_by === "address") return columns;
  const perS = (bytes: number | null | undefined, interval: Interval) => {
    const length = interval.machine?.length_s ?? 0;
    return bytes == null || length <= 0 ? null : bytes / length;
  };
  columns.push([`disk ${name} written`, (i) => perS(used(i)?.disk_written_bytes, i)]);
  columns.push([`disk ${name} read`, (i) => perS(used(i)?.disk_read_bytes, i)]);
  columns.push([`open ${name} descriptors`, (i) => used(i)?.descriptors ?? null]);
  columns.push([`open ${name} threads`, (i) => used(i)?.threads ?? null]);
  return columns;
}

function spansOf(result: Result): Span[] {
  const spans: Span[] = (result.phases ?? [])
    .filter(({ duration_s }) => duration_s > 0)
    .map(({ name, measured, at_s, duration_s }) => ({
      from_s: at_s,
      to_s: at_s + duration_s,
      kind: measured ? "phase" : "warmup",
      name,
    }));
  if (spans.length === 0 && result.warmup_s > 0) {
    spans.push({ from_s: 0, to_s: result.warmup_s, kind: "warmup", name: "warm-up" });
  }
  const silent = (i: Interval) => i.in_flight > 0 && i.achieved_per_s === 0 && i.failed === 0;
  return [
    ...spans,
    ...joinedSpans(result, "settling", "settling", ({ settling }) => settling),
    ...joinedSpans(result, "drain", "drain", ({ drain }) => drain),
    ...joinedSpans(result, "silent", "no responses", silent),
  ];
}

/** Parts in which consecutive intervals are of a kind. */
function joinedSpans(result: Result, kind: Span["kind"], name: string, is: (i: Interval) => boolean): Span[] {
  const spans: Span[] = [];
  let continues = false;
  for (const interval of result.intervals) {
    if (interval.length_s <= 0) continue;
    const now = is(interval);
    const last = spans.at(-1);
    if (now && continues && last !== undefined) last.to_s = interval.at_s;
    else if (now) spans.push({ from_s: interval.at_s - interval.length_s, to_s: interval.at_s, kind, name });
    continues = now;
  }
  return spans.slice(0, MOST_MARKS);
}

function marksOf(result: Result): Mark[] {
  const changes = result.rate.changes.map(({ at_s, what, to_per_s, by }): Mark => {
    const to = to_per_s === null ? "" : ` to ${perSecond(to_per_s)}`;
    return { at_s, length_s: 0, kind: "change", text: `${what}${to}, by ${by}` };
  });
  const faults = (result.faults ?? []).map((fault): Mark => {
    const { at_s, until_s, error } = fault;
    const length_s = until_s === null ? 0 : Math.max(0, until_s - at_s);
    const text = faultTitle(fault) + (error === null ? "" : `, not done: ${error}`);
    return { at_s, length_s, kind: "fault", text };
  });
  // Those that somebody asked for: the longest first, as in a report.
  const asked = [...changes, ...faults].sort((a, b) => b.length_s - a.length_s);
  const others = result.generator.workers.flatMap(({ stalls }, worker) =>
    stalls.map(({ at_s, length_ns }): Mark => ({
      at_s,
      length_s: length_ns / 1e9,
      kind: "stall",
      text: `worker ${worker} of the generator stalled for ${nanos(length_ns)}`,
    })),
  );
  for (const { at_s, length_s, thresholds_failed } of result.intervals) {
    if (thresholds_failed === 0) continue;
    const text =
      thresholds_failed === 1 ? "a threshold did not hold" : `${thresholds_failed} thresholds did not hold`;
    others.push({ at_s: at_s - length_s, length_s, kind: "threshold", text });
  }
  const failed = result.thresholds.find(({ windows }) => windows?.first_failed_at_s != null);
  const at_s = failed?.windows?.first_failed_at_s;
  if (at_s != null && others.every(({ kind }) => kind !== "threshold")) {
    const text = `a threshold did not hold in the window that ended at ${seconds(at_s)}`;
    others.push({ at_s, length_s: 0, kind: "threshold", text });
  }
  // The longest ones are kept.
  others.sort((a, b) => b.length_s - a.length_s);
  return [...others.slice(0, MOST_MARKS), ...asked.slice(0, MOST_MARKS)].sort((a, b) => a.at_s - b.at_s);
}

/** A fault with the nodes that it hit: `kill of node 0`. */
export function faultTitle({ fault, nodes }: Fault): string {
  const name = fault.replaceAll("_", " ");
  if (nodes.length === 0) return name;
  return `${name} of ${nodes.length === 1 ? "node" : "nodes"} ${nodes.join(", ")}`;
}

/** The percentiles that a result has, and its largest value. */
function spectrumOf(time: TimeKey, summary: Summary): Spectrum {
  const { count, min, max, at_least = [] } = summary;
  const spectrum: Spectrum = {
    time,
    count,
    points: [],
    at_least_from: null,
    // ln(0.05) / ln(share) values are needed for a 95 % bound.
    known_to: count === 0 ? 0 : 0.05 ** (1 / count),
    intervals: PERCENTILES.flatMap((name): [number, number | null, number | null][] => {
      const bounds = summary.interval?.[name];
      return bounds == null ? [] : [[Number(name) / 100, bounds.low, bounds.high]];
    }),
  };
  if (min === null || max === null) return spectrum;
  const add = (name: string, share: number, value: number) => {
    if (at_least.includes(name)) spectrum.at_least_from ??= spectrum.points.length;
    spectrum.points.push([share, value]);
  };
  spectrum.points.push([0, min]);
  for (const name of PERCENTILES) {
    const value = summary.p[name];
    if (value != null) add(name, Number(name) / 100, value);
  }
  add("max", 1 - 1 / (count + 1), max);
  return spectrum;
}

function histogramOf(time: TimeKey, { count, distribution }: Summary): Histogram {
  return { time, count, bars: distribution.map((bar) => [bar.from_ns, bar.below_ns, bar.count]) };
}
