import {
  type Document,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { blockText, flowText, itemText, keyOf, OUT, plainValue, scalarText, Typed } from "./scalar.ts";
import { samePath, type Path } from "./schema.ts";
import { keyText, nodeAt, pairAt, type Tree, treeOf } from "./tree.ts";

/** A change to a plan, as a form makes it. */
export type Edit =
  /** A value for a path, whether or not there is one; maps on the way are made. A source keeps its comments. */
  | { kind: "set"; path: Path; value: unknown; order?: readonly string[]; source?: string }
  /** Without the value at a path, and without the maps and lists that would be empty then. */
  | { kind: "remove"; path: Path }
  /** A new item of the list at a path, which is made if there is none. */
  | { kind: "insert"; path: Path; index: number; value: unknown }
  /** An item of the list at a path at another place. */
  | { kind: "move"; path: Path; from: number; to: number }
  /** Another key for a pair. */
  | { kind: "rename"; path: Path; key: string };

/** A part of a text and its replacement. */
export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** An edit that cannot be carried out, since the text has no such place. */
export class EditError extends Error {
  override name = "EditError";
}

/**
 * The changes to a plan's text that carry out an edit. They touch nothing outside of the edited part:
 * comments, quotes and blank lines stay as they are. The tree gives the places in the text; if the result
 * does not read as it should, the tree itself is edited and written anew, with its comments.
 */
export function changesFor(text: string, edit: Edit): Change[] {
  try {
    return found(text, edit);
  } catch (error) {
    if (error instanceof EditError) throw error;
    // Such as an alias of an anchor that is gone.
    throw new EditError(error instanceof Error ? error.message : String(error));
  }
}

function found(text: string, edit: Edit): Change[] {
  const tree = treeOf(text);
  if (tree.errors.length > 0) {
    const [error] = tree.errors;
    throw new EditError(`the text is not YAML: ${error?.message.split("\n")[0] ?? ""}`);
  }
  const wanted = expectedOf(text, edit);
  if (edit.kind === "set" && edit.source !== undefined) {
    const written = tidy(text, new Source(text, tree).write(edit.path, edit.source));
    if (written !== null && reads(applied(text, written), wanted)) return written;
  }
  const spliced = tidy(text, spliceFor(text, tree, edit));
  if (spliced !== null && reads(applied(text, spliced), wanted)) return spliced;
  const tidied = lineDiff(text, wanted.toString(OUT));
  if (!reads(applied(text, tidied), wanted))
    throw new EditError("this place cannot be edited here; edit the text");
  return tidied;
}

/** A text with changes made to it. */
export function applied(text: string, changes: readonly Change[]): string {
  const sorted = [...changes].sort((one, other) => one.from - other.from || one.to - other.to);
  let result = "";
  let at = 0;
  for (const { from, to, insert } of sorted) {
    result += text.slice(at, from) + insert;
    at = to;
  }
  return result + text.slice(at);
}

/** The difference of two texts in whole lines: everything from the first to the last line that differs. */
export function lineDiff(before: string, after: string): Change[] {
  if (before === after) return [];
  let from = 0;
  while (from < before.length && from < after.length && before.charAt(from) === after.charAt(from)) from += 1;
  from = before.lastIndexOf("\n", from - 1) + 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - from;
  while (tail < most && before.charAt(before.length - 1 - tail) === after.charAt(after.length - 1 - tail))
    tail += 1;
  const end = before.length - tail;
  // Up to the end of a line, which both have in common.
  const line = end === 0 || before.charAt(end - 1) === "\n" ? end : before.indexOf("\n", end) + 1;
  const to = line === 0 ? before.length : line;
  return [{ from, to, insert: after.slice(from, after.length - (before.length - to)) }];
}

/** The smallest changes with the same result, without common text at their start and end. */
function tidy(text: string, changes: Change[] | null): Change[] | null {
  return (
    changes
      ?.map(({ from, to, insert }) => {
        let start = 0;
        const most = Math.min(to - from, insert.length);
        while (start < most && text.charAt(from + start) === insert.charAt(start)) start += 1;
        let end = 0;
        while (end < most - start && text.charAt(to - 1 - end) === insert.charAt(insert.length - 1 - end))
          end += 1;
        return { from: from + start, to: to - end, insert: insert.slice(start, insert.length - end) };
      })
      .filter(({ from, to, insert }) => from !== to || insert !== "") ?? null
  );
}

const isJsonText = (text: string) =>
  /^\s*[{[]/.test(text) && parseDocument(text).contents !== null && looksJson(text);

function looksJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function reads(text: string, wanted: Document): boolean {
  const tree = treeOf(text);
  // A file without anything in it is a map without keys.
  const plain = (tree: Document) => JSON.stringify(tree.toJS() ?? {});
  return tree.errors.length === 0 && plain(tree) === plain(wanted);
}

/** The tree as it is after an edit. */
function expectedOf(text: string, edit: Edit): Document {
  const tree = treeOf(text);
  const json = isJsonText(text);
  const { path } = edit;
  switch (edit.kind) {
    case "set": {
      const node = nodeAt(tree, path);
      // A text in quotes stays a text, also if it looks like a number.
      const isQuoted = isScalar(node) && (node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE");
      const keeps = edit.value instanceof Typed && isQuoted && !json;
      setIn(tree, path, keeps ? (edit.value as Typed).text : plainValue(edit.value, json), edit.order);
      return tree;
    }
    case "remove": {
      const whole = outermost(tree, path);
      if (whole.length === 0) tree.contents = null;
      else if (!tree.deleteIn(whole)) throw new EditError("there is nothing to remove");
      return tree;
    }
    case "insert": {
      const node = nodeAt(tree, path);
      const value = tree.createNode(plainValue(edit.value, json));
      if (isSeq(node)) node.items.splice(edit.index, 0, value);
      else if (node === null || isNothing(node)) setIn(tree, path, [plainValue(edit.value, json)]);
      else {
        const items = edit.index === 0 ? [value, node] : [node, value];
        const list = tree.createNode([]);
        list.items = items as never[];
        tree.setIn(path, list);
      }
      return tree;
    }
    case "move": {
      const node = nodeAt(tree, path);
      if (!isSeq(node) || node.items[edit.from] === undefined) throw new EditError("there is no such item");
      node.items.splice(edit.to, 0, ...node.items.splice(edit.from, 1));
      return tree;
    }
    case "rename": {
      const pair = pairAt(tree, path);
      if (pair === null) throw new EditError("there is no such key");
      pair.key = tree.createNode(edit.key);
      return tree;
    }
  }
}

/** Sets a value in a tree, with its key where the order of keys has it. */
function setIn(tree: Document, path: Path, value: unknown, order?: readonly string[]): void {
  const depth = deepest(tree as Tree, path);
  if (depth === path.length) {
    if (path.length === 0) tree.contents = tree.createNode(value) as never;
    else tree.setIn(path, tree.createNode(value));
    return;
  }
  const holder = nodeAt(tree as Tree, path.slice(0, depth));
  const key = path[depth];
  const whole = nested(path.slice(depth + 1), value);
  if (holder === null || isNothing(holder)) {
    const made = nested(path.slice(depth), value);
    if (depth === 0) tree.contents = tree.createNode(made) as never;
    else tree.setIn(path.slice(0, depth), tree.createNode(made));
  } else if (isMap(holder)) {
    const pair = tree.createPair(key, whole);
    holder.items.splice(rankOf(holder, String(key), order), 0, pair as never);
  } else if (isSeq(holder) && typeof key === "number") holder.items.splice(key, 0, tree.createNode(whole));
  else throw new EditError(`there is a value in the place of ${String(key)}`);
}

/** Number of keys of a path that there are. A key without a value is there. */
function deepest(tree: Tree, path: Path): number {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const head = path.slice(0, depth);
    const node = nodeAt(tree, head);
    if (pairAt(tree, head) === null && node === null) continue;
    return depth;
  }
  return 0;
}

/** A value below the keys that are missing. */
function nested(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>(
    (inner, key) => (typeof key === "number" ? [inner] : { [key]: inner }),
    value,
  );
}

function isNothing(node: Node): boolean {
  return isScalar(node) && node.value === null;
}

/** The place of a key among those of a map: behind the last one that comes before it in the order. */
function rankOf(map: YAMLMap, key: string, order?: readonly string[]): number {
  const own = order?.indexOf(key) ?? -1;
  if (order === undefined || own === -1) return map.items.length;
  const before = map.items.findLastIndex((pair) => {
    const rank = order.indexOf(keyText(pair as Pair));
    return rank !== -1 && rank < own;
  });
  if (before !== -1) return before + 1;
  const after = map.items.findIndex((pair) => order.indexOf(keyText(pair as Pair)) > own);
  return after === -1 ? map.items.length : after;
}

/** The outermost place that would be empty without the value at a path: it is removed, too. */
function outermost(tree: Tree, path: Path): Path {
  let place = path;
  while (place.length > 1) {
    const holder = nodeAt(tree, place.slice(0, -1));
    const isOnly = (isMap(holder) || isSeq(holder)) && holder.items.length === 1;
    // An item stays an item, also without anything in it: others may count on its place.
    if (!isOnly || (isMap(holder) && typeof place[place.length - 2] === "number")) break;
    place = place.slice(0, -1);
  }
  return place;
}

/** Changes at the places themselves; null where that is not possible. */
function spliceFor(text: string, tree: Tree, edit: Edit): Change[] | null {
  const source = new Source(text, tree);
  switch (edit.kind) {
    case "set":
      return source.set(edit.path, edit.value, edit.order);
    case "remove":
      return source.remove(outermost(tree, edit.path));
    case "insert":
      return source.insert(edit.path, edit.index, edit.value);
    case "move":
      return source.move(edit.path, edit.from, edit.to);
    case "rename":
      return source.rename(edit.path, edit.key);
  }
}

class Source {
  private readonly json: boolean;

  constructor(
    private readonly text: string,
    private readonly tree: Tree,
  ) {
    this.json = isJsonText(text);
  }

  set(path: Path, value: unknown, order?: readonly string[]): Change[] | null {
    const depth = deepest(this.tree, path);
    if (depth < path.length) return this.add(path, depth, value, order);
    const node = nodeAt(this.tree, path);
    if (path.length === 0 || node?.range == null) return null;
    const flow = this.isInFlow(path);
    const [from, end] = node.range;
    if (isNothing(node) && from === end) return this.fill(path, value);
    if (isScalar(node) && node.type !== "BLOCK_LITERAL" && node.type !== "BLOCK_FOLDED" && isSimple(value)) {
      const quote =
        node.type === "QUOTE_DOUBLE" ? "double" : node.type === "QUOTE_SINGLE" ? "single" : "plain";
      const isString = typeof node.value === "string";
      const insert =
        value instanceof Typed && (quote === "plain" || isString)
          ? scalarText(value.text, { flow, json: this.json }, quote)
          : flow || this.json
            ? flowText(value, this.json)
            : blockText(value, 0).trimStart();
      return [{ from, to: end, insert }];
    }
    if (flow || this.json) return [{ from, to: end, insert: flowText(value, this.json) }];
    const lines = value instanceof Typed ? value.text : value;
    // Behind a text of several lines there is no room for the comment that is there.
    if (typeof lines === "string" && isScalar(node) && /^[ \t]*#/.test(this.text.slice(end))) {
      return [{ from, to: end, insert: JSON.stringify(lines) }];
    }
    return this.replaceBlock(path, node, value);
  }

  /** Another source for a value, with the indentation of the one that is there. */
  write(path: Path, source: string): Change[] | null {
    const node = nodeAt(this.tree, path);
    if (node?.range == null) return null;
    const [from] = node.range;
    const inner = `\n${" ".repeat(this.columnAt(from))}`;
    const insert = source.trimEnd().split("\n").join(inner).replace(/ +$/gm, "");
    return [{ from, to: this.contentEnd(node), insert }];
  }

  /** Another value for one that has lines of its own. */
  private replaceBlock(path: Path, node: Node, value: unknown): Change[] | null {
    const to = this.contentEnd(node);
    const column = this.columnOf(path);
    if (column === null || node.range == null) return null;
    const pair = pairAt(this.tree, path);
    if (pair === null || !isScalar(pair.key) || !pair.key.range) {
      // An item of a list: behind its dash.
      const start = node.range[0];
      const dash = this.text.lastIndexOf("-", start - 1);
      if (dash === -1 || this.text.slice(dash + 1, start).trim() !== "") return null;
      return [{ from: dash + 1, to, insert: itemText(value, this.columnAt(dash)) }];
    }
    const colon = this.text.indexOf(":", pair.key.range[1]);
    if (colon === -1) return null;
    return [{ from: colon + 1, to, insert: blockText(value, column) }];
  }

  /** A value for a key that has none. */
  private fill(path: Path, value: unknown): Change[] | null {
    const pair = pairAt(this.tree, path);
    if (pair === null || !isScalar(pair.key) || !pair.key.range) return null;
    const colon = this.text.indexOf(":", pair.key.range[1]);
    const column = this.columnOf(path);
    if (colon === -1 || column === null) return null;
    const insert = this.isInFlow(path) ? ` ${flowText(value, this.json)}` : blockText(value, column);
    const blank = /^ */.exec(this.text.slice(colon + 1))?.[0].length ?? 0;
    const isEnd = /^(\n|$)/.test(this.text.slice(colon + 1 + blank));
    return [{ from: colon + 1, to: colon + 1 + (isEnd ? blank : 0), insert }];
  }

  /** A pair, or an item, that is not there yet. */
  private add(path: Path, depth: number, value: unknown, order?: readonly string[]): Change[] | null {
    const place = path.slice(0, depth);
    const holder = nodeAt(this.tree, place);
    const key = path[depth];
    const whole = nested(path.slice(depth + 1), value);
    if (holder === null) {
      if (depth > 0) return this.fill(place, nested(path.slice(depth), value));
      const start = this.text === "" || this.text.endsWith("\n") ? "" : "\n";
      const insert = `${start}${keyOf(String(key), { flow: false, json: false })}:${blockText(whole, 0)}\n`;
      return [{ from: this.text.length, to: this.text.length, insert }];
    }
    if (isNothing(holder)) return this.fill(place, nested(path.slice(depth), value));
    if (isSeq(holder) && typeof key === "number") return this.insert(place, key, whole);
    if (!isMap(holder) || holder.range == null) return null;
    const rank = rankOf(holder, String(key), order);
    if (holder.flow === true || this.json) {
      const pair = `${keyOf(String(key), { flow: true, json: this.json })}: ${flowText(whole, this.json)}`;
      return this.addInFlow(holder, rank, pair);
    }
    const column = this.columnAt(startOf(holder.items[0]) ?? holder.range[0]);
    const name = keyOf(String(key), { flow: false, json: false });
    const pair = `${name}:${blockText(whole, column)}`;
    const before = holder.items[rank - 1];
    if (before === undefined) {
      const start = startOf(holder.items[0]);
      return start === null ? null : [{ from: start, to: start, insert: `${pair}\n${" ".repeat(column)}` }];
    }
    const end = this.lineEnd(this.endOf(before as Pair) ?? holder.range[1]);
    return [{ from: end, to: end, insert: `\n${" ".repeat(column)}${pair}` }];
  }

  private addInFlow(holder: YAMLMap | YAMLSeq, rank: number, insert: string): Change[] | null {
    if (holder.range == null) return null;
    const [start] = holder.range;
    const after = holder.items[rank];
    const first = startOf(holder.items[0]);
    // Where each has a line of its own, the new one has, too.
    const isSpread = first !== null && this.text.slice(start, first).includes("\n");
    const gap = isSpread ? `\n${" ".repeat(this.columnAt(first))}` : " ";
    if (after !== undefined) {
      const at = startOf(after);
      return at === null ? null : [{ from: at, to: at, insert: `${insert},${gap}` }];
    }
    const last = holder.items[rank - 1];
    if (last === undefined) return [{ from: start + 1, to: start + 1, insert }];
    const end = this.endOf(last as Pair);
    return end === null ? null : [{ from: end, to: end, insert: `,${gap}${insert}` }];
  }

  remove(path: Path): Change[] | null {
    if (path.length === 0) return null;
    const holder = nodeAt(this.tree, path.slice(0, -1));
    if (!isMap(holder) && !isSeq(holder)) return null;
    const key = path[path.length - 1];
    const index = isMap(holder)
      ? holder.items.findIndex((pair) => keyText(pair as Pair) === String(key))
      : Number(key);
    const item = holder.items[index];
    if (item === undefined) return null;
    if (holder.flow === true || this.json) return this.removeInFlow(holder, index);
    const start = isSeq(holder) ? this.dashOf(item) : startOf(item);
    const end = this.endOf(item as Pair);
    if (start === null || end === null) return null;
    if (holder.items.length === 1) {
      // An item that stays, with nothing in it.
      const stays = path.length > 1 ? this.text.slice(start, end) : "";
      return stays === "" ? this.removeLines(path, start, end) : [{ from: start, to: end, insert: "{}" }];
    }
    const isFirst = this.text.slice(this.lineStart(start), start).trim() !== "";
    if (!isFirst) return this.removeLines(path, start, end);
    // Behind the dash of the item that it is in: the next key goes there.
    const next = startOf(holder.items[index + 1]);
    if (next === null) return null;
    const between = this.text.slice(this.lineEnd(end), next);
    return between.trim() === "" ? [{ from: start, to: next, insert: "" }] : null;
  }

  private removeLines(path: Path, start: number, end: number): Change[] {
    const isTop = path.length === 1;
    const from = this.commentsAbove(this.lineStart(start), this.columnAt(start), isTop);
    const to = Math.min(this.text.length, this.lineEnd(end) + 1);
    // Without a last line the one before is the last, and has an end if this one had one.
    if (to === this.text.length && !this.text.endsWith("\n") && from > 0)
      return [{ from: from - 1, to, insert: "" }];
    return [{ from, to, insert: "" }];
  }

  private removeInFlow(holder: YAMLMap | YAMLSeq, index: number): Change[] | null {
    const start = startOf(holder.items[index]);
    const end = this.endOf(holder.items[index] as Pair);
    if (start === null || end === null) return null;
    const next = startOf(holder.items[index + 1]);
    if (next !== null) return [{ from: start, to: next, insert: "" }];
    const before = holder.items[index - 1];
    const from = before === undefined ? start : this.endOf(before as Pair);
    return from === null ? null : [{ from, to: end, insert: "" }];
  }

  insert(path: Path, index: number, value: unknown): Change[] | null {
    const node = nodeAt(this.tree, path);
    if (node === null || isNothing(node)) return this.set(path, [value]);
    if (!isSeq(node) || node.range == null) return null;
    if (node.flow === true || this.json) return this.addInFlow(node, index, flowText(value, this.json));
    const first = this.dashOf(node.items[0]);
    if (first === null) return null;
    const column = this.columnAt(first);
    // Items that were written within brackets have others like them beside them.
    const isSpread = !node.items.every((item) => (isMap(item) ? item.flow === true : true));
    const line = `${" ".repeat(column)}-${itemText(value, column, isSpread || !isThin(value))}`;
    if (index > 0) {
      const before = node.items[Math.min(index, node.items.length) - 1];
      const end = this.endOf(before as Pair);
      if (end === null) return null;
      const at = this.lineEnd(end);
      return [{ from: at, to: at, insert: `\n${line}` }];
    }
    const start = this.lineStart(first);
    if (this.text.slice(start, first).trim() !== "") return null;
    const at = this.commentsAbove(start, column, false);
    return [{ from: at, to: at, insert: `${line}\n` }];
  }

  move(path: Path, from: number, to: number): Change[] | null {
    const node = nodeAt(this.tree, path);
    if (!isSeq(node) || node.range == null || from === to) return null;
    if (node.flow === true || this.json) return this.moveInFlow(node, from, to);
    const blocks: { from: number; to: number }[] = [];
    for (const item of node.items) {
      const dash = this.dashOf(item);
      const end = this.endOf(item as Pair);
      if (dash === null || end === null) return null;
      const line = this.lineStart(dash);
      if (this.text.slice(line, dash).trim() !== "") return null;
      const previous = blocks[blocks.length - 1];
      const start = previous?.to ?? this.commentsAbove(line, this.columnAt(dash), false);
      blocks.push({ from: start, to: Math.min(this.text.length, this.lineEnd(end) + 1) });
    }
    const block = blocks[from];
    const target = blocks[to];
    if (block === undefined || target === undefined) return null;
    const lines = this.text.slice(block.from, block.to);
    const at = to > from ? target.to : target.from;
    const last = blocks[blocks.length - 1];
    if (last !== undefined && !this.text.slice(last.from, last.to).endsWith("\n")) {
      // The last line of the file has no end: the one that comes to be last has none either.
      const low = Math.min(from, to);
      const high = Math.max(from, to);
      const part = blocks
        .slice(low, high + 1)
        .map(({ from, to }) => this.text.slice(from, to).replace(/\n$/, ""));
      part.splice(to - low, 0, ...part.splice(from - low, 1));
      const end = blocks[high]?.to ?? last.to;
      const tail = this.text.charAt(end - 1) === "\n" ? "\n" : "";
      return [{ from: blocks[low]?.from ?? 0, to: end, insert: part.join("\n") + tail }];
    }
    return [
      { from: block.from, to: block.to, insert: "" },
      { from: at, to: at, insert: lines },
    ];
  }

  private moveInFlow(node: YAMLSeq, from: number, to: number): Change[] | null {
    const ranges = node.items.map((item) => ({ from: startOf(item), to: this.endOf(item as Pair) }));
    const texts = ranges.map(({ from, to }) => this.text.slice(from ?? 0, to ?? 0));
    texts.splice(to, 0, ...texts.splice(from, 1));
    const changes = ranges.map(({ from, to }, index) => ({
      from: from ?? 0,
      to: to ?? 0,
      insert: texts[index] ?? "",
    }));
    return changes.filter(({ from, to, insert }) => this.text.slice(from, to) !== insert);
  }

  rename(path: Path, key: string): Change[] | null {
    const pair = pairAt(this.tree, path);
    if (pair === null || !isScalar(pair.key) || !pair.key.range) return null;
    const [from, to] = pair.key.range;
    return [{ from, to, insert: keyOf(key, { flow: this.isInFlow(path), json: this.json }) }];
  }

  /** True if a place is within brackets. */
  private isInFlow(path: Path): boolean {
    for (let depth = 0; depth < path.length; depth += 1) {
      const node = nodeAt(this.tree, path.slice(0, depth));
      if ((isMap(node) || isSeq(node)) && node.flow === true) return true;
    }
    return this.json;
  }

  /** The column of the key at a path. */
  private columnOf(path: Path): number | null {
    const pair = pairAt(this.tree, path);
    if (pair !== null && isScalar(pair.key) && pair.key.range) return this.columnAt(pair.key.range[0]);
    const node = nodeAt(this.tree, path);
    return node?.range == null ? null : this.columnAt(node.range[0]);
  }

  private columnAt(offset: number): number {
    return offset - this.lineStart(offset);
  }

  private lineStart(offset: number): number {
    return this.text.lastIndexOf("\n", offset - 1) + 1;
  }

  /** The end of the line that an offset is on; an offset at its start belongs to the line before. */
  private lineEnd(offset: number): number {
    const end = this.text.indexOf("\n", offset);
    return end === -1 ? this.text.length : end;
  }

  /** The end of a pair or an item, without the comment behind it. */
  private endOf(item: unknown): number | null {
    if (isPair(item)) {
      const { key, value } = item as Pair;
      if (isNode(value) && value.range != null && !(isScalar(value) && value.range[0] === value.range[1])) {
        return this.contentEnd(value);
      }
      if (!isScalar(key) || !key.range) return null;
      const colon = this.text.indexOf(":", key.range[1]);
      return colon === -1 ? key.range[1] : colon + 1;
    }
    return isNode(item) ? this.contentEnd(item) : null;
  }

  private contentEnd(node: Node): number {
    if ((isMap(node) || isSeq(node)) && node.flow !== true && node.items.length > 0) {
      const last = this.endOf(node.items[node.items.length - 1]);
      if (last !== null) return last;
    }
    let end = node.range?.[1] ?? 0;
    // A text of several lines goes to the start of the line behind it.
    while (end > 0 && this.text.charAt(end - 1) === "\n") end -= 1;
    return end;
  }

  /** The dash in front of an item. */
  private dashOf(item: unknown): number | null {
    const start = startOf(item);
    if (start === null) return null;
    const before = this.text.slice(0, start);
    const dash = /-[ \t]*(?:#[^\n]*)?\s*$/.exec(before.slice(Math.max(0, before.length - 400)));
    return dash === null ? null : Math.max(0, before.length - 400) + dash.index;
  }

  /** The start of the comments that stand directly above a line, at the same column. */
  private commentsAbove(line: number, column: number, keepHead: boolean): number {
    let start = line;
    while (start > 0) {
      const before = this.lineStart(start - 1);
      const content = this.text.slice(before, start - 1);
      const isComment =
        content.trimStart().startsWith("#") && content.length - content.trimStart().length === column;
      if (!isComment) return start;
      start = before;
    }
    // A comment at the start of the file is about all of it.
    return keepHead ? line : start;
  }
}

function startOf(item: unknown): number | null {
  if (isPair(item)) return isScalar(item.key) && item.key.range ? item.key.range[0] : null;
  return isNode(item) ? (item.range?.[0] ?? null) : null;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "range" in value;
}

function isSimple(value: unknown): boolean {
  if (value instanceof Typed) return !value.text.includes("\n");
  if (typeof value === "string") return !value.includes("\n");
  return typeof value !== "object" || value === null;
}

/** True if a map fits within brackets: it has nothing but texts. */
function isThin(value: unknown): boolean {
  if (typeof value !== "object" || value === null || value instanceof Typed) return true;
  return Object.values(value).every((one) => typeof one !== "object" || one === null || one instanceof Typed);
}

/** The path that a place has after an edit; null if it is gone. */
export function pathAfter(path: Path, edit: Edit): Path | null {
  const depth = edit.path.length;
  if (edit.kind === "remove") {
    if (edit.path.every((key, index) => path[index] === key)) return null;
    const index = edit.path[depth - 1];
    const own = path[depth - 1];
    const isBeside = samePath(path.slice(0, depth - 1), edit.path.slice(0, -1));
    if (!isBeside || typeof index !== "number" || typeof own !== "number" || own < index) return path;
    return [...path.slice(0, depth - 1), own - 1, ...path.slice(depth)];
  }
  if (!edit.path.every((key, index) => path[index] === key)) return path;
  if (edit.kind === "rename") return [...edit.path.slice(0, -1), edit.key, ...path.slice(depth)];
  const own = path[depth];
  if (typeof own !== "number") return path;
  let to = own;
  if (edit.kind === "insert" && own >= edit.index) to = own + 1;
  if (edit.kind === "move") {
    if (own === edit.from) to = edit.to;
    else if (edit.from < own && own <= edit.to) to = own - 1;
    else if (edit.to <= own && own < edit.from) to = own + 1;
  }
  return [...path.slice(0, depth), to, ...path.slice(depth + 1)];
}
