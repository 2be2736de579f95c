import type { ImportKind } from "../app/api.ts";
import { record } from "./names.ts";

/** The kind of a text to import, as far as it can be told here; null leaves it to the program. */
export function kindOf(name: string, text: string): ImportKind | null {
  const start = text.trimStart();
  if (/^(\$ )?curl(\.exe)?\s/.test(start)) return "curl";
  if (/\.har$/i.test(name)) return "har";
  if (/^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) https?:\/\//.test(start)) return "vegeta";
  if (/^(openapi|swagger)\s*:/m.test(text)) return "openapi";
  if (!start.startsWith("{")) return null;
  let value: Record<string, unknown>;
  try {
    value = record(JSON.parse(start));
  } catch {
    return null;
  }
  if ("openapi" in value || "swagger" in value) return "openapi";
  if ("entries" in record(value["log"])) return "har";
  if ("Scenarios" in value || ("schema" in value && "host" in value)) return "h2loadrunner";
  return null;
}

/** A name for the plan that is made of a file. */
export function planNameFor(name: string): string {
  const stem = name.replace(/^.*[/\\]/, "").replace(/\.[A-Za-z]+$/, "").replace(/[^\w.-]+/g, "-").replace(/^[.-]+/, "");
  return `${stem === "" ? "imported" : stem}.yaml`;
}
