import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page as Tab } from "playwright-core";
import { expect } from "vitest";
import { carriedOut, ended, listening, startSink } from "./program.ts";

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

/** `plimsoll ui` with a folder of plans and a history of its own. */
export interface Ui {
  /** The address that it printed, with the token. */
  address: string;
  origin: string;
  folder: string;
  store: string;
  /** Its process. */
  pid: number;
  /** Kills it, without a word to its runs; what it has written stays. */
  kill: () => Promise<void>;
  write: (path: string, text: string) => void;
  read: (path: string) => string;
  end: () => Promise<void>;
}

/** What one start of the program has of another. */
export interface Start {
  /** The folder, the history and the address are those of this one, which has ended. */
  after?: Ui;
  /** The token that it is given. */
  token?: string;
}

/** Starts the program; `files` are put into its folder. */
export async function startUi(files: Record<string, string> = {}, { after, token }: Start = {}): Promise<Ui> {
  const place = after === undefined ? mkdtempSync(join(tmpdir(), "plimsoll-ui-test-")) : dirname(after.folder);
  const [folder, store] = [join(place, "plans"), join(place, "runs.db")];
  mkdirSync(folder, { recursive: true });
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  Object.entries(files).forEach(([path, text]) => write(path, text));
  const listen = after === undefined ? "127.0.0.1:0" : new URL(after.origin).host;
  const given = token === undefined ? [] : ["--token", token];
  const args = ["ui", "--listen", listen, ...given, "--store", store, folder];
  const listens = await listening(args, /(https?:\/\/\S+#token=[0-9a-zA-Z]+)\s/, place);
  const { address } = listens;
  return {
    address,
    origin: new URL(address).origin,
    folder,
    store,
    pid: listens.child.pid ?? 0,
    kill: async () => {
      const over = new Promise((resolve) => listens.child.once("exit", resolve));
      listens.child.kill("SIGKILL");
      await over;
    },
    write,
    read: (path) => readFileSync(join(folder, path), "utf8"),
    end: async () => {
      await ended(listens);
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** The same with a server to put load on. */
export interface Served extends Ui {
  /** The built-in server. */
  sink: string;
  /** Carries out a run that is saved, as a terminal would. */
  save: (...args: string[]) => Promise<void>;
}

/** Starts the program and the built-in server, which plans find in the variable TARGET. */
export async function serve(files: Record<string, string> = {}): Promise<Served> {
  const sink = await startSink("--delay", "2ms");
  // For the plans: those that the page runs, and those that terminals do.
  process.env["TARGET"] = sink.address;
  const ui = await startUi(files);
  return {
    ...ui,
    sink: sink.address,
    // 1, 3 and 99 are outcomes: nothing succeeded, a busy machine, a threshold that does not hold.
    save: (...args) =>
      carriedOut(ui.folder, ["run", ...args, "--save", "--store", ui.store, "--quiet"], [0, 1, 3, 99]),
    end: async () => {
      await Promise.all([ui.end(), ended(sink)]);
    },
  };
}

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

/** A page of the UI that is open, and what must not happen on it. */
export interface Opened {
  tab: Tab;
  context: BrowserContext;
  /** Errors, complaints on the console, what the policy of the page has refused, and requests for any other
   * host. */
  trouble: string[];
  /** Closes it, unless there was trouble. */
  end: () => Promise<void>;
}

export interface How {
  width?: number;
  dark?: boolean;
  /** The part of the address behind `#`, once there is a session. */
  place?: string;
  /** True if the program may refuse requests: the browser notes their status on its console. */
  refusals?: boolean;
  /** True if nothing moves. */
  still?: boolean;
}

/** Opens the page as somebody does who clicks on the printed address. */
export async function open(browser: Browser, ui: Ui, how: How = {}): Promise<Opened> {
  const { width = 1440, dark = false, refusals = false, still = false, place } = how;
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: still ? "reduce" : "no-preference",
    acceptDownloads: true,
  });
  for (const name of PAGE === undefined ? [] : ["app.js", "app.css"]) {
    await context.route(`**/assets/${name}`, (route) => route.fulfill({ path: join(PAGE ?? "", name) }));
  }
  const tab = await context.newPage();
  const trouble: string[] = [];
  tab.on("console", (message) => {
    const isRefusal = /the server responded with a status of/.test(message.text());
    if (!(refusals && message.type() === "error" && isRefusal)) trouble.push(`console: ${message.text()}`);
  });
  tab.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  tab.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${ui.origin}/`) && !url.startsWith("data:")) trouble.push(`request: ${url}`);
  });
  await tab.exposeFunction("refusedByPolicy", (what: string) => trouble.push(`policy: ${what}`));
  await tab.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      const { refusedByPolicy } = window as unknown as { refusedByPolicy: (what: string) => void };
      refusedByPolicy(
        `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`,
      );
    });
  });
  await tab.goto(ui.address);
  await tab.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  if (place !== undefined) await tab.evaluate((hash) => void (location.hash = hash), place);
  const end = async () => {
    expect(trouble).toEqual([]);
    await context.close();
  };
  return { tab, context, trouble, end };
}

/** The text that the editor has; of a long one, the lines that are drawn. */
export function textOf(tab: Tab): Promise<string> {
  return tab.locator(".cm-content").evaluate((content) => {
    const lines = [...content.querySelectorAll(".cm-line")];
    return lines.map((line) => line.textContent ?? "").join("\n");
  });
}

/** The findings of axe, in a few words each. */
export async function violations(tab: Tab): Promise<string[]> {
  // The page's policy lets no script in: axe is put in from outside, as a debugger does; once for each document.
  if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(readFileSync(axe, "utf8"));
  return tab.evaluate(async () => {
    interface Violation {
      id: string;
      nodes: { html: string }[];
    }
    type Axe = { run: (options: object) => Promise<{ violations: Violation[] }> };
    const { axe } = window as unknown as { axe: Axe };
    // Of what passes only the name is made, and style sheets are not fetched once more: no rule that runs
    // reads them.
    const { violations } = await axe.run({ resultTypes: ["violations"], preload: false });
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`,
    );
  });
}

/** Holds that the outcome, its figures, and rate and response time are in sight of a laptop. */
export async function expectPicture(tab: Tab): Promise<void> {
  const height = 800;
  await tab.setViewportSize({ width: 1280, height });
  const figures = ["Rate", "Response time"].map((name) =>
    tab.locator("figure", { has: tab.getByRole("heading", { name, exact: true }) }).locator(".u-over"),
  );
  for (const seen of [tab.locator(".verdict .word").first(), tab.locator(".tile").nth(3), ...figures]) {
    await seen.waitFor();
    await expect
      .poll(async () => {
        const box = await seen.boundingBox();
        return box === null ? Number.POSITIVE_INFINITY : box.y + box.height;
      })
      .toBeLessThanOrEqual(height);
  }
  const first = await figures[0]?.boundingBox();
  expect(first?.y).toBeLessThan(400);
}

/** The width of the page beyond that of the window. */
export const overflow = (tab: Tab): Promise<number> =>
  tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Starts a suite by the form of the spec that is open. */
export async function startSuite(tab: Tab, suite: string): Promise<void> {
  await tab.getByRole("tab", { name: "Run", exact: true }).click();
  await tab.getByRole("combobox", { name: "Suite" }).selectOption(suite);
  await tab.getByRole("button", { name: "Start the run" }).click();
  await tab.waitForURL(/#\/live\//, { timeout: 60_000 });
}
