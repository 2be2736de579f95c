/** The whole suite drives one program, which the environment may name: another build, or a package. */

import { readFileSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { ended, program, startSink } from "./program.ts";

const own = fileURLToPath(new URL(".", import.meta.url));
const source = (name: string) => readFileSync(`${own}${name}`, "utf8");

test("the program is the one that PLIMSOLL_BIN names", async () => {
  const named = process.env["PLIMSOLL_BIN"];
  if (named !== undefined) expect(program).toBe(resolve(named));
  const sink = await startSink();
  expect(readlinkSync(`/proc/${sink.child.pid}/exe`)).toBe(realpathSync(program));
  await ended(sink);
  // Another one is taken by the same module.
  vi.stubEnv("PLIMSOLL_BIN", "/bin/true");
  vi.resetModules();
  expect((await import("./program.ts")).program).toBe("/bin/true");
  vi.unstubAllEnvs();
});

test("no test starts a program of its own", () => {
  const files = readdirSync(own).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(10);
  for (const name of files.filter((name) => !/^program(\.test)?\.ts$/.test(name))) {
    expect([name, /target\/(debug|release)|spawn\(/.test(source(name))]).toEqual([name, false]);
  }
});
