/** A suite of a cluster that is started from the page: its runs as they come, and its table. */

import type { Browser, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { heardAfter, NOTHING_HEARD } from "../ui/live/stream.ts";
import { current } from "../ui/live/series.tsx";
import { hasBrowser, launch, open, serve, type Served, startSuite, violations } from "./ui.ts";

// Runs that a busy machine sees while they go on.
const SPEC = `name: sinks
nodes:
  command: \${plimsoll}
  arguments: [sink, --listen, "\${address.http}"]
  ports: {http: 0}
parameters: {seconds: 2}
workload:
  run: {rate: 50/s, duration: "\${matrix.seconds}s"}
  targets: {api: "http://\${node.0.http}"}
  scenarios: [{steps: [{get: /items}]}]
suites:
  lengths: {restart: false, matrix: {seconds: [6, 8]}}
  long: {restart: false, matrix: {seconds: [60, 61]}}
`;

test("the run of a series that goes on is the last one that has no outcome", () => {
  const entry = (number: number, outcome: string | null) => ({ number, name: "a 1", run: null, outcome });
  const of = (...runs: ReturnType<typeof entry>[]) => current({ of: 3, runs })?.number ?? null;
  expect([of(), of(entry(1, null)), of(entry(1, "PASS")), of(entry(1, "PASS"), entry(2, null))]).toEqual([
    null,
    1,
    null,
    2,
  ]);
  const heard = heardAfter(NOTHING_HEARD, "entries", { of: 3, runs: [entry(1, null)] });
  expect(heard.entries?.runs.length).toBe(1);
});

describe.skipIf(!hasBrowser())("a suite", () => {
  let browser: Browser;
  let served: Served;

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "sinks.yaml": SPEC });
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
  });

  const live = (tab: Tab) =>
    tab.evaluate(
      async () =>
        ((await (await fetch("/api/live")).json()) as { runs: { from: string; state: string }[] }).runs,
    );

  test("has its runs as they come, and ends with its table", { timeout: 180_000 }, async () => {
    const opened = await open(browser, served, { place: "#/plan/sinks.yaml" });
    const { tab } = opened;
    await startSuite(tab, "lengths");
    await tab.getByRole("heading", { name: "Run 1 of 2: seconds 6" }).waitFor({ timeout: 60_000 });
    // Its figures, live, and no second entry in the list for what the series saves.
    await tab.locator("#outcome .word").getByText("so far").waitFor({ timeout: 60_000 });
    expect((await live(tab)).map(({ from }) => from)).toEqual(["ui"]);
    await tab.getByRole("heading", { name: "Run 2 of 2: seconds 8" }).waitFor({ timeout: 60_000 });
    const entries = tab.locator("#series tbody tr");
    expect(await entries.count()).toBe(2);
    expect(await entries.first().textContent()).toMatch(/seconds 6[45]\d(\.\d+)?\/s/);
    expect(await entries.first().getByRole("link").getAttribute("href")).toMatch(/^#\/runs\//);
    await tab.locator("#outcome .word").getByText("so far").waitFor({ timeout: 60_000 });
    expect((await live(tab)).map(({ from }) => from)).toEqual(["ui"]);
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("heading", { name: "Suite lengths of sinks" }).waitFor({ timeout: 60_000 });
    const rows = tab.locator("#series tbody tr");
    expect(await rows.count()).toBe(2);
    expect(await rows.nth(1).locator("td").first().textContent()).toBe("8");
    expect(await tab.getByText("The nodes are started or checked.").count()).toBe(0);
    expect(await violations(tab)).toEqual([]);
    await rows.nth(1).getByRole("link").click();
    await tab.waitForURL(/#\/runs\//);
    await tab.locator("#outcome .word").waitFor({ timeout: 30_000 });
    await opened.end();
  });

  test("is stopped as a whole", { timeout: 120_000 }, async () => {
    const opened = await open(browser, served, { place: "#/plan/sinks.yaml" });
    const { tab } = opened;
    await startSuite(tab, "long");
    await tab.locator("#outcome .word").getByText("so far").waitFor({ timeout: 60_000 });
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByText("It was interrupted: runs are missing.").waitFor({ timeout: 60_000 });
    expect(await tab.locator("#series tbody tr").count()).toBe(1);
    expect((await live(tab)).filter(({ state }) => state === "running")).toEqual([]);
    await opened.end();
  });
});
