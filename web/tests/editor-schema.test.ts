import { describe, expect, test } from "vitest";
import { widgetFor } from "../ui/editor/fields.tsx";
import {
  COMMON_SETTINGS,
  goesWith,
  ONE_OF,
  SHORT_FOR,
  STEP_KINDS,
  UNITS,
  VALUES,
} from "../ui/editor/knowledge.ts";
import { defaultIn, keysOf, SchemaTree, withoutDefault } from "../ui/editor/schema.ts";
import { planSchema } from "./plans.ts";

const schema = planSchema();

/** The keys of a definition. */
function keysOfDef(def: string) {
  const found = schema.root.$defs?.[def];
  if (found === undefined) throw new Error(`the schema has no ${def}`);
  return keysOf(schema, schema.shapesOf(found, def));
}

describe("what the schema leaves to its words", () => {
  test("each value stands in the words of its key, and the key is there", () => {
    for (const [def, keys] of Object.entries(VALUES)) {
      for (const [key, values] of Object.entries(keys)) {
        const description = keysOfDef(def).find(({ name }) => name === key)?.description;
        for (const value of values)
          expect([def, key, description]).toEqual([def, key, expect.stringContaining(value)]);
      }
    }
  });

  test("each key that has a unit, excludes others or is short for a map is there", () => {
    const has = (def: string, keys: string[]) => {
      const there = keysOfDef(def).map(({ name }) => name);
      expect([def, keys.filter((key) => !there.includes(key))]).toEqual([def, []]);
    };
    for (const [def, units] of Object.entries(UNITS)) has(def, Object.keys(units));
    for (const [def, groups] of Object.entries(ONE_OF)) has(def, groups.flat());
    for (const [def, short] of Object.entries(SHORT_FOR)) has(def, [short]);
    has("StepSpec", [...Object.keys(STEP_KINDS), ...Object.values(STEP_KINDS).flat()]);
    has("Settings", [...COMMON_SETTINGS]);
  });

  test("keys go with others as the program has it", () => {
    const goes = (key: string, ...there: string[]) => goesWith("StepSpec", key, new Set(there));
    expect(goes("expect", "get")).toBe(true);
    expect(goes("name", "if", "then")).toBe(false);
    expect(goes("get", "name")).toBe(true);
    expect(goes("get", "script")).toBe(true);
    expect(goes("get", "think")).toBe(true);
    expect(goes("set", "think")).toBe(false);
    expect(goes("get", "get")).toBe(false);
    expect(goesWith("Settings", "users", new Set(["rate"]))).toBe(false);
    expect(goesWith(null, "anything", new Set())).toBe(true);
  });
});

describe("the tree of a schema", () => {
  test("references, choices and lists are followed", () => {
    expect(schema.keysAt([]).map(({ name }) => name)).toContain("scenarios");
    expect(schema.keysAt(["scenarios", 2, "steps", 0, "else", 1]).map(({ name }) => name)).toContain("get");
    expect(schema.keysAt(["scenarios", "steps"]).map(({ name }) => name)).toContain("get");
    expect(
      schema
        .at(["targets", "any name"])
        .map(({ kind }) => kind)
        .sort(),
    ).toEqual(["map", "scalar"]);
    expect(schema.at(["nowhere"])).toEqual([]);
    expect(schema.at(["run", "rate", "below"])).toEqual([]);
  });

  test("a schema that leads to itself has no shape, and nothing hangs", () => {
    const round = new SchemaTree({ $ref: "#/$defs/A", $defs: { A: { anyOf: [{ $ref: "#/$defs/A" }] } } });
    expect(round.at([])).toEqual([]);
  });

  test("enum, const, oneOf and allOf", () => {
    const tree = new SchemaTree({
      oneOf: [
        { type: "object", properties: { kind: { const: "a" }, b: { enum: ["x", "y"] } } },
        { allOf: [{ type: "object", properties: { c: { type: "boolean" } } }] },
      ],
    });
    expect(tree.keysAt([]).map(({ name }) => name)).toEqual(["kind", "b", "c"]);
    expect(tree.at(["b"])[0]?.schema.enum).toEqual(["x", "y"]);
  });

  test("keys of objects are none of JavaScript's own", () => {
    expect(schema.at(["constructor"])).toEqual([]);
    expect(schema.at(["run", "toString"])).toEqual([]);
  });

  test("defaults are read from the words", () => {
    expect(defaultIn("Length of the run [default: 10s].")).toBe("10s");
    expect(defaultIn("Keep and send cookies. Default: false.")).toBe("false");
    expect(defaultIn("Signed. Default: `5m`.")).toBe("5m");
    expect(defaultIn("No such thing")).toBeNull();
    expect(withoutDefault("Length of the run [default: 10s].")).toBe("Length of the run.");
  });

  test("each place of a plan has a field that fits", () => {
    const widget = (...path: (string | number)[]) => widgetFor(schema.at(path));
    expect(widget("run", "rate")).toBe("text");
    expect(widget("run", "http2")).toBe("boolean");
    expect(widget("run", "headers")).toBe("texts");
    expect(widget("targets")).toBe("named");
    expect(widget("targets", "a")).toBe("text or map");
    expect(widget("variables")).toBe("pairs");
    expect(widget("phases")).toBe("items");
    expect(widget("thresholds")).toBe("items");
    expect(widget("scenarios", 0, "steps")).toBe("items");
    expect(widget("scenarios", 0, "steps", 0, "headers")).toBe("pairs");
    expect(widget("scenarios", 0, "steps", 0, "extract")).toBe("named");
    expect(widget("scenarios", 0, "steps", 0, "expect")).toBe("map");
    expect(widget("scenarios", 0, "steps", 0, "expect", "status")).toBe("texts");
    expect(widget("scenarios", 0, "steps", 0, "expect", "body")).toBe("items");
    expect(widget("scenarios", 0, "steps", 0, "json")).toBe("raw");
    expect(widget("scenarios", 0, "steps", 0, "keep")).toBe("named");
    expect(widget("data", "a", "list")).toBe("raw");
    expect(widget("data", "a", "columns")).toBe("texts");
  });
});
