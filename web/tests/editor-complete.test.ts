import { describe, expect, test } from "vitest";
import { completionsAt, holderOf, hoverText } from "../ui/editor/complete.ts";
import { placeAt } from "../ui/editor/position.ts";
import { type Path, pathText } from "../ui/editor/schema.ts";
import { keysIn, pathAt, treeOf } from "../ui/editor/tree.ts";
import { examples, planSchema, spotsOf } from "./plans.ts";

const schema = planSchema();

/** A text with `|` where the cursor is. */
function at(marked: string): [text: string, offset: number] {
  const offset = marked.indexOf("¦");
  return [marked.replace("¦", ""), offset];
}

function labels(marked: string): string[] {
  return completionsAt(...at(marked), schema)?.options.map(({ label }) => label) ?? [];
}

/** The text after an option was chosen. */
function chosen(marked: string, label: string): string {
  const [text, offset] = at(marked);
  const found = completionsAt(text, offset, schema);
  const option = found?.options.find((option) => option.label === label);
  if (found == null || option === undefined) throw new Error(`${label} is not offered`);
  return text.slice(0, found.from) + option.insert + text.slice(found.to);
}

function place(marked: string) {
  const found = placeAt(...at(marked));
  return found === null
    ? null
    : { at: found.at, path: pathText(found.path), word: found.word, siblings: found.siblings };
}

describe.each(examples)("$name", ({ text }) => {
  const spots = spotsOf(text);

  test("each key is known to be a key of its map, beside the others", () => {
    for (const { path, key } of spots) {
      if (key === null) continue;
      const quoted = /^["']/.test(text.slice(key.from));
      if (quoted) continue;
      const found = placeAt(text, key.from + 1);
      const others = keysIn(treeOf(text), path.slice(0, -1)).filter((name) => name !== path[path.length - 1]);
      expect([pathText(path), found?.at, pathText(found?.path ?? ["?"])]).toEqual([
        pathText(path),
        "key",
        pathText(path.slice(0, -1)),
      ]);
      expect([pathText(path), [...(found?.siblings ?? [])].sort()]).toEqual([pathText(path), others.sort()]);
    }
  });

  test("each plain value is known to be the value of its key", () => {
    for (const { path, value } of spots) {
      if (value === null || !value.plain || value.to === value.from) continue;
      const found = placeAt(text, value.from + 1);
      expect([pathText(path), pathText(found?.path ?? ["?"])]).toEqual([pathText(path), pathText(path)]);
      expect(["value", "item"]).toContain(found?.at);
    }
  });

  test("each key that the schema names is offered in its place, as long as it is not there", () => {
    for (const { path, key } of spots) {
      const name = path[path.length - 1];
      if (key === null || typeof name !== "string") continue;
      const [, known] = holderOf(path, schema);
      if (known === undefined || !schema.keysAt(path.slice(0, -1)).some((key) => key.name === name)) continue;
      const begun = `${text.slice(0, key.from)}${name.charAt(0)}${text.slice(key.to)}`;
      const offered = completionsAt(begun, key.from + 1, schema)?.options.map(({ label }) => label) ?? [];
      expect([pathText(path), offered.includes(name)]).toEqual([pathText(path), true]);
      // With the key there, it is not offered once more.
      const rest = text.slice(key.to).replace(/^:/, "");
      if (rest === "") continue;
      const others = keysIn(treeOf(text), path.slice(0, -1)).filter((other) => other !== name);
      expect(offered.filter((label) => others.includes(label))).toEqual([]);
    }
  });

  test("each key and value has words, and says what it is", () => {
    for (const { path, key, value } of spots) {
      const offset = key?.from ?? value?.from;
      if (offset === undefined) continue;
      expect(pathText(pathAt(treeOf(text), offset).path)).toBe(pathText(path));
      if (schema.at(path).length === 0) continue;
      const name = path[path.length - 1];
      const isOwn = schema.keysAt(path.slice(0, -1)).some((key) => key.name === name);
      if (isOwn)
        expect([pathText(path), hoverText(path, schema)?.text ?? ""]).not.toEqual([pathText(path), ""]);
    }
  });
});

describe("places", () => {
  test("an empty line is a key of the map at its column", () => {
    const text = "run:\n  rate: 5\n  ¦\nscenarios:\n  - name: a\n    steps:\n      - get: /\n";
    expect(place(text)).toEqual({ at: "key", path: "run", word: "", siblings: ["rate"] });
    expect(place(text.replace("  ¦\n", "¦\n"))).toEqual({
      at: "key",
      path: "",
      word: "",
      siblings: ["run", "scenarios"],
    });
    expect(place(`${text.replace("  ¦\n", "")}        ¦`)).toMatchObject({
      path: "scenarios[0].steps[0]",
      siblings: ["get"],
    });
    expect(place(`${text.replace("  ¦\n", "")}    ¦`)).toMatchObject({
      path: "scenarios[0]",
      siblings: ["name", "steps"],
    });
    expect(place(`${text.replace("  ¦\n", "")}      - ¦`)).toMatchObject({
      at: "item",
      path: "scenarios[0].steps[1]",
    });
  });

  test("a list may stand at the column of its key", () => {
    expect(place("steps:\n- get: /\n- ¦")).toMatchObject({ at: "item", path: "steps[1]" });
    expect(place("steps:\n- get: /\n  ¦")).toMatchObject({ at: "key", path: "steps[0]", siblings: ["get"] });
    expect(place("steps:\n- get: /\n¦")).toMatchObject({ at: "key", path: "", siblings: ["steps"] });
  });

  test("brackets, over several lines, too", () => {
    expect(place("a: {b: 1, ¦}")).toMatchObject({ at: "key", path: "a", siblings: ["b"] });
    expect(place("a: {¦, c: {d: 1}}")).toMatchObject({ at: "key", path: "a", siblings: ["c"] });
    expect(place("a: {b: ¦}")).toMatchObject({ at: "value", path: "a.b" });
    expect(place("a: {b: [1, x¦")).toMatchObject({ at: "value", path: "a.b[1]", word: "x" });
    expect(place("a: {\n  b: 1,\n  ¦\n}")).toMatchObject({ at: "key", path: "a", siblings: ["b"] });
    expect(place("- {a: 1}\n- {b: {c: 1}, ¦")).toMatchObject({ at: "key", path: "[1]", siblings: ["b"] });
    expect(place('{"run": {"rate": 5, ¦}}')).toMatchObject({ at: "key", path: "run", siblings: ["rate"] });
    expect(place("a: {b: 'x, y', ¦}")).toMatchObject({ siblings: ["b"] });
  });

  test("nothing is offered in comments, in quotes and in texts of several lines", () => {
    expect(place("a: 1 # ¦")).toBeNull();
    expect(place("# ¦")).toBeNull();
    expect(place('a: "¦')).toBeNull();
    expect(place("a: |\n  text\n  ¦")).toBeNull();
    expect(place("a: >-\n  text\n\n  more¦")).toBeNull();
    expect(place("a: |\n  text\nb¦")).toMatchObject({ at: "key", word: "b", siblings: ["a"] });
    expect(place("a: one\n  two¦")).toBeNull();
    expect(place("a:¦")).toBeNull();
    expect(place("a: {b: 1} ¦")).toBeNull();
  });

  test("keys in quotes and keys that look odd", () => {
    expect(place("\"a\": 1\n'b': 2\n¦")).toMatchObject({ siblings: ["a", "b"] });
    expect(place("json:\n  /id: 1\n  $.a: {exists: true}\n  ¦")).toMatchObject({
      path: "json",
      siblings: ["/id", "$.a"],
    });
    expect(place("a:\n  b: http://x\n  ¦")).toMatchObject({ path: "a", siblings: ["b"] });
  });
});

describe("completions", () => {
  const step = (keys: string) => `scenarios:\n  - steps:\n      - ${keys}`;

  test("the keys of a plan, without those that are there", () => {
    const offered = labels("name: a\n¦\nrun:\n  rate: 5\n");
    expect(offered).toContain("scenarios");
    expect(offered).not.toContain("name");
    expect(offered).not.toContain("run");
  });

  test("a new step may be of any kind, and one with a kind takes what goes with it", () => {
    const any = labels(step("¦"));
    for (const key of ["get", "post", "if", "repeat", "parallel", "think", "set"]) expect(any).toContain(key);
    for (const key of ["then", "else", "steps"]) expect(any).not.toContain(key);
    const request = labels(step("get: /\n        ¦"));
    for (const key of ["expect", "extract", "headers", "think"]) expect(request).toContain(key);
    for (const key of ["post", "if", "then", "set", "method", "get"]) expect(request).not.toContain(key);
    expect(labels(step("if: a == b\n        ¦"))).toEqual(["then", "else"]);
    expect(labels(step("repeat: 3\n        ¦"))).toEqual(["steps"]);
    expect(labels(step("set: {a: b}\n        ¦"))).toEqual([]);
    expect(labels(step("request: /\n        ¦"))).toContain("method");
  });

  test("of keys that exclude each other, one", () => {
    expect(labels("run:\n  rate: 5\n  ¦")).not.toContain("stages");
    expect(labels("run:\n  ¦")).toContain("stages");
    expect(labels(step("post: /\n        json: {}\n        ¦"))).not.toContain("body");
    expect(labels(step("get: /\n        extract:\n          a: {json: /id, ¦}"))).toEqual([
      "event",
      "regex",
      "as_path",
      "as_url",
      "default",
    ]);
    expect(labels("phases:\n  - {name: a, rate: 5, ¦}")).toEqual(["duration", "measured"]);
  });

  test("shapes that stand side by side offer what each has", () => {
    expect(labels("targets:\n  api:\n    ¦")).toEqual(["url", "share", "fail_over", "fail_back"]);
    expect(labels(step("get: /\n        think: {¦}"))).toEqual(["fixed", "uniform", "exponential", "pace"]);
    expect(labels(step("get: /\n        think: ¦"))).toEqual(["{uniform: …}", "{exponential: …}", "{pace: …}"]);
    expect(labels(step("get: /\n        expect:\n          body:\n            - ¦"))).toContain("contains");
    expect(labels("thresholds:\n  - ¦")).toContain("that");
  });

  test("steps within steps", () => {
    expect(labels(step("if: a == b\n        then:\n          - ¦"))).toContain("get");
    expect(labels(step("repeat: 2\n        steps:\n          - parallel:\n              - ¦"))).toContain(
      "get",
    );
    expect(labels(step("poll¦"))).toContain("poll");
    expect(labels(step("get: /\n        poll: {until: {¦}}"))).toEqual(["status", "headers", "body", "json", "events"]);
  });

  test("values that are known", () => {
    expect(labels("run:\n  arrival: ¦")).toEqual(["uniform", "poisson"]);
    expect(labels("run:\n  http2: ¦")).toEqual(["true", "false"]);
    expect(labels("data:\n  users:\n    csv: a.csv\n    order: r¦")).toEqual([
      "sequential",
      "random",
      "shuffled",
    ]);
    expect(labels("data:\n  users: {csv: a.csv, at_end: ¦}")).toEqual(["wrap", "stop", "fail"]);
    expect(labels(step("get: /\n        on_failure: ¦"))).toEqual(["end", "continue"]);
  });

  test("names of the plan where something refers to them", () => {
    const plan = "targets: {shop: http://a.test, login: http://b.test}\ndata: {rows: {csv: a.csv}}\n";
    expect(labels(`${plan}${step("get: /\n        target: ¦")}`)).toEqual(["shop", "login"]);
    expect(labels(`${plan}scenarios:\n  - data: ¦`)).toEqual(["rows"]);
    expect(labels(`${step("keep: {pool: id}\n      - take: ¦")}`)).toEqual(["pool"]);
    const scenarios = "scenarios:\n  - name: buy\n    steps:\n      - name: pay\n        get: /\n";
    expect(labels(`${scenarios}thresholds:\n  - that: p99<1s\n    scenario: ¦`)).toEqual(["buy"]);
    expect(labels(`${scenarios}thresholds:\n  - {that: p99<1s, step: ¦}`)).toEqual(["pay"]);
    expect(labels("phases: [{name: peak, rate: 5}]\nthresholds:\n  - {that: p99<1s, phase: ¦}")).toEqual([
      "peak",
    ]);
  });

  test("variables and functions in slots of templates", () => {
    const offered = labels(`variables: {role: admin}\n${step("get: /${¦")}`);
    expect(offered).toContain("role");
    expect(offered).toContain("uuid");
    expect(chosen(step('get: "/${u¦}"'), "uuid")).toBe(step('get: "/${uuid}"'));
    expect(chosen(step("get: /${u¦"), "uuid")).toBe(step("get: /${uuid}"));
    expect(labels(step("get: /$${¦"))).not.toContain("uuid");
  });

  test("what is put in has a colon, and what must follow it", () => {
    expect(chosen("ru¦", "run")).toBe("run:\n  ");
    expect(chosen("scen¦", "scenarios")).toBe("scenarios:\n  - ");
    expect(chosen("run:\n  ra¦", "rate")).toBe("run:\n  rate: ");
    expect(chosen("run:\n  ra¦: 5", "rate")).toBe("run:\n  rate: 5");
    expect(chosen(step("get: /\n        ex¦"), "expect")).toBe(step("get: /\n        expect:\n          "));
    expect(chosen("run: {ra¦}", "rate")).toBe("run: {rate: }");
    expect(chosen("run:\n  arrival: p¦oi", "poisson")).toBe("run:\n  arrival: poisson");
  });

  test("nothing in free texts", () => {
    expect(labels("name: ¦")).toEqual([]);
    expect(labels("nowhere:\n  ¦")).toEqual([]);
    expect(labels(step("get: /\n        json:\n          ¦"))).toEqual([]);
  });
});

describe("words", () => {
  test("a key has those of its place, and the values that it may have", () => {
    expect(hoverText(["run", "arrival"], schema)).toMatchObject({
      title: "arrival",
      values: ["uniform", "poisson"],
    });
    expect(hoverText(["scenarios", 0, "steps", 0, "then", 1, "get"], schema)?.text).toContain("GET");
    expect(hoverText(["scenarios", 0, "steps", "get"], schema)?.text).toContain("GET");
    expect(hoverText(["targets", "api", "share"], schema)?.text).toContain("spread");
    expect(hoverText(["nowhere"], schema)).toBeNull();
    expect(hoverText(["scenarios", 0, "headers", "accept"], schema)).toBeNull();
  });

  test("a path is found behind a value and on the lines of a text", () => {
    const text = "a:\n  b: {c: 1, d: 2}\n  e: |\n    one\n    two\nf: 3\n";
    const path = (marker: string): Path => pathAt(treeOf(text), text.indexOf(marker)).path;
    expect(path("1")).toEqual(["a", "b", "c"]);
    expect(path("d")).toEqual(["a", "b", "d"]);
    expect(path("two")).toEqual(["a", "e"]);
    expect(path("3")).toEqual(["f"]);
  });
});
