/** The API of `plimsoll ui`: a typed function for each of its addresses. */

import type { Capacity, Sweep } from "../live/capacity.ts";
import type { Repeated } from "../live/series.tsx";
import type { Result } from "./result.ts";

/** Fields of every POST: no other site can send them. */
const HEADERS = { "x-plimsoll-ui": "1", "content-type": "application/json" };

/** The program that serves the page. */
export interface About {
  version: string;
  folder: string;
  store: string | null;
  read_only: boolean;
  /** Address of the built-in server, once it was started. */
  sink: string | null;
}

/** A file below the folder that was opened. */
export interface FileEntry {
  path: string;
  modified_unix_s: number;
  bytes: number;
}

export interface FileText {
  path: string;
  text: string;
  etag: string;
}

export interface Example {
  name: string;
  /** Heading that it is listed under; those of a group come one after the other. */
  group: string;
  title: string;
  description: string;
  /** Arguments of the built-in server that it is for. */
  server: string;
  text: string;
}

/** A command of the program, with the arguments of its form. */
export interface FormCommand {
  name: string;
  summary: string;
  arguments: FormArgument[];
}

export interface FormArgument {
  id: string;
  /** Null: positional. */
  flag: string | null;
  /** Null: a switch. */
  value: string | null;
  heading: string | null;
  help: string | null;
  long_help: string | null;
  default: string | null;
  multiple: boolean;
  possible: { name: string; help: string | null }[];
}

/** A finding in a plan; lines and columns begin with one and count characters. */
export interface Problem {
  severity: "error" | "note";
  message: string;
  hint: string | null;
  line: number | null;
  column: number | null;
  length: number | null;
}

/** The kind of a document of the editor: a plan, or the spec of a cluster. */
export type DocumentKind = "plan" | "cluster";

export interface Checked {
  ok: boolean;
  problems: Problem[];
}

/** The load that a plan makes, over time. */
export interface Schedule {
  model: "open" | "closed";
  unit: "iterations/s" | "users";
  points: [number, number][];
  phases: { name: string; from_s: number; to_s: number }[];
  iterations: number | null;
  requests: number | null;
  duration_s: number | null;
}

export interface Explanation {
  name: string;
  settings: { name: string; value: string; origin: string }[];
  text: string;
  schedule: Schedule;
}

export type Explained = { ok: true; explanation: Explanation } | { ok: false; problems: Problem[] };

/** One request of an iteration that was tried, and its response. */
export interface Exchange {
  scenario: string;
  step: string;
  request: { method: string; url: string; head: string; body: string };
  response: { status: number; head: string; body: string } | null;
  service_time_s: number | null;
  error: { class: string; message: string } | null;
  checks: { check: string; passed: boolean; message: string }[];
  extracted: { name: string; value: string | null }[];
}

export interface Tried {
  ok: boolean;
  problems?: Problem[];
  exchanges: Exchange[];
  iterations: number;
  message: string | null;
}

export type ImportKind =
  | "curl"
  | "har"
  | "openapi"
  | "h2loadrunner"
  | "vegeta"
  | "postman"
  | "artillery"
  | "jmeter"
  | "k6"
  | "gatling"
  | "locust";

export interface Imported {
  plan: string;
  notes: string[];
}

/** A run to start. */
export interface Start {
  path: string | null;
  /** Text that was not saved, which counts rather than the file. */
  text: string | null;
  command: "run" | "find" | "cluster";
  flags: string[];
  name: string | null;
  /** The fleet that carries it out; without it this machine does. */
  fleet?: FleetChoice;
}

/** The agents that carry out a run. */
export interface FleetChoice {
  broker: Broker;
  /** A number, or names with commas between; null: all that are free. */
  agents: string | null;
  /** Policy after the loss of one. */
  on_loss: OnLoss;
}

/** The others stop or go on after the loss of an agent, or one of them takes its shards over. */
export type OnLoss = "abort" | "continue" | "takeover";

/** The broker of a fleet; files are named from the folder on. */
export interface Broker {
  nats: string;
  creds: string | null;
  ca: string | null;
}

/** An agent that tells of itself. */
export interface Agent {
  wire: number;
  agent: string;
  version: string;
  cores: number;
  /** The run that it is taken by. */
  run: string | null;
}

/** A run that goes on, or one that has ended since the program was started. */
export interface LiveRun {
  id: string;
  name: string | null;
  command: string;
  state: "running" | "ended";
  /** True of a run that goes on and was paused by the page. */
  paused?: boolean;
  started_unix_s: number;
  exit_code: number | null;
  /** Identity of the saved run. */
  run: string | null;
  /** Where the load goes, once there are figures. */
  target?: string | null;
  /** Of a series: the number of the run that goes on, and that of all. */
  entry?: { number: number; of: number } | null;
  /** Of another server of the page, also of the one before a restart: "page". */
  from: "ui" | "terminal" | "page";
}

/** True of a search or a sweep, which make many runs. */
export const isSearching = ({ command }: LiveRun) => command === "find" || command === "sweep";

/** Progress of a run, beside its figures. */
export interface LiveStat {
  /** True of a run that was started in a terminal: it is steered there. */
  read_only?: boolean;
  running: boolean;
  stopping: boolean;
  paused: boolean;
  target_per_s: number | null;
  elapsed_s: number;
  end_s: number | null;
  /** Requests sent so far, and those without an answer; missing of runs that are watched only. */
  sent?: number | null;
  in_flight?: number | null;
  /** Longest time for which answers are still waited for; null while the load goes on. */
  drain_left_s?: number | null;
}

/** The runs of a series so far. */
export interface Entries {
  /** Number of runs in all. */
  of: number;
  runs: Entry[];
}

/** A run of a series. */
export interface Entry {
  number: number;
  /** The values of its parameters. */
  name: string;
  /** Identity of the saved run. */
  run: string | null;
  /** Its outcome and main figures in words, once it has ended. */
  outcome: string | null;
}

export type Outcome = "pass" | "fail" | "done" | "no_verdict";

/** A saved run, as the list has it. */
export interface RunRow {
  id: string;
  name: string | null;
  /** Words, or words with values, as the store has them. */
  tags: Record<string, string> | string[];
  started_unix_s: number;
  outcome: Outcome | null;
  /** True if it ended before its time. */
  stopped_early: boolean;
  valid: boolean | null;
  rate_per_s: number | null;
  p50_s: number | null;
  p99_s: number | null;
  /** Percentiles that are only lower bounds: `50`, `99`. */
  at_least?: string[];
  error_share: number | null;
  duration_s: number | null;
  sparkline: number[] | null;
  unfinished: boolean;
  /** The address that it put load on. */
  target?: string | null;
  kind: "run" | "search" | "sweep";
  /** The answer of a search or a sweep in a few words; null of a run. */
  answer: string | null;
}

export type ExportFormat =
  "json" | "csv" | "markdown" | "junit" | "ndjson" | "hgrm" | "hlog" | "k6" | "html" | "text";

export type SchemaName = "plan" | "result" | "comparison" | "capacity" | (string & {});

/** An answer of the program that is an error. */
export class ApiError extends Error {
  /** Status of HTTP; 0: there was no answer. */
  readonly status: number;
  /** Advice on what to do. */
  readonly hint: string | null;
  readonly problems: Problem[];
  /** The answer as it came. */
  readonly body: Record<string, unknown>;
  /** True if the program did not answer. */
  readonly isSilence: boolean;

  constructor(status: number, body: Record<string, unknown>, isSilence = false) {
    super(typeof body["error"] === "string" ? body["error"] : `the program answered with status ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.hint = typeof body["hint"] === "string" && body["hint"] !== "" ? body["hint"] : null;
    this.problems = Array.isArray(body["problems"]) ? (body["problems"] as Problem[]) : [];
    this.body = body;
    this.isSilence = isSilence;
  }
}

/** The error that anything thrown is shown as. */
export function errorOf(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError(0, { error: message });
}

/** The error in an unsuccessful response. */
export function errorOfResponse(status: number, text: string): ApiError {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && !Array.isArray(body)) {
      return new ApiError(status, body as Record<string, unknown>);
    }
  } catch {
    // The response is not of the API: it is shown as it is.
  }
  const line = text.trim().split("\n")[0] ?? "";
  return new ApiError(status, line === "" || line.startsWith("<") ? {} : { error: line.slice(0, 300) });
}

/** Called when the program does not know the page, or no longer. */
let refused: () => void = () => {};

/** Sets what happens if the program does not know the page. */
export function onRefused(heard: () => void): void {
  refused = heard;
}

/** Called with each answer of the program. */
let answered: () => void = () => {};

/** Told of an answer that came another way, as that of a stream of events. */
export const hearAnswer = () => answered();

/** Sets what happens as soon as the program answers. */
export function onAnswer(heard: () => void): void {
  answered = heard;
}

/**
 * The field by which refusals come with a status of success, and their own in a field of the same name: browsers
 * show any other status as an error of the page on their console, and a rate that was mistyped is none.
 */
const REFUSALS = "x-plimsoll-refusal";

async function asked(path: string, how: RequestInit): Promise<Response> {
  let response: Response;
  const headers = { ...(how.headers as Record<string, string> | undefined), [REFUSALS]: "1" };
  try {
    response = await fetch(path, { ...how, headers, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (how.signal?.aborted) throw error;
    const hint = "see whether it still runs; it prints its address when it starts";
    throw new ApiError(0, { error: "`plimsoll ui` does not answer", hint }, true);
  }
  answered();
  const refusal = response.headers.get(REFUSALS);
  if (response.ok && refusal === null) return response;
  const status = refusal === null ? response.status : Number(refusal);
  const error = errorOfResponse(status, await response.text());
  if (status === 401) refused();
  throw error;
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await asked(path, signal === undefined ? {} : { signal });
  return (await response.json()) as T;
}

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const how = { method: "POST", headers: HEADERS, body: JSON.stringify(body) };
  const response = await asked(path, signal === undefined ? how : { ...how, signal });
  const text = await response.text();
  return (text === "" ? {} : JSON.parse(text)) as T;
}

const part = encodeURIComponent;

/** Exchanges the token of the printed address for a cookie. */
export const session = (token: string) => post<unknown>("/api/session", { token });
export const about = () => get<About>("/api/about");

export const files = () => get<{ files: FileEntry[] }>("/api/files");
export const file = (path: string) => get<FileText>(`/api/file?path=${part(path)}`);
/** Writes a file; `etag` is that of the text which it replaces, null for a new one. */
export const saveFile = (path: string, text: string, etag: string | null) =>
  post<{ path: string; etag: string }>("/api/file", { path, text, etag });
export const renameFile = (path: string, to: string) => post<unknown>("/api/file/rename", { path, to });
export const deleteFile = (path: string) => post<unknown>("/api/file/delete", { path });
export const examples = () => get<{ examples: Example[] }>("/api/examples");
/** Puts the files that an example reads into the folder, but for those that are there. */
export const exampleFiles = (name: string) =>
  post<{ written: string[]; kept: string[] }>("/api/example/files", { name });
export const schema = (name: SchemaName) => get<Record<string, unknown>>(`/api/schema/${part(name)}`);
export const forms = () => get<{ commands: FormCommand[] }>("/api/forms");

export const check = (
  path: string | null,
  text: string,
  kind: DocumentKind = "plan",
  signal?: AbortSignal,
  flags: string[] = [],
) => post<Checked>("/api/check", { path, text, kind, flags }, signal);
export const explain = (path: string | null, text: string, flags: string[] = [], signal?: AbortSignal) =>
  post<Explained>("/api/explain", { path, text, flags }, signal);
export const tryOnce = (path: string | null, text: string, flags: string[] = [], signal?: AbortSignal) =>
  post<Tried>("/api/try", { path, text, flags }, signal);
export const planOf = (command: string, values: Record<string, string | string[] | true>) =>
  post<{ text: string; notes: string[] }>("/api/plan-of", { command, arguments: values });
export const importPlan = (name: string, text: string, kind: ImportKind | null) =>
  post<Imported>("/api/import", { name, text, kind });

export const fleet = (broker: Broker) => post<{ agents: Agent[] }>("/api/fleet", broker);
export const start = (run: Start) => post<{ id: string }>("/api/live", run);
export const live = () => get<{ runs: LiveRun[] }>("/api/live");
export const setRate = (id: string, rate: string) =>
  post<{ told: string }>(`/api/live/${part(id)}/rate`, { rate });
export const pause = (id: string) => post<{ told: string }>(`/api/live/${part(id)}/pause`, {});
export const resume = (id: string) => post<{ told: string }>(`/api/live/${part(id)}/resume`, {});
/** Stops a run; `now`: without waiting for what is in flight. */
export const stop = (id: string, now = false) =>
  post<{ told: string }>(`/api/live/${part(id)}/stop`, { now });

export const runs = (filter: string, limit: number, offset: number, signal?: AbortSignal) =>
  get<{ runs: RunRow[]; total: number }>(
    `/api/runs?filter=${part(filter)}&limit=${limit}&offset=${offset}`,
    signal,
  );
export const run = (id: string, signal?: AbortSignal) => get<Result>(`/api/runs/${part(id)}`, signal);
/** A saved run, or what a saved search has found. */
export const saved = (id: string, signal?: AbortSignal) =>
  get<Result | Capacity | Sweep>(`/api/runs/${part(id)}`, signal);
export const exportAddress = (id: string, format: ExportFormat) =>
  `/api/runs/${part(id)}/export?format=${format}`;
/** The saved runs of a series, as those of `run --repeat`. */
export const series = (id: string, signal?: AbortSignal) =>
  get<Repeated>(`/api/series/${part(id)}`, signal);
/** An export as text. */
export const exported = async (id: string, format: ExportFormat, signal?: AbortSignal): Promise<string> => {
  const response = await asked(exportAddress(id, format), signal === undefined ? {} : { signal });
  return response.text();
};
export const deleteRun = (id: string) => post<unknown>(`/api/runs/${part(id)}/delete`, {});
/** A comparison as a file. */
export const comparisonAddress = (a: string[], b: string[], format: "html" | "json") =>
  `/api/compare/export?a=${part(a.join(","))}&b=${part(b.join(","))}&format=${format}`;
/** The comparison contract, see `plimsoll schema comparison`. */
export const compare = <T>(a: string[], b: string[], signal?: AbortSignal) =>
  post<T>("/api/compare", { a, b }, signal);
