import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The folder that cargo builds in: that of the repository, or the one that the environment names. */
export const target = process.env["CARGO_TARGET_DIR"] ?? fileURLToPath(new URL("../../target", import.meta.url));

/** A page, and the results of its runs. */
export interface Page {
  file: string;
  results: unknown[];
}

/** Pages that the program wrote of real runs, and their places. */
export interface Pages {
  faults: Page;
  comparison: Page;
  silent: Page;
  /** Of a hundred million requests; a test of the Rust side has left it. */
  merged: Page;
  end: () => void;
}

/** Makes runs against the built-in server, and pages of them. */
export async function makePages(): Promise<Pages> {
  const program = join(target, "debug/plimsoll");
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`cargo build\` first`);
  const merged = { html: join(target, "tmp/merged.html"), json: join(target, "tmp/merged.json") };
  if (!existsSync(merged.html)) {
    throw new Error(`${merged.html} is missing: run \`cargo test -p plimsoll-report\` first`);
  }
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-report-"));
  const sinks: ChildProcess[] = [];
  const sink = async (...flags: string[]) => {
    const { child, address } = await listening(program, flags);
    sinks.push(child);
    return `http://${address}/`;
  };
  // 1, 3 and 99 are outcomes: nothing succeeded, a busy machine, a threshold that does not hold.
  const run = (...args: string[]) => carriedOut(program, folder, args, [0, 1, 3, 99]);
  const store = ["--store", join(folder, "runs.db")];
  const read = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), "utf8"));
  const page = (name: string, ...results: string[]): Page => ({
    file: join(folder, name),
    results: results.map(read),
  });

  const bad = await sink("--delay", "lognormal:2ms,0.5", "--freeze", "3s+1500ms", "--drop", "0.5%");
  const open = ["--rate", "700", "-d", "7s", "--warmup", "1s", "--timeout", "900ms", "--threshold", "p99<20ms"];
  await run("run", bad, ...open, "--quiet", "--json", "faults.json", "--report", "faults.html");
  for (const [name, delay] of [["base", "2ms"], ["new", "3ms"]] as const) {
    const url = await sink("--delay", `lognormal:${delay},0.4`);
    const closed = ["-c", "4", "-d", "3s", "--quiet", "--json", `${name}.json`, "--save", "--name", name];
    await run("run", url, ...closed, ...store);
  }
  await run("report", "base", "new", ...store, "--file", "comparison.html");
  const silent = await sink("--drop", "100%");
  const few = ["--rate", "20", "-d", "2s", "--timeout", "400ms", "--no-preflight", "--quiet"];
  await run("run", silent, ...few, "--json", "silent.json");
  await run("report", "silent.json", "--file", "silent.html");
  sinks.forEach((child) => child.kill());

  return {
    faults: page("faults.html", "faults.json"),
    comparison: page("comparison.html", "base.json", "new.json"),
    silent: page("silent.html", "silent.json"),
    merged: { file: merged.html, results: [JSON.parse(readFileSync(merged.json, "utf8"))] },
    end: () => rmSync(folder, { recursive: true }),
  };
}

/** The built-in server, once it has printed its address. */
export function listening(program: string, flags: string[]): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(program, ["sink", "--listen", "127.0.0.1:0", ...flags]);
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (text: unknown) => {
      said += String(text);
      const address = /listening on (\S+)/.exec(said)?.[1];
      if (address !== undefined) resolve({ child, address });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the sink ended with ${code}: ${said}`)));
  });
}

/** Runs the program to its end; `allowed` are the exit codes that it may have. */
export async function carriedOut(program: string, cwd: string, args: string[], allowed: number[]): Promise<void> {
  try {
    await promisify(execFile)(program, args, { cwd, maxBuffer: 1 << 26 });
  } catch (error) {
    const { code, stderr } = error as { code?: number; stderr?: string };
    if (!allowed.includes(code ?? -1)) throw new Error(`plimsoll ${args.join(" ")} ended with ${code}: ${stderr}`);
  }
}
