import { BODIES, METHODS, stepKind } from "./knowledge.ts";
import { items } from "./outline.ts";
import type { Path } from "./schema.ts";
import { keysIn, type Tree, typedAt } from "./tree.ts";

/** A value as JSON, if a text is that. */
export function jsonIn(text: string): { value: unknown } | null {
  const trimmed = text.trim();
  if (!/^[[{"]/.test(trimmed)) return null;
  try {
    return { value: JSON.parse(trimmed) as unknown };
  } catch {
    return null;
  }
}

/** The JSON Pointer (RFC 6901) of a place. */
export function pointerOf(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A name for the variable that takes the value at a place, which no other has. */
export function variableFor(path: Path, taken: readonly string[]): string {
  const key = path.findLast((key) => typeof key === "string") ?? "value";
  const word = String(key)
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_");
  const name = word.replace(/^_+|_+$/g, "").replace(/^(\d)/, "v$1") || "value";
  if (!taken.includes(name)) return name;
  let number = 2;
  while (taken.includes(`${name}_${number}`)) number += 1;
  return `${name}_${number}`;
}

/** True if a text can be the name of a variable. */
export function isVariable(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

/** A request and its name in reports. */
interface Named {
  path: Path;
  name: string;
}

/** The step that reports call so, in the scenario of that name. */
export function stepCalled(tree: Tree, scenario: string, step: string): Path | null {
  const once = ["setup", "teardown"].includes(scenario) ? requestsIn(tree, [scenario]) : [];
  const asked = once.find(({ name }) => name === step);
  if (asked !== undefined) return asked.path;
  const scenarios = items(tree, ["scenarios"]);
  const own = scenarios.filter((path, index) => {
    if (scenarios.length === 1) return true;
    const name = typedAt(tree, [...path, "name"]);
    if (name !== null) return name === scenario;
    return [`scenario ${index + 1}`, typedAt(tree, ["name"]), index === 0 ? "scenario" : null].includes(
      scenario,
    );
  });
  for (const path of own) {
    const found = requestsIn(tree, [...path, "steps"]).find(({ name }) => name === step);
    if (found !== undefined) return found.path;
  }
  return null;
}

/** The requests in a list of steps, also within others. */
function requestsIn(tree: Tree, steps: Path): Named[] {
  const found: Named[] = [];
  const seen = new Map<string, number>();
  const visit = (list: Path) => {
    for (const path of items(tree, list)) {
      const name = nameOf(tree, path);
      if (name !== null) {
        const count = (seen.get(name) ?? 0) + 1;
        seen.set(name, count);
        found.push({ path, name: count === 1 ? name : `${name} #${count}` });
      }
      for (const key of ["then", "else", "steps", "parallel"]) visit([...path, key]);
    }
  };
  visit(steps);
  return found;
}

function nameOf(tree: Tree, path: Path): string | null {
  const name = typedAt(tree, [...path, "name"]);
  if (name !== null) return name;
  const kind = stepKind(keysIn(tree, path));
  if (kind === null) return null;
  const target = typedAt(tree, [...path, kind]) ?? "";
  if ((METHODS as readonly string[]).includes(kind)) return `${kind.toUpperCase()} ${target}`;
  if (kind !== "request") return kind === "same_url" ? "GET the same URL" : null;
  const hasBody = BODIES.some((key) =>
    keysIn(tree, path).includes(key),
  );
  return `${typedAt(tree, [...path, "method"]) ?? (hasBody ? "POST" : "GET")} ${target}`;
}
