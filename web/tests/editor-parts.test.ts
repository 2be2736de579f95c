import { describe, expect, test } from "vitest";
import { ApiError, type Explanation, type FormArgument } from "../ui/app/api.ts";
import { fieldError, hintOf, labelOf, shownWhenEmpty } from "../ui/editor/argument-words.tsx";
import { argumentsOf, filled, groupsOf } from "../ui/editor/arguments.ts";
import { pairOf, pastedLines } from "../ui/editor/pasted.ts";
import { freeName, isPlanName, missingFile, nameProblem, planNameFor } from "../ui/editor/drafts.ts";
import { fieldsOf, flagsOf, OVERRIDES, unsetWords, words } from "../ui/editor/flags.ts";
import { isVariable, jsonIn, pointerOf, stepCalled, variableFor } from "../ui/editor/jsonpaths.ts";
import { Latest } from "../ui/editor/latest.ts";
import { environmentIn, namesIn, secretsIn } from "../ui/editor/names.ts";
import { type Entry, entryAt, outlineOf } from "../ui/editor/outline.ts";
import { lineOf, located, mendOf, offsetOf } from "../ui/editor/places.ts";
import { matching } from "../ui/editor/plans.tsx";
import { drawable } from "../ui/editor/schedule.tsx";
import { type Path, pathText } from "../ui/editor/schema.ts";
import { treeOf } from "../ui/editor/tree.ts";
import { examples, spotsOf } from "./plans.ts";

describe("places of findings", () => {
  const problem = {
    severity: "error",
    message: "wrong",
    hint: null,
    line: null,
    column: null,
    length: null,
  } as const;

  test("lines and columns count characters, and begin with one", () => {
    expect(offsetOf("ab\ncd\n", 2, 2)).toBe(4);
    expect(offsetOf("😀😀x\n", 1, 3)).toBe(4);
    expect(offsetOf("ab\n", 9, 9)).toBe(3);
    expect(offsetOf("ab\ncd", 1, 9)).toBe(2);
    expect(lineOf("ab\ncd\nef", 3)).toBe(2);
    expect(lineOf("ab\ncd\nef", 0)).toBe(1);
  });

  test("a finding has its place, and what mends it", () => {
    const text = "run:\n  duratoin: 5\n";
    const [found] = located(text, [
      { ...problem, hint: "did you mean `duration`?", line: 2, column: 3, length: 8 },
    ]);
    expect(text.slice(found?.from ?? 0, found?.to ?? 0)).toBe("duratoin");
    expect(found?.mend).toBe("duration");
    expect(located(text, [problem])[0]).toMatchObject({ from: null, mend: null });
    expect(mendOf("did you mean it?")).toBeNull();
    expect(mendOf(null)).toBeNull();
  });
});

describe("the outline", () => {
  test.each(examples)("$name: each place is in an entry, whose own place is the same", ({ text }) => {
    const outline = outlineOf(treeOf(text));
    const all = (entries: readonly Entry[]): Entry[] =>
      entries.flatMap((entry) => [entry, ...all(entry.children)]);
    for (const { path } of spotsOf(text)) {
      const entry = entryAt(outline, path);
      expect([pathText(path), entry !== null]).toEqual([pathText(path), true]);
      expect(path.slice(0, entry?.path.length)).toEqual(entry?.path);
    }
    for (const entry of all(outline)) {
      if (entry.exists && entry.path.length > 0)
        expect(entryAt(outline, entry.path)?.label).toBe(entry.label);
      expect(entry.label).not.toBe("");
    }
  });

  test("steps are called by what they do", () => {
    const steps = (text: string) => {
      const scenarios = outlineOf(treeOf(text)).find(({ label }) => label === "Scenarios");
      return scenarios?.children[0]?.children.map(({ label }) => label);
    };
    const text =
      "scenarios: [{steps: [{get: /a}, {name: b, post: /}, {think: {uniform: [1s, 2s]}}, {if: x == 1}, {}]}]";
    expect(steps(text)).toEqual(["GET /a", "b", "think uniform 1s to 2s", "if x == 1", "empty step"]);
    expect(steps("scenarios: {steps: {get: /a}}")).toEqual(["GET /a"]);
  });
});

describe("names", () => {
  test("what a plan has, for what refers to it", () => {
    const text = [
      "targets: {a: http://a}",
      "variables: {one: '${env(ONE, x)}'}",
      "data: {rows: {csv: a.csv, columns: [two]}, three: {range: [1, 2]}}",
      "scenarios:",
      "  - name: s",
      "    headers: {authorization: 'Bearer ${secret(TOKEN)}'}",
      "    steps:",
      "      - {name: t, get: /, extract: {four: {json: /a}}, collect: {pool: {each: /x, five: /y}}}",
      "      - repeat: 2",
      "        steps: [{set: {six: 1}}, {keep: {other: six}}]",
    ].join("\n");
    const names = namesIn(treeOf(text), text);
    expect(names).toMatchObject({ targets: ["a"], data: ["rows", "three"], scenarios: ["s"], steps: ["t"] });
    expect(names.variables.sort()).toEqual(["five", "four", "one", "six", "three", "two"]);
    expect(names.pools.sort()).toEqual(["other", "pool"]);
    expect(names.secrets).toEqual(["TOKEN"]);
    expect(environmentIn(text)).toEqual([{ name: "ONE", fallback: "x" }]);
    expect(secretsIn("${secret(A)} ${secret( A )} ${secret(B)}")).toEqual(["A", "B"]);
  });

  test("a text that is broken has none, and does no harm", () => {
    const text = "targets: [\nscenarios: {a";
    expect(namesIn(treeOf(text), text).steps).toEqual([]);
  });
});

describe("values of responses", () => {
  test("JSON is told from other texts", () => {
    expect(jsonIn('{"a": 1}')).toEqual({ value: { a: 1 } });
    expect(jsonIn(" [1]")).toEqual({ value: [1] });
    expect(jsonIn("<html>")).toBeNull();
    expect(jsonIn("{a}")).toBeNull();
  });

  test("places are JSON Pointers", () => {
    expect(pointerOf(["items", 0, "a/b", "c~d"])).toBe("/items/0/a~1b/c~0d");
    expect(pointerOf([])).toBe("");
  });

  test("variables get names of their places that nothing has", () => {
    expect(variableFor(["items", 0, "orderId"], [])).toBe("order_id");
    expect(variableFor(["x-request-id"], [])).toBe("x_request_id");
    expect(variableFor([0], [])).toBe("value");
    expect(variableFor(["1st"], [])).toBe("v1st");
    expect(variableFor(["id"], ["id", "id_2"])).toBe("id_3");
    for (const path of [["é"], ["a b"], ["$"], ["-"]]) expect(isVariable(variableFor(path, []))).toBe(true);
    expect(isVariable("1a")).toBe(false);
    expect(isVariable("a-b")).toBe(false);
  });

  test("the step of an exchange is found by what reports call it", () => {
    const tree = treeOf(
      [
        "scenarios:",
        "  - steps:",
        "      - get: /",
        "      - if: a == b",
        "        then: [{get: /}, {name: x, post: /x}]",
        "      - {request: /z, json: {a: 1}}",
        "      - {request: /z, method: PURGE}",
        "      - same_url: true",
        "  - name: other",
        "    steps: [{get: /}]",
      ].join("\n"),
    );
    const found = (scenario: string, step: string) => {
      const path = stepCalled(tree, scenario, step);
      return path === null ? null : pathText(path);
    };
    expect(found("scenario 1", "GET /")).toBe("scenarios[0].steps[0]");
    expect(found("scenario 1", "GET / #2")).toBe("scenarios[0].steps[1].then[0]");
    expect(found("scenario 1", "x")).toBe("scenarios[0].steps[1].then[1]");
    expect(found("scenario 1", "POST /z")).toBe("scenarios[0].steps[2]");
    expect(found("scenario 1", "PURGE /z")).toBe("scenarios[0].steps[3]");
    expect(found("scenario 1", "GET the same URL")).toBe("scenarios[0].steps[4]");
    expect(found("other", "GET /")).toBe("scenarios[1].steps[0]");
    expect(found("other", "GET /y")).toBeNull();
    expect(found("none", "GET /")).toBeNull();
  });
});

describe("flags", () => {
  test("what was filled in, and what was typed", () => {
    expect(flagsOf({ "--rate": " 5k/s ", "--duration": "" }, "--http2 --tag 'a b'")).toEqual([
      "--rate",
      "5k/s",
      "--http2",
      "--tag",
      "a b",
    ]);
  });

  test("flags are fields of the form, and what has none is typed", () => {
    const cases: [flags: string[], values: Record<string, string>, more: string][] = [
      [[], {}, ""],
      [["--duration=6s", "--rate", "5k/s"], { "--duration": "6s", "--rate": "5k/s" }, ""],
      [["--http2", "--header=x-a: b"], {}, "--http2 '--header=x-a: b'"],
      [['--body={"a": "\\"}', "-d", "3s"], {}, `'--body={"a": "\\"}' -d 3s`],
      [["--seed=1=2", ""], { "--seed": "1=2" }, "''"],
    ];
    for (const [flags, values, more] of cases) {
      expect(fieldsOf(flags)).toEqual([values, more]);
      expect(words(more)).toEqual(flags.filter((flag) => !/^--(duration|rate|seed)|^5k/.test(flag)));
    }
  });

  test("words of a command line", () => {
    expect(words(`a 'b c' "d \\" e" f\\ g '' h'i'j`)).toEqual(["a", "b c", 'd " e', "f g", "", "hij"]);
    expect(words("  ")).toEqual([]);
    expect(words("'a\\b'")).toEqual(["a\\b"]);
    expect(words("'open")).toEqual(["open"]);
  });
});

describe("files", () => {
  test("names of new files", () => {
    expect(freeName("a.yaml", new Set())).toBe("a.yaml");
    expect(freeName("a.yaml", new Set(["a.yaml", "a-2.yaml"]))).toBe("a-3.yaml");
    expect(freeName("x/a", new Set(["x/a"]))).toBe("x/a-2");
    for (const fine of ["a/b.yaml", "users.csv", "a/b.jsonl", "x.lua", "x.proto"]) expect(nameProblem(fine)).toBeNull();
    const missing = (name: string) => `cannot read \`${name}\`: No such file or directory (os error 2)`;
    for (const [plan, message, path] of [
      ["a.yaml", missing("users.csv"), "users.csv"],
      ["shop/a.yaml", missing("./data/users.csv"), "shop/data/users.csv"],
      ["a.yaml", missing("../users.csv"), null],
      ["a.yaml", missing("/etc/passwd"), null],
      ["a.yaml", missing("key.pem"), null],
      ["a.yaml", "cannot read `a.csv`: Permission denied (os error 13)", null],
    ] as const) {
      expect(missingFile(plan, message)).toBe(path);
    }
    for (const wrong of ["", "/a.yaml", "../a.yaml", "a//b.yaml", "a.txt", ".a.yaml", "c:\\a.yaml"]) {
      expect([wrong, nameProblem(wrong)]).not.toEqual([wrong, null]);
    }
    expect(planNameFor("C:\\x\\my shop.json")).toBe("my-shop.yaml");
    expect(planNameFor("")).toBe("imported.yaml");
    expect(planNameFor("../.x.har")).toBe("x.yaml");
    expect(isPlanName("a.YML")).toBe(true);
    expect(isPlanName("a.csv")).toBe(false);
  });

  test("a search finds files that have each of its words", () => {
    const files = ["shop/checkout.yaml", "shop/users.csv", "a.json"].map((path) => ({
      path,
      bytes: 1,
      modified_unix_s: 0,
    }));
    const found = (search: string, only = true) => matching(files, search, only).map(({ path }) => path);
    expect(found("")).toEqual(["shop/checkout.yaml", "a.json"]);
    expect(found("OUT shop")).toEqual(["shop/checkout.yaml"]);
    expect(found("shop", false)).toEqual(["shop/checkout.yaml", "shop/users.csv"]);
  });
});

describe("forms of commands", () => {
  const argument = (id: string, more: Partial<FormArgument> = {}): FormArgument => ({
    id,
    flag: `--${id}`,
    value: "X",
    heading: null,
    help: null,
    long_help: null,
    default: null,
    multiple: false,
    possible: [],
    ...more,
  });

  test("common arguments first, then headings, each argument once", () => {
    const all = [
      argument("urls", { flag: null }),
      argument("rate", { heading: "Load" }),
      argument("seed", { heading: "Load" }),
      argument("http2", { heading: "HTTP/2", value: null }),
      argument("print_plan"),
      argument("other"),
    ];
    const groups = groupsOf({ name: "run", summary: "", arguments: all });
    expect(groups.map(({ heading, arguments: own }) => [heading, own.map(({ id }) => id)])).toEqual([
      ["", ["urls", "rate"]],
      ["Load", ["seed"]],
      ["HTTP/2", ["http2"]],
      ["More", ["other"]],
    ]);
    expect(groups.map(({ isFolded }) => isFolded)).toEqual([false, true, true, true]);
  });

  test("a form has what a plan has", () => {
    const all = [argument("urls"), argument("rate"), argument("probe")];
    const of = (name: string) =>
      argumentsOf({ name, summary: "", arguments: all }, new Set(["rate"])).map(({ id }) => id);
    expect(of("run")).toEqual(["urls", "rate"]);
    expect(of("crud")).toEqual(["rate", "probe"]);
    expect(of("canister")).toEqual(["urls", "rate", "probe"]);
  });

  test("what was left empty is not sent", () => {
    expect(filled({ a: "", b: " ", c: "x", d: ["", "y"], e: [""], f: true })).toEqual({
      c: "x",
      d: ["y"],
      f: true,
    });
  });

  test("a field has words of a page, and shows no value that is not run", () => {
    expect(labelOf(argument("x", { flag: "--max-rate" }))).toBe("Max rate");
    // On the command line it may be a file, too.
    const urls = argument("urls", { flag: null, value: "PLAN|URL" });
    expect([labelOf(urls), shownWhenEmpty(urls)]).toEqual(["Address", "http://127.0.0.1:8080/"]);
    const hint = (of: Parameters<typeof hintOf>[0]) => JSON.stringify(hintOf(of));
    for (const [of, shown, example] of [
      [argument("timeout", { value: "TIME", help: "Limit [default: 30s]" }), "30s", null],
      [argument("seed", { value: "N", help: "Seed" }), "", "10"],
      [argument("count", { value: "N", help: "Number" }), "", "10"],
      [argument("rate", { value: "RATE" }), "", "100/s"],
      [argument("thresholds", { value: "THRESHOLD" }), "", "p99<250ms"],
      [argument("users", { value: "N" }), "", "20"],
    ] as const) {
      expect(shownWhenEmpty(of)).toBe(shown);
      if (example === null) expect(hint(of)).not.toContain("For example");
      else expect(hint(of)).toContain(`For example ${example}.`);
    }
  });

  test("a hint has the usual value in words", () => {
    const said = JSON.stringify(hintOf(argument("x", { value: "SIZE", help: "Largest frame [default: 16KiB]" })));
    expect(said).toContain("Largest frame; usually 16KiB");
  });

  test("a flag that neither the form nor the plan has is told by what is run", () => {
    type Set = Record<string, string>;
    const explained = (model: "open" | "closed", users: number, settings: Set, text = "") =>
      ({
        name: "x",
        text,
        schedule: { model, points: [[0, users]] },
        settings: Object.entries(settings).map(([name, value]) => ({ name, value, origin: "default" })),
      }) as unknown as Explanation;
    const said = (flag: string, of: Explanation | null) =>
      unsetWords(OVERRIDES.find((one) => one.flag === flag) ?? { flag, label: "", hint: "" }, of);
    const closed = explained("closed", 64, { connections: "64", duration: "10s", threads: "1" });
    const open = explained("open", 5, { connections: "16, growing to 10000", stages: "1s@5" });
    for (const [flag, of, words] of [
      ["--rate", closed, "without it, 64 users, as fast as the server allows"],
      ["--rate", explained("closed", 1, {}, "think 1s"), "without it, 1 user, which pause as the plan says"],
      ["--rate", open, "without it, the stages of the plan"],
      ["--rate", explained("open", 5, {}), "without it, the phases of the plan"],
      ["--rate", null, null],
      ["--users", closed, "without it, 64"],
      ["--users", open, "without it, none: the load is a rate"],
      ["--duration", closed, "without it, 10s"],
      ["--duration", open, "without it, until the plan has ended"],
      ["--connections", open, "without it, 16, growing to 10000"],
      ["--iterations", closed, "without it, as many as there is time for"],
      ["--threads", closed, "without it, 1"],
      ["--warmup", null, "without it, none"],
      ["--seed", null, "without it, a new one each time"],
      ["--profile", open, null],
    ] as const) {
      expect([flag, said(flag, of)]).toEqual([flag, words]);
    }
  });

  test("a refusal is at the field that it is about", () => {
    const all = [argument("urls", { flag: null }), argument("rate", { flag: "--rate" })];
    const refusal = (message: string) => new ApiError(422, { error: message, hint: "" });
    const at = (message: string) => fieldError(refusal(message), all, { urls: ["a b"] })?.id;
    expect(at("--rate: `x` is not a rate")).toBe("rate");
    expect(at("invalid value 'x' for '--rate <RATE>': invalid digit")).toBe("rate");
    expect(at("--rate RATE is missing")).toBe("rate");
    expect(at("--rate and --users exclude each other")).toBe("rate");
    expect(at("`a b` is not a host")).toBe("urls");
    // Of an address a part is told, or none of it.
    for (const message of ["`c` is not a host", "unknown scheme `htp`", "` ` is not allowed in a URL"])
      expect([message, at(message)]).toEqual([message, "urls"]);
    expect([at("--other: no"), at("no")]).toEqual([undefined, undefined]);
  });
});

describe("schedules", () => {
  test("times that are the same are drawn one behind the other", () => {
    const points: [number, number][] = [
      [0, 1],
      [1, 1],
      [1, 2],
      [1, 3],
      [1, 3],
      [2, 3],
    ];
    const { x, values } = drawable(points);
    expect(values).toEqual([1, 1, 2, 3, 3]);
    for (let index = 1; index < x.length; index += 1)
      expect(x[index]).toBeGreaterThan(x[index - 1] ?? Infinity);
    expect(x[4]).toBe(2);
  });
});

describe("answers", () => {
  test("only the answer to the last question is taken", async () => {
    const asked: { what: string; answer: (text: string) => void; signal: AbortSignal }[] = [];
    const taken: string[] = [];
    const latest = new Latest<string, string>(
      0,
      (what, signal) => new Promise((answer) => asked.push({ what, answer, signal })),
      (answer) => taken.push(answer),
      () => taken.push("failed"),
    );
    const first = latest.now("one");
    const second = latest.now("two");
    asked[1]?.answer("of two");
    asked[0]?.answer("of one");
    await Promise.all([first, second]);
    expect(taken).toEqual(["of two"]);
    expect(asked[0]?.signal.aborted).toBe(true);
    latest.later("three");
    latest.later("four");
    await new Promise((done) => setTimeout(done, 20));
    expect(asked.map(({ what }) => what)).toEqual(["one", "two", "four"]);
    latest.end();
    asked[2]?.answer("of four");
    await new Promise((done) => setTimeout(done, 5));
    expect(taken).toEqual(["of two"]);
  });

  test("a failure is told, unless nobody waits for it", async () => {
    const failed: unknown[] = [];
    const latest = new Latest<string, string>(
      0,
      () => Promise.reject(new Error("no")),
      () => {},
      (e) => failed.push(e),
    );
    await latest.now("one");
    expect(failed).toHaveLength(1);
  });
});

test("pasted lines are rows, and a single one is none", () => {
  const cases: [value: string, pasted: string, from: number, to: number, rows: string[] | null][] = [
    ["", "a: 1", 0, 0, null],
    ["", "a: 1\n", 0, 0, null],
    ["", "a: 1\nb: 2\n", 0, 0, ["a: 1", "b: 2"]],
    ["", " a: 1\r\n\r\nb: 2", 0, 0, ["a: 1", "b: 2"]],
    ["x-: 3", "a: 1\nb", 2, 2, ["x-a: 1", "b: 3"]],
    ["old", "a\rb", 0, 3, ["a", "b"]],
  ];
  for (const [value, pasted, from, to, rows] of cases) expect(pastedLines(value, pasted, from, to)).toEqual(rows);
  expect(["a: b: c", ":authority: x", "a", "a:"].map(pairOf)).toEqual([
    { name: "a", value: "b: c" },
    { name: ":authority", value: "x" },
    null,
    { name: "a", value: "" },
  ]);
});

test("paths in words", () => {
  const path: Path = ["scenarios", 0, "steps", 1, "get"];
  expect(pathText(path)).toBe("scenarios[0].steps[1].get");
});
