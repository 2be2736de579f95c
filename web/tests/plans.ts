import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isMap, isScalar, isSeq, type Pair } from "yaml";
import { type Path, type Schema, SchemaTree } from "../ui/editor/schema.ts";
import { keyText, treeOf } from "../ui/editor/tree.ts";
import { program } from "./program.ts";

const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
/** The plans of `examples/`. */
export const examples = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => ({ name, text: readFileSync(folder + name, "utf8") }));

/** The schema of plans, as the program prints it. */
export function planSchema(): SchemaTree {
  return new SchemaTree(
    JSON.parse(execFileSync(program, ["schema", "plan"], { encoding: "utf8" })) as Schema,
  );
}

/** A key of a plan, or an item of a list, and where it stands. */
export interface Spot {
  path: Path;
  /** The key; null for an item of a list. */
  key: { from: number; to: number } | null;
  /** The value, if it is a text on its own line. */
  value: { from: number; to: number; plain: boolean } | null;
  scalar: boolean;
  literal: boolean;
}

/** All keys and items of a plan. */
export function spotsOf(text: string): Spot[] {
  const found: Spot[] = [];
  const visit = (node: unknown, path: Path, key: Spot["key"]) => {
    if (path.length > 0) {
      const scalar = isScalar(node);
      const type = scalar ? (node.type ?? "") : "";
      const value =
        scalar && node.range ? { from: node.range[0], to: node.range[1], plain: type === "PLAIN" } : null;
      found.push({ path, key, value, scalar, literal: type.startsWith("BLOCK") });
    }
    if (isMap(node)) {
      node.items.forEach((pair) => {
        const range = isScalar(pair.key) ? pair.key.range : null;
        visit(pair.value, [...path, keyText(pair as Pair)], range ? { from: range[0], to: range[1] } : null);
      });
    }
    if (isSeq(node)) node.items.forEach((item, index) => visit(item, [...path, index], null));
  };
  visit(treeOf(text).contents, [], null);
  return found;
}
