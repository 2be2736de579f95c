/** A part of a JSON Schema, as far as the schemas of Plimsoll use it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  $defs?: Record<string, Schema>;
}

/** Keys of maps and indices of lists, from the root. */
export type Path = readonly (string | number)[];

/** One of the shapes that a value may have: without references and choices. */
export interface Shape {
  kind: "scalar" | "boolean" | "map" | "list" | "any";
  schema: Schema;
  /** The name of the definition that it is from, if it has one. */
  def: string | null;
  /** The words of the place that refers to it, else its own. */
  description: string;
}

/** A key that a map may have. */
export interface Key {
  name: string;
  description: string;
  shapes: Shape[];
  /** The definition that has the key. */
  def: string | null;
}

const NO_SHAPES: Shape[] = [];

/** A JSON Schema that is asked by path. */
export class SchemaTree {
  constructor(readonly root: Schema) {}

  /** The shapes of the value at a path; none where the schema knows no such place. */
  at(path: Path): Shape[] {
    let shapes = this.shapesOf(this.root);
    for (const key of path) shapes = shapes.flatMap((shape) => this.below(shape, key));
    return shapes;
  }

  /** The keys that a map at this path may have, in the order of the schema. */
  keysAt(path: Path): Key[] {
    return keysOf(this, this.at(path));
  }

  /** The words for the value at a path: those of its key, else those of its type. */
  describe(path: Path): string {
    return this.at(path).find(({ description }) => description !== "")?.description ?? "";
  }

  /** Shapes of a schema: references are followed, choices laid out side by side. */
  shapesOf(schema: Schema, def: string | null = null, outer = "", depth = 0): Shape[] {
    // A schema that refers to itself without anything between has no shape.
    if (depth > 16) return NO_SHAPES;
    const description = outer !== "" ? outer : (schema.description ?? "");
    if (schema.$ref !== undefined) {
      const name = schema.$ref.split("/").pop() ?? "";
      const target = schema.$ref === "#" ? this.root : this.root.$defs?.[name];
      return target === undefined ? NO_SHAPES : this.shapesOf(target, name, description, depth + 1);
    }
    const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
    const own = kindOf(schema);
    const shapes = choices.flatMap((choice) => this.shapesOf(choice, def, description, depth + 1));
    if (choices.length === 0 || own !== "any") shapes.unshift({ kind: own, schema, def, description });
    return shapes;
  }

  /** The shapes of the value at a key of a map, or at an index of a list. */
  below(shape: Shape, key: string | number): Shape[] {
    const { schema, kind } = shape;
    if (kind === "list") {
      return typeof key === "number" && schema.items !== undefined ? this.shapesOf(schema.items) : NO_SHAPES;
    }
    if (kind !== "map") return NO_SHAPES;
    const name = String(key);
    const property =
      schema.properties !== undefined && Object.hasOwn(schema.properties, name)
        ? schema.properties[name]
        : undefined;
    if (property !== undefined) return this.shapesOf(property);
    const other = schema.additionalProperties;
    return typeof other === "object" ? this.shapesOf(other) : NO_SHAPES;
  }
}

/** The keys of all maps among shapes. */
export function keysOf(tree: SchemaTree, shapes: Shape[]): Key[] {
  const found = new Map<string, Key>();
  for (const { kind, schema, def } of shapes) {
    if (kind !== "map") continue;
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (found.has(name)) continue;
      const shapes = tree.shapesOf(property);
      const description = property.description ?? shapes[0]?.description ?? "";
      found.set(name, { name, description, shapes, def });
    }
  }
  return [...found.values()];
}

/** The values that are named by the schema itself. */
export function enumOf(shapes: Shape[]): string[] {
  const found = shapes.flatMap(({ schema }) => [
    ...(schema.enum ?? []),
    ...(schema.const === undefined ? [] : [schema.const]),
  ]);
  return [...new Set(found.map(String))];
}

/** The default that the words of a key tell, `[default: 10s]` or `Default: 5m.`. */
export function defaultIn(description: string): string | null {
  const bracketed = /\[default: ([^\]]*)\]/.exec(description);
  if (bracketed !== null) return bracketed[1] ?? null;
  const sentence = /Default: (.+?)\.(?:\s|$)/.exec(description);
  return sentence?.[1]?.replaceAll("`", "") ?? null;
}

/** Words without the default at their end, which a field shows by itself. */
export function withoutDefault(description: string): string {
  return description.replace(/\s*\[default: [^\]]*\]/, "").trim();
}

/** A path in words: `scenarios[0].steps[1].get`. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");
}

export function samePath(one: Path, other: Path): boolean {
  return one.length === other.length && one.every((key, index) => key === other[index]);
}

/** True if a path is that of a place or of something in it. */
export function isWithin(path: Path, place: Path): boolean {
  return place.length <= path.length && place.every((key, index) => key === path[index]);
}

function kindOf(schema: Schema): Shape["kind"] {
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.includes("object") || schema.properties !== undefined) return "map";
  if (types.includes("array") || schema.items !== undefined) return "list";
  if (types.length === 1 && types[0] === "boolean") return "boolean";
  if (types.length > 0 || schema.enum !== undefined || schema.const !== undefined) return "scalar";
  return "any";
}
