import { isMap, isSeq } from "yaml";
import type { DocumentKind } from "../app/api.ts";
import { METHODS, stepKind } from "./knowledge.ts";
import { record } from "./names.ts";
import { isWithin, type Path } from "./schema.ts";
import { keysIn, nodeAt, type Tree, typedAt } from "./tree.ts";

/** A part of a plan, as the outline lists it. */
export interface Entry {
  path: Path;
  label: string;
  /** In small print behind it. */
  detail: string;
  children: Entry[];
  /** True if the plan has it; parts that it may have are listed as well. */
  exists: boolean;
}

type Parts = readonly (readonly [key: string, label: string])[];

const OF_PLANS: Parts = [
  ["run", "Load and settings"],
  ["phases", "Phases"],
  ["targets", "Targets"],
  ["variables", "Variables"],
  ["data", "Data"],
  ["metrics", "Metrics"],
  ["tokens", "Tokens"],
  ["setup", "Setup"],
  ["refresh", "Refresh"],
  ["scenarios", "Scenarios"],
  ["teardown", "Teardown"],
  ["thresholds", "Thresholds"],
  ["scripts", "Scripts"],
];

const OF_CLUSTERS: Parts = [
  ["nodes", "Nodes"],
  ["leader", "Leader"],
  ["network", "Network"],
  ["links", "Links"],
  ["workload", "Load"],
  ["preseed", "Preseed"],
  ["faults", "Faults"],
  ["checks", "Checks"],
  ["parameters", "Parameters"],
  ["profiles", "Profiles"],
  ["profile", "Profile"],
  ["suites", "Suites"],
  ["directory", "Folder"],
  ["clean", "Clean"],
  ["fault_seed", "Seed of faults"],
];

/** The parts of a plan or of the spec of a cluster, with their contents. */
export function outlineOf(tree: Tree, kind: DocumentKind = "plan"): Entry[] {
  const known = kind === "cluster" ? OF_CLUSTERS : OF_PLANS;
  const parts = known.map(([key, label]): Entry => {
    const path = [key];
    const children = childrenOf(tree, key);
    const exists = nodeAt(tree, path) !== null;
    return { path, label, detail: exists ? detailOf(tree, key, children.length) : "", children, exists };
  });
  const title = typedAt(tree, ["name"]) ?? "";
  return [{ path: [], label: "Name and description", detail: title, children: [], exists: true }, ...parts];
}

/** The deepest entry that a path is in. */
export function entryAt(entries: readonly Entry[], path: Path): Entry | null {
  for (const entry of entries) {
    if (entry.path.length === 0 || !isWithin(path, entry.path)) continue;
    return entryAt(entry.children, path) ?? entry;
  }
  const [first] = entries;
  const isTop =
    first?.path.length === 0 && (path.length === 0 || path[0] === "name" || path[0] === "description");
  return isTop ? first : null;
}

function detailOf(tree: Tree, key: string, children: number): string {
  if (key === "run") {
    const load = ["rate", "stages", "users", "user_stages", "rps", "connections"]
      .map((key) => [key, typedAt(tree, ["run", key])])
      .find(([, value]) => value !== null);
    const length = typedAt(tree, ["run", "duration"]);
    const count = typedAt(tree, ["run", "iterations"]);
    return [load?.join(" "), length, count === null ? null : `${count} iterations`]
      .filter(Boolean)
      .join(", ");
  }
  if (key === "variables") return keysIn(tree, [key]).join(", ");
  return children === 0 ? "" : String(children);
}

function childrenOf(tree: Tree, key: string): Entry[] {
  const path = [key];
  switch (key) {
    case "targets":
    case "data":
    case "metrics":
    case "tokens":
    case "profiles":
    case "suites":
      return keysIn(tree, path).map((name) => {
        const own = [...path, name];
        const detail = typedAt(tree, own) ?? sourceOf(tree, own);
        return { path: own, label: name, detail, children: [], exists: true };
      });
    case "phases":
      return items(tree, path).map((own, index) => {
        const load = ["rate", "stages", "users", "user_stages"].map((key) => typedAt(tree, [...own, key]));
        const length = typedAt(tree, [...own, "duration"]);
        const detail = [...load, length].filter((one) => one !== null).join(", ");
        const label = typedAt(tree, [...own, "name"]) ?? `phase ${index + 1}`;
        return { path: own, label, detail, children: [], exists: true };
      });
    case "faults":
    case "checks":
    case "nodes":
      // One that stands in the place of a list is the part itself.
      return items(tree, path).filter((own) => own.length > path.length).map((own, index) => {
        const word = key.slice(0, -1);
        const label = typedAt(tree, own) ?? typedAt(tree, [...own, word]) ?? `${word} ${index + 1}`;
        const about = ["target", "at", "every", "for", "command"].map((key) => typedAt(tree, [...own, key]));
        const detail = about.filter((one) => one !== null).join(", ");
        return { path: own, label, detail, children: [], exists: true };
      });
    case "thresholds":
      return items(tree, path).map((own, index) => {
        const label = typedAt(tree, own) ?? typedAt(tree, [...own, "that"]) ?? `threshold ${index + 1}`;
        const about = ["scenario", "step", "phase", "window"].map((key) => typedAt(tree, [...own, key]));
        return {
          path: own,
          label,
          detail: about.filter((one) => one !== null).join(", "),
          children: [],
          exists: true,
        };
      });
    case "setup":
    case "teardown":
      return stepsOf(tree, path);
    case "refresh":
      return stepsOf(tree, [...path, "steps"]);
    case "scenarios":
      return items(tree, path).map((own, index) => {
        const weight = typedAt(tree, [...own, "weight"]);
        const label = typedAt(tree, [...own, "name"]) ?? `scenario ${index + 1}`;
        const children = stepsOf(tree, [...own, "steps"]);
        return {
          path: own,
          label,
          detail: weight === null ? "" : `weight ${weight}`,
          children,
          exists: true,
        };
      });
    default:
      return [];
  }
}

function sourceOf(tree: Tree, path: Path): string {
  for (const key of ["url", "csv", "jsonl", "key"]) {
    const value = typedAt(tree, [...path, key]);
    if (value !== null) return value;
  }
  return ["list", "range"].find((key) => nodeAt(tree, [...path, key]) !== null) ?? "";
}

/** The paths of the items of a list, or the path itself if one item stands in the place of a list. */
export function items(tree: Tree, path: Path): Path[] {
  const node = nodeAt(tree, path);
  if (isSeq(node)) return node.items.map((_, index) => [...path, index]);
  if (node === null) return [];
  return isMap(node) || typedAt(tree, path) !== "" ? [path] : [];
}

function stepsOf(tree: Tree, path: Path): Entry[] {
  return items(tree, path).map((own) => {
    const { label, detail } = stepLabel(tree, own);
    const inner = ["then", "else", "steps", "parallel"].flatMap((key) => {
      const children = stepsOf(tree, [...own, key]);
      if (key !== "else" || children.length === 0) return children;
      return [{ path: [...own, key], label: "else", detail: "", children, exists: true }];
    });
    return { path: own, label, detail, children: inner, exists: true };
  });
}

/** The name of a step: as in reports, or by its kind. */
export function stepLabel(tree: Tree, path: Path): { label: string; detail: string } {
  const keys = keysIn(tree, path);
  const kind = stepKind(keys);
  const name = typedAt(tree, [...path, "name"]);
  const value = kind === null ? null : typedAt(tree, [...path, kind]);
  const what = ((): string => {
    if (kind === null) return "empty step";
    if ((METHODS as readonly string[]).includes(kind)) return `${kind.toUpperCase()} ${value ?? ""}`;
    const inner = keysIn(tree, [...path, kind]).join(", ");
    switch (kind) {
      case "request":
        return `${typedAt(tree, [...path, "method"]) ?? "request"} ${value ?? ""}`;
      case "same_url":
        return "same URL again";
      case "cache":
      case "websocket":
        return `${kind} ${inner}`;
      case "parallel":
        return "at once";
      case "think":
        return `think ${value ?? pauseText(tree, [...path, "think"])}`;
      case "set":
      case "keep":
      case "record":
        return `${kind} ${inner}`;
      default:
        return `${kind} ${value ?? ""}`;
    }
  })();
  return name === null ? { label: what.trim(), detail: "" } : { label: name, detail: what.trim() };
}

function pauseText(tree: Tree, path: Path): string {
  const [kind] = keysIn(tree, path);
  if (kind === undefined) return "";
  const value = record(nodeAt(tree, path)?.toJS(tree))[kind];
  return `${kind} ${Array.isArray(value) ? value.join(" to ") : String(value ?? "")}`;
}
