import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
} from "yaml";
import type { Path } from "./schema.ts";

/** A plan's text as a tree, also of a text that is wrong. */
export type Tree = Document.Parsed;

export function treeOf(text: string): Tree {
  // Old versions of YAML would read `on` and `0777` otherwise; plans are YAML 1.2.
  return parseDocument(text, { version: "1.2", uniqueKeys: false, logLevel: "error" });
}

/** The plain value of a tree, or undefined if it cannot be had. */
export function valueOf(tree: Tree): unknown {
  try {
    return tree.toJS();
  } catch {
    return undefined;
  }
}

/** The node at a path, if there is one. */
export function nodeAt(tree: Tree, path: Path): Node | null {
  let node: unknown = tree.contents;
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(tree);
    if (isMap(node)) node = pairIn(node.items, key)?.value;
    else if (isSeq(node) && typeof key === "number") node = node.items[key];
    else return null;
  }
  return isNode(node) ? node : null;
}

/** The pair of a map at a path. */
export function pairAt(tree: Tree, path: Path): Pair | null {
  const key = path[path.length - 1];
  const holder = nodeAt(tree, path.slice(0, -1));
  return isMap(holder) && key !== undefined ? pairIn(holder.items, key) : null;
}

export function pairIn(items: readonly unknown[], key: string | number): Pair | null {
  const found = items.find((pair) => isPair(pair) && keyText(pair) === String(key));
  return isPair(found) ? found : null;
}

/** The key of a pair as a text. */
export function keyText(pair: Pair): string {
  const { key } = pair;
  return isScalar(key) ? String(key.source ?? key.value) : String(key);
}

/** The text of a scalar as it was typed: `0000` and not 0. */
export function typed(node: unknown): string | null {
  if (!isScalar(node)) return null;
  const { value, source } = node;
  if (value === null) return source ?? "";
  return typeof value === "string" ? value : (source ?? String(value));
}

/** The text at a path as it was typed, or null if there is none. */
export function typedAt(tree: Tree, path: Path): string | null {
  return typed(nodeAt(tree, path));
}

/** The keys of the map at a path. */
export function keysIn(tree: Tree, path: Path): string[] {
  const node = nodeAt(tree, path);
  return isMap(node) ? node.items.map((pair) => keyText(pair as Pair)) : [];
}

/** The number of items of the list at a path; a single item in the place of a list counts as none. */
export function lengthOf(tree: Tree, path: Path): number {
  const node = nodeAt(tree, path);
  return isSeq(node) ? node.items.length : 0;
}

/** A part of the text: a key and its value, or an item. */
export interface Range {
  from: number;
  to: number;
}

/** The place of a key with its value, or of an item of a list. */
export function rangeOf(tree: Tree, path: Path): Range | null {
  const pair = pairAt(tree, path);
  const node = nodeAt(tree, path);
  const key = pair !== null && isScalar(pair.key) ? pair.key.range : null;
  const from = key?.[0] ?? node?.range?.[0];
  const to = node?.range?.[1] ?? key?.[1];
  return from === undefined || to === undefined ? null : { from, to: Math.max(from, to) };
}

/** The path to the key or the value at an offset, as deep as it is known. */
export function pathAt(tree: Tree, offset: number): { path: (string | number)[]; onKey: Range | null } {
  const path: (string | number)[] = [];
  let onKey: Range | null = null;
  let node: unknown = tree.contents;
  for (;;) {
    const step: Inner | null = inner(node, offset);
    if (step === null) return { path, onKey };
    path.push(step.key);
    onKey = step.onKey;
    node = step.node;
  }
}

interface Inner {
  key: string | number;
  node: unknown;
  onKey: Range | null;
}

/** The part of a collection that an offset is in: the last that begins before it. */
function inner(node: unknown, offset: number): Inner | null {
  if (isMap(node)) {
    let found: Inner | null = null;
    for (const pair of node.items) {
      const range = isScalar(pair.key) ? pair.key.range : null;
      if (!range || range[0] > offset) break;
      const onKey = offset <= range[1] ? { from: range[0], to: range[1] } : null;
      const end = isNode(pair.value) ? pair.value.range?.[2] : undefined;
      // An offset behind the end of a value within brackets does not belong to it.
      const isPast = node.flow === true && end !== undefined && offset > end;
      found = isPast ? null : { key: keyText(pair as Pair), node: pair.value, onKey };
    }
    return isPastFlow(node, offset) ? null : found;
  }
  if (!isSeq(node)) return null;
  let found: Inner | null = null;
  node.items.forEach((item, index) => {
    const start = isNode(item) ? item.range?.[0] : undefined;
    if (start === undefined || start - dash(node, index) > offset) return;
    found = { key: index, node: item, onKey: null };
  });
  return isPastFlow(node, offset) ? null : found;
}

/** Characters from the dash of an item to the item, about. */
function dash(node: { flow?: boolean }, _index: number): number {
  return node.flow === true ? 0 : 2;
}

function isPastFlow(
  node: { flow?: boolean; range?: [number, number, number] | null },
  offset: number,
): boolean {
  return node.flow === true && node.range != null && offset >= node.range[1];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "range" in value;
}
