/** The plan and the flags that a search is started with. */

import type { RunRow } from "../app/api.ts";

/** A search as its form has it; empty: as the program has it. */
export interface Search {
  /** Path of a plan; empty: the address. */
  plan: string;
  url: string;
  /** One a line. */
  objectives: string;
  from: string;
  to: string;
  duration: string;
  precision: string;
  maxTime: string;
  /** Setting of a sweep, whose levels are run in the place of a search; empty: a search. */
  sweep: string;
  /** Its levels, with commas between. */
  levels: string;
}

/** Settings that can be swept. */
export const SWEEPS = ["connections", "streams", "threads", "rate"] as const;

export const isPlan = (path: string) => /\.ya?ml$/i.test(path);

/** The flags of `plimsoll find`. */
export function findFlags(search: Search): string[] {
  const objectives = search.objectives
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const flag = (name: string, value: string) => (value.trim() === "" ? [] : [`${name}=${value.trim()}`]);
  const common = [
    ...objectives.map((objective) => `--slo=${objective}`),
    ...flag("--duration", search.duration),
  ];
  if (search.sweep !== "") {
    return [...common, `--sweep=${search.sweep}=${search.levels.replace(/\s+/g, "")}`];
  }
  return [
    ...common,
    ...flag("--from", search.from),
    ...flag("--to", search.to),
    ...flag("--precision", search.precision),
    ...flag("--max-time", search.maxTime),
  ];
}

/** The fields that the form of a search has, with their flags: those of a sweep are others. */
export function fieldsOf({ plan, sweep }: Pick<Search, "plan" | "sweep">): {
  id: keyof Search;
  flag: string | null;
}[] {
  const ofSearch = [
    { id: "from", flag: "--from" },
    { id: "to", flag: "--to" },
    { id: "precision", flag: "--precision" },
    { id: "maxTime", flag: "--max-time" },
  ] as const;
  return [
    ...(plan === "" ? [{ id: "url", flag: null } as const] : []),
    { id: "objectives", flag: "--slo" },
    { id: "duration", flag: "--duration" },
    ...(sweep === "" ? ofSearch : [{ id: "levels", flag: "--sweep" } as const]),
  ];
}

/** The labels of the fields, by their flags. */
export const LABELS: Readonly<Record<string, string>> = {
  "--slo": "Objectives",
  "--sweep": "Levels",
  "--from": "First rate",
  "--to": "Highest rate",
  "--duration": "Shortest trial",
  "-d": "Shortest trial",
  "--precision": "Precision",
  "--max-time": "Longest search",
};

/** The name of a search of this plan or address; null if it would be none that a saved run may have. */
export const searchName = (of: string): string | null => (/[=,]|^latest/.test(of) || of.length > 200 ? null : of);

/** The address of the first of these runs that is the user's own: neither an example nor on the server for examples. */
export function ownAddress(runs: readonly Partial<Pick<RunRow, "name" | "target">>[], sink: string): string | null {
  const own = runs.find(
    ({ name, target }) =>
      /^https?:\/\/\S+$/.test(target ?? "") &&
      !(name ?? "").startsWith("example ") &&
      (sink === "" || !(target ?? "").startsWith(sink)),
  );
  return own?.target ?? null;
}
