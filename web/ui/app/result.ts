/** The parts of the result contract that the page reads; `plimsoll schema result` describes all of it. */

import type { Outcome } from "./api.ts";

/** A distribution of times, in nanoseconds. */
export interface Summary {
  unit: "ns";
  count: number;
  min: number | null;
  mean: number | null;
  stdev: number | null;
  max: number | null;
  p: Record<string, number | null>;
  p_missing?: Record<string, string>;
  interval?: Record<string, Bounds | null>;
  interval_missing?: Record<string, string>;
  /** Keys of percentiles, and "max", that are only lower bounds. */
  at_least?: string[];
  censored: number;
  overflow: number;
  distribution: { from_ns: number; below_ns: number; count: number }[];
}

export interface Bounds {
  low: number | null;
  high: number | null;
  confidence: number;
  reason: string | null;
}

export interface Finding {
  code: string;
  evidence: string;
  hint: string;
}

export interface Verdict {
  outcome: Outcome;
  cause: string | null;
  summary: string;
  valid: boolean;
  invalid_reasons: string[];
  evidence: Finding[];
  warnings: Finding[];
  thresholds: "pass" | "fail" | "none";
  limited_by: { what: string; evidence: string; hint: string };
}

export interface Accounting {
  scheduled: number;
  started: number;
  dropped: number;
  never_started: number;
  without_data: number;
  ok: number;
  failed: number;
  timed_out: number;
  aborted: number;
  in_flight_at_stop: number;
  /** Arrivals of lost agents. */
  unknown?: number;
  /** True if workers that have not come back are missing. */
  incomplete?: boolean;
  /** Of those in flight, the ones since the warm-up; of those that ended, the ones that nothing took. */
  since_warmup?: number;
  undelivered?: number;
  /** Requests that are in no other account: of the preflight, the setup, the warm-up, a probe and so on. */
  unmeasured?: number;
  redirects_followed?: number;
  polls?: number;
  /** Requests that were sent again, and of them those whose connection was closed without an answer. */
  resent?: number;
  resent_closed?: number;
}

/** Requests before or after the load, or beside it. */
export interface DoneOnce {
  requests: number;
  duration_ns: number;
}

export interface RateChange {
  at_s: number;
  what: "rate" | "pause" | "resume" | (string & {});
  from_per_s: number | null;
  to_per_s: number | null;
  by: string;
}

export interface ThresholdOutcome {
  text: string;
  scenario: string | null;
  step: string | null;
  phase: string | null;
  window_s: number | null;
  passed: boolean;
  observed: { value: number; unit: string; at_least: boolean; text: string } | null;
  reason: string | null;
  /** The reason why there is no figure: too few requests were answered well, or shares of those that were not. */
  unreached?: string | null;
  /** The series that decided, of a query that a Prometheus server answered. */
  series?: { labels: Record<string, string>; value: string; count: number };
  windows: { judged: number; failed: number; open?: number; first_failed_at_s: number | null } | null;
  ended_run: boolean;
  proven: boolean;
}

/** The first failed request of a class at a step. */
export interface ErrorExample {
  at_s: number;
  status: number | null;
  reason: string;
  body: string | null;
  worker: number;
  connection: number | null;
  address: string | null;
  server_timing?: ServerTiming[];
}

/** A part of a response time by the server's own word. */
export interface ServerTiming {
  name: string;
  duration: number | null;
  description: string | null;
}

/** One of the slowest requests of a step. */
export interface SlowRequest {
  at_s: number;
  response_time: number;
  service_time: number | null;
  first_byte_time: number | null;
  status: number | null;
  failure: string | null;
  worker: number;
  trace_id: string | null;
  server_timing?: ServerTiming[];
}

export interface Step {
  scenario: string;
  step: string;
  ok: number;
  failed: number;
  timed_out: number;
  last_ok_s?: number;
  bytes: { sent: number; received: number };
  response_time: Summary;
  service_time: Summary;
  start_lag: Summary;
  first_byte_time: Summary;
  failed_response_time: Summary;
  statuses: Record<string, number>;
  errors: Record<string, number>;
  error_examples?: Record<string, ErrorExample>;
  slowest?: SlowRequest[];
}

export interface MachineUse {
  length_s: number;
  workers: { cpu_share: number }[];
  target: { cpus: number } | null;
  watched: {
    used: {
      cpus: number;
      rss_bytes: number | null;
      disk_written_bytes: number | null;
      disk_read_bytes: number | null;
      descriptors: number | null;
      threads: number;
    } | null;
  }[];
}

export interface Interval {
  at_s: number;
  length_s: number;
  warmup: boolean;
  drain: boolean;
  settling: boolean;
  scheduled: number;
  started: number;
  ok: number;
  failed: number;
  timed_out: number;
  in_flight: number;
  connections: number;
  achieved_per_s: number | null;
  response_time: { count: number; p: Record<string, number | null>; max: number | null };
  thresholds_failed: number;
  joined?: number;
  machine?: MachineUse | null;
  /** Of streams: events with content that came in it, and the times to first token of those that ended in it. */
  event_streams?: {
    content_events: number;
    content_events_per_s: number | null;
    /** p50, p90, p99, p99.9 and the largest. */
    ttft: number[] | null;
  } | null;
}

export interface Watched {
  name: string;
  is_target: boolean;
  found_by: "address" | "pid" | "name" | "node" | (string & {});
  pids: number[];
  processes: number;
}

export interface Phase {
  name: string;
  measured: boolean;
  at_s: number;
  duration_s: number;
  target_per_s: number | null;
  achieved_per_s: number | null;
  iterations_started_per_s?: number | null;
  ok: number;
  failed: number;
  timed_out: number;
  response_time: { p: Record<string, number | null>; at_least?: string[] };
}

export interface Target {
  urls: string[];
  authority: string;
  addresses: string[];
  protocol: string;
  tls_version: string | null;
  tls_cipher: string | null;
}

/** A fault of a cluster run, and how the load fared from its begin on. */
export interface Fault {
  fault: string;
  nodes: string[];
  at_s: number;
  until_s: number | null;
  error: string | null;
  effect: "none" | "recovered" | "lasting";
  first_failure_s: number | null;
  recovery_s: number | null;
  ok: number;
  failed: number;
  timed_out: number;
  resent?: number;
  response_time: Summary;
}

/** What servers have of a run, against what they acknowledged. */
export interface Reconciliation {
  store: string;
  consistent: boolean;
  checks: { tables: string; acknowledged: number; uncertain: number; stored: number; missing: number; surplus: number }[];
  findings?: { check: string; passed: boolean; took_s: number; said: string; evidence?: string[] }[];
}

/** An agent of a fleet, with its shard of the load. */
export interface AgentResult {
  name: string;
  shard: string;
  version: string;
  cores: number;
  state: "finished" | "lost" | "running" | "silent";
  clock_ahead_ns: number | null;
  clock_bound_ns: number | null;
  clock_drift_ns: number | null;
  started: number;
  ok: number;
  failed: number;
  unknown: number;
  /** Seconds since the start from which on it has the shard of a lost agent; null if it had it from the start. */
  from_s?: number | null;
  /** Live changes of the rate that it did not carry out; missing in results of before. */
  missed_changes?: number;
  rate_per_s: number | null;
  start_lag_p99_ns: number | null;
  cpu_cores: number | null;
  valid: boolean;
  limited_by: string;
}

/** Responses that are streams of events, and the tokens in them. */
export interface EventStreams {
  requests: number;
  events: number;
  content_events: number;
  shared_events: number;
  bytes: number;
  tokens: number;
  prompt_tokens: number;
  uncounted: number;
  count_differs: number;
  empty: number;
  /** These three and `ttfa` are missing in results of before. */
  disbelieved?: number;
  reasoned?: number;
  unanswered?: number;
  tokens_per_s: number | null;
  tokens_per_s_per_user: number | null;
  goodput: { bounds: string; good: number; share: number | null; per_s: number | null } | null;
  ttft: Summary;
  ttft_from_sent: Summary;
  ttfa?: Summary;
  first_event_time: Summary;
  last_event_time: Summary;
  itl: Summary;
  itl_per_token: Summary;
  tpot: Summary;
  ntpot: Summary;
}

/** Figures of the values of a metric: those of its kind. */
export interface MetricFigures {
  count: number;
  sum?: number;
  per_s?: number;
  hits?: number;
  share?: number;
  last?: number;
  min?: number;
  mean?: number;
  max?: number;
  p?: Record<string, number | null>;
}

/** A metric that steps of the plan record values of. */
export interface OwnMetric {
  name: string;
  kind: "counter" | "gauge" | "rate" | "trend";
  unit?: string;
  all: MetricFigures;
  tagged?: { tags: Record<string, string>; figures: MetricFigures }[];
  beyond: number;
  unfit: number;
  unfit_example?: string;
}

export interface Result {
  schema_version: number;
  tool: { name: string; version: string };
  run: {
    id: string;
    name?: string;
    seed: number;
    started_at: string;
    started_at_unix_ns: number;
    args: string[];
    plan_hash: string;
    load_checksum: string | null;
    host: { hostname: string; kernel: string; cpu_model: string; cpus: number; memory_bytes: number | null };
    targets: Target[];
    interrupted_by_signal: number | null;
    ended_by_threshold: string | null;
    stopped_by: string | null;
    /** The planned length of the measured part; of earlier results it is not known. */
    planned_s?: number | null;
    /** Link to the trace of a request: a URL with ${trace_id} in it. */
    trace_link?: string | null;
    setup?: DoneOnce | null;
    teardown?: DoneOnce | null;
    refresh?: { times: number; requests: number } | null;
  };
  model: {
    kind: "open" | "closed";
    description: string[];
    arrivals: string | null;
    connections: number;
    depth: number;
  };
  notes: { code: string; text: string }[];
  verdict: Verdict;
  steady: { state: "steady" | "never" | "unknown"; from_s: number | null; reason: string | null };
  accounting: Accounting;
  iterations: { started: number; completed: number; failed: number; unfinished: number };
  rate: {
    target_per_s: number | null;
    paces_requests?: boolean;
    achieved_per_s: number | null;
    started_per_s: number | null;
    iterations_started_per_s: number | null;
    changes: RateChange[];
  };
  duration_s: number;
  warmup_s: number;
  drain_s: number;
  bytes: { sent: number; received: number };
  protocols: Record<string, number>;
  tls_versions: Record<string, number>;
  response_time: Summary;
  service_time: Summary;
  start_lag: Summary;
  connect_time: Summary;
  tls_time: Summary;
  first_byte_time: Summary;
  failed_response_time: Summary;
  statuses: Record<string, number>;
  errors: Record<string, number>;
  error_examples: Record<string, string>;
  connections: {
    opened: number;
    failed: Record<string, number>;
    closed_idle: number;
    peak_open: number;
    limit: number;
    blocked_s: number;
  };
  thresholds: ThresholdOutcome[];
  by_step: Step[];
  phases?: Phase[];
  faults?: Fault[];
  reconciliation?: Reconciliation | null;
  event_streams?: EventStreams | null;
  metrics?: OwnMetric[];
  agents?: AgentResult[];
  intervals: Interval[];
  generator: {
    threads: number;
    cpu_user_s: number;
    cpu_sys_s: number;
    cpu_us_per_request: number | null;
    rss_peak_bytes: number | null;
    backend: string;
    workers: {
      cpu_share: number | null;
      run_delay_s: number | null;
      stalls: { at_s: number; length_ns: number }[];
    }[];
    watched?: Watched[];
  };
}
