import type { Place } from "./position.ts";
import type { Path } from "./schema.ts";

interface Frame {
  kind: "map" | "seq";
  keys: string[];
  key: string;
  index: number;
  /** True if the next word is a key. */
  wantsKey: boolean;
}

/** Reads `{…}` and `[…]` as far as they go, also over several lines. */
export class FlowScan {
  private frames: Frame[] = [];
  private quote = "";
  /** The start of the word that is being read; -1: between words. */
  private start = -1;
  private word = "";
  private inComment = false;
  private wasQuoted = false;
  isDone = false;

  /** Takes a part of a line, up to its end. */
  feed(text: string, offset: number): void {
    this.inComment = false;
    for (let index = 0; index < text.length && !this.isDone; index += 1) {
      const one = text.charAt(index);
      if (this.quote !== "") {
        this.word += one;
        if (one === "\\" && this.quote === '"') {
          index += 1;
          this.word += text.charAt(index);
        } else if (one === this.quote) {
          this.quote = "";
          this.wasQuoted = true;
        }
        continue;
      }
      if (one === "#" && (index === 0 || /\s/.test(text.charAt(index - 1)))) {
        this.inComment = true;
        return;
      }
      this.one(one, text.charAt(index + 1), offset + index);
    }
  }

  /** The place at the end of the text so far. */
  place(text: string, offset: number, base: Path): Place | null {
    const top = this.frames[this.frames.length - 1];
    if (top === undefined || this.inComment || this.quote !== "" || this.wasQuoted) return null;
    const own = this.frames.slice(0, -1).map((frame) => (frame.kind === "map" ? frame.key : frame.index));
    const path: (string | number)[] = [...base, ...own];
    const from = this.start === -1 ? offset : this.start;
    const rest = text.slice(offset);
    const tail = /^[^\s,:[\]{}#]*/.exec(rest)?.[0] ?? "";
    const word = this.start === -1 ? "" : text.slice(from, offset);
    const to = offset + tail.length;
    const hasColon = /^\s*:(\s|$)/.test(text.slice(to));
    const common = { from, to, word, inFlow: true, indent: 0, hasColon };
    if (top.kind === "map" && top.wantsKey) {
      return { ...common, at: "key", path, siblings: [...top.keys, ...keysAhead(text.slice(to))] };
    }
    path.push(top.kind === "map" ? top.key : top.index);
    return { ...common, at: "value", path, siblings: [] };
  }

  private one(one: string, next: string, offset: number): void {
    const top = this.frames[this.frames.length - 1];
    if (one === "{" || one === "[") {
      // A slot such as ${name} opens nothing.
      if (this.start !== -1) {
        this.word += one;
        return;
      }
      const kind = one === "{" ? "map" : "seq";
      this.frames.push({ kind, keys: [], key: "", index: 0, wantsKey: kind === "map" });
      this.between();
    } else if (one === "}" || one === "]") {
      this.frames.pop();
      this.between();
      this.isDone = this.frames.length === 0;
    } else if (one === ",") {
      if (top?.kind === "seq") top.index += 1;
      else if (top !== undefined) top.wantsKey = true;
      this.between();
    } else if (
      one === ":" &&
      top?.kind === "map" &&
      top.wantsKey &&
      (/^[\s,[\]{}]?$/.test(next) || this.wasQuoted)
    ) {
      top.key = unquoted(this.word.trim());
      top.keys.push(top.key);
      top.wantsKey = false;
      this.between();
    } else if (/\s/.test(one)) {
      if (this.start !== -1) this.word += one;
    } else {
      if (this.start === -1) {
        this.start = offset;
        if (one === '"' || one === "'") this.quote = one;
      }
      this.word += one;
    }
  }

  private between(): void {
    this.start = -1;
    this.word = "";
    this.wasQuoted = false;
  }
}

/** The key as YAML reads it. */
export function unquoted(key: string): string {
  if (key.length > 1 && key.startsWith("'") && key.endsWith("'"))
    return key.slice(1, -1).replaceAll("''", "'");
  if (!(key.length > 1 && key.startsWith('"') && key.endsWith('"'))) return key;
  try {
    return String(JSON.parse(key));
  } catch {
    return key.slice(1, -1);
  }
}

/** Keys of the same map behind the cursor, up to its end. */
function keysAhead(text: string): string[] {
  const scan = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[[\]{},]|:(?=\s|$)|[^\s"'[\]{},:]+|:/g;
  const found: string[] = [];
  let depth = 0;
  let word = "";
  for (const [one] of text.matchAll(scan)) {
    if (one === "{" || one === "[") depth += 1;
    else if (one === "}" || one === "]") {
      if (depth === 0) break;
      depth -= 1;
    } else if (depth > 0) continue;
    else if (one === ":") {
      // The colon of the word at the cursor comes first, and is none of another key.
      if (word !== "") found.push(unquoted(word));
      word = "";
    } else if (one === ",") word = "";
    else word = one;
  }
  return found;
}
