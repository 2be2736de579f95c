import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Browser, Page as Tab } from "playwright-core";
import { program } from "./plans.ts";

/** A folder with the script and the style sheet to try in the place of those that were compiled in. */
const PAGE = process.env["PLIMSOLL_UI_PAGE"];
/** A child process that has printed its address. */
export interface Listening {
  child: ChildProcess;
  /** The address that it printed. */
  address: string;
}

/** Starts the program and waits until it has said something like this. */
export function listening(args: string[], said: RegExp, cwd?: string): Promise<Listening> {
  const child = spawn(program, args, { cwd: cwd ?? tmpdir() });
  return new Promise((resolve, reject) => {
    let all = "";
    const hear = (text: unknown) => {
      all += String(text);
      const found = said.exec(all);
      if (found !== null) resolve({ child, address: found[1] ?? found[0] });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`plimsoll ${args.join(" ")} ended with ${code}: ${all}`)));
  });
}

/** `plimsoll ui` with a folder of its own. */
export interface Ui {
  folder: string;
  /** The address that it printed, with its token. */
  address: string;
  write: (path: string, text: string) => void;
  read: (path: string) => string;
  end: () => void;
}

export async function startUi(): Promise<Ui> {
  const home = mkdtempSync(join(tmpdir(), "plimsoll-editor-"));
  const folder = join(home, "plans");
  mkdirSync(folder);
  const args = ["ui", "--listen", "127.0.0.1:0", "--store", join(home, "runs.db"), folder];
  const { child, address } = await listening(args, /(http:\/\/\S+#token=[0-9a-zA-Z]+)/, home);
  return {
    folder,
    address,
    write: (path, text) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    },
    read: (path) => readFileSync(join(folder, path), "utf8"),
    end: () => {
      child.kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export interface How {
  width?: number;
  dark?: boolean;
}

/** A page of the UI that is open, and the errors that must not happen on it. */
export interface Opened {
  tab: Tab;
  /** Errors of scripts, complaints on the console, and refusals by the policy of the page. */
  trouble: string[];
  end: () => Promise<void>;
}

/** Opens a place of the UI, such as `#/plans`. */
export async function open(
  browser: Browser,
  ui: Ui,
  place: string,
  { width = 1440, dark = false }: How = {},
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  if (PAGE !== undefined) {
    const file = (url: string) => join(PAGE, basename(new URL(url).pathname));
    await context.route("**/assets/*", (route) => route.fulfill({ path: file(route.request().url()) }));
  }
  const tab = await context.newPage();
  const trouble: string[] = [];
  tab.on("console", (message) => {
    // A refusal of the program, such as 409, is on the console of the browser as well.
    if (message.type() === "error" && /the server responded with a status of/.test(message.text())) return;
    trouble.push(`console: ${message.text()}`);
  });
  tab.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
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
  await tab.locator("nav.places").waitFor();
  await tab.goto(`${ui.address.replace(/#.*/, "")}${place}`);
  return { tab, trouble, end: () => context.close() };
}

export { violations } from "./ui.ts";

/** The text that the editor has; of a long one, the lines that are drawn. */
export function textOf(tab: Tab): Promise<string> {
  return tab.locator(".cm-content").evaluate((content) => {
    const lines = [...content.querySelectorAll(".cm-line")];
    return lines.map((line) => line.textContent ?? "").join("\n");
  });
}
