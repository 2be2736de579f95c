import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { carriedOut, ended, type Listening, startSink, target } from "./program.ts";

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
  /** Two targets in turns: it has drawings, and no charts that a script draws. */
  paired: Page;
  /** A search for a capacity. */
  search: Page;
  /** A sweep over numbers of connections. */
  sweep: Page;
  /** Of a hundred million requests; a test of the Rust side has left it. */
  merged: Page;
  end: () => void;
}

/** Makes runs against the built-in server, and pages of them. */
export async function makePages(): Promise<Pages> {
  const merged = { html: join(target, "tmp/merged.html"), json: join(target, "tmp/merged.json") };
  if (!existsSync(merged.html)) {
    throw new Error(`${merged.html} is missing: run \`cargo test -p plimsoll-report\` first`);
  }
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-report-"));
  const sinks: Listening[] = [];
  const sink = async (...flags: string[]) => {
    const started = await startSink(...flags);
    sinks.push(started);
    return `${started.address}/`;
  };
  // 1, 3 and 99 are outcomes: nothing succeeded, a busy machine, a threshold that does not hold.
  const run = (...args: string[]) => carriedOut(folder, args, [0, 1, 3, 99]);
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
  const sides = [await sink(), await sink("--delay", "1ms")];
  await run("ab", ...sides, "--rate", "300", "-d", "3s", "--quiet", "--report", "paired.html");
  const url = await sink();
  const trials = ["--slo", "p50<1s", "--from", "20", "--to", "40", "-d", "100ms", "--max-time", "10s"];
  for (const [name, flags] of [
    ["search", trials],
    ["sweep", ["--sweep", "connections=1,2,4", "-d", "200ms"]],
  ] as const) {
    await carriedOut(folder, ["find", url, ...flags, "--quiet", "--report", `${name}.html`], [0, 3, 99]);
  }
  await Promise.all(sinks.map(ended));

  return {
    faults: page("faults.html", "faults.json"),
    comparison: page("comparison.html", "base.json", "new.json"),
    silent: page("silent.html", "silent.json"),
    paired: page("paired.html"),
    search: page("search.html"),
    sweep: page("sweep.html"),
    merged: { file: merged.html, results: [JSON.parse(readFileSync(merged.json, "utf8"))] },
    end: () => rmSync(folder, { recursive: true }),
  };
}
