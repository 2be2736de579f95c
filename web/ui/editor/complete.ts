import { goesWith, shortFor, stepKind, isRequest, valuesOf } from "./knowledge.ts";
import { FUNCTIONS, type Names, namesIn, referredAt } from "./names.ts";
import { type Place, placeAt } from "./position.ts";
import { type Key, type Path, type SchemaTree, type Shape } from "./schema.ts";
import { treeOf } from "./tree.ts";

/** Something that can be put in the place of the word at the cursor. */
export interface Option {
  label: string;
  /** The text that is put there. */
  insert: string;
  /** Its purpose, in words. */
  info: string;
  kind: "key" | "value" | "name" | "function";
  /** True if something is to be chosen next, so that completion goes on. */
  goesOn: boolean;
}

export interface Completions {
  from: number;
  to: number;
  options: Option[];
}

/** Everything that can be typed at an offset of a plan. */
export function completionsAt(text: string, offset: number, schema: SchemaTree): Completions | null {
  const slot = slotAt(text, offset);
  if (slot !== null) return inSlot(slot, offset, text);
  const place = placeAt(text, offset);
  if (place === null) return null;
  const options = place.at === "value" ? [] : keysFor(place, schema);
  if (place.at !== "key")
    options.push(...valuesFor(place.path, schema, () => namesIn(treeOf(text), text), place));
  return options.length === 0 ? null : { from: place.from, to: place.to, options };
}

function keysFor(place: Place, schema: SchemaTree): Option[] {
  const there = new Set(place.siblings);
  const keys = schema.keysAt(place.path).filter(({ name, def }) => goesWith(def, name, there));
  return keys.map((key) => {
    const follows = place.hasColon ? { insert: "", goesOn: false } : afterKey(key, place);
    return {
      label: key.name,
      info: key.description,
      kind: "key",
      goesOn: follows.goesOn,
      insert: key.name + follows.insert,
    };
  });
}

/** The text behind a key: its colon, and the start of a value that can only be a map or a list. */
function afterKey(key: Key, place: Place): { insert: string; goesOn: boolean } {
  const kinds = new Set(key.shapes.map(({ kind }) => kind));
  const known = valuesOf(key.def, key.name, key.shapes).length > 0 || kinds.has("boolean");
  if (place.inFlow) {
    if (kinds.size === 1 && kinds.has("map")) return { insert: ": {", goesOn: true };
    return { insert: ": ", goesOn: known };
  }
  const inner = " ".repeat(place.indent + 2);
  // A step, a scenario or a phase alone may stand without a list, but that form is rare.
  if (kinds.has("list") && kinds.has("map")) return { insert: `:\n${inner}- `, goesOn: true };
  if (kinds.size === 1 && kinds.has("map")) return { insert: `:\n${inner}`, goesOn: true };
  return { insert: ": ", goesOn: known };
}

/** The values that are known for a path. */
function valuesFor(path: Path, schema: SchemaTree, names: () => Names, place: Place): Option[] {
  const shapes = schema.at(path);
  const [def, key] = holderOf(path, schema);
  const booleans = shapes.some(({ kind }) => kind === "boolean") ? ["true", "false"] : [];
  const values = [...valuesOf(def, key, shapes), ...booleans];
  const info = schema.describe(path);
  const options = values.map((value): Option => ({
    label: value,
    insert: value,
    info,
    kind: "value",
    goesOn: false,
  }));
  if (place.at === "value") {
    for (const name of referredAt(path, names())) {
      options.push({ label: name, insert: name, info, kind: "name", goesOn: false });
    }
    if (place.word === "" && !place.inFlow) options.push(...mapsFor(path, shapes));
  }
  return options;
}

/** A map in the place of a short text: `think: {uniform: …}`. */
function mapsFor(path: Path, shapes: Shape[]): Option[] {
  const map = shapes.find(({ kind }) => kind === "map");
  if (map === undefined || !shapes.some(({ kind }) => kind === "scalar")) return [];
  const short = shortFor(map.def, path);
  return Object.entries(map.schema.properties ?? {})
    .filter(([name]) => name !== short)
    .map(([name, { description = "" }]) => ({
      label: `{${name}: …}`,
      insert: `{${name}: `,
      info: description,
      kind: "value",
      goesOn: false,
    }));
}

/** The definition and the key that a path ends with; indices of lists are passed over. */
export function holderOf(path: Path, schema: SchemaTree): [string | null, string | undefined] {
  const at = path.findLastIndex((key) => typeof key === "string");
  if (at === -1) return [null, undefined];
  const key = String(path[at]);
  const holder = schema
    .at(path.slice(0, at))
    .find(({ kind, schema }) => kind === "map" && schema.properties?.[key]);
  return [holder?.def ?? null, key];
}

/** The words for the value at a path, and for the kind of step that it is in. */
export function hoverText(
  path: Path,
  schema: SchemaTree,
): { title: string; text: string; values: string[] } | null {
  const key = path[path.length - 1];
  if (key === undefined) return null;
  const text = schema.describe(path);
  if (text === "") return null;
  const [def, name] = holderOf(path, schema);
  return { title: String(key), text, values: valuesOf(def, name, schema.at(path)) };
}

interface Slot {
  from: number;
  word: string;
}

/** The slot of a template, `${…`, that is being typed at an offset. */
function slotAt(text: string, offset: number): Slot | null {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  const open = /\$\{([\w]*)$/.exec(line);
  if (open === null || line.charAt(open.index - 1) === "$") return null;
  const word = open[1] ?? "";
  return { from: offset - word.length, word };
}

function inSlot({ from }: Slot, offset: number, text: string): Completions {
  const names = namesIn(treeOf(text), text);
  const rest = /^\w*/.exec(text.slice(offset))?.[0] ?? "";
  const end = text.charAt(offset + rest.length) === "}" ? "" : "}";
  const to = offset + rest.length;
  const options: Option[] = names.variables.map((name) => ({
    label: name,
    insert: name + end,
    info: "variable",
    kind: "name",
    goesOn: false,
  }));
  const more = [
    ...FUNCTIONS,
    ...names.tokens.map((name) => ({ name: `token(${name})`, about: "a token of this plan" })),
    ...names.secrets.map((name) => ({ name: `secret(${name})`, about: "a secret of this plan" })),
  ];
  for (const { name, about } of more) {
    options.push({ label: name, insert: name + end, info: about, kind: "function", goesOn: false });
  }
  return { from, to, options };
}

/** True if the keys of a map say that it is a request. */
export function isRequestStep(keys: Iterable<string>): boolean {
  return isRequest(stepKind(keys));
}
