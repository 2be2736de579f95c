import { isMap, isSeq, parseDocument } from "yaml";
import { describe, expect, test } from "vitest";
import { applied, changesFor, type Edit, EditError, lineDiff, pathAfter } from "../ui/editor/edit.ts";
import { Typed } from "../ui/editor/scalar.ts";
import { type Path, pathText } from "../ui/editor/schema.ts";
import { lengthOf, nodeAt, treeOf, typedAt } from "../ui/editor/tree.ts";
import { examples, spotsOf } from "./plans.ts";

function edited(text: string, edit: Edit): string {
  return applied(text, changesFor(text, edit));
}

/** Lines of the one that the other lacks, counted: the removals of an edit. */
function linesGone(before: string, after: string): string[] {
  const left = new Map<string, number>();
  for (const line of after.split("\n")) left.set(line, (left.get(line) ?? 0) + 1);
  return before.split("\n").filter((line) => {
    const there = left.get(line) ?? 0;
    if (there > 0) left.set(line, there - 1);
    return there === 0;
  });
}

const comments = (text: string) => text.split("\n").filter((line) => line.trim().startsWith("#"));

test("there are examples", () => expect(examples.length).toBeGreaterThanOrEqual(30));

describe.each(examples)("$name", ({ text }) => {
  const paths = spotsOf(text);
  const tree = treeOf(text);

  test("a rate changes one line, or adds one, and no comment", () => {
    const isPlain = /^run:/m.test(text);
    const after = edited(text, { kind: "set", path: ["run", "rate"], value: new Typed("321/s") });
    expect(typedAt(treeOf(after), ["run", "rate"])).toBe("321/s");
    expect(comments(after)).toEqual(comments(text));
    const gone = linesGone(text, after);
    const come = linesGone(after, text);
    expect(gone.length).toBeLessThanOrEqual(1);
    if (gone.length === 1) expect(gone[0]).toMatch(/^ +rate: /);
    expect(come).toEqual(isPlain ? ["  rate: 321/s"] : ["run: {rate: 321/s}"]);
  });

  test("each text can be another, and only its line changes", () => {
    for (const { path, scalar, literal } of paths) {
      if (!scalar) continue;
      const after = edited(text, { kind: "set", path, value: new Typed("x: [1], # 'y'") });
      expect([pathText(path), typedAt(treeOf(after), path)]).toEqual([pathText(path), "x: [1], # 'y'"]);
      expect(comments(after)).toEqual(comments(text));
      const most = literal ? String(nodeAt(tree, path)).split("\n").length : 1;
      expect(linesGone(text, after).length).toBeLessThanOrEqual(most);
      expect(linesGone(after, text)).toHaveLength(1);
      if (literal) continue;
      // An unchanged value changes nothing.
      const value = new Typed(typedAt(tree, path) ?? "");
      expect([pathText(path), changesFor(text, { kind: "set", path, value })]).toEqual([pathText(path), []]);
    }
  });

  test("each place can be taken away, with what was said of it and nothing else", () => {
    for (const { path } of paths) {
      const after = edited(text, { kind: "remove", path });
      // A comment at the start of the file is about all of it.
      expect(after.startsWith(text.slice(0, text.indexOf("\n")))).toBe(true);
      const key = path[path.length - 1];
      const holder = nodeAt(treeOf(after), path.slice(0, -1));
      if (typeof key === "number" && isSeq(holder)) {
        expect(lengthOf(treeOf(after), path.slice(0, -1))).toBe(lengthOf(tree, path.slice(0, -1)) - 1);
      } else if (isMap(holder)) expect([pathText(path), holder.has(key)]).toEqual([pathText(path), false]);
      // The new text is the old one without the removed part.
      for (const line of linesGone(after, text)) {
        const rest = line.replace(/^\s*-?\s*/, "");
        const parts = rest.includes("{") || rest.includes("[") ? (rest.split(/[{[]/)[0] ?? "") : rest;
        expect(text).toContain(parts);
      }
      const lost = linesGone(text, after).filter((line) => line.trim().startsWith("#"));
      const above = lost.every((line) => text.includes(`${line}\n`));
      expect(above && lost.length <= 3).toBe(true);
    }
  });

  test("items can change places and back again", () => {
    for (const { path } of paths) {
      const length = lengthOf(tree, path);
      for (let from = 0; from < length; from += 1) {
        for (let to = 0; to < length; to += 1) {
          if (from === to) continue;
          const there = edited(text, { kind: "move", path, from, to });
          expect(comments(there).sort()).toEqual(comments(text).sort());
          expect(linesGone(text, there).length).toBeLessThanOrEqual(1);
          expect(edited(there, { kind: "move", path, from: to, to: from })).toBe(text);
        }
      }
    }
  });

  test("a step can be put before and behind each step, in as many lines as it has", () => {
    const step = { get: new Typed("/new?a=${b}"), headers: { "x-a": new Typed("b") } };
    for (const { path } of paths) {
      if (path[path.length - 1] !== "steps" || !isSeq(nodeAt(tree, path))) continue;
      for (let index = 0; index <= lengthOf(tree, path); index += 1) {
        const after = edited(text, { kind: "insert", path, index, value: step });
        expect(linesGone(text, after)).toEqual([]);
        expect(linesGone(after, text)).toHaveLength(2);
        expect(edited(after, { kind: "remove", path: [...path, index] })).toBe(text);
      }
    }
  });

  test("keys can have other names", () => {
    for (const { path } of paths) {
      const key = path[path.length - 1];
      if (typeof key === "number" || key === undefined) continue;
      const after = edited(text, { kind: "rename", path, key: "an other: name" });
      expect(nodeAt(treeOf(after), [...path.slice(0, -1), "an other: name"])).not.toBeNull();
      expect(linesGone(text, after)).toHaveLength(1);
    }
  });

  test("an extraction can be written into each request", () => {
    for (const { path } of paths) {
      if (path[path.length - 2] !== "steps" || typeof path[path.length - 1] !== "number") continue;
      const value = { json: new Typed("/items/0/id") };
      const after = edited(text, { kind: "set", path: [...path, "extract", "found"], value });
      expect(typedAt(treeOf(after), [...path, "extract", "found", "json"])).toBe("/items/0/id");
      expect(comments(after)).toEqual(comments(text));
      expect(linesGone(text, after).length).toBeLessThanOrEqual(1);
    }
  });
});

describe("edits", () => {
  test("a text keeps the quotes that it has", () => {
    const set = (text: string, value: string) =>
      edited(text, { kind: "set", path: ["a"], value: new Typed(value) });
    expect(set("a: 'b' # c\n", "it's")).toBe("a: 'it''s' # c\n");
    expect(set('a: "b"   # c\n', "d")).toBe('a: "d"   # c\n');
    expect(set("a: b\n", "0000")).toBe("a: 0000\n");
    expect(set("a: b\n", "null")).toBe('a: "null"\n');
    expect(set("a: b\n", "")).toBe('a: ""\n');
    expect(set("a: b\n", "two\nlines\n")).toBe("a: |\n  two\n  lines\n");
    expect(set("a: |\n  two\n  lines\nb: c\n", "one")).toBe("a: one\nb: c\n");
    expect(set("a: |\n  two\n  lines\nb: c\n", "x\ny")).toBe("a: |-\n  x\n  y\nb: c\n");
    expect(set("a:\nb: c\n", "1")).toBe("a: 1\nb: c\n");
    expect(set("a: # here\nb: c\n", "1")).toBe("a: 1 # here\nb: c\n");
  });

  test("keys come where their order has them", () => {
    const order = ["name", "get", "headers", "think"];
    const text = "- get: / # c\n  think: 1s\n";
    const set = (key: string) => edited(text, { kind: "set", path: [0, key], value: new Typed("v"), order });
    expect(set("name")).toBe("- name: v\n  get: / # c\n  think: 1s\n");
    expect(set("headers")).toBe("- get: / # c\n  headers: v\n  think: 1s\n");
    expect(set("other")).toBe("- get: / # c\n  think: 1s\n  other: v\n");
  });

  test("maps on one line stay on it", () => {
    const text = "phases:\n  - {name: a, rate: 5} # the first\n  - {name: b, rate: 6}\n";
    const set = (path: Path, value: unknown) => edited(text, { kind: "set", path, value });
    expect(set(["phases", 0, "duration"], new Typed("3s"))).toBe(
      text.replace("rate: 5", "rate: 5, duration: 3s"),
    );
    expect(edited(text, { kind: "remove", path: ["phases", 0, "name"] })).toBe(text.replace("name: a, ", ""));
    expect(edited(text, { kind: "remove", path: ["phases", 1, "rate"] })).toBe(
      text.replace("b, rate: 6", "b"),
    );
    const value = { name: new Typed("c"), rate: new Typed("7") };
    expect(edited(text, { kind: "insert", path: ["phases"], index: 2, value })).toBe(
      `${text}  - {name: c, rate: 7}\n`,
    );
  });

  test("JSON stays JSON", () => {
    const text = '{\n  "run": {\n    "rate": "5/s"\n  },\n  "scenarios": [{"steps": [{"get": "/"}]}]\n}\n';
    const set = edited(text, { kind: "set", path: ["run", "duration"], value: new Typed("3s") });
    expect(JSON.parse(set)).toMatchObject({ run: { rate: "5/s", duration: "3s" } });
    expect(set).toBe(text.replace('"5/s"', '"5/s",\n    "duration": "3s"'));
    const added = edited(set, {
      kind: "insert",
      path: ["scenarios", 0, "steps"],
      index: 1,
      value: { get: new Typed("/b") },
    });
    expect(JSON.parse(added).scenarios[0].steps).toEqual([{ get: "/" }, { get: "/b" }]);
    expect(JSON.parse(edited(added, { kind: "remove", path: ["run"] }))).not.toHaveProperty("run");
  });

  test("what is written as one item becomes a list with the second", () => {
    const text = "thresholds: p99<5s\n";
    const after = edited(text, {
      kind: "insert",
      path: ["thresholds"],
      index: 1,
      value: new Typed("p50<1s"),
    });
    expect(parseDocument(after).toJS()).toEqual({ thresholds: ["p99<5s", "p50<1s"] });
  });

  test("an empty file gets its first key", () => {
    expect(edited("", { kind: "set", path: ["run", "rate"], value: new Typed("5") })).toBe(
      "run: {rate: 5}\n",
    );
    const text = "# nothing yet\n";
    const after = edited(text, { kind: "set", path: ["run", "rate"], value: new Typed("5") });
    expect(after).toBe("# nothing yet\nrun: {rate: 5}\n");
  });

  test("a file without an end of its last line gets none", () => {
    const text = "a:\n  - b\n  - c";
    expect(edited(text, { kind: "remove", path: ["a", 1] })).toBe("a:\n  - b");
    expect(edited(text, { kind: "move", path: ["a"], from: 0, to: 1 })).toBe("a:\n  - c\n  - b");
    expect(edited(text, { kind: "insert", path: ["a"], index: 2, value: new Typed("d") })).toBe(
      "a:\n  - b\n  - c\n  - d",
    );
  });

  test("comments go with the item that they are about", () => {
    const text = "a:\n  # of b\n  - b # b\n\n  # of c\n  - c\nd: e\n";
    expect(edited(text, { kind: "move", path: ["a"], from: 1, to: 0 })).toBe(
      "a:\n\n  # of c\n  - c\n  # of b\n  - b # b\nd: e\n",
    );
    expect(edited(text, { kind: "remove", path: ["a", 1] })).toBe("a:\n  # of b\n  - b # b\n\nd: e\n");
  });

  test("a text that is not YAML is not edited", () => {
    const edit: Edit = { kind: "set", path: ["a"], value: new Typed("1") };
    expect(() => changesFor("a: [1\nb: 2\n", edit)).toThrow(EditError);
    expect(() => changesFor("a: 1\n", { kind: "remove", path: ["b"] })).toThrow(EditError);
    for (const kind of ["set", "remove"] as const) {
      expect(() => changesFor("a: 1\n---\na: 2\n", { kind, path: ["a"], value: 3 })).toThrow(EditError);
    }
  });

  test("an alias of what an edit would take away is told, not lost", () => {
    expect(() => changesFor("a: &x 1\nb: *x\n", { kind: "remove", path: ["a"] })).toThrow(EditError);
    const edit: Edit = { kind: "set", path: ["c"], value: new Typed("2") };
    expect(edited("a: &x 1\nb: *x\n", edit)).toBe("a: &x 1\nb: *x\nc: 2\n");
  });

  test("a source keeps the comments in it, and is indented as the value was", () => {
    const text = "a:\n  json: # body\n    b: 1 # one\n    c: {d: 2}\n  get: /\n";
    const source = "b: 3 # one\n# more\nc:\n  d: 2";
    const value = { b: 3, c: { d: 2 } };
    expect(edited(text, { kind: "set", path: ["a", "json"], value, source })).toBe(
      "a:\n  json: # body\n    b: 3 # one\n    # more\n    c:\n      d: 2\n  get: /\n",
    );
    const flow: Edit = { kind: "set", path: ["a", "json", "c"], value: { e: [1] }, source: "{e: [1]}" };
    expect(edited(text, flow)).toBe(text.replace("{d: 2}", "{e: [1]}"));
    // A source that does not fit into its place is written another way.
    const block: Edit = {
      kind: "set",
      path: ["a", "json", "c"],
      value: { e: 1, f: 2 },
      source: "e: 1\nf: 2",
    };
    expect(parseDocument(edited(text, block)).getIn(["a", "json", "c", "f"])).toBe(2);
  });

  test("texts of several lines keep their place", () => {
    const set = (text: string, value: unknown) => edited(text, { kind: "set", path: ["a", "b"], value });
    expect(set("a:\n  b: x\n  c: y\n", "two\nlines\n")).toBe("a:\n  b: |\n    two\n    lines\n  c: y\n");
    expect(set("a: {b: x, c: y}\n", "two\nlines")).toBe('a: {b: "two\\nlines", c: y}\n');
    expect(set("a:\n  b: x # why\n", "two\nlines\n")).toContain("# why");
  });

  test("differences are whole lines", () => {
    expect(lineDiff("a\nb\nc\n", "a\nx\nc\n")).toEqual([{ from: 2, to: 4, insert: "x\n" }]);
    expect(lineDiff("a\n", "a\n")).toEqual([]);
    for (const [one, other] of [
      ["a\nb", "a\nb\nc"],
      ["", "a"],
      ["ab\nac\n", "ac\n"],
      ["x", ""],
      ["aa", "a"],
    ] as const) {
      expect(applied(one, lineDiff(one, other))).toBe(other);
      expect(applied(other, lineDiff(other, one))).toBe(one);
    }
  });

  test("paths follow what happens beside them", () => {
    const path = ["a", 2, "b"];
    expect(pathAfter(path, { kind: "remove", path: ["a", 0] })).toEqual(["a", 1, "b"]);
    expect(pathAfter(path, { kind: "remove", path: ["a", 2] })).toBeNull();
    expect(pathAfter(path, { kind: "remove", path: ["a", 3] })).toEqual(path);
    expect(pathAfter(path, { kind: "insert", path: ["a"], index: 2, value: 1 })).toEqual(["a", 3, "b"]);
    expect(pathAfter(path, { kind: "move", path: ["a"], from: 2, to: 0 })).toEqual(["a", 0, "b"]);
    expect(pathAfter(path, { kind: "move", path: ["a"], from: 0, to: 3 })).toEqual(["a", 1, "b"]);
    expect(pathAfter(path, { kind: "rename", path: ["a"], key: "c" })).toEqual(["c", 2, "b"]);
    expect(pathAfter(path, { kind: "set", path: ["a", 2], value: 1 })).toEqual(path);
  });
});
