/** The program that the tests drive. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Where cargo builds: of the repository, or where the environment says. */
export const target =
  process.env["CARGO_TARGET_DIR"] ?? fileURLToPath(new URL("../../target", import.meta.url));

/** What cargo has built for the tests, or the one that PLIMSOLL_BIN names: another build, or a package. */
export const program = resolve(process.env["PLIMSOLL_BIN"] ?? join(target, "debug/plimsoll"));
if (!existsSync(program)) throw new Error(`${program} is missing: run \`cargo build\` first`);

/** A process that has said where it listens. */
export interface Listening {
  child: ChildProcess;
  /** The address that it said. */
  address: string;
}

/** Starts the program and waits until it has said something like this: the first group, or all of it. */
export function listening(args: string[], said: RegExp, cwd = tmpdir()): Promise<Listening> {
  const child = spawn(program, args, { cwd });
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

/** The built-in server, as `http://address`. */
export async function startSink(...flags: string[]): Promise<Listening> {
  const args = ["sink", "--listen", "127.0.0.1:0", ...flags];
  const { child, address } = await listening(args, /listening on (\S+)/);
  return { child, address: `http://${address}` };
}

/** Ends a process that was started, and waits for its end. */
export async function ended({ child }: Listening): Promise<void> {
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  if (child.exitCode === null && child.signalCode === null) await over;
}

/** Runs the program to its end; `allowed` are the exit codes that it may have. */
export async function carriedOut(cwd: string, args: string[], allowed: number[]): Promise<void> {
  try {
    await promisify(execFile)(program, args, { cwd, maxBuffer: 1 << 26 });
  } catch (error) {
    const { code, stderr } = error as { code?: number; stderr?: string };
    if (!allowed.includes(code ?? -1))
      throw new Error(`plimsoll ${args.join(" ")} ended with ${code}: ${stderr}`);
  }
}
