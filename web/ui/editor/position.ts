import { FlowScan, unquoted } from "./flow.ts";
import { type Path } from "./schema.ts";

/** A place in a text that is being typed, and the kind of text there. */
export interface Place {
  /** `key`: a key of the map at `path`. `value`: the value at `path`. `item`: an item of either kind. */
  at: "key" | "value" | "item";
  path: Path;
  /** The word that is there, which a completion replaces. */
  from: number;
  to: number;
  word: string;
  /** Keys that the map has already, beside that word. */
  siblings: string[];
  /** True within `{…}` or `[…]`. */
  inFlow: boolean;
  /** The column of the keys of this map, for lines that are added. */
  indent: number;
  /** True if a colon follows the word. */
  hasColon: boolean;
}

interface Frame {
  indent: number;
  kind: "map" | "seq";
  key: string;
  index: number;
  keys: string[];
  /** True if the value of the current key has begun on its line. */
  inline: boolean;
}

/** A key and its colon at the start of a text: the key as it is written, and the rest. */
const KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s'"#[\]{},&*!|>%@`-][^]*?|-[^\s][^]*?)\s*:(?=\s|$)/;

/**
 * The place of an offset in a plan, by the lines above it. The text need not be whole: a key may lack its
 * colon, and a bracket its end. Null where nothing is completed: in a comment, or in a text of several lines.
 */
export function placeAt(text: string, offset: number): Place | null {
  const scan = new BlockScan();
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    const last = end === -1 || end >= offset;
    if (last) return scan.place(text, start, offset);
    scan.line(text.slice(start, end).replace(/\r$/, ""), start);
    start = end + 1;
  }
}

class BlockScan {
  private frames: Frame[] = [];
  /** The flow collection that is open at the end of the last line. */
  private flow: FlowScan | null = null;
  /** The indentation of the owner of a text of several lines. */
  private literal: number | null = null;

  /** Takes a whole line. */
  line(line: string, offset: number): void {
    const indent = indentOf(line);
    const content = line.slice(indent);
    if (this.flow !== null) {
      this.flow.feed(line, offset);
      if (this.flow.isDone) this.flow = null;
      return;
    }
    if (this.literal !== null) {
      if (content === "" || indent > this.literal) return;
      this.literal = null;
    }
    if (content === "" || content.startsWith("#")) return;
    if (/^(---|\.\.\.)(\s|$)/.test(line)) {
      this.frames = [];
      return;
    }
    this.content(content, indent, offset + indent);
  }

  /** The place at the end of the last line that counts, which goes from `start` to `offset`. */
  place(text: string, start: number, offset: number): Place | null {
    const line = text.slice(start, offset);
    const lineEnd = text.indexOf("\n", offset);
    const rest = text.slice(offset, lineEnd === -1 ? text.length : lineEnd);
    if (this.flow !== null) {
      this.flow.feed(line, start);
      return this.flow.isDone ? null : this.flow.place(text, offset, this.path());
    }
    const indent = indentOf(line);
    if (this.literal !== null) {
      if (indent > this.literal || (line.trim() === "" && rest.trim() !== "" && line.length > this.literal))
        return null;
      // On an empty line the text of several lines may go on: another value begins only to the left of it.
      if (line.trim() === "" && line.length > this.literal) return null;
      this.literal = null;
    }
    if (isComment(line)) return null;
    return this.typed(line.slice(indent), indent, text, start + indent, offset, rest);
  }

  /** The path of the innermost frame. */
  private path(frames: Frame[] = this.frames): (string | number)[] {
    return frames.map((frame) => (frame.kind === "map" ? frame.key : frame.index));
  }

  private typed(
    content: string,
    column: number,
    text: string,
    start: number,
    offset: number,
    rest: string,
  ): Place | null {
    const dash = /^-(\s+|$)/.exec(content);
    if (dash !== null && !(content === "-" && /^\S/.test(rest))) {
      if (content === "-") return null;
      this.item(column);
      const width = dash[0].length;
      const inner = content.slice(width);
      return this.typed(inner, column + width, text, start + width, offset, rest);
    }
    const key = KEY.exec(content);
    if (key === null) {
      if (/^[[{]/.test(content)) {
        this.settle(column);
        return this.flowPlace(content, text, start, offset);
      }
      if (/^["'|>&*!]/.test(content)) return null;
      return this.word(content, column, text, start, offset, rest);
    }
    const after = content.slice(key[0].length);
    // Directly behind the colon nothing can stand.
    if (after === "") return null;
    this.key(unquoted(key[1] ?? ""), column, true);
    const blank = /^\s*/.exec(after)?.[0].length ?? 0;
    const value = after.slice(blank);
    const from = start + key[0].length + blank;
    if (/^[[{]/.test(value)) return this.flowPlace(value, text, from, offset);
    if (/^["'|>&*!]/.test(value)) return null;
    const word = value + restOfWord(rest, false);
    const { path, indent } = { path: this.path(), indent: column };
    return {
      at: "value",
      path,
      from,
      to: from + word.length,
      word: value,
      siblings: [],
      inFlow: false,
      indent,
      hasColon: false,
    };
  }

  private flowPlace(content: string, text: string, start: number, offset: number): Place | null {
    const flow = new FlowScan();
    flow.feed(content, start);
    return flow.isDone ? null : flow.place(text, offset, this.path());
  }

  /** A word at the start of a line, or of an item: a key whose colon is not there yet. */
  private word(
    word: string,
    column: number,
    text: string,
    from: number,
    offset: number,
    rest: string,
  ): Place | null {
    const isItem = this.settle(column);
    const top = this.frames[this.frames.length - 1];
    const isKnown = top !== undefined && top.kind === "map" && top.indent === column;
    // Lines that are indented below a value on its own line continue that value.
    if (!isKnown && top !== undefined && top.kind === "map" && top.inline) return null;
    const path = isKnown ? this.path(this.frames.slice(0, -1)) : this.path();
    const before = isKnown ? top.keys : [];
    const tail = restOfWord(rest, true);
    const lineEnd = text.indexOf("\n", offset);
    const siblings = [...before, ...keysBelow(lineEnd === -1 ? "" : text.slice(lineEnd + 1), column)];
    const hasColon = /^\s*:(\s|$)/.test(rest.slice(tail.length));
    return {
      at: isItem && !hasColon ? "item" : "key",
      path,
      from,
      to: from + word.length + tail.length,
      word,
      siblings: [...new Set(siblings)],
      inFlow: false,
      indent: column,
      hasColon,
    };
  }

  /** Leaves the frames that a column is not within. True if it is the place of a whole item of a list. */
  private settle(column: number): boolean {
    for (;;) {
      const top = this.frames[this.frames.length - 1];
      if (top === undefined) return false;
      if (top.indent > column || (top.kind === "seq" && top.indent === column)) this.frames.pop();
      else return top.kind === "seq";
    }
  }

  private content(content: string, column: number, offset: number): void {
    const dash = /^-(\s+|$)/.exec(content);
    if (dash !== null) {
      this.item(column);
      const width = dash[0].length;
      const inner = content.slice(width);
      if (inner === "" || inner.startsWith("#")) return;
      this.content(inner, column + width, offset + width);
      return;
    }
    const key = KEY.exec(content);
    if (key === null) {
      this.value(content, column - 1, offset);
      return;
    }
    const after = content.slice(key[0].length);
    const blank = /^\s*/.exec(after)?.[0].length ?? 0;
    const value = after.slice(blank);
    const hasValue = value !== "" && !value.startsWith("#");
    this.key(unquoted(key[1] ?? ""), column, hasValue);
    if (hasValue) this.value(value, column, offset + key[0].length + blank);
  }

  private value(value: string, parent: number, offset: number): void {
    if (/^[|>]/.test(value)) {
      this.literal = parent;
      return;
    }
    if (!/^[[{]/.test(value)) return;
    const flow = new FlowScan();
    flow.feed(value, offset);
    this.flow = flow.isDone ? null : flow;
  }

  private item(column: number): void {
    for (;;) {
      const top = this.frames[this.frames.length - 1];
      if (top === undefined || top.indent < column) break;
      if (top.indent === column) break;
      this.frames.pop();
    }
    const top = this.frames[this.frames.length - 1];
    if (top !== undefined && top.kind === "seq" && top.indent === column) top.index += 1;
    else this.frames.push({ indent: column, kind: "seq", key: "", index: 0, keys: [], inline: false });
  }

  private key(key: string, column: number, inline: boolean): void {
    this.settle(column);
    const top = this.frames[this.frames.length - 1];
    if (top !== undefined && top.kind === "map" && top.indent === column) {
      top.key = key;
      top.keys.push(key);
      top.inline = inline;
    } else {
      this.frames.push({ indent: column, kind: "map", key, index: 0, keys: [key], inline });
    }
  }
}

/** Keys of the same map on the lines below. */
function keysBelow(text: string, column: number): string[] {
  const found: string[] = [];
  for (const line of text.split("\n")) {
    const indent = indentOf(line);
    const content = line.slice(indent).trimEnd();
    if (content === "" || content.startsWith("#") || indent > column) continue;
    if (indent < column) break;
    const key = KEY.exec(content);
    if (key === null) {
      if (content.startsWith("-")) continue;
      break;
    }
    if (!/^-(\s|$)/.test(content)) found.push(unquoted(key[1] ?? ""));
  }
  return found;
}

/** The part of a word behind the cursor: for a key up to its colon, else up to the end of the line. */
function restOfWord(rest: string, isKey: boolean): string {
  const end = isKey ? /^[\w$./-]*/.exec(rest)?.[0] : rest.replace(/\s+#.*$/, "").trimEnd();
  return end ?? "";
}

function indentOf(line: string): number {
  return /^ */.exec(line)?.[0].length ?? 0;
}

/** True if the end of a line is within a comment. */
function isComment(line: string): boolean {
  let quote = "";
  for (let index = 0; index < line.length; index += 1) {
    const one = line.charAt(index);
    if (quote !== "") {
      if (one === "\\" && quote === '"') index += 1;
      else if (one === quote) quote = "";
    } else if (/["']/.test(one) && (index === 0 || /[\s[{,:]/.test(line.charAt(index - 1)))) quote = one;
    else if (one === "#" && (index === 0 || /\s/.test(line.charAt(index - 1)))) return true;
  }
  return false;
}
