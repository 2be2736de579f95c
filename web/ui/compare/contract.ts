/** The comparison contract as far as the page reads it, and its figures for people. */

import { nanos, perSecond, share } from "../../src/figure.ts";
import type { BadgeKind } from "../app/controls.tsx";

export type Word = "better" | "worse" | "same" | "undecided";

export interface Change {
  kind: "relative" | "absolute" | (string & {});
  estimate: number;
  low: number | null;
  high: number | null;
  p: number | null;
  p_adjusted: number | null;
  method: string;
}

export interface Metric {
  metric: string;
  unit: "ns" | "per_s" | "share" | "us" | (string & {});
  better: "lower" | "higher" | "none";
  judged: boolean;
  a: (number | null)[];
  b: (number | null)[];
  a_median: number | null;
  b_median: number | null;
  /** True where the median is only a lower bound; missing in results of before. */
  a_at_least?: boolean;
  b_at_least?: boolean;
  change: Change | null;
  verdict: Word | null;
  reason: string | null;
}

export interface Group {
  name: string;
  runs: { file: string; id: string; started_at: string; plan_hash: string; valid: boolean }[];
}

/** See `plimsoll schema comparison`. */
export interface Comparison {
  verdict: Word;
  refused: string | null;
  settings: { effect: number; error_effect: number; confidence: number };
  a: Group;
  b: Group;
  notes: { code: string; text: string }[];
  metrics: Metric[];
}

/** Looks of judgements: a sign and a word beside the colour. */
export const WORDS: Record<Word, { kind: BadgeKind; sign: string }> = {
  better: { kind: "good", sign: "▲" },
  worse: { kind: "bad", sign: "▼" },
  same: { kind: "done", sign: "=" },
  undecided: { kind: "doubtful", sign: "?" },
};

/** Numbers of runs of both groups to draw, of which there is room for so many: as many of each, and where one
 * has fewer, more of the other. */
export function shares(a: number, b: number, room: number): { a: number; b: number } {
  const half = Math.floor(room / 2);
  const ofA = Math.min(a, Math.max(half, room - b));
  return { a: ofA, b: Math.min(b, room - ofA, Math.max(half, room - a)) };
}

/** The name without the usual kind of time. */
export function shortName({ metric }: Metric): string {
  return metric.replace(/^(response_time|service_time)\./, "");
}

export function valueText({ unit }: Metric, value: number | null, atLeast = false): string {
  if (value === null) return "-";
  const write: Record<string, (value: number) => string> = {
    ns: nanos,
    per_s: perSecond,
    share,
    us: (value) => nanos(value * 1e3),
  };
  return `${atLeast ? "≥ " : ""}${write[unit]?.(value) ?? String(value)}`;
}

/** One end of a change, with its sign. */
export function amount({ kind }: Change, value: number | null): string {
  if (value === null) return "?";
  const sign = value < 0 ? "−" : "+";
  const size = Math.abs(value) * 100;
  return kind === "absolute" ? `${sign}${size.toFixed(2)} points` : `${sign}${size.toFixed(1)} %`;
}

export function intervalText(change: Change): string {
  if (change.low === null && change.high === null) return "-";
  return `[${amount(change, change.low)}, ${amount(change, change.high)}]`;
}

export function probability({ p, p_adjusted }: Change): string {
  const value = p_adjusted ?? p;
  return value === null ? "-" : value < 0.001 ? "< 0.001" : value.toFixed(3);
}

/** Reasons why figures are undecided or not judged, each once, with the figures. */
export function reasonsOf({ metrics }: Comparison): [string, string][] {
  const reasons = new Map<string, string[]>();
  for (const metric of metrics) {
    if (metric.reason === null) continue;
    reasons.set(metric.reason, [...(reasons.get(metric.reason) ?? []), shortName(metric)]);
  }
  return [...reasons].map(([reason, names]) => [names.join(", "), reason]);
}

/** The question in words. */
export function question({ settings }: Comparison): string {
  const percent = (share: number) => Number((share * 100).toFixed(4));
  return (
    `Is B better or worse than A? Changes below ${percent(settings.effect)} % do not matter ` +
    `(errors: ${percent(settings.error_effect)} percentage points); ` +
    `confidence ${percent(settings.confidence)} %.`
  );
}

/** Places of the parts of a drawn change, from 0 (left) to 1 (right); zero is in the middle. */
export interface Drawn {
  low: number;
  high: number;
  at: number;
  band: [number, number];
  /** True if an end lies beyond the edge, or has no bound. */
  openLow: boolean;
  openHigh: boolean;
}

/** The largest change that is drawn: all rows of a kind have the same scale, unless one is far beyond. */
export function scaleOf(metrics: Metric[], kind: string, effect: number): number {
  const sizes = metrics.flatMap(({ change }) =>
    change === null || change.kind !== kind
      ? []
      : [change.estimate, change.low, change.high].flatMap((end) => (end === null ? [] : [Math.abs(end)])),
  );
  return Math.min(Math.max(effect * 3, ...sizes) * 1.1, Math.max(1, effect * 20));
}

export function drawn(change: Change, scale: number, effect: number): Drawn {
  const place = (value: number) => Math.min(1, Math.max(0, 0.5 + value / scale / 2));
  return {
    low: change.low === null ? 0 : place(change.low),
    high: change.high === null ? 1 : place(change.high),
    at: place(change.estimate),
    band: [place(-effect), place(effect)],
    openLow: change.low === null || change.low < -scale,
    openHigh: change.high === null || change.high > scale,
  };
}
