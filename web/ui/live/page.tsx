import type { Route } from "../app/router.ts";

export function LivePage({ route }: { route: Route }) {
  return <h1>{route.name}</h1>;
}
