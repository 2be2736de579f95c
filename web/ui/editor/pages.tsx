import type { Route } from "../app/router.ts";

export function PlansPage({ route }: { route: Route }) {
  return <h1>{route.name}</h1>;
}

export const PlanPage = PlansPage;
export const NewPage = PlansPage;
export const ImportPage = PlansPage;
