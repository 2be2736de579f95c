import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "../src/page.css";
import "./style.css";
import { followTheme } from "../src/theme.tsx";
import { followKeys } from "./app/keys.tsx";
import { followAddress } from "./app/router.ts";
import { Shell } from "./app/shell.tsx";
import { openSession } from "./app/state.ts";
import { askBeforeLosing } from "./editor/drafts.ts";

askBeforeLosing();
followTheme();
followAddress(() => void openSession());
followKeys();
void openSession();
const place = document.getElementById("app");
if (place !== null) render(<Shell />, place);
