import type { Route } from "../app/router.ts";

export function RunsPage({ route }: { route: Route }) {
  return <h1>{route.name}</h1>;
}
