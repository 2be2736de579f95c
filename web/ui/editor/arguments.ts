import type { FormArgument, FormCommand } from "../app/api.ts";
import { METHODS } from "./knowledge.ts";
import { planText, Typed } from "./scalar.ts";

/** Values of a form by the identities of its arguments: a text, several of them, or true for a switch. */
export type Values = Record<string, string | string[] | true>;

/** Arguments below one heading. */
export interface ArgumentGroup {
  heading: string;
  arguments: FormArgument[];
  /** True if it is folded at first. */
  isFolded: boolean;
}

/** Headings that a form does not need: outputs, and help. */
const LEFT_OUT = /^(help|version|print_plan|print-plan|color|quiet|verbose|output|save)$/;
/** Arguments of `run` that parts of a plan other than its settings stand for. */
const OF_A_PLAN = new Set(["urls", "method", "body", "thresholds", "abort_on_fail"]);
/** Arguments that are asked for first. */
const COMMON = new Set([
  "urls",
  "url",
  "rate",
  "duration",
  "connections",
  "users",
  "method",
  "body",
  "headers",
  "thresholds",
  "what",
  "batch_size",
  "record_rate",
  "preset",
  "verify",
  "leader",
  "total",
  "concurrency",
  "mode",
  "model",
  "path",
  "payload",
  "server",
  "cache",
  "requests",
  "mix",
  "keys",
  "value_size",
  "host",
  "canister_id",
  "call",
  "call_method",
]);
/** The groups of a form: positional and common arguments first, then each heading. */
export function groupsOf({ arguments: all, name }: FormCommand): ArgumentGroup[] {
  const shown = all.filter(({ id }) => !LEFT_OUT.test(id));
  const first = shown.filter(({ id, flag }) => flag === null || COMMON.has(id.replaceAll("-", "_")));
  const groups = new Map<string, FormArgument[]>();
  for (const argument of shown) {
    if (first.includes(argument)) continue;
    const heading = argument.heading ?? "";
    groups.set(heading, [...(groups.get(heading) ?? []), argument]);
  }
  // The first arguments in the help of a special load are its most important ones.
  const isOpen = (index: number) => index === 0 && name !== "run" && name !== "find";
  return [
    { heading: "", arguments: first, isFolded: false },
    ...[...groups].map(([heading, list], index) => ({
      heading: heading === "" ? "More" : heading,
      arguments: list,
      isFolded: !isOpen(index),
    })),
  ];
}

/** The arguments of a form: without those that have no place in a plan. */
export function argumentsOf(
  { name, arguments: all }: FormCommand,
  settings: ReadonlySet<string>,
): FormArgument[] {
  // Of a special load the server is an argument of its own, and a plan or a URL would be another load.
  if (name !== "run") return all.filter(({ id }) => id !== "urls");
  return all.filter(({ id }) => settings.has(id) || OF_A_PLAN.has(id));
}

/** Values as the API takes them: without empty ones. */
export function filled(values: Values): Values {
  const found: Values = {};
  for (const [id, value] of Object.entries(values)) {
    if (value === true) found[id] = true;
    else if (Array.isArray(value)) {
      const texts = value.filter((text) => text.trim() !== "");
      if (texts.length > 0) found[id] = texts;
    } else if (value.trim() !== "") found[id] = value;
  }
  return found;
}

/** The plan of a form for a URL. */
export function planOfUrls(values: Values, settings: readonly string[]): string {
  const text = (id: string) => (typeof values[id] === "string" ? new Typed(values[id]) : undefined);
  const texts = (id: string) => (Array.isArray(values[id]) ? values[id] : []);
  const run: Record<string, unknown> = {};
  for (const id of settings) {
    const value = values[id];
    if (value === true) run[id] = true;
    else if (typeof value === "string") run[id] = new Typed(value);
    else if (value !== undefined)
      run[id] = value.length === 1 ? new Typed(value[0] ?? "") : value.map((one) => new Typed(one));
  }
  const targets: Record<string, Typed> = {};
  const steps = texts("urls").map((url) => {
    const { origin, path } = partsOf(url);
    const known = Object.entries(targets).find(([, { text }]) => text === origin)?.[0];
    const name = known ?? `target${Object.keys(targets).length === 0 ? "" : Object.keys(targets).length + 1}`;
    targets[name] = new Typed(origin);
    return { name, path };
  });
  const isOne = Object.keys(targets).length === 1;
  const scenarios = steps.map(({ name, path }) => {
    const step = stepOf(new Typed(path), text("method"), text("body"));
    return { ...(!isOne && { target: new Typed(name) }), steps: [step] };
  });
  const thresholds = texts("thresholds").map((that) => {
    return values["abort_on_fail"] === true
      ? { that: new Typed(that), abort_on_fail: true }
      : new Typed(that);
  });
  return planText({
    ...(Object.keys(run).length > 0 && { run }),
    targets,
    scenarios,
    ...(thresholds.length > 0 && { thresholds }),
  });
}

function stepOf(path: Typed, method: Typed | undefined, body: Typed | undefined): Record<string, unknown> {
  const word = method?.text.toLowerCase() ?? (body === undefined ? "get" : "post");
  const isKnown = (METHODS as readonly string[]).includes(word);
  const content =
    body === undefined
      ? {}
      : body.text.startsWith("@")
        ? { body_file: new Typed(body.text.slice(1)) }
        : { body };
  return isKnown ? { [word]: path, ...content } : { request: path, method, ...content };
}

/** The server of a URL, and its path with the rest. */
function partsOf(url: string): { origin: string; path: string } {
  const found = /^((?:[a-z][a-z0-9+.-]*:\/\/)?[^/?#]*)(.*)$/i.exec(url.trim());
  const origin = found?.[1] ?? "";
  const path = (found?.[2] ?? "").replace(/#.*$/, "");
  return {
    origin: origin.includes("://") ? origin : `http://${origin}`,
    path: path.startsWith("/") ? path : `/${path}`,
  };
}

/** The words before a field: its flag, or its name on the command line. */
export function labelOf({ id, flag, value }: FormArgument): string {
  if (flag === null)
    return (value ?? id)
      .toLowerCase()
      .replace(/[[\]<>.]/g, "")
      .replaceAll("_", " ");
  return flag.replace(/^--/, "").replaceAll("-", " ");
}
