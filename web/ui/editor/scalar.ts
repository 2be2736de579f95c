import { isScalar, parseDocument, stringify } from "yaml";

/** The way a text is written: on its own lines or within brackets, as YAML or as JSON. */
export interface Style {
  flow: boolean;
  json: boolean;
}

/** A text as it was typed: `5000`, `200/s` and `true` alike, without quotes of its own. */
export class Typed {
  constructor(readonly text: string) {}
}

/** Lines are as long as they are: nothing that was typed is broken. */
export const OUT = { lineWidth: 0, indent: 2, flowCollectionPadding: false } as const;

/** Longest map or list that is written within brackets on one line. */
const SHORT = 84;

/** A typed text in the plainest way that YAML reads as that text. */
export function scalarText(
  text: string,
  style: Style,
  quote: "plain" | "single" | "double" = "plain",
): string {
  if (style.json) return jsonScalar(text);
  if (quote === "double") return JSON.stringify(text);
  if (quote === "single" && !text.includes("\n")) return `'${text.replaceAll("'", "''")}'`;
  if (isPlain(text, style.flow)) return text;
  if (!/['\n\t\\]/.test(text) && /["\\]/.test(text)) return `'${text}'`;
  return JSON.stringify(text);
}

/** A text of several lines below its key, which is indented by `indent`. */
export function literalText(text: string, indent: number): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const chomp = text.endsWith("\n\n") ? "+" : text.endsWith("\n") ? "" : "-";
  const inner = " ".repeat(indent + 2);
  // Without a number, YAML would take the indentation of a first line that begins with spaces.
  const number = /^\s/.test(lines[0] ?? "") ? "2" : "";
  return `|${number}${chomp}\n${lines.map((line) => (line === "" ? "" : inner + line)).join("\n")}`;
}

/** True if YAML reads a text without quotes as it is. */
export function isPlain(text: string, flow: boolean): boolean {
  if (text === "" || text !== text.trim() || /[\n\t]/.test(text)) return false;
  const tree = parseDocument(flow ? `[${text}]` : `k: ${text}`, { logLevel: "silent" });
  if (tree.errors.length > 0 || tree.warnings.length > 0) return false;
  const node = tree.getIn(flow ? [0] : ["k"], true);
  if (flow && (tree.contents as { items?: unknown[] } | null)?.items?.length !== 1) return false;
  return (
    isScalar(node) && node.type === "PLAIN" && node.source === text && node.value !== null && !node.comment
  );
}

function jsonScalar(text: string): string {
  return /^(true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/.test(text) ? text : JSON.stringify(text);
}

/** The plain value of an edit: typed texts as YAML would read them. */
export function plainValue(value: unknown, json: boolean): unknown {
  if (value instanceof Typed) {
    if (json) return JSON.parse(jsonScalar(value.text));
    return isPlain(value.text, false) ? (parseDocument(value.text).toJS() as unknown) : value.text;
  }
  if (Array.isArray(value)) return value.map((one) => plainValue(one, json));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plainValue(one, json)]));
}

/** A value on one line, within brackets if it is a map or a list. */
export function flowText(value: unknown, json: boolean): string {
  const style = { flow: true, json };
  if (value instanceof Typed) return scalarText(value.text, style);
  if (Array.isArray(value)) return `[${value.map((one) => flowText(one, json)).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).map(([key, one]) => `${keyOf(key, style)}: ${flowText(one, json)}`);
    return `{${pairs.join(", ")}}`;
  }
  if (typeof value === "string") return stringText(value, style);
  return JSON.stringify(value ?? null);
}

/** A value behind `key:` or `-`, with the blank or the line break in front of it. */
export function blockText(value: unknown, indent: number, spread = false): string {
  const style = { flow: false, json: false };
  if (value instanceof Typed || typeof value === "string") {
    const text = value instanceof Typed ? value.text : value;
    if (/\n./.test(text) || text.endsWith("\n")) return ` ${literalText(text, indent)}`;
    return ` ${value instanceof Typed ? scalarText(text, style) : stringText(text, style)}`;
  }
  if (typeof value !== "object" || value === null) return ` ${JSON.stringify(value ?? null)}`;
  const isEmpty = (Array.isArray(value) ? value : Object.keys(value)).length === 0;
  if (isEmpty) return ` ${flowText(value, false)}`;
  const flow = flowText(value, false);
  if (!spread && isShallow(value) && indent + flow.length <= SHORT && !flow.includes("\\n"))
    return ` ${flow}`;
  const inner = " ".repeat(indent + 2);
  if (Array.isArray(value)) return value.map((one) => `\n${inner}-${itemText(one, indent + 2)}`).join("");
  return `\n${inner}${pairsText(value as Record<string, unknown>, indent + 2)}`;
}

/** An item behind its dash: maps of steps and the like begin on the same line. */
export function itemText(value: unknown, indent: number, spread = true): string {
  const isMap =
    typeof value === "object" && value !== null && !(value instanceof Typed) && !Array.isArray(value);
  if (!isMap || Object.keys(value).length === 0) return blockText(value, indent);
  if (!spread) {
    const flow = flowText(value, false);
    if (indent + flow.length <= SHORT) return ` ${flow}`;
  }
  return ` ${pairsText(value as Record<string, unknown>, indent + 2)}`;
}

function pairsText(value: Record<string, unknown>, indent: number): string {
  return Object.entries(value)
    .map(([key, one]) => `${keyOf(key, { flow: false, json: false })}:${blockText(one, indent)}`)
    .join(`\n${" ".repeat(indent)}`);
}

export function keyOf(key: string, style: Style): string {
  if (style.json) return JSON.stringify(key);
  const probe = parseDocument(style.flow ? `{${key}: 1}` : `${key}: 1`, { logLevel: "silent" });
  const isAsTyped =
    probe.errors.length === 0 && Object.keys((probe.toJS() as object | null) ?? {})[0] === key;
  return isAsTyped && key !== "" ? key : JSON.stringify(key);
}

/** A text that has to stay a text, even if it looks like a number. */
function stringText(text: string, style: Style): string {
  if (style.json) return JSON.stringify(text);
  if (isPlain(text, style.flow) && typeof parseDocument(text).toJS() === "string") return text;
  const quoted = stringify(text, { ...OUT, defaultStringType: "QUOTE_DOUBLE" }).trimEnd();
  return !/['\n\t\\]/.test(text) && text.includes('"') ? `'${text}'` : quoted;
}

function isShallow(value: object): boolean {
  return Object.values(value).every((one) => typeof one !== "object" || one === null || one instanceof Typed);
}
