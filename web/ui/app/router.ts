/** Places of the page: the part of its address behind `#`. */

import { signal } from "@preact/signals";

/** A place, by its first word, with what stands behind it and its questions. */
export interface Route {
  name: RouteName;
  /** Identity of a run, or the path of a plan; empty where there is none. */
  of: string;
  query: URLSearchParams;
}

const NAMES = [
  "runs",
  "run",
  "compare",
  "live",
  "series",
  "plans",
  "plan",
  "new",
  "import",
  "find",
  "fleet",
  "unknown",
] as const;
export type RouteName = (typeof NAMES)[number];

/** The place that an address leads to. */
export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const query = new URLSearchParams(search);
  const parts = path.split("/").filter((part) => part !== "");
  const [first = "runs", ...rest] = parts;
  const of = rest.map(decoded).join("/");
  if (first === "runs") return { name: of === "" ? "runs" : "run", of, query };
  const isOfOne = first === "live" || first === "plan" || first === "series";
  if (isOfOne && of === "") return { name: "unknown", of: path, query };
  const name = NAMES.find((name) => name === first && name !== "run");
  return name === undefined ? { name: "unknown", of: path, query } : { name, of, query };
}

/** The address of a place: `link("run", "3d15")` is `#/runs/3d15`. */
export function link(name: RouteName, of = "", query: Record<string, string> = {}): string {
  const word = name === "run" ? "runs" : name;
  // Paths keep their slashes, so that an address can be read.
  const path = of === "" ? "" : `/${of.split("/").map(encodeURIComponent).join("/")}`;
  const search = Object.entries(query)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value).replaceAll("%2C", ",")}`)
    .join("&");
  return `#/${word}${path}${search === "" ? "" : `?${search}`}`;
}

/** The place that is seen now. */
export const route = signal<Route>(parseRoute(globalThis.location?.hash ?? ""));

/** Leads the page to a place; `replace` leaves none to go back to. */
export function go(to: string, { replace = false } = {}): void {
  if (replace) {
    history.replaceState(null, "", to);
    route.value = parseRoute(to);
  } else location.hash = to;
}

/** The token in the fragment of the address that the program printed. */
export function tokenOf(hash: string): string | null {
  return /^#token=([\w.~-]+)$/.exec(hash)?.[1] ?? null;
}

/** Starts to follow the address; `token` is called where it is one that the program printed. */
export function followAddress(token: () => void): void {
  addEventListener("hashchange", () => {
    const to = location.hash;
    if (tokenOf(to) === null) route.value = parseRoute(to);
    else token();
  });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
