import { count } from "../../src/figure.ts";
import type { Explanation } from "../app/api.ts";
import { quoted } from "../runs/parts.tsx";
import { plural } from "../runs/words.ts";

/** A flag that can be set for one run, over the plan. */
export interface Override {
  flag: string;
  label: string;
  hint: string;
  /** Words for a run where neither the field nor the plan has a value, if they are alike for all plans. */
  usual?: string;
}

export const OVERRIDES: readonly Override[] = [
  { flag: "--rate", label: "Rate", hint: "Open model: iterations per second, such as 5k/s" },
  { flag: "--duration", label: "Duration", hint: "Length of the run, such as 30s" },
  { flag: "--connections", label: "Connections", hint: "At most this many" },
  { flag: "--users", label: "Users", hint: "Closed model" },
  { flag: "--iterations", label: "Iterations", hint: "End after this many, such as 10k" },
  { flag: "--warmup", label: "Warm-up", hint: "Load before the measured part", usual: "without it, none" },
  { flag: "--threads", label: "Threads", hint: "Worker threads" },
  { flag: "--seed", label: "Seed", hint: "Of every random choice", usual: "without it, a new one each time" },
  {
    flag: "--repeat",
    label: "Runs",
    hint: "One after the other: from 5 on, how much runs differ is known",
    usual: "without it, one",
  },
];

/** Flags of a run of a cluster: the load is that of a plan, with whatever its parameters are. */
export const CLUSTER_OVERRIDES: readonly Override[] = [
  { flag: "--profile", label: "Profile", hint: "How nodes store", usual: "without it, as the spec says" },
  { flag: "--set", label: "Parameter", hint: "Value, or values of a series, such as concurrency=64,128" },
  ...OVERRIDES.filter(({ flag }) => ["--rate", "--duration", "--connections", "--seed"].includes(flag)),
];

/** The words for what is run without a flag that the plan does not have either; null if that is unknown. */
export function unsetWords({ flag, usual }: Override, explained: Explanation | null): string | null {
  if (usual !== undefined) return usual;
  if (explained === null) return null;
  const { schedule, settings, text } = explained;
  const setting = (name: string) => settings.find((one) => one.name === name)?.value ?? null;
  const users = Math.max(...schedule.points.map(([, number]) => number));
  const isClosed = schedule.model === "closed";
  const pace = /\bthink\b/.test(text) ? "which pause as the plan says" : "as fast as the server allows";
  switch (flag) {
    case "--rate":
      if (isClosed) return `without it, ${plural(users, "user")}, ${pace}`;
      return `without it, the ${setting("stages") === null ? "phases" : "stages"} of the plan`;
    case "--users":
      return isClosed ? `without it, ${count(users)}` : "without it, none: the load is a rate";
    case "--duration":
      return `without it, ${setting("duration") ?? "until the plan has ended"}`;
    case "--iterations":
      return "without it, as many as there is time for";
    default: {
      const value = setting(flag.slice(2));
      return value === null ? null : `without it, ${value}`;
    }
  }
}

/** The flags for the fields, and then those that were typed as on a command line. */
export function flagsOf(values: Record<string, string>, more: string, overrides = OVERRIDES): string[] {
  const set = overrides.flatMap(({ flag }) => {
    const value = values[flag]?.trim() ?? "";
    // One run is a run, and may be steered.
    return value === "" || (flag === "--repeat" && value === "1") ? [] : [flag, value];
  });
  return [...set, ...words(more)];
}

/** The fields of a form that have these flags, and the others as they are typed. */
export function fieldsOf(flags: readonly string[], overrides = OVERRIDES): [Record<string, string>, string] {
  const values: Record<string, string> = {};
  const others: string[] = [];
  for (let at = 0; at < flags.length; at += 1) {
    const [, name = "", inline] = /^([^=]*)(?:=([^]*))?$/.exec(flags[at] ?? "") ?? [];
    const isField = overrides.some(({ flag }) => flag === name);
    if (!isField) others.push(flags[at] ?? "");
    else if (inline !== undefined) values[name] = inline;
    else {
      at += 1;
      values[name] = flags[at] ?? "";
    }
  }
  return [values, others.map(quoted).join(" ")];
}

/** Flags as they are typed, without those that tag a run; as they were if there are none. */
export function withoutTags(line: string): string {
  const all = words(line);
  const isTag = (at: number) => /^--tag(=|$)/.test(all[at] ?? "") || all[at - 1] === "--tag";
  const others = all.filter((_, at) => !isTag(at));
  return others.length === all.length ? line : others.map(quoted).join(" ");
}

/** The words of a command line: quotes keep blanks. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let index = 0; index < line.length; index += 1) {
    const one = line.charAt(index);
    if (quote === "'" ? one !== "'" : quote === '"' && one !== '"' && one !== "\\") word = (word ?? "") + one;
    else if (one === "\\" && index + 1 < line.length) {
      index += 1;
      word = (word ?? "") + line.charAt(index);
    } else if (quote !== "") quote = "";
    else if (one === "'" || one === '"') {
      quote = one;
      word ??= "";
    } else if (/\s/.test(one)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? "") + one;
  }
  if (word !== null) found.push(word);
  return found;
}
