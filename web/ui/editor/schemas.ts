import * as api from "../app/api.ts";
import { type Schema, SchemaTree } from "./schema.ts";

let plans: Promise<SchemaTree> | null = null;

/** The schema of plans, which is fetched once. */
export function schemaOfPlans(): Promise<SchemaTree> {
  plans ??= api.schema("plan").then((schema) => new SchemaTree(schema as Schema));
  plans.catch(() => (plans = null));
  return plans;
}
