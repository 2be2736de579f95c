/** The plan and the flags that a search is started with. */

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
