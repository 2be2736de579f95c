/** A search for the capacity of a server: its trials, as messages tell them and as its result has them. */

/** Identity of a search or a sweep, as far as the page reads it. */
export interface Circumstances {
  id: string;
  name?: string;
  targets: string[];
  started_at: string;
  /** Its command line. */
  args: string[];
  slo: string[];
  load: string;
  duration_s: number;
}

/** The parts of the capacity contract that the page reads; `plimsoll schema capacity` describes all of it. */
export interface Capacity {
  search: Circumstances;
  capacity: {
    low_per_s: number | null;
    high_per_s: number | null;
    confirmed: boolean;
    after_overload_per_s: number | null;
    end: string;
    statement: string;
    notes: string[];
  };
  levels: {
    rate_per_s: number;
    finding: Finding;
    measured_s: number;
    shares: { slo: string; limit: number; share: number | null; low: number | null; high: number | null }[];
  }[];
  trials: {
    purpose: string;
    rate_per_s: number;
    at_s: number;
    measured_s: number;
    p50: number | null;
    p99: number | null;
    error_rate: number;
    finding: Finding;
  }[];
}

/** The parts of the sweep contract that the page reads; `plimsoll schema sweep` describes all of it. */
export interface Sweep {
  sweep: Circumstances;
  setting: string;
  levels: {
    value: number;
    achieved_per_s: number;
    in_flight: number;
    p50: number | null;
    p99: number | null;
    error_rate: number;
    limited_by: string;
  }[];
  usl: {
    alpha: number;
    peak_concurrency: number | null;
    peak_per_s: number | null;
    extrapolated: boolean;
  } | null;
  usl_missing: string | null;
}

/** True if what a search has ended with is a sweep. */
export const isSweep = (result: Capacity | Sweep): result is Sweep => "setting" in result;

/** True of what a search has found, false of the result of a run. */
export const isFound = (result: object): result is Capacity | Sweep => "search" in result || "sweep" in result;

export const circumstancesOf = (found: Capacity | Sweep): Circumstances =>
  isSweep(found) ? found.sweep : found.search;

export type Finding = "holds" | "breaks" | "unclear" | "not_applied" | (string & {});

/** One trial: times in nanoseconds. */
export interface Trial {
  at_s: number;
  purpose: string;
  rate_per_s: number;
  measured_s: number;
  p50: number | null;
  p99: number | null;
  errors: string;
  finding: Finding;
}

/** `  12 s  ramp    400/s     2 s  p50 1.20 ms  p99 3.00 ms  errors 0.0 %  holds` */
const LINE = new RegExp(
  [
    String.raw`^ *([\d.]+) s {2}(.+?) +([\d,.]+)/s +([\d.]+) s`,
    String.raw`p50 (.+?) {2}p99 (.+?) {2}errors (.+?)`,
    String.raw`(holds|breaks|unclear|not applied)`,
  ].join(" {2}"),
);

/** The trial that a message of a search tells of; null if it is about something else. */
export function trialOf(message: string): Trial | null {
  const found = LINE.exec(message);
  if (found === null) return null;
  const [, at = "", purpose = "", rate = "", measured = "", p50 = "", p99 = "", errors = "", finding = ""] =
    found;
  return {
    at_s: Number(at),
    purpose,
    rate_per_s: Number(rate.replaceAll(",", "")),
    measured_s: Number(measured),
    p50: nanosOf(p50),
    p99: nanosOf(p99),
    errors,
    finding: finding.replace(" ", "_"),
  };
}

const UNITS: Record<string, number> = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };

/** Nanoseconds of a duration as people are told it; null where there is none. */
export function nanosOf(text: string): number | null {
  const long = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (text !== "" && long !== null) {
    const [, hours = "0", minutes = "0", seconds = "0"] = long;
    return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1e9;
  }
  const [, value, unit = ""] = /^([\d.]+) (\S+)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  return value === undefined || factor === undefined ? null : Number(value) * factor;
}

/** An objective that is a limit of a percentile: a line on the chart of response times. */
export interface Limit {
  text: string;
  ns: number;
}

const LIMIT = /^(?:p[\d.]+|mean|max)<=?([\d.]+)(ns|us|µs|ms|s)$/;

/** The limits among objectives such as `p99<40ms`. */
export function limitsOf(objectives: string[]): Limit[] {
  return objectives.flatMap((text) => {
    const found = LIMIT.exec(text.replaceAll(" ", ""));
    const [, value = "", unit = ""] = found ?? [];
    const factor = UNITS[unit === "us" ? "µs" : unit];
    return factor === undefined ? [] : [{ text, ns: Number(value) * factor }];
  });
}

/** One rate, by the last trial at it, with the finding of all of them. */
export interface Level {
  rate_per_s: number;
  p50: number | null;
  p99: number | null;
  finding: Finding;
  trials: number;
}

/** The rates that were tried, ascending. */
export function levelsOf(trials: Trial[]): Level[] {
  const levels = new Map<number, Level>();
  for (const { rate_per_s, p50, p99, finding } of trials) {
    const before = levels.get(rate_per_s);
    const trials = (before?.trials ?? 0) + 1;
    // A rate that the generator could not apply says nothing about the server.
    const known =
      finding === "not_applied" && before !== undefined ? before : { rate_per_s, p50, p99, finding };
    levels.set(rate_per_s, { ...known, trials });
  }
  return [...levels.values()].sort((a, b) => a.rate_per_s - b.rate_per_s);
}

/** The trials of a result, as those of messages. */
export function trialsOf({ trials }: Capacity): Trial[] {
  return trials.map(({ at_s, purpose, rate_per_s, measured_s, p50, p99, error_rate, finding }) => ({
    at_s,
    purpose: purpose.replaceAll("_", " "),
    rate_per_s,
    measured_s,
    p50,
    p99,
    errors: `${(error_rate * 100).toFixed(1)} %`,
    finding,
  }));
}

/** The load line so far: above the highest rate that holds, below the lowest that breaks. */
export function lineOf(levels: Level[]): { low: number | null; high: number | null } {
  const holding = levels.filter(({ finding }) => finding === "holds").map(({ rate_per_s }) => rate_per_s);
  const breaking = levels.filter(({ finding }) => finding === "breaks").map(({ rate_per_s }) => rate_per_s);
  return {
    low: holding.length === 0 ? null : Math.max(...holding),
    high: breaking.length === 0 ? null : Math.min(...breaking),
  };
}
