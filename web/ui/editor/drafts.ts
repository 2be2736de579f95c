import { signal } from "@preact/signals";
import * as api from "../app/api.ts";
import { forget, move } from "../app/kept.ts";
import { go, link } from "../app/router.ts";

/** A text that is not in its file. */
export interface Draft {
  text: string;
  /** The mark of the file that it was made of; null: there is none yet. */
  etag: string | null;
  /** Of a new file the text that it began with, where that is another one. */
  begun?: string;
}

const drafts = new Map<string, Draft>();
/** The start of the keys below which a browser keeps them, so that they outlive a reload of the page. */
const KEY = "plimsoll-draft:";
/** Counts their changes, so that lists of them can follow. */
export const draftsVersion = signal(0);

export function draftOf(path: string): Draft | null {
  const own = drafts.get(path);
  if (own !== undefined) return own;
  try {
    const kept = sessionStorage.getItem(KEY + path);
    return kept === null ? null : (JSON.parse(kept) as Draft);
  } catch {
    return null;
  }
}

export function keepDraft(path: string, draft: Draft): void {
  drafts.set(path, draft);
  try {
    sessionStorage.setItem(KEY + path, JSON.stringify(draft));
  } catch {
    // Without room for it, it lasts as long as the page.
  }
  draftsVersion.value = draftsVersion.peek() + 1;
}

export function dropDraft(path: string): void {
  drafts.delete(path);
  try {
    sessionStorage.removeItem(KEY + path);
  } catch {
    // There was none.
  }
  draftsVersion.value = draftsVersion.peek() + 1;
}

/** Has the browser ask before the tab is closed, as long as it alone has a text that somebody wrote: one
 * that was made for a new file, and not touched, is made again. */
export function askBeforeLosing(): void {
  addEventListener("beforeunload", (event) => {
    const isLost = ({ text, etag, begun = text }: Draft) => etag !== null || text !== begun;
    const drafts = draftPaths().map(draftOf);
    if (drafts.some((draft) => draft !== null && isLost(draft))) event.preventDefault();
  });
}

/** Fields of the form of Run, which are kept by the plan. */
const OF_RUN = ["values", "more", "name"] as const;

/** The name by which the input of the form of Run is kept for a plan. */
export const runInput = (path: string, field: (typeof OF_RUN)[number]): string => `run ${path} ${field}`;

/** Forgets the input of the form of Run: the plan of this name is gone, or becomes another one. */
export function forgetRun(path: string): void {
  for (const field of OF_RUN) forget(runInput(path, field));
}

/** Takes the input of the form of Run along to another name of the plan. */
export function moveRun(from: string, to: string): void {
  for (const field of OF_RUN) move(runInput(from, field), runInput(to, field));
}

/** Drops a text at its reader's wish. A file that it was made of stays, with the input of its form of Run. */
export function discardDraft(path: string): void {
  const isNew = draftOf(path)?.etag == null;
  dropDraft(path);
  if (isNew) forgetRun(path);
}

/** The paths of all texts that are kept, in order. */
export function draftPaths(): string[] {
  const paths = new Set(drafts.keys());
  try {
    for (let at = 0; at < sessionStorage.length; at += 1) {
      const key = sessionStorage.key(at) ?? "";
      if (key.startsWith(KEY)) paths.add(key.slice(KEY.length));
    }
  } catch {
    // Those of the page are all that there are.
  }
  return [...paths].sort();
}

/** Opens a text in the editor as a file that does not exist yet. */
export async function openAsNew(name: string, text: string): Promise<void> {
  go(link("plan", await keepAsNew(name, text)));
}

/** Keeps a text for a file that does not exist yet: its path. Neither a file nor a kept text makes way for it. */
export async function keepAsNew(name: string, text: string): Promise<string> {
  const path = placeFor(name, text, await filePaths());
  forgetRun(path);
  if (draftOf(path) === null) keepDraft(path, { text, etag: null });
  return path;
}

/** The name at which a new text is kept: one that is free, or that of the same text, which was made before. */
function placeFor(name: string, text: string, files: string[]): string {
  const kept = draftPaths().filter((path) => {
    const draft = draftOf(path);
    return draft !== null && (draft.etag !== null || draft.text !== text);
  });
  return freeName(name, new Set([...files, ...kept]));
}

/** A name that neither a file nor a kept text has. */
export async function unusedName(name: string): Promise<string> {
  return freeName(name, new Set([...(await filePaths()), ...draftPaths()]));
}

const filePaths = async (): Promise<string[]> => (await api.files()).files.map(({ path }) => path);

/** A free name like this one. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  const dot = name.lastIndexOf(".");
  const [stem, end] = dot <= 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot)];
  for (let number = 2; ; number += 1) {
    const other = `${stem}-${number}${end}`;
    if (!taken.has(other)) return other;
  }
}

/** True if a file is a plan, by its name: others are edited as plain text. */
export function isPlanName(path: string): boolean {
  return /\.(ya?ml|json)$/i.test(path);
}

/** The fault of a name for a new file, or null. */
export function nameProblem(path: string): string | null {
  if (path === "") return "a file has a name";
  if (path.startsWith("/") || /^[a-z]:/i.test(path) || path.includes("\\"))
    return "files are below the folder that is open";
  if (path.split("/").some((part) => part === "" || part === "." || part === ".."))
    return "parts of a path have names";
  if (path.split("/").some((part) => part.startsWith("."))) return "names that begin with a dot are hidden";
  if (isPlanName(path) || /\.(jsonl|csv|lua|proto|har)$/i.test(path)) return null;
  return "plans end in .yaml, .yml or .json, and files with them in .csv, .jsonl, .lua, .proto or .har";
}

/** The file beside a plan that a finding says is missing; null if there is none, or it is not to be made here. */
export function missingFile(plan: string, message: string): string | null {
  const [, name] = /^cannot read `([^`]+)`: .*\(os error 2\)/.exec(message) ?? [];
  if (name === undefined) return null;
  const folder = plan.includes("/") ? plan.slice(0, plan.lastIndexOf("/") + 1) : "";
  const path = `${folder}${name.replace(/^(\.\/)+/, "")}`;
  return nameProblem(path) === null ? path : null;
}

/** A name for the plan that is made of a file. */
export function planNameFor(name: string): string {
  const stem = name
    .replace(/^.*[/\\]/, "")
    .replace(/\.[A-Za-z]+$/, "")
    .replace(/[^\w.-]+/g, "-")
    .replace(/^[.-]+/, "");
  return `${stem === "" ? "imported" : stem}.yaml`;
}

/** The text that a new plan begins with. */
export const EMPTY_PLAN = `run:
  rate: 100/s
  duration: 10s
targets:
  api: http://127.0.0.1:8080
scenarios:
  - steps:
      - get: /
thresholds:
  - p99<250ms
  - error_rate<1%
`;
