import type { Route } from "../app/router.ts";

export function FindPage({ route }: { route: Route }) {
  return <h1>{route.name}</h1>;
}
