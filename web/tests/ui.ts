import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page as Tab } from "playwright-core";
import { carriedOut, listening, target } from "./runs.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** A folder with the script and the style sheet to try in the place of those that were compiled in. */
const PAGE = process.env["PLIMSOLL_UI_PAGE"];
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** True if there is a browser; where there must be one, its absence is an error. */
export function hasBrowser(): boolean {
  if (existsSync(CHROMIUM)) return true;
  if (process.env["CI"] !== undefined) throw new Error(`${CHROMIUM} is missing`);
  console.warn(`pages are not opened: there is no ${CHROMIUM}; install it, or say where it is in CHROMIUM`);
  return false;
}

/** `plimsoll ui` with a folder of plans, a history of its own, and a server to put load on. */
export interface Served {
  /** The program. */
  program: string;
  /** The address that it printed, with the token. */
  address: string;
  origin: string;
  folder: string;
  store: string;
  /** The built-in server. */
  sink: string;
  /** Carries out a run that is saved, as a terminal would. */
  save: (...args: string[]) => Promise<void>;
  end: () => Promise<void>;
}

/** Starts the program; `files` are put into its folder. */
export async function serve(files: Record<string, string> = {}): Promise<Served> {
  const program = join(target, "debug/plimsoll");
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`cargo build\` first`);
  const place = mkdtempSync(join(tmpdir(), "plimsoll-ui-test-"));
  const folder = join(place, "plans");
  const store = join(place, "runs.db");
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const sink = await listening(program, ["--delay", "2ms"]);
  // For the plans: those that the page runs, and those that terminals do.
  process.env["TARGET"] = `http://${sink.address}`;
  const ui = spawn(program, ["ui", "--listen", "127.0.0.1:0", "--store", store, folder]);
  const address = await printed(ui);
  return {
    program,
    address,
    origin: new URL(address).origin,
    folder,
    store,
    sink: `http://${sink.address}`,
    // 1, 3 and 99 are outcomes: nothing succeeded, a busy machine, a threshold that does not hold.
    save: (...args) =>
      carriedOut(program, folder, ["run", ...args, "--save", "--store", store, "--quiet"], [0, 1, 3, 99]),
    end: async () => {
      const over = new Promise((resolve) => ui.once("exit", resolve));
      ui.kill("SIGTERM");
      sink.child.kill();
      await over;
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** The address that the program prints when it listens. */
function printed(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (text: unknown) => {
      said += String(text);
      const address = /(https?:\/\/\S+#token=\S+)/.exec(said)?.[1];
      if (address !== undefined) resolve(address);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`plimsoll ui ended with ${code}: ${said}`)));
  });
}

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

export interface Opened {
  tab: Tab;
  context: BrowserContext;
  /** Errors, complaints on the console, and requests for any other host. */
  trouble: string[];
}

interface How {
  width?: number;
  dark?: boolean;
  /** The part of the address behind `#`, once there is a session. */
  place?: string;
}

/** Opens the page like a click on the printed address. */
export async function open(browser: Browser, served: Served, how: How = {}): Promise<Opened> {
  const { width = 1440, dark = false, place } = how;
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    acceptDownloads: true,
  });
  for (const name of PAGE === undefined ? [] : ["app.js", "app.css"]) {
    await context.route(`**/assets/${name}`, (route) => route.fulfill({ path: join(PAGE ?? "", name) }));
  }
  const tab = await context.newPage();
  const trouble: string[] = [];
  tab.on("console", (message) => trouble.push(`console: ${message.text()}`));
  tab.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  tab.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${served.origin}/`) && !url.startsWith("data:")) trouble.push(`request: ${url}`);
  });
  await tab.goto(served.address);
  await tab.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  if (place !== undefined) await tab.evaluate((hash) => void (location.hash = hash), place);
  return { tab, context, trouble };
}

/** The findings of axe, in a few words each. */
export async function violations(tab: Tab): Promise<string[]> {
  // The page's policy lets no script in: axe is put in from outside, as a debugger does.
  await tab.evaluate(readFileSync(axe, "utf8"));
  return tab.evaluate(async () => {
    interface Violation {
      id: string;
      nodes: { html: string }[];
    }
    const { axe } = window as unknown as { axe: { run: () => Promise<{ violations: Violation[] }> } };
    const { violations } = await axe.run();
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`,
    );
  });
}

/** The width of the page beyond that of the window. */
export const overflow = (tab: Tab): Promise<number> =>
  tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
