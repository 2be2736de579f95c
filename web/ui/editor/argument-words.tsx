/** Words for the arguments of forms, where those of the command line say nothing to somebody who types none. */

import type { ComponentChildren } from "preact";
import { ApiError, type FormArgument } from "../app/api.ts";

/** The words of an argument on a form. */
interface Words {
  label: string;
  hint: string;
  /** A value as it may be written, where the hint has none. */
  example?: string;
}

const OF_URLS: Words = {
  label: "Address",
  hint: "The URL that requests go to. Several URLs have an equal share of the load each.",
  example: "http://127.0.0.1:8080/",
};

/** Arguments that mean the same in all forms, in the order in which they are asked for. */
const WORDS: Record<string, Words> = {
  urls: OF_URLS,
  rate: {
    label: "Rate",
    hint:
      "Requests that begin per second, however long the answers take (open model). " +
      "Without a rate there are users, who wait for each answer (closed model).",
    example: "100/s",
  },
  duration: { label: "Duration", hint: "How long the load goes on." },
  users: {
    label: "Users",
    hint:
      "Users who ask again as soon as they have an answer, in the place of a rate. " +
      "Usually one for each connection.",
    example: "20",
  },
  connections: {
    label: "Connections",
    hint: "Usually 64; with a rate as many as it needs.",
  },
  method: { label: "Method", hint: "Usually GET, and POST if there is a body." },
  body: {
    label: "Body",
    hint: "The text that is sent. ${uuid}, ${random_int(1,9)} and the like are other values each time.",
    example: '{"item": 7}',
  },
  headers: { label: "Header fields", hint: "One a line, name and value.", example: "accept: application/json" },
  thresholds: {
    label: "Thresholds",
    hint: "What has to hold for the run to pass.",
    example: "p99<250ms",
  },
};

/** Hints of further arguments, whose help speaks of flags, or to somebody who knows them. */
const HINTS: Record<string, string> = {
  stages: "Rates over time (open model): the first is held for its time, and each further one is ramped to.",
  user_stages: "Users over time (closed model): the first number is held, and each further one is ramped to.",
  rate_of: "What a rate counts: iterations, each of which may have several requests, or requests.",
  arrival: "Times between requests of a rate: equal (uniform), or random, as of many people (poisson).",
  overload: "While all connections are busy, requests queue, are dropped, or open more of them (grow).",
  threads: "Threads that make the load. Usually one, which carries more than 100,000 requests per second.",
  warmup: "Load before the measured part, which is in no figure.",
  drain: "How long answers are waited for after the load. Usually the longest timeout of a step.",
  seed: "Makes the random choices of another run again. Usually a random one, which the result names.",
  basic: "User and password with a colon between, for basic authentication.",
  bearer: "The token that every request carries.",
  auth: "Kind of the credentials: basic, bearer, or jwt, a token that is signed here.",
  redact: "Query parameters, header fields or fields of a body to hide in results. One name a line.",
  abandon_pct: "Percentage of the requests whose answers are not waited for longer than the time below.",
  rps: "Requests per second on every connection (open model).",
  http2: "HTTP/2, with TLS and without.",
  http2_prior_knowledge: "HTTP/2 without TLS, from the first byte on.",
  http1: "HTTP/1.1, which is usual.",
  insecure: "Accept any certificate.",
  source_ip: "Local addresses from which connections are made, in turn. One a line.",
  resolve: "Addresses of a host in the place of those that its name has. One a line.",
  connect_to: "Another host than that of the URL to connect to; empty parts stand for any. One a line.",
  precise: "Every request starts at its time, for which a whole processor waits busily.",
  abort_on_fail: "End the run as soon as a threshold is shown not to hold.",
};

/** Examples of values, by the words for them on the command line. */
const EXAMPLES: Record<string, string> = {
  N: "10",
  RATE: "100/s",
  TIME: "10s",
  SIZE: "64KiB",
  PERCENT: "5",
  STAGES: "30s@100,1m@500",
  HEADER: "accept: application/json",
  THRESHOLD: "p99<250ms",
  BOUNDS: "ttft<500ms & tpot<50ms",
  FILE: "a file of the folder",
  TEXT: "",
};

/** The words of an argument of a form, if there are some; those of a plan's URLs are words of `run` alone. */
function wordsOf({ id, value }: FormArgument): Words | undefined {
  if (id === "urls" && value !== "PLAN|URL") return { ...OF_URLS, hint: "The server that requests go to." };
  return WORDS[id];
}

/** The place of an argument among those that are asked for first. */
export function orderOf({ id }: FormArgument): number {
  const place = Object.keys(WORDS).indexOf(id);
  return place === -1 ? Number.POSITIVE_INFINITY : place;
}

/** The label of a field. */
export function labelOf(argument: FormArgument): string {
  const own = wordsOf(argument)?.label;
  if (own !== undefined) return own;
  const { id, flag, value } = argument;
  const words =
    flag === null
      ? (value ?? id).toLowerCase().replace(/[[\]<>.]/g, "").replaceAll("_", " ")
      : flag.replace(/^--/, "").replaceAll("-", " ");
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** The value that an empty field stands for, which it shows. Nothing else is shown there: it would look
 * as if it were the value. Without an address no form is sent. */
export function shownWhenEmpty(argument: FormArgument): string {
  const { id, default: preset, help } = argument;
  const usual = preset ?? /\[default: ([^\s\],;]+)\]/.exec(help ?? "")?.[1];
  return usual ?? (id === "urls" ? (wordsOf(argument)?.example ?? "") : "");
}

/** The purpose of a field, with a value as it may be written if the field shows none. */
export function hintOf(argument: FormArgument): ComponentChildren {
  const words = wordsOf(argument);
  const own = words === undefined ? HINTS[argument.id] : words.hint;
  const example = words === undefined ? EXAMPLES[argument.value ?? ""] : words.example;
  const isShown = example === undefined || example === "" || shownWhenEmpty(argument) !== "";
  return (
    <>
      {own ?? inWords(argument.help)}
      {!isShown && ` For example ${example}.`}
    </>
  );
}

/** More about a field, if its words leave something out. */
export function moreOf(argument: FormArgument): ComponentChildren {
  const { help, long_help } = argument;
  const hasOwn = wordsOf(argument) !== undefined || HINTS[argument.id] !== undefined;
  const isMore = long_help !== null && long_help !== help && !hasOwn;
  return isMore ? inWords(long_help.replace(help ?? "", "").trim()) : null;
}

/** Words of the command line for a page: flags are fields there, and nothing comes from another process. */
export function inWords(text: string | null): ComponentChildren {
  const here = (text ?? "")
    .replace(/ \(@- reads stdin\)/g, "")
    .replace(/ \(exit code \d+\)/g, "")
    .replace(/ \[default: ([^\]]+)\]/g, "; usually $1");
  return here.split(/(`[^`]*`|--[a-z][\w.-]*\w)/).map((part) => {
    if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
    if (part.startsWith("--")) return <em>{part.slice(2).replaceAll("-", " ")}</em>;
    return part;
  });
}

/** A refusal that is about one field. */
export interface FieldError {
  id: string;
  said: ComponentChildren;
}

/** The parts of a field that a refusal may name. */
export type Named = Pick<FormArgument, "id" | "flag">;

/** Words about an address, of which a form has one field. */
const OF_ADDRESS = /\b(URLs?|scheme|port|host|server|address)\b/;
const ADDRESSES = ["urls", "url", "server"];
/** Advice for a terminal. */
const OF_TERMINAL = /command line|plimsoll |`-|--force/;

/** The parts of a piece of advice that are none for a terminal; null if there is none. */
export function adviceOf(hint: string | null): string | null {
  const parts = (hint ?? "").split("; ").filter((part) => part !== "" && !OF_TERMINAL.test(part));
  return parts.length === 0 ? null : parts.join("; ");
}

/** The labels of fields whose flags have a letter. */
const SHORT: Readonly<Record<string, string>> = {
  "-c": "Connections",
  "-d": "Duration",
  "-n": "Iterations",
  "-R": "Rate",
};

/** A text of the command line for a form: the command is the load, and flags are fields, by their labels. */
export function textInForm(text: string, labels: Readonly<Record<string, string>> = {}): string {
  const flag = (word: string) => `“${labels[word] ?? word.slice(2).replaceAll("-", " ")}”`;
  const named = text.replace(/`plimsoll \w+`/g, "this load").replace(/`(--[a-z][\w-]*)`/g, "$1");
  const short = (all: string, word: string) => {
    const label = labels[word] ?? SHORT[word];
    return label === undefined ? all : all.replace(word, `“${label}”`);
  };
  return named.replace(/--[a-z][\w-]*\w/g, flag).replace(/(?<=^|\s)(-[A-Za-z])(?=\W|$)/g, short);
}

/** A refusal in the words of a form. */
export function inForm(error: ApiError, labels: Readonly<Record<string, string>> = {}): ApiError {
  const advice = adviceOf(error.hint);
  return new ApiError(error.status, {
    ...error.body,
    error: textInForm(error.message, labels),
    hint: advice === null ? null : textInForm(advice, labels),
  });
}

/** The field that a refusal is about; null if it is about none, or about several. */
export function fieldError(
  { message, hint }: ApiError,
  all: readonly Named[],
  values: Readonly<Record<string, string | string[] | true>>,
  labels: Readonly<Record<string, string>> = {},
): FieldError | null {
  // As it is written by the reader of flags.
  const unread = /^invalid value '(.*)' for '(--[a-z][\w.-]*\w)[^']*': (.*)$/s.exec(message);
  if (unread !== null) {
    const [, value = "", flag = "", why = ""] = unread;
    const error = `${flag}: \`${value}\` is not taken: ${why}`;
    return fieldError(new ApiError(422, { error }), all, values, labels);
  }
  const flag = /^(--[a-z][\w.-]*\w)(: )?/.exec(message);
  const argument = flag === null ? argumentOf(message, all, values) : all.find((one) => one.flag === flag[1]);
  if (argument === undefined) return null;
  const rest = flag?.[2] === undefined ? message : message.slice(flag[0].length);
  const advice = adviceOf(hint);
  return {
    id: argument.id,
    said: inWords([rest, advice].filter((part) => part !== null).map((part) => textInForm(part, labels)).join(": ")),
  };
}

/** The field whose value a message quotes, or a part of it alone; else the address, if the message is about one. */
function argumentOf(
  message: string,
  all: readonly Named[],
  values: Readonly<Record<string, string | string[] | true>>,
): Named | undefined {
  const typed = /`([^`]+)`/.exec(message)?.[1];
  const having = (is: (value: string) => boolean) =>
    all.filter(({ id }) => {
      const value = values[id];
      return (Array.isArray(value) ? value : [value]).some((one) => typeof one === "string" && is(one));
    });
  const [exact] = typed === undefined ? [] : having((value) => value === typed);
  if (exact !== undefined) return exact;
  const address = all.find(({ id }) => ADDRESSES.includes(id));
  if (address !== undefined && OF_ADDRESS.test(message)) return address;
  const parts = typed === undefined ? [] : having((value) => value.includes(typed));
  return parts.length === 1 ? parts[0] : undefined;
}
