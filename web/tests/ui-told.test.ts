import { execFileSync } from "node:child_process";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { count, share } from "../src/figure.ts";
import type { Result } from "../ui/app/result.ts";
import { program } from "./program.ts";
import { hasBrowser, launch, open, serve, type Served } from "./ui.ts";

const LONG = { timeout: 30_000 };

/** An expectation that comes true within a while. */
const poll = <T>(found: () => Promise<T> | T) => expect.poll(found, LONG);

describe.skipIf(!hasBrowser())("what the page tells of a run", () => {
  let browser: Browser;
  let served: Served;
  const servers: Server[] = [];

  beforeAll(async () => {
    browser = await launch();
    served = await serve();
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** The URL of a server that does this with each request. */
  async function serving(act: RequestListener): Promise<string> {
    const server = createServer(act);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Starts a run from the page and shows it. */
  async function start(tab: Tab, url: string, run: string, name: string): Promise<void> {
    const text = `run: ${run}\ntargets: {api: "${url}"}\nscenarios: [{steps: [{get: /}]}]\n`;
    const id = await tab.evaluate(
      async ([text, name]) => {
        const body = JSON.stringify({ path: null, text, command: "run", flags: [], name });
        const headers = { "content-type": "application/json", "x-plimsoll-ui": "1" };
        const response = await fetch("/api/live", { method: "POST", body, headers });
        return ((await response.json()) as { id: string }).id;
      },
      [text, name] as const,
    );
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
  }

  /** Opens the saved run, and returns its result. */
  async function saved(tab: Tab): Promise<Result> {
    await tab.getByRole("link", { name: "Open the saved run" }).click(LONG);
    await tab.waitForURL(/#\/runs\/\w+$/);
    await tab.locator("#outcome").waitFor(LONG);
    const id = tab.url().replace(/.*\//, "");
    return tab.evaluate(async (id) => (await (await fetch(`/api/runs/${id}`)).json()) as Result, id);
  }

  /** The short report of a saved run. */
  const show = (name: string) => {
    const args = ["show", name, "-o", "summary", "--store", served.store];
    return execFileSync(program, args, { encoding: "utf8" });
  };
  const button = (tab: Tab, name: string) => tab.getByRole("button", { name, exact: true });
  const tile = (tab: Tab, label: string) =>
    tab.locator(".tile").filter({ has: tab.getByText(label, { exact: true }) });

  test("a run that is given up on a hanging server has one share of failures everywhere", async () => {
    const url = await serving(() => {});
    const opened = await open(browser, served);
    const { tab } = opened;
    await start(tab, url, "{rate: 20/s, duration: 60s, timeout: 6s}", "given up");
    const figures = tile(tab, "failed or timed out so far");
    const bad = async () => Number((await figures.locator(".below").textContent())?.replace(/ of.*/, ""));
    await poll(bad).toBeGreaterThan(5);
    await button(tab, "Stop").click();
    await button(tab, "Give up").click(LONG);
    const result = await saved(tab);
    const { started, timed_out, failed, in_flight_at_stop } = result.accounting;
    expect([failed, started - timed_out]).toEqual([0, in_flight_at_stop]);
    expect(in_flight_at_stop).toBeGreaterThan(0);
    const part = share(timed_out / started);
    const done = tile(tab, "failed or timed out");
    expect(await done.locator(".value").textContent()).toBe(part);
    const below = `${count(timed_out)} of ${count(started)} requests`;
    expect(await done.locator(".below").textContent()).toBe(below);
    const words = `${count(timed_out)} timed out, ${count(in_flight_at_stop)} without an answer at the end`;
    const { verdict } = result;
    // On a busy machine the measurement may be invalid, which has another headline.
    const none = `none of ${count(started)} requests succeeded`;
    if (verdict.outcome === "fail") expect(verdict.summary).toBe(`${none}: ${words}`);
    else expect(verdict.summary).toContain(`${part} errors`);
    const limit = verdict.limited_by.evidence;
    if (limit.includes("not served")) expect(limit).toMatch(new RegExp(`^${part} .*, and .* had no answer`));
    await tab.evaluate(() => void (location.hash = "#/runs"));
    await tab.getByRole("row", { name: /given up/ }).getByRole("cell", { name: part, exact: true }).waitFor();
    const shown = show("given up");
    expect(shown).toContain(verdict.summary);
    expect(shown).toContain(`${count(timed_out)} timed out (${part})`);
    await opened.end();
  });

  test("requests that were sent again are told as they are known, near the outcome", async () => {
    let requests = 0;
    const url = await serving((request, response) => {
      requests += 1;
      if (requests % 5 === 0) request.socket.destroy();
      else setTimeout(() => response.end("ok"), 2);
    });
    const opened = await open(browser, served);
    const { tab } = opened;
    await start(tab, url, "{connections: 2, duration: 2s}", "sent again");
    const { accounting, verdict } = await saved(tab);
    const resent = accounting.resent ?? 0;
    expect(resent).toBeGreaterThan(accounting.started / 100);
    const known = "since the target had closed the connection without an answer";
    const said = `${count(resent)} requests were sent again, ${known}`;
    const warning = verdict.warnings.find(({ code }) => code === "sent_again");
    expect(warning?.evidence).toBe(`${said} (${share(resent / accounting.started)} of all)`);
    await tab.locator("#outcome .warnings summary", { hasText: "sent again" }).click();
    await tab.locator("#outcome .findings", { hasText: said }).waitFor();
    const fact = tab.locator(".facts div", { hasText: "sent again" });
    await fact.getByText(`${count(resent)}, ${known}`).waitFor();
    const shown = show("sent again");
    expect(shown.replace(/\s+/g, " ").split(said).length - 1).toBe(1);
    await opened.end();
  });

  test("figures of a run that goes on are so far, and one that was stopped says so", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await start(tab, served.sink, "{rate: 50/s, duration: 60s}", "stopped");
    const rate = tile(tab, "achieved rate so far");
    await rate.locator(".below", { hasText: /^now [\d.]+\/s · of 50(\.0)?\/s asked for$/ }).waitFor(LONG);
    for (const label of ["response time p50", "response time p99", "failed or timed out"])
      await tile(tab, `${label} so far`).waitFor();
    await button(tab, "Stop").click();
    await saved(tab);
    await tab.locator("#outcome .word", { hasText: /^(DONE|NO VERDICT) stopped early$/ }).waitFor();
    const notice = /^Stopped by the page.* after .* of 60\.0 s: the figures/;
    await tab.locator("#outcome .notice", { hasText: notice }).waitFor();
    expect(await tab.locator(".tile", { hasText: /so far|now/ }).count()).toBe(0);
    // One that came to its end does not.
    await start(tab, served.sink, "{rate: 50/s, duration: 1s}", "ended");
    await saved(tab);
    expect(await tab.locator("#outcome .word").textContent()).not.toContain("early");
    // The list says so, too.
    await tab.getByRole("link", { name: "Runs", exact: true }).click();
    for (const [name, expected] of [["stopped", 1], ["ended", 0]] as const) {
      const row = tab.getByRole("row").filter({ has: tab.getByRole("link", { name, exact: true }) });
      await row.waitFor();
      expect([name, await row.getByText("stopped early").count()]).toEqual([name, expected]);
    }
    await opened.end();
  });

  test("a long name of a run leaves the host and the port of its target on one line", async () => {
    const name = "a-rather-long-name-of-a-run-that-somebody-has-written of which there is no shorter one";
    const of = ["--name", name, "--tag", "evening=monday", "-R", "50", "-d", "3s"];
    await served.save(`${served.sink}/some/path/of/a/target`, ...of);
    for (const width of [1251, 1280, 1440]) {
      const opened = await open(browser, served, { width });
      const host = opened.tab.getByRole("row", { name: new RegExp(name) }).locator("td.wide .host");
      expect(await host.textContent()).toBe(new URL(served.sink).host);
      const lines = await host.evaluate((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return new Set([...range.getClientRects()].map(({ top }) => top)).size;
      });
      expect([width, lines]).toEqual([width, 1]);
      await opened.end();
    }
  });
});
