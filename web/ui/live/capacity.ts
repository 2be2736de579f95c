/** A search for the capacity of a server: its trials, as messages tell them and as its result has them. */

import { count } from "../../src/figure.ts";

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
    reason?: string;
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
    findings: { code: string; evidence: string; hint: string }[];
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
    /** How far the levels are from the law, as a share. */
    error: number;
  } | null;
  usl_missing: string | null;
}

/** How far the levels may be from a law whose peak is an answer: a plateau has none. */
const FAR_OFF = 0.05;

/** The highest throughput of a sweep, and where: by its law, or as it was measured where the law is far off. */
export function peakOf({ levels, usl, setting }: Pick<Sweep, "levels" | "usl" | "setting">): [number | null, string] {
  const most = levels.reduce<Sweep["levels"][number] | null>(
    (best, level) => (best === null || level.achieved_per_s > best.achieved_per_s ? level : best),
    null,
  );
  if (usl === null || usl.error > FAR_OFF) {
    return [most?.achieved_per_s ?? null, most === null ? "" : `measured, at ${count(most.value)} ${setting}`];
  }
  const { peak_concurrency, peak_per_s, extrapolated } = usl;
  const where =
    peak_concurrency === null ? "it never falls" : `at ${count(Math.round(peak_concurrency))} in flight`;
  return [peak_per_s, `${where}${extrapolated ? ", calculated and not seen" : ""}`];
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

/** A trial that goes on: times in seconds. */
export interface Trying {
  rate_per_s: number;
  purpose: string;
  /** Its length as it is planned. */
  length_s: number;
  /** When it began, since the begin of the search. */
  at_s: number;
  /** The longest time of the search. */
  most_s: number;
}

/** `trying 400/s, ramp, for 2.0 s, at 12.0 s of 120.0 s` */
const TRYING = /^trying ([\d,.]+)\/s, (.+?), for ([\d.]+) s, at ([\d.]+) s of ([\d.]+) s$/;

/** The trial that a message of a search announces; null if it is about something else. */
export function tryingOf(message: string): Trying | null {
  const found = TRYING.exec(message);
  if (found === null) return null;
  const [, rate = "", purpose = "", length = "", at = "", most = ""] = found;
  return {
    rate_per_s: Number(rate.replaceAll(",", "")),
    purpose,
    length_s: Number(length),
    at_s: Number(at),
    most_s: Number(most),
  };
}

/** The latest trial that was announced; null before the first one. */
export function latestTrying(messages: readonly string[]): Trying | null {
  const last = messages.findLast((message) => tryingOf(message) !== null);
  return last === undefined ? null : tryingOf(last);
}

const PURPOSES: Record<string, string> = {
  ramp: "to find a rate that breaks",
  bisection: "to come near the limit",
  estimation: "to estimate the limit",
  confirmation: "to confirm the lower end",
  "from above": "to see whether it holds after an overload",
};

/** The purpose of a trial in words; one of a later version is said by its own. */
export const purposeWords = (purpose: string): string => PURPOSES[purpose] ?? purpose;

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

/** One rate of a search that is over. */
export interface Rate extends Level {
  /** Seconds of all of its trials. */
  measured_s: number;
  /** Why it is not the end that its finding suggests, and the like; empty without a reason. */
  reason: string;
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

/** The rates of a result: the finding is that of the whole search, with its reason. */
export function ratesOf(capacity: Pick<Capacity, "levels" | "trials">): Rate[] {
  return capacity.levels.map(({ rate_per_s, finding, reason, measured_s }) => {
    const own = capacity.trials.filter((trial) => trial.rate_per_s === rate_per_s);
    const longest = own.reduce<(typeof own)[number] | null>(
      (best, trial) => (best === null || trial.measured_s > best.measured_s ? trial : best),
      null,
    );
    const [p50, p99] = [longest?.p50 ?? null, longest?.p99 ?? null];
    return { rate_per_s, p50, p99, finding, trials: own.length, measured_s, reason: reason ?? "" };
  });
}

/** What the trials say about the measurement: of each kind the first, and in how many trials there was one.
 * What is found where a rate breaks is of a server that is too slow for it, and the length of a trial is not
 * of the person's choice. */
export function remarksOf({ trials }: Pick<Capacity, "trials">): { text: string; hint: string }[] {
  const found = new Map<string, { evidence: string; hint: string; times: number }>();
  const others = trials.filter(({ finding }) => finding !== "breaks").flatMap(({ findings }) => findings);
  for (const { code, evidence, hint } of others) {
    if (code === "too_few_samples") continue;
    const known = found.get(code);
    if (known === undefined) found.set(code, { evidence, hint, times: 1 });
    else known.times += 1;
  }
  return [...found.values()].map(({ evidence, hint, times }) => ({
    text: `in ${times} of ${trials.length} trials${times > 1 ? ", first" : ""}: ${evidence}`,
    hint,
  }));
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
