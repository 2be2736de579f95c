import * as api from "../app/api.ts";
import { type Schema, SchemaTree } from "./schema.ts";

const known = new Map<api.DocumentKind, Promise<SchemaTree>>();

/** The schema of a kind of document, which is fetched once. */
export function schemaOf(kind: api.DocumentKind): Promise<SchemaTree> {
  let schema = known.get(kind);
  if (schema === undefined) {
    schema = api.schema(kind).then((schema) => new SchemaTree(schema as Schema));
    known.set(kind, schema);
    schema.catch(() => known.delete(kind));
  }
  return schema;
}

/** The schema of plans. */
export const schemaOfPlans = () => schemaOf("plan");
