import { quoted } from "../runs/parts.tsx";

/** A flag that can be set for one run, over the plan. */
export interface Override {
  flag: string;
  label: string;
  hint: string;
  placeholder: string;
}

export const OVERRIDES: readonly Override[] = [
  { flag: "--rate", label: "Rate", hint: "Open model: iterations per second", placeholder: "5k/s" },
  { flag: "--duration", label: "Duration", hint: "Length of the run", placeholder: "30s" },
  { flag: "--connections", label: "Connections", hint: "At most this many", placeholder: "64" },
  { flag: "--users", label: "Users", hint: "Closed model", placeholder: "100" },
  { flag: "--iterations", label: "Iterations", hint: "End after this many", placeholder: "10k" },
  { flag: "--warmup", label: "Warm-up", hint: "Load before the measured part", placeholder: "5s" },
  { flag: "--threads", label: "Threads", hint: "Worker threads", placeholder: "1" },
  { flag: "--seed", label: "Seed", hint: "Of every random choice", placeholder: "random" },
  {
    flag: "--repeat",
    label: "Runs",
    hint: "One after the other: from 5 on, how much runs differ is known",
    placeholder: "1",
  },
];

/** The same of clusters: the load is that of a plan, with whatever its parameters are. */
export const CLUSTER_OVERRIDES: readonly Override[] = [
  { flag: "--profile", label: "Profile", hint: "How nodes store", placeholder: "that of the spec" },
  { flag: "--set", label: "Parameter", hint: "Value, or values of a series", placeholder: "concurrency=64,128" },
  ...OVERRIDES.filter(({ flag }) => ["--rate", "--duration", "--connections", "--seed"].includes(flag)),
];

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
