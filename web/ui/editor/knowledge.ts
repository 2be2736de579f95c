import { enumOf, type Path, type Shape } from "./schema.ts";

/**
 * Facts that are only in the descriptions of the schema: the values of texts, keys that exclude each other,
 * and the units of texts. `web/tests/editor-schema.test.ts` compares all of them with these descriptions.
 */

/** Values of texts, by definition and key. Each stands in the description of its key. */
export const VALUES: Record<string, Record<string, string[]>> = {
  Settings: {
    rate_of: ["iterations", "requests"],
    arrival: ["uniform", "poisson"],
    overload: ["queue", "drop", "grow"],
    auth: ["basic", "bearer", "jwt"],
    jwt_alg: ["HS256", "HS384", "HS512", "ES256", "EdDSA", "RS256"],
    abort_at: ["request", "response", "either"],
    tls: ["1.2", "1.3"],
    pacing: ["adaptive", "shared", "precise"],
    backend: ["auto", "epoll", "uring"],
  },
  DataSpec: {
    order: ["sequential", "random", "shuffled"],
    at_end: ["wrap", "stop", "fail"],
    share: ["split", "whole"],
    per: ["iteration", "user"],
  },
  TokenSettings: { algorithm: ["HS256", "HS384", "HS512", "ES256", "EdDSA", "RS256"] },
  StepSpec: { on_failure: ["end", "continue"] },
};

/** Methods that a step has keys for. */
export const METHODS = ["get", "post", "put", "patch", "delete", "head"] as const;

/** The keys of bodies, of which a step has one. */
export const BODIES = [
  "body",
  "body_file",
  "template_file",
  "json",
  "multipart",
  "batch",
  "canister",
  "completion",
  "grpc",
];

/** Keys of which a map has one at most, by definition. */
export const ONE_OF: Record<string, string[][]> = {
  Settings: [
    ["rate", "stages", "users", "user_stages", "rps"],
    ["http1", "http2", "http2_prior_knowledge", "alpn"],
    ["ipv4", "ipv6"],
  ],
  PhaseSpec: [["rate", "stages", "users", "user_stages"]],
  DataSpec: [["csv", "jsonl", "list", "range"]],
  StepSpec: [BODIES],
  CacheSpec: [
    ["put", "get", "delete", "ping"],
    ["value", "value_file"],
  ],
  CanisterSpec: [
    ["query", "update", "state"],
    ["arg", "arg_size"],
  ],
  MatchSpec: [["equals", "starts", "ends", "contains", "regex", "exists"]],
  PauseSpec: [["fixed", "uniform", "exponential", "pace"]],
  ExtractSpec: [
    ["header", "request_header", "cookie", "status", "body", "json", "request_json", "xpath"],
    ["as_path", "as_url"],
  ],
};

/** Kinds of steps other than requests, by the key that says so, with the keys that go with it. */
export const STEP_KINDS: Record<string, string[]> = {
  set: [],
  if: ["then", "else"],
  repeat: ["steps"],
  while: ["steps"],
  parallel: [],
  keep: [],
  take: [],
  pick: [],
};

/** Keys that make a step a request. */
export const REQUEST_KEYS: readonly string[] = [...METHODS, "request", "cache", "websocket", "same_url"];

/** Keys that only steps other than requests have. */
const OTHER_KEYS = new Set([...Object.keys(STEP_KINDS), ...Object.values(STEP_KINDS).flat()]);

/** The key that determines the kind of a step, or null without one. */
export function stepKind(keys: Iterable<string>): string | null {
  const there = new Set(keys);
  const kind = [...REQUEST_KEYS, ...Object.keys(STEP_KINDS)].find((key) => there.has(key));
  if (kind !== undefined) return kind;
  if (there.has("script")) return "script";
  return ["think", "record"].find((key) => there.has(key)) ?? null;
}

/** True if a step of this kind is a request. */
export function isRequest(kind: string | null): boolean {
  return kind !== null && (REQUEST_KEYS.includes(kind) || kind === "script");
}

/** True if a key may stand in a map beside those that are there. */
export function goesWith(def: string | null, key: string, there: ReadonlySet<string>): boolean {
  if (there.has(key)) return false;
  const others = (group: string[]) => group.includes(key) && group.some((other) => there.has(other));
  if ((ONE_OF[def ?? ""] ?? []).some(others)) return false;
  return def !== "StepSpec" || stepTakes(key, there);
}

function stepTakes(key: string, there: ReadonlySet<string>): boolean {
  const keys = [...there];
  const kind = stepKind(keys);
  if (kind === null) {
    // A name or headers say that it will be a request; steps alone, that it will be a loop.
    if (keys.length === 0) return !["then", "else", "steps"].includes(key);
    if (there.has("steps")) return key === "repeat" || key === "while";
    if (there.has("then") || there.has("else")) return ["if", "then", "else"].includes(key);
    return !OTHER_KEYS.has(key);
  }
  if (kind === "think" || kind === "record") return !OTHER_KEYS.has(key);
  if (!isRequest(kind)) return STEP_KINDS[kind]?.includes(key) ?? false;
  if (OTHER_KEYS.has(key)) return false;
  if (key === "method") return kind === "request" || kind === "script";
  // A script may make the request, so that a path may still be added to it.
  return kind === "script" || !REQUEST_KEYS.includes(key);
}

/** The unit or form of a text, for the hint beside its field. */
export type Unit =
  | "duration"
  | "rate"
  | "stages"
  | "user stages"
  | "count"
  | "percent"
  | "size"
  | "seed"
  | "weight"
  | "factor";

export const UNIT_HINTS: Record<Unit, string> = {
  duration: "30s, 5m, 1m30s, 100ms",
  rate: "5000, 5k/s, 300/m",
  stages: "30s@1000,1m@5000",
  "user stages": "30s@10,1m@50",
  count: "100, 10k, 1m",
  percent: "0.1, 5",
  size: "64KiB, 1MiB",
  seed: "a whole number",
  weight: "1, 9",
  factor: "1, 1.5",
};

export const UNITS: Record<string, Record<string, Unit>> = {
  Settings: {
    connections: "count",
    duration: "duration",
    iterations: "count",
    rate: "rate",
    stages: "stages",
    users: "count",
    user_stages: "user stages",
    threads: "count",
    warmup: "duration",
    drain: "duration",
    seed: "seed",
    jwt_lifetime: "duration",
    timeout: "duration",
    abort_pct: "percent",
    abandon_pct: "percent",
    abandon_after: "duration",
    follow_redirects: "count",
    rps: "rate",
    max_concurrent_streams: "count",
    pipeline: "count",
    max_requests_per_connection: "count",
    connection_lifetime: "duration",
    connection_inactivity: "duration",
    connection_rate: "rate",
    resolve_every: "duration",
    connect_timeout: "duration",
    window_bits: "count",
    connection_window_bits: "count",
    header_table_size: "size",
    encoder_header_table_size: "size",
    max_frame_size: "size",
    ping_interval: "duration",
    max_head_bytes: "size",
    interval: "duration",
    max_rate: "rate",
  },
  PhaseSpec: {
    duration: "duration",
    rate: "rate",
    stages: "stages",
    users: "count",
    user_stages: "user stages",
  },
  DataSpec: { slices: "count" },
  TokenSettings: { lifetime: "duration", refresh_before: "duration" },
  ScenarioSpec: { weight: "weight", start_after: "duration" },
  StepSpec: { timeout: "duration", think: "duration", repeat: "count" },
  PollSpec: { every: "duration", backoff: "factor", at_most: "duration" },
  PauseSpec: { fixed: "duration", uniform: "duration", exponential: "duration", pace: "duration" },
  CanisterSpec: { arg_size: "size", expiry: "duration", signers: "count" },
  ThresholdSpec: { window: "duration", delay: "duration" },
  ScriptSettings: { time_limit: "duration", memory_limit: "size" },
};

/** The values that a text at a key may have; none if it is free. */
export function valuesOf(def: string | null, key: string | number | undefined, shapes: Shape[]): string[] {
  const named = enumOf(shapes);
  if (named.length > 0) return named;
  const known = VALUES[def ?? ""]?.[String(key)];
  return known ?? [];
}

export function unitOf(def: string | null, key: string | number | undefined): Unit | null {
  return UNITS[def ?? ""]?.[String(key)] ?? null;
}

/** The key that a map has in the place of a short text, by definition: a target's text is its URL. */
export const SHORT_FOR: Record<string, string> = {
  TargetSpec: "url",
  ThresholdSpec: "that",
  PauseSpec: "fixed",
  MatchSpec: "equals",
};

/**
 * The key that the short text of a place stands for. A text that is expected of a body, or of the data of an
 * event, has to be in it.
 */
export function shortFor(def: string | null, path: Path): string | null {
  const short = SHORT_FOR[def ?? ""] ?? null;
  if (def !== "MatchSpec") return short;
  const holder = path.findLast((key) => typeof key === "string");
  return holder === "body" || holder === "data" ? "contains" : short;
}

/** Settings that are shown first, in this order; the rest is folded. */
export const COMMON_SETTINGS: readonly string[] = [
  "rate",
  "stages",
  "users",
  "user_stages",
  "duration",
  "iterations",
  "connections",
  "warmup",
  "timeout",
  "arrival",
  "rate_of",
  "headers",
  "http2",
  "threads",
];
