/** The unit in which a rate is asked for, and what it is in requests. */

import { count, perSecond } from "../../src/figure.ts";
import type { LiveStat } from "../app/api.ts";
import type { Result } from "../app/result.ts";
import { countsIterations } from "../runs/words.ts";

/** Units of rates, and the requests of an iteration; null where their number is not one. */
export interface PaceUnit {
  name: "iterations" | "requests";
  requests: number | null;
}

/** The unit of the rate of a run: where an iteration has several requests, the description says how many. */
export function paceUnit(result: Result | null): PaceUnit {
  if (result === null || !countsIterations(result)) return { name: "requests", requests: null };
  const found = /iterations\/s of ([\d.,]+) requests/.exec(result.model.description.join(" "))?.[1];
  return { name: "iterations", requests: found === undefined ? null : Number(found.replaceAll(",", "")) };
}

const SECONDS: Record<string, number> = { ms: 1e-3, s: 1, m: 60, min: 60, h: 3600 };

/** Events per second of a rate as it is typed: `500`, `5k/s`, `300/m`, `50/10s`; null of anything else. */
export function rateOf(text: string): number | null {
  const found = /^([\d.]+)([kM]?)(?:\/([\d.]*)(ms|s|m|min|h))?$/.exec(text.trim());
  if (found === null) return null;
  const [, value = "", thousands = "", length = "", unit = "s"] = found;
  const factor = thousands === "k" ? 1e3 : thousands === "M" ? 1e6 : 1;
  const rate = (Number(value) * factor) / ((length === "" ? 1 : Number(length)) * (SECONDS[unit] ?? 1));
  return Number.isFinite(rate) ? rate : null;
}

/** What a typed rate of iterations is in requests; undefined where that says nothing. */
export function requestsText(typed: string, requests: number | null): string | undefined {
  const rate = rateOf(typed);
  if (requests === null) return undefined;
  return rate === null ? `an iteration has ${requests} requests` : `= ${perSecond(rate * requests)} requests`;
}

/** Requests on their way, which are known before any answer; null of a run that does not tell. */
export function flightText({ sent, in_flight, drain_left_s }: LiveStat): string | null {
  if (sent == null || in_flight == null) return null;
  if (drain_left_s == null) return `${count(sent)} sent, ${count(in_flight)} in flight`;
  if (in_flight === 0) return null;
  const answers = in_flight === 1 ? "the last answer" : `the last ${count(in_flight)} answers`;
  return `waiting for ${answers}, at most ${count(Math.ceil(drain_left_s))} s left`;
}
