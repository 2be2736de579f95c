import "./editor.css";

export { ImportPage } from "./import.tsx";
export { NewPage } from "./new.tsx";
export { PlanPage } from "./plan.tsx";
export { PlansPage } from "./plans.tsx";
