/**
 * A long run in a page that is open all the time. A result keeps at most 3,600 intervals, the seconds of an hour: of
 * tenths of a second that is the number after six minutes, `PLIMSOLL_LONG_S=600 npx vitest run tests/ui-long.test.ts`.
 */

import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Result } from "../ui/app/result.ts";
import { hasBrowser, launch, open, serve, type Served } from "./ui.ts";

const LENGTH_S = Number(process.env["PLIMSOLL_LONG_S"] ?? "20");
const INTERVALS = Math.min(3_600, LENGTH_S * 10);
const PLAN = `run: {rate: 100/s, interval: 100ms, duration: ${LENGTH_S}s}
targets: {api: "\${env(TARGET)}"}
scenarios: [{steps: [{get: /items}]}]
`;
const MIB = 2 ** 20;

describe.skipIf(!hasBrowser())("a long run", () => {
  let browser: Browser;
  let served: Served;

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "long.yaml": PLAN });
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
  });

  /** Resident memory of the server, in bytes. */
  const resident = () => {
    const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${served.pid}/status`, "utf8"));
    return Number(found?.[1] ?? 0) * 1024;
  };

  test("is told by its news, and holds the memory of page and server", { timeout: (LENGTH_S + 120) * 1_000 }, async () => {
    const opened = await open(browser, served);
    const { tab, context } = opened;
    const id = await tab.evaluate(async () => {
      const body = { path: "long.yaml", text: null, command: "run", flags: [], name: "long" };
      const headers = { "x-plimsoll-ui": "1", "content-type": "application/json" };
      const response = await fetch("/api/live", { method: "POST", headers, body: JSON.stringify(body) });
      return ((await response.json()) as { id: string }).id;
    });
    // Beside the page, a listener that counts.
    await tab.evaluate((id) => {
      const told: number[] = [];
      Object.assign(window, { told });
      const source = new EventSource(`/api/live/${id}/events`);
      source.addEventListener("result", ({ data }: MessageEvent<string>) => {
        told.push(data.length * ((JSON.parse(data) as { kept?: number }).kept === undefined ? 1 : -1));
      });
      source.addEventListener("end", () => source.close());
    }, id);
    await tab.evaluate((hash) => void (location.hash = hash), `#/live/${id}`);
    await tab.locator("#outcome .word").waitFor({ timeout: 30_000 });
    const session = await context.newCDPSession(tab);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      return (await session.send("Runtime.getHeapUsage")).usedSize;
    };
    await tab.waitForTimeout(6_000);
    const early = { heap: await heap(), resident: resident() };
    await tab.getByRole("link", { name: "Open the saved run" }).waitFor({ timeout: (LENGTH_S + 60) * 1_000 });
    const late = { heap: await heap(), resident: resident() };
    const told = await tab.evaluate(() => (window as unknown as { told: number[] }).told);
    // Negative lengths are those of news; the last event of all is the result as it was written.
    const news = told.filter((length) => length < 0).map((length) => -length);
    const whole = Math.max(...told);
    console.log({ early, late, events: told.length, news: Math.max(...news), whole });
    // A listener that has fallen behind, as on a busy machine, is told the whole result again.
    expect(news.length).toBeGreaterThan(told.length / 4);
    expect(news.reduce((sum, length) => sum + length, 0) / news.length).toBeLessThan(whole / 5);
    expect((late.heap - early.heap) / MIB).toBeLessThan(48);
    // The result at the end, some megabytes of JSON, is read as a whole.
    expect((late.resident - early.resident) / MIB).toBeLessThan(160);
    await tab.getByRole("link", { name: "Open the saved run" }).click();
    await tab.waitForURL(/#\/runs\//);
    const run = new URL(tab.url()).hash.split("/").at(-1) ?? "";
    const result = await tab.evaluate(
      async (id) => (await (await fetch(`/api/runs/${id}`)).json()) as Result,
      run,
    );
    expect(result.intervals.length).toBeGreaterThan(INTERVALS / 2);
    await opened.end();
  });
});
