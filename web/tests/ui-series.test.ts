/** Runs that are told apart: those of a series, and one that gets no answers. */

import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { carriedOut } from "./program.ts";
import { hasBrowser, launch, open, serve, type Served, startUi, violations } from "./ui.ts";

const PLAN = `run: {rate: 50/s, duration: 5s}
targets: {shop: "\${env(TARGET)}"}
scenarios: [{steps: [{get: /several}]}]
thresholds: [p99<50ms]
`;

describe.skipIf(!hasBrowser())("runs of the page", () => {
  let browser: Browser;
  let served: Served;
  /** Takes connections, and never says anything. */
  let silent: Server;
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "fast.yaml": PLAN });
    silent = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  });

  afterAll(async () => {
    sockets.forEach((socket) => socket.destroy());
    silent?.close();
    await browser?.close();
    await served?.end();
  });

  test("a server that never answers has live figures, and can be given up", { timeout: 60_000 }, async () => {
    const { port } = silent.address() as AddressInfo;
    served.write(
      "silent.yaml",
      `run: {rate: 20/s, duration: 3s, no_preflight: true}
targets: {shop: "http://127.0.0.1:${port}"}
scenarios: [{steps: [{get: /}]}]
`,
    );
    const opened = await open(browser, served, { place: "#/plan/silent.yaml" });
    const { tab } = opened;
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//);
    // The chip, the head and the list have the name of the plan's file.
    await tab.getByRole("heading", { level: 1, name: "silent" }).waitFor();
    await tab.getByText(/^\d+ sent, \d+ in flight$/).waitFor();
    // The rate can be changed before there is any answer.
    const rate = tab.getByRole("textbox", { name: "Rate (per second)" });
    await rate.waitFor();
    expect(await rate.getAttribute("placeholder")).toBe("20.0/s");
    await tab.getByText(/^waiting for the last 60 answers, at most \d+ s left$/).waitFor();
    await tab.getByRole("button", { name: "Give up" }).click();
    await tab.getByRole("status", { name: "End" }).waitFor({ timeout: 10_000 });
    await tab.getByRole("link", { name: "Open the saved run" }).click();
    await tab.getByRole("heading", { level: 1, name: "silent" }).waitFor();
    await opened.end();
  });

  test("the run form says what it will not show, and keeps no name and no tag", async () => {
    const opened = await open(browser, served, { place: "#/plan/fast.yaml" });
    const { tab } = opened;
    // In the findings of the plan.
    await tab.getByText(/p99<50ms will not be shown to hold/).first().waitFor();
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    const note = tab.locator(".plan-run .notice");
    await note.getByText(/p99<50ms will not be shown to hold.*would do/).waitFor();
    await tab.getByRole("textbox", { name: "Duration" }).fill("20s");
    await expect.poll(() => note.count(), { timeout: 10_000 }).toBe(0);
    await tab.getByRole("textbox", { name: "Duration" }).fill("1s");
    await tab.getByLabel("Name of the run").fill("evening");
    await tab.getByLabel("Other flags").fill("--tag branch=main --timeout 9s");
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { level: 1, name: "evening" }).waitFor();
    await tab.locator(".page-head").getByText("branch=main").waitFor();
    await tab.evaluate(() => void (location.hash = "#/plan/fast.yaml"));
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    expect(await tab.getByLabel("Name of the run").inputValue()).toBe("");
    expect(await tab.getByLabel("Other flags").inputValue()).toBe("--timeout 9s");
    await opened.end();
  });

  test("several runs are one, listed together, and found after a restart", { timeout: 120_000 }, async () => {
    const opened = await open(browser, served, { place: "#/plan/fast.yaml" });
    const { tab } = opened;
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByLabel("Name of the run").fill("fast");
    await tab.getByRole("textbox", { name: "Duration" }).fill("3s");
    await tab.getByRole("textbox", { name: "Runs", exact: true }).fill("2");
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//);
    const place = new URL(tab.url()).hash;
    for (const run of ["run 1 of 2", "run 2 of 2"]) {
      const chips = tab.getByRole("list", { name: "Runs that go on" }).getByRole("listitem");
      await chips.getByText(run).waitFor({ timeout: 20_000 });
      expect(await chips.count()).toBe(1);
      expect(await chips.textContent()).toContain("fast");
    }
    await tab.getByRole("heading", { name: "2 runs" }).waitFor({ timeout: 30_000 });
    await tab.getByText(/needs 299 samples, has 150/).first().waitFor();
    await tab.getByRole("link", { name: "Open the saved runs" }).click();
    await tab.getByRole("heading", { level: 1, name: "fast, 2 runs" }).waitFor();
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("link", { name: "Runs", exact: true }).click();
    await tab.locator("tr.series").getByRole("link", { name: "fast, 2 runs" }).waitFor();
    expect(await tab.locator("tr.member").count()).toBe(2);
    expect(await violations(tab)).toEqual([]);
    await opened.end();

    await served.kill();
    const again = await startUi({}, { after: served });
    const found = await open(browser, again, { place, refusals: true });
    await found.tab.getByRole("heading", { level: 1, name: "fast, 2 runs" }).waitFor();
    await found.tab.getByRole("heading", { name: "Variation between the runs" }).waitFor();
    await found.end();
    await again.kill();
  });

  test("a comparison is a download, with runs of one name told apart", async () => {
    const store = ["--store", served.store, "--quiet"];
    for (const duration of ["1s", "2s"]) {
      const run = ["run", served.sink, "-R", "50", "-d", duration, "--save", "--name", "twin", ...store];
      await carriedOut(served.folder, run, [0, 3]);
    }
    const again = await startUi({}, { after: served });
    const opened = await open(browser, again);
    const { tab } = opened;
    await tab.getByLabel("Filter").fill("twin");
    await tab.getByText("2 runs", { exact: true }).waitFor();
    for (const box of await tab.getByRole("checkbox").all()) await box.check();
    await tab.getByRole("button", { name: /^Compare/ }).click();
    const members = tab.locator("#runs tbody th");
    await members.nth(1).waitFor();
    const names = await members.allTextContents();
    expect(new Set(names.map((name) => name.slice(2))).size).toBe(2);
    await tab.getByText("Download").first().click();
    const coming = tab.waitForEvent("download");
    await tab.getByRole("link", { name: "JSON, the comparison" }).click();
    expect((await coming).suggestedFilename()).toBe("plimsoll-comparison.json");
    const html = await tab.evaluate(async () => {
      const link = document.querySelector<HTMLAnchorElement>('a[href*="format=html"]');
      return (await fetch(link?.href ?? "")).text();
    });
    expect(html).toContain("twin");
    await opened.end();
    await again.end();
  });
});
