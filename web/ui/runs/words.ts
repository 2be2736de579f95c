/** Sentences about a result, as its reports have them. */

import { bytes, count, nanos, perSecond, seconds, share } from "../../src/figure.ts";
import type { LiveRun } from "../app/api.ts";
import type { BadgeKind } from "../app/controls.tsx";
import type {
  DoneOnce,
  ErrorExample,
  RateChange,
  Result,
  ServerTiming,
  SlowRequest,
  Summary,
  ThresholdOutcome,
  Verdict,
} from "../app/result.ts";

const LIMITS: Record<string, string> = {
  target: "limited by the target",
  generator: "limited by the generator",
  network: "limited by the network",
  connection_limit: "limited by the number of connections",
  none: "not limited at this rate",
};

/** What limited a run, in the words of the line below its outcome. */
export const limitWords = (what: string): string => LIMITS[what] ?? "the limit is unknown";

/** Codes are words joined by underscores. */
export const spaced = (code: string) => code.replaceAll("_", " ");

/** The line below the outcome: the validity of the measurement, and the limit of the run. */
export function validityLine({ valid, invalid_reasons, limited_by }: Verdict): string {
  const limit = limitWords(limited_by.what);
  if (valid) return `measurement valid · ${limit}`;
  const reasons = invalid_reasons.map(spaced).join(", ");
  return `measurement INVALID${reasons === "" ? "" : ": "}${reasons} · ${limit}`;
}

/** The reason for an end before its time, and when it was; null if there was none. */
export function endedEarly({ run, duration_s }: Pick<Result, "run" | "duration_s">): string | null {
  const by =
    run.ended_by_threshold !== null
      ? `Ended early by the threshold ${run.ended_by_threshold}`
      : run.interrupted_by_signal !== null
        ? `Interrupted by signal ${run.interrupted_by_signal}`
        : run.stopped_by !== null
          ? `Stopped by ${steeredBy(run.stopped_by)}`
          : null;
  const planned = run.planned_s ?? 0;
  const isCut = duration_s > 0 && duration_s < planned;
  const when = isCut ? ` after ${seconds(duration_s)} of ${seconds(planned)}` : "";
  return by === null ? null : `${by}${when}: the figures are of the part before it.`;
}

const STEERED_BY: Record<string, string> = {
  http: "the page, or another request to the control port",
  file: "the watched file",
  key: "a key",
};

/** Who steered a run, in words. */
export const steeredBy = (by: string): string => STEERED_BY[by] ?? spaced(by);

/** The instant from which a run was steady. */
export function steadyText({ steady, warmup_s }: Result): string {
  if (steady.from_s === null) return steady.reason ?? "not known";
  return steady.from_s > warmup_s ? `from ${seconds(steady.from_s)} on` : "from the beginning";
}

/** The title of a run: its name, else its targets. */
export function titleOf({ run }: Result): string {
  return run.name ?? (run.targets.map(({ authority }) => authority).join(", ") || `run ${run.id}`);
}

/** The title of a run that goes on, as its page and its saved run have it; of several runs with the number of the
 * one that goes on. */
export function liveTitle({ name, target, command, entry }: LiveRun): string {
  const called = name ?? target ?? (command === "repeat" ? "run" : command);
  return entry == null ? called : `${called} · run ${entry.number} of ${entry.of}`;
}

/** Names of runs beside each other: those of the same name have their target behind it, or their time. */
export function namesApart(results: readonly Pick<Result, "run">[]): string[] {
  const titles = results.map(({ run }) => titleOf({ run } as Result));
  const targetOf = ({ run }: Pick<Result, "run">) => run.targets.map(({ authority }) => authority).join(", ");
  return results.map((result, at) => {
    const title = titles[at] ?? "";
    const alike = results.filter((_, other) => titles[other] === title);
    if (alike.length < 2) return title;
    const target = targetOf(result);
    const same = alike.filter((one) => targetOf(one) === target);
    const words = [
      title,
      ...(same.length < alike.length && target !== title ? [target] : []),
      ...(same.length > 1 ? [whenText(result.run.started_at_unix_ns / 1e9, new Date(), true)] : []),
    ];
    return words.join(" · ");
  });
}

/** The longest target of a list, in characters. */
const LONGEST_TARGET = 34;

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** The host and the port of a target. */
export const hostOf = (target: string) => target.replace(SCHEME, "").replace(/[/?].*$/, "");

/** A target in little room: without its scheme; of a long path the end, which tells targets apart. */
export function shortTarget(target: string, most = LONGEST_TARGET): string {
  const bare = target.replace(SCHEME, "").replace(/\/$/, "");
  if (bare.length <= most) return bare;
  const host = hostOf(bare);
  const room = Math.max(8, most - host.length - 1);
  return `${host}…${bare.slice(Math.max(host.length, bare.length - room))}`;
}

/** A figure of a summary, with the sign of a lower bound. */
export function figureOf(summary: Summary, name: string): string {
  const value =
    name === "max" || name === "mean" || name === "stdev" || name === "min" ? summary[name] : summary.p[name];
  return boundText(value, summary.at_least?.includes(name), nanos);
}

/** A value, with the sign of a lower bound if it is one. */
export function boundText(
  value: number | null | undefined,
  atLeast: boolean | undefined,
  write: (value: number) => string,
): string {
  return value == null ? "-" : `${atLeast === true ? "≥ " : ""}${write(value)}`;
}

/** The interval of a percentile: `[1.02 ms, 1.10 ms]`, or the one end of it that is known. */
export function intervalOf(summary: Summary, name: string): string {
  const bounds = summary.interval?.[name];
  if (bounds == null || (bounds.low === null && bounds.high === null)) return "";
  const { low, high } = bounds;
  if (high === null) return `at least ${nanosText(low)}`;
  return low === null ? `at most ${nanos(high)}` : `[${nanos(low)}, ${nanos(high)}]`;
}

/** Rates are of iterations where these have several requests, and the plan asked for them. */
export function countsIterations({ by_step, rate }: Result): boolean {
  if (rate.paces_requests === true) return false;
  return by_step.some(({ scenario }, at) => scenario !== "default" && by_step[at + 1]?.scenario === scenario);
}

/** The achieved rate beside the one that was asked for. */
export function paceOf(result: Result): {
  label: string;
  achieved: number | null;
  asked: number | null;
  unit: "iterations" | "requests";
} {
  const { achieved_per_s, iterations_started_per_s, target_per_s } = result.rate;
  const iterations = countsIterations(result);
  // Of a run that is followed by what it saves, iterations are known at its end.
  if (iterations && iterations_started_per_s === null) {
    return { label: "achieved rate", achieved: achieved_per_s, asked: null, unit: "requests" };
  }
  return {
    label: iterations ? "iterations started" : "achieved rate",
    achieved: iterations ? iterations_started_per_s : achieved_per_s,
    asked: target_per_s,
    unit: iterations ? "iterations" : "requests",
  };
}

/** The shares of what was due and has no good answer, where this percentile of the good answers is none of
 * what was due for that; null where it is one. */
export function leftOut(result: Pick<Result, "accounting" | "response_time">, p: string): string | null {
  const { failed, dropped, never_started, without_data } = result.accounting;
  const lost: [number, string][] = [
    [failed, "failed"],
    [dropped, "dropped"],
    [Math.max(0, never_started - without_data), "never started"],
  ];
  const answered = result.response_time.count;
  const due = lost.reduce((sum, [number]) => sum + number, answered);
  const isTold = result.response_time.p[p] != null;
  // 99.9 % of 1,000 are 999: not one more for a rounding error.
  const rank = Math.ceil((Number(p) * due) / 100 - 1e-6);
  if (!isTold || answered === 0 || rank <= answered) return null;
  const kinds = lost.filter(([number]) => number > 0);
  return kinds.map(([number, what]) => `${share(number / due)} ${what}`).join(", ");
}

/** Which of these percentiles of the good answers are none of what was due, in a sentence; null without one. */
export function unreached(
  result: Pick<Result, "accounting" | "response_time">,
  percentiles: string[],
): string | null {
  const beyond = percentiles.filter((p) => leftOut(result, p) !== null);
  const [first] = beyond;
  if (first === undefined) return null;
  const leave = beyond.length === 1 ? "leaves" : "leave";
  const names = beyond.map((p) => `p${p}`).join(", ");
  return `these are of the good answers alone: of what was due, ${leftOut(result, first)}, more than ${names} ${leave} out`;
}

export const rateText = (value: number | null | undefined) => (value == null ? "-" : perSecond(value));
export const secondsText = (value: number | null | undefined) => (value == null ? "-" : seconds(value));
export const nanosText = (value: number | null | undefined) => (value == null ? "-" : nanos(value));

/** `1 request`, `1,234 requests`. */
export const plural = (number: number, noun: string) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** The share of requests that failed or timed out, of those that ended or had no answer at the end; null
 * without any. As long as the run goes on, those without an answer may still have one. */
export function badShare(
  { accounting }: Pick<Result, "accounting">,
  goesOn = false,
): { bad: number; all: number; share: number | null } {
  const { ok, failed, timed_out, aborted, in_flight_at_stop } = accounting;
  const bad = failed + timed_out;
  const all = ok + bad + aborted + (goesOn ? 0 : in_flight_at_stop);
  return { bad, all, share: all === 0 ? null : bad / all };
}

/** A condition with its scope. */
export function thresholdHeading({ text, step, scenario, phase, window_s }: ThresholdOutcome): string {
  const parts = [
    text,
    step !== null && `of step "${step}"`,
    scenario !== null && `of scenario "${scenario}"`,
    phase !== null && `in phase "${phase}"`,
    window_s !== null && `in every ${seconds(window_s)}`,
  ];
  return parts.filter((part) => part !== false).join(" ");
}

/** The figure of a threshold, and the reason why it is not enough. */
export function thresholdSeen({ observed, unreached, reason, series, windows }: ThresholdOutcome): string {
  const value = series === undefined ? observed?.text : `${observed?.text ?? series.value}${seriesText(series)}`;
  let said = [value, unreached, reason].filter((part) => part != null).join(", ");
  if (windows !== null && windows.judged > 0) {
    const of = count(windows.judged);
    said +=
      windows.first_failed_at_s === null
        ? (windows.open ?? 0) > 0
          ? `; open in ${count(windows.open ?? 0)} of ${of} windows`
          : ` at worst in ${of} windows`
        : `; in ${count(windows.failed)} of ${of} windows, ` +
          `first in the one that ended at ${seconds(windows.first_failed_at_s)}`;
  }
  return said;
}

/** The series of a value, as reports name it: ` of up{job="api"}, the worst of 3 series`. */
function seriesText({ labels, count: series }: NonNullable<ThresholdOutcome["series"]>): string {
  const { __name__: name = "", ...rest } = labels;
  const all = Object.entries(rest).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
  const of = name + (all.length === 0 ? "" : `{${all.join(", ")}}`);
  return `${of === "" ? "" : ` of ${of}`}${series > 1 ? `, the worst of ${count(series)} series` : ""}`;
}

/** The judgement of a threshold: one that the measurement does not prove, either way, is not judged. */
export function thresholdWord({ proven, passed }: ThresholdOutcome): { word: string; kind: BadgeKind } {
  if (!proven) return { word: "not judged", kind: "doubtful" };
  return passed ? { word: "pass", kind: "good" } : { word: "fail", kind: "bad" };
}

/** The status of an error and the words of its body, or the reason where it has none, and its server's times. */
export function exampleSaid({ status, body, reason, server_timing = [] }: ErrorExample): string {
  const said = status !== null && status >= 400 && body !== null ? `${status}: ${body}` : reason;
  return server_timing.length === 0 ? said : `${said}; its server: ${timingText(server_timing)}`;
}

/** The parts of a response time by the server's own word: `db 53.2 ms (a shard), cache`. */
export function timingText(parts: ServerTiming[]): string {
  const text = ({ name, duration, description }: ServerTiming) =>
    name + (duration === null ? "" : ` ${nanos(duration)}`) + (description === null ? "" : ` (${description})`);
  return parts.map(text).join(", ");
}

/** The slowest requests of all steps with their steps, the slowest one first. */
export function slowestOf({ by_step }: Pick<Result, "by_step">, most: number): Slow[] {
  return by_step
    .flatMap(({ step, slowest = [] }) => slowest.map((request) => ({ step, request })))
    .sort((a, b) => b.request.response_time - a.request.response_time)
    .slice(0, most);
}

/** A slow request, and its step. */
export interface Slow {
  step: string;
  request: SlowRequest;
}

/** The address of a trace by the template of a run; null without one that leads to the web. */
export function traceAddress(link: string | null | undefined, id: string | null): string | null {
  if (link == null || id === null || !/^https?:\/\//.test(link)) return null;
  return link.replaceAll("${trace_id}", id);
}

/** Counts by name: `200 9,876 · 503 12`. */
export function listed(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, number]) => `${name} ${count(number)}`)
    .join(" · ");
}

/** A change of the rate while the run went on. */
export function changeText({ what, from_per_s, to_per_s }: RateChange): string {
  if (what !== "rate") return what;
  return from_per_s === null || to_per_s === null
    ? what
    : `${perSecond(from_per_s)} to ${perSecond(to_per_s)}`;
}

/** Requests that were sent again, and why, in the words of `Accounting::resent_words`; null without any. */
function resentText({ resent = 0, resent_closed: closed = 0 }: Result["accounting"]): string | null {
  const refused = Math.max(0, resent - closed);
  const ofClosed = "since the target had closed the connection without an answer";
  const object = refused === 1 ? "it" : "them";
  const ofRefused = `since the target had not processed ${object} (GOAWAY, REFUSED_STREAM)`;
  if (resent === 0) return null;
  if (closed === 0) return `${count(resent)}, ${ofRefused}`;
  return refused === 0
    ? `${count(resent)}, ${ofClosed}`
    : `${count(resent)}: ${count(closed)} ${ofClosed}, the others ${ofRefused}`;
}

/** What the two sums of the accounts leave out: each with a name, where there is any. */
export function besideAccounts({ accounting, run }: Pick<Result, "accounting" | "run">): [string, string][] {
  const once = (done: DoneOnce | null | undefined) =>
    done == null ? null : `${plural(done.requests, "request")}, ${nanos(done.duration_ns)}`;
  const counted = (value: number | undefined) => ((value ?? 0) > 0 ? count(value ?? 0) : null);
  const { refresh } = run;
  const facts: [string, string | null][] = [
    ["incomplete", accounting.incomplete === true ? "without workers that have not come back" : null],
    ["never started for lack of data", counted(accounting.without_data)],
    ["in flight since the warm-up", counted(accounting.since_warmup)],
    ["undelivered, of those started", counted(accounting.undelivered)],
    ["unmeasured, beside these", counted(accounting.unmeasured)],
    ["redirects followed", counted(accounting.redirects_followed)],
    ["setup", once(run.setup)],
    ["teardown", once(run.teardown)],
    ["refreshed", refresh == null ? null : `${plural(refresh.times, "time")}, ${plural(refresh.requests, "request")}`],
    ["sent again while the answer was to come", counted(accounting.polls)],
    ["sent again", resentText(accounting)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

export const bytesText = (value: number | null | undefined) => (value == null ? "-" : bytes(value));
export const shareText = (value: number | null | undefined) => (value == null ? "-" : share(value));

/** An instant in the reader's time: `14:05` of today, else with the day; with its second if it is exact. */
export function whenText(unix_s: number, now: Date = new Date(), isExact = false): string {
  const at = new Date(unix_s * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const second = isExact ? `:${two(at.getSeconds())}` : "";
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}${second}`;
  if (at.toDateString() === now.toDateString()) return `today ${clock}`;
  const day = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  if (at.getFullYear() === now.getFullYear()) return `${day} ${clock}`;
  return `${at.getFullYear()}-${day}${isExact ? ` ${clock}` : ""}`;
}

/** The instants that share their minute with another one: they are told apart by their seconds. */
export function sameMinute(instants: readonly number[]): ReadonlySet<number> {
  const minute = (unix_s: number) => Math.floor(unix_s / 60);
  const found = new Map<number, number>();
  for (const one of instants) found.set(minute(one), (found.get(minute(one)) ?? 0) + 1);
  return new Set(instants.filter((one) => (found.get(minute(one)) ?? 0) > 1));
}

/** The same in full, as a tooltip. */
export function whenFull(unix_s: number): string {
  return new Date(unix_s * 1000)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");
}
