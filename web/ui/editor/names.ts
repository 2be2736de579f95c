import type { Path } from "./schema.ts";
import { type Tree, valueOf } from "./tree.ts";

/** Names of the parts of a plan, for references to them. */
export interface Names {
  targets: string[];
  data: string[];
  tokens: string[];
  scenarios: string[];
  steps: string[];
  phases: string[];
  /** Pools, by the values in them. */
  pools: string[];
  variables: string[];
  secrets: string[];
}

/** The functions of templates, as they are typed. */
export const FUNCTIONS: { name: string; about: string }[] = [
  { name: "sequence", about: "index of the iteration, unique in the run" },
  { name: "worker", about: "index of the thread" },
  { name: "uuid", about: "a random UUID" },
  { name: "timestamp_s", about: "seconds since 1970" },
  { name: "timestamp_ms", about: "milliseconds since 1970" },
  { name: "timestamp_us", about: "microseconds since 1970" },
  { name: "timestamp_ns", about: "nanoseconds since 1970" },
  { name: "random_int(1, 6)", about: "a random whole number, both ends included" },
  { name: "random_float(0, 1, 3)", about: "a random number with this many decimal places" },
  { name: "random_hex(8)", about: "this many random hexadecimal digits" },
  { name: "random_string(8)", about: "this many random characters" },
  { name: "range(0, 1000)", about: "the numbers in turn, one per iteration" },
  { name: "zipf(1000, 0.99)", about: "a number from 0, of which 0 is the most frequent" },
  { name: "pick(a, b, c)", about: "one of the texts" },
  { name: "env(NAME)", about: "a variable of the environment" },
  { name: "secret(NAME)", about: "a secret" },
  { name: "token(NAME)", about: "a token that is signed here" },
  { name: "urlencode(NAME)", about: "a text, escaped for a URL" },
];

/** All names of a plan that can be referred to. */
export function namesIn(tree: Tree, text: string): Names {
  const plan = record(valueOf(tree));
  const names: Names = {
    targets: Object.keys(record(plan["targets"])),
    data: Object.keys(record(plan["data"])),
    tokens: Object.keys(record(plan["tokens"])),
    scenarios: [],
    steps: [],
    phases: [],
    pools: [],
    variables: Object.keys(record(plan["variables"])),
    secrets: secretsIn(text),
  };
  for (const [name, source] of Object.entries(record(plan["data"]))) {
    const { columns, list, range } = record(source);
    if (columns !== undefined) names.variables.push(...listed(columns).map(String));
    else if (list !== undefined || range !== undefined) names.variables.push(name);
  }
  for (const phase of listed(plan["phases"])) push(names.phases, record(phase)["name"]);
  for (const scenario of listed(plan["scenarios"])) {
    const { name, variables, steps } = record(scenario);
    push(names.scenarios, name);
    names.variables.push(...Object.keys(record(variables)));
    listed(steps).forEach((step) => ofStep(record(step), names));
  }
  // Thresholds are of steps of the load, so those of the setup have no names here.
  const once = { ...names, steps: [] };
  const around = [plan["setup"], record(plan["refresh"])["steps"], plan["teardown"]];
  for (const steps of around) listed(steps).forEach((step) => ofStep(record(step), once));
  for (const key of Object.keys(names) as (keyof Names)[]) names[key] = [...new Set(names[key])];
  return names;
}

function ofStep(step: Record<string, unknown>, names: Names): void {
  push(names.steps, step["name"]);
  for (const key of ["extract", "set"]) names.variables.push(...Object.keys(record(step[key])));
  for (const key of ["keep", "collect"]) names.pools.push(...Object.keys(record(step[key])));
  for (const pool of Object.values(record(step["collect"]))) {
    names.variables.push(...Object.keys(record(pool)).filter((key) => key !== "each"));
  }
  for (const key of ["then", "else", "steps", "parallel"]) {
    listed(step[key]).forEach((inner) => ofStep(record(inner), names));
  }
}

/** The names of a plan that the text at a path may be. */
export function referredAt(path: Path, names: Names): string[] {
  const key = path.findLast((key) => typeof key === "string");
  const holder = path.slice(0, path.lastIndexOf(key ?? "")).findLast((key) => typeof key === "string");
  const isOfStep = ["setup", "refresh", "scenarios", "teardown"].includes(String(path[0]));
  if (key === "target" && isOfStep) return names.targets;
  if ((key === "take" || key === "pick") && isOfStep) return names.pools;
  if (key === "data" && holder === "scenarios") return names.data;
  if (path[0] !== "thresholds") return [];
  if (key === "scenario") return names.scenarios;
  if (key === "step") return names.steps;
  return key === "phase" ? names.phases : [];
}

/** The secrets that the templates of a plan name. */
export function secretsIn(text: string): string[] {
  return [
    ...new Set(
      [...text.matchAll(/\bsecret\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*\)/g)].map(([, name]) => name ?? ""),
    ),
  ];
}

/** Variables of the environment that the templates of a plan name, with their defaults. */
export function environmentIn(text: string): { name: string; fallback: string | null }[] {
  const found = new Map<string, string | null>();
  for (const [, name = "", fallback] of text.matchAll(
    /\benv\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:,\s*([^)]*?)\s*)?\)/g,
  )) {
    if (!found.has(name)) found.set(name, fallback ?? null);
  }
  return [...found].map(([name, fallback]) => ({ name, fallback }));
}

function push(list: string[], value: unknown): void {
  if (typeof value === "string" || typeof value === "number") list.push(String(value));
}

/** A list, or a single value in the place of one. */
export function listed(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
