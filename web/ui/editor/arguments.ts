import type { FormArgument, FormCommand } from "../app/api.ts";
import { orderOf } from "./argument-words.tsx";

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
/** Special loads whose servers are named by URLs as those of `run` are. */
const TAKES_URLS = new Set(["canister", "grpc", "llm", "ws"]);
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
  "api",
  "input_tokens",
  "output_tokens",
  "prompts",
  "goodput",
  "proto",
  "descriptors",
  "data",
  "deadline",
]);
/** The groups of a form: positional and common arguments first, then each heading. */
export function groupsOf({ arguments: all, name }: FormCommand): ArgumentGroup[] {
  const shown = all.filter(({ id }) => !LEFT_OUT.test(id));
  // Goodput is about language models, whose form asks for it.
  const isCommon = (id: string) => COMMON.has(id) && !(name === "run" && id === "goodput");
  const first = shown.filter(({ id, flag }) => flag === null || isCommon(id.replaceAll("-", "_")));
  if (name === "run") first.sort((one, other) => orderOf(one) - orderOf(other));
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
  // Of most special loads the server is an argument of its own, and a plan or a URL would be another load.
  if (name !== "run") return all.filter(({ id }) => id !== "urls" || TAKES_URLS.has(name));
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
