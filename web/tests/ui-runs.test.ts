import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Browser, Locator, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { count, nanos, perSecond } from "../src/figure.ts";
import type { Result } from "../ui/app/result.ts";
import { carriedOut, program } from "./program.ts";
import {
  expectPicture,
  hasBrowser,
  launch,
  type Opened,
  open,
  overflow,
  serve,
  type Served,
  startUi,
  violations,
} from "./ui.ts";

const PLAN = `# A shop that is looked at
run: {rate: 120/s, duration: 2s}
targets: {api: "\${env(TARGET)}"}
thresholds: ["p99<2s", "error_rate<1%"]
scenarios:
  - name: browse
    steps:
      - get: /items
      - get: /items/1
`;
/** Example of a cluster: its spec, made short, and the plan that it puts on the nodes. */
const example = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../examples/cluster/${name}`, import.meta.url)), "utf8");
const cluster = () =>
  example("crud-node.yaml")
    .replace("seconds: 10", "seconds: 4")
    .replace("size: 500", "size: 20")
    .replace("at: 3s, for: 2s", "at: 1s, for: 1s")
    .replace(/^ +- .*isolate.*\n/m, "")
    .replace(/^preseed: .*\n/m, "");
/** As the body of a response, and as the name of a run, which has no "=". */
const HOSTILE = "<img src=x onerror=alert(1)>";
const HOSTILE_NAME = "<script>alert(1)</script><b>bold</b>";

describe.skipIf(!hasBrowser())("the web UI", () => {
  let browser: Browser;
  let served: Served;

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "shop.yaml": PLAN });
    for (const name of ["base", "new"]) await served.save("shop.yaml", "--name", name, "--tag", "kind=shop");
    const hostile = createServer((_, response) => {
      response.writeHead(503, { "content-type": "text/plain" });
      response.end(HOSTILE);
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    const { port } = hostile.address() as AddressInfo;
    await served.save(`http://127.0.0.1:${port}/`, "-R", "50", "-d", "1s", "--name", HOSTILE_NAME);
    hostile.close();
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
  });

  /** The saved runs, as the API has them. */
  const saved = async (tab: Tab, filter = "", offset = 0): Promise<{ id: string; name: string | null }[]> =>
    tab.evaluate(
      async ([filter, offset]) => {
        const response = await fetch(
          `/api/runs?filter=${encodeURIComponent(filter)}&limit=100&offset=${offset}`,
        );
        return ((await response.json()) as { runs: { id: string; name: string | null }[] }).runs;
      },
      [filter, offset] as const,
    );
  const resultOf = (tab: Tab, id: string): Promise<Result> =>
    tab.evaluate(async (id) => (await (await fetch(`/api/runs/${id}`)).json()) as Result, id);
  const idOf = async (tab: Tab, name: string): Promise<string> => {
    const found = (await saved(tab)).find((run) => run.name === name);
    if (found === undefined) throw new Error(`no run is called ${name}`);
    return found.id;
  };
  const close = ({ end }: Opened): Promise<void> => end();

  test("without a session the page says what to open, and shows nothing", async () => {
    const context = await browser.newContext();
    const tab = await context.newPage();
    await tab.goto(`${served.origin}/#/runs`);
    await tab.getByRole("heading", { name: "Open the address that plimsoll ui printed" }).waitFor();
    expect(await tab.getByRole("navigation").count()).toBe(0);
    expect(await tab.locator("body").textContent()).not.toContain("base");
    expect(await violations(tab)).toEqual([]);
    // A token of another server is none.
    await tab.goto(`${served.origin}/#token=${"0".repeat(64)}`);
    await tab.getByRole("heading", { name: "The token of this address is not valid" }).waitFor();
    expect(await violations(tab)).toEqual([]);
    // Opened in the same tab, the printed address lets in.
    await tab.goto(served.address);
    await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await context.close();
  });

  test("the token stays neither in the address nor in the history, and a reload keeps the session", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    expect(tab.url()).toBe(`${served.origin}/#/runs`);
    await tab.reload();
    await tab.getByRole("link", { name: "base" }).waitFor();
    expect(await tab.evaluate(() => document.cookie)).toBe("");
    await close(opened);
  });

  test("the list has every run with its figures, and filters", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const row = tab.getByRole("row").filter({ has: tab.getByRole("link", { name: "base", exact: true }) });
    const result = await resultOf(tab, await idOf(tab, "base"));
    const text = (await row.textContent()) ?? "";
    expect(text).toContain(result.verdict.outcome.replaceAll("_", " ").toUpperCase());
    expect(text).toContain(nanos(result.response_time.p["50"] ?? 0));
    expect(text).toContain("kind=shop");
    expect(text).toContain(result.run.targets[0]?.authority ?? "no target");
    expect(text).toMatch(/today \d\d:\d\d/);
    expect(await tab.getByRole("columnheader", { name: "rate over time" }).count()).toBe(1);
    // The foot is at the bottom of the window.
    const foot = await tab.locator("footer.foot").boundingBox();
    expect((foot?.y ?? 0) + (foot?.height ?? 0)).toBeGreaterThanOrEqual(880);
    // Its course: a point for each second.
    const points = (await row.locator("svg.spark polyline").getAttribute("points")) ?? "";
    expect(points.split(" ").length).toBe(result.intervals.filter(({ drain }) => !drain).length);
    await tab.getByLabel("Filter").fill("new");
    await tab.getByRole("link", { name: "base", exact: true }).waitFor({ state: "detached" });
    expect(await tab.getByRole("link", { name: "new", exact: true }).count()).toBe(1);
    expect(tab.url()).toContain("filter=new");
    await tab.getByLabel("Filter").fill("nothing is called so");
    await tab.getByText("No run has “nothing is called so”").waitFor();
    await close(opened);
  });

  test("the page of a run says what its result says", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.getByRole("link", { name: "base", exact: true }).click();
    await tab.getByRole("heading", { name: "base", level: 1 }).waitFor();
    const result = await resultOf(tab, await idOf(tab, "base"));
    const outcome = tab.locator("#outcome");
    expect(await outcome.locator(".word").textContent()).toBe(
      result.verdict.outcome.replaceAll("_", " ").toUpperCase(),
    );
    expect(await outcome.locator(".summary").textContent()).toBe(result.verdict.summary);
    const steps = tab.locator("#by-step tbody tr");
    expect(await steps.count()).toBe(2);
    for (const [index, step] of result.by_step.entries()) {
      const text = (await steps.nth(index).textContent()) ?? "";
      expect(text).toContain(step.step);
      expect(text).toContain(count(step.ok));
      expect(text).toContain(nanos(step.response_time.p["50"] ?? 0));
    }
    expect(await tab.locator("#outcome tbody tr").count()).toBe(2);
    // Requests that are in no sum are said, so that the server's count can be explained.
    expect(result.accounting.unmeasured).toBeGreaterThan(0);
    await tab.getByText("unmeasured, beside these").waitFor();
    // The heat map is of the histograms, which only the report has.
    await tab.getByRole("heading", { name: "Heat map" }).waitFor();
    await tab.getByText("The plan as it was written").click();
    expect(await tab.locator("#origin details pre").textContent()).toBe(PLAN);
    const rate = tab.locator("figure", { has: tab.getByRole("heading", { name: "Rate", exact: true }) });
    await rate.getByRole("slider").focus();
    await tab.keyboard.press("Home");
    const [first] = result.intervals;
    expect(await rate.getByRole("slider").getAttribute("aria-valuetext")).toContain(
      `achieved ${perSecond(first?.achieved_per_s ?? 0)}`,
    );
    await close(opened);
  });

  test("rate and response time are in sight beside the outcome", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.evaluate((id) => void (location.hash = `#/runs/${id}`), await idOf(tab, "base"));
    await expectPicture(tab);
    // A wide screen has two columns, and all of it is used.
    await tab.setViewportSize({ width: 1920, height: 1080 });
    const places = await Promise.all(
      ["#course", "#times"].map(async (part) => (await tab.locator(part).boundingBox())?.x ?? 0),
    );
    expect(places[1]).toBeGreaterThan((places[0] ?? 0) + 800);
    expect(await overflow(tab)).toBeLessThanOrEqual(0);
    // The columns begin at the same height.
    const heights = await tab.locator(":is(#course, #times)").evaluateAll((parts) =>
      parts.map((part) => part.getBoundingClientRect().top),
    );
    expect(new Set(heights).size).toBe(1);
    // A less wide one has tables beside each other, and a laptop below each other.
    const tables = tab.locator("#times .tables > div");
    const lefts = () => tables.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().left));
    for (const [width, columns] of [[1600, 2], [1280, 1]] as const) {
      await tab.setViewportSize({ width, height: 800 });
      expect([width, new Set(await lefts()).size, await overflow(tab)]).toEqual([width, columns, 0]);
    }
    await tab.setViewportSize({ width: 1280, height: 800 });
    // Tables fit.
    const wide = await tab.locator(".table").evaluateAll((all) =>
      all.flatMap((one) => (one.scrollWidth > one.clientWidth + 1 ? [one.getAttribute("aria-label")] : [])),
    );
    expect(wide).toEqual([]);
    await close(opened);
  });

  test("a run is made once more, by its plan", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const first = await resultOf(tab, await idOf(tab, "base"));
    await tab.getByRole("link", { name: "base", exact: true }).click();
    const plan = tab.getByRole("link", { name: "Open plan" });
    expect(await plan.getAttribute("href")).toBe("#/plan/shop.yaml");
    await tab.getByRole("button", { name: "Run again" }).click();
    await tab.waitForURL(/#\/live\//);
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "Heat map" }).waitFor();
    const id = new URL(tab.url()).hash.split("/").at(-1) ?? "";
    const again = await resultOf(tab, id);
    expect(again.run.id).not.toBe(first.run.id);
    expect([again.run.name, again.run.plan_hash]).toEqual(["base", first.run.plan_hash]);
    // Of that one there is no path: its file is known by its text.
    expect(await tab.getByRole("link", { name: "Open plan" }).getAttribute("href")).toBe("#/plan/shop.yaml");
    await removeRun(tab, id);
    // So it is with a name of its own, and what was set over the plan is in the form of Run.
    await tab.evaluate(() => void (location.hash = "#/plan/shop.yaml"));
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByLabel("Name of the run").fill("base 1");
    await tab.getByRole("textbox", { name: "Duration", exact: true }).fill("1500ms");
    await tab.getByRole("textbox", { name: "Other flags" }).fill('--header "x-a: b c"');
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    const other = new URL(await tab.waitForURL(/#\/runs\//).then(() => tab.url())).hash.split("/").at(-1) ?? "";
    await tab.reload();
    await tab.getByRole("button", { name: "Open plan" }).click();
    await tab.waitForURL(/#\/plan\/shop\.yaml/);
    const duration = tab.getByRole("textbox", { name: "Duration", exact: true });
    await expect.poll(() => duration.inputValue()).toBe("1500ms");
    expect(await tab.getByRole("textbox", { name: "Other flags" }).inputValue()).toBe("'--header=x-a: b c'");
    await tab.locator(".plan-state .badge", { hasText: /saved$/ }).first().waitFor();
    await removeRun(tab, other);
    await close(opened);
  });

  test("every format is a download with its content", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const id = await idOf(tab, "base");
    await tab.evaluate((id) => void (location.hash = `#/runs/${id}`), id);
    await tab.getByRole("heading", { name: "base", level: 1 }).waitFor();
    const menu = tab.locator("summary", { hasText: "Download" });
    await menu.click();
    const links = await tab.locator(".menu a").all();
    expect(links.length).toBe(10);
    for (const link of links) {
      const [download] = await Promise.all([tab.waitForEvent("download"), link.click()]);
      const text = readFileSync(await download.path(), "utf8");
      expect([download.suggestedFilename(), text.length > 50]).toEqual([download.suggestedFilename(), true]);
      if (!(await tab.locator(".menu ul").isVisible())) await menu.click();
    }
    await tab.keyboard.press("Escape");
    await expect.poll(() => tab.locator(".menu ul").isVisible()).toBe(false);
    await close(opened);
  });

  test("text of servers and of users is text", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.getByRole("link", { name: HOSTILE_NAME }).click();
    await tab.getByRole("heading", { name: HOSTILE_NAME, level: 1 }).waitFor();
    await tab.locator("#responses").waitFor();
    expect(await tab.locator("main :is(img, script, b)").count()).toBe(0);
    expect(await tab.locator("#by-step").textContent()).toContain(`503: ${HOSTILE}`);
    const result = await resultOf(tab, await idOf(tab, HOSTILE_NAME));
    expect(Object.keys(result.error_examples).length).toBeGreaterThan(0);
    for (const [name, example] of Object.entries(result.error_examples)) {
      const row = tab.locator("#responses tr").filter({ hasText: name });
      expect(await row.last().textContent()).toContain(example);
    }
    await close(opened);
  });

  test("a run is started, its rate changed, stopped, and kept with its outcome", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const before = (await saved(tab)).length;
    const id = await start(tab, { text: PLAN, flags: ["--duration=60s"], name: "steered" });
    await tab.getByRole("link", { name: "steered" }).first().click();
    await tab.getByRole("heading", { name: "steered", level: 1 }).waitFor();
    // Of the answers it says what the saved run does.
    await tab.getByText("Responses by status").waitFor({ timeout: 20_000 });
    expect(tab.url()).toContain(`#/live/${id}`);
    await tab.locator("#outcome .word", { hasText: "so far" }).waitFor();
    const field = tab.getByRole("textbox", { name: "Rate (iterations/s)" });
    await field.fill("nonsense");
    await field.press("Enter");
    await expect.poll(() => field.getAttribute("aria-invalid")).toBe("true");
    expect(((await tab.locator(".field-error").textContent()) ?? "").split("write").length).toBe(2);
    await field.fill("240/s");
    await tab.getByText("= 480/s requests").waitFor();
    // A refusal is none on the console.
    expect(opened.trouble).toEqual([]);
    await field.fill("240/s");
    await field.press("Enter");
    const changes = tab.getByRole("group", { name: "Changes of the rate while the run went on" });
    await changes.getByText("120/s to 240/s").waitFor({ timeout: 20_000 });
    await expect.poll(() => field.getAttribute("placeholder")).toBe("240/s");
    await tab.getByRole("button", { name: "Pause" }).click();
    await tab.getByRole("button", { name: "Resume" }).waitFor({ timeout: 20_000 });
    // Everything that says how it stands says the same.
    await tab.locator(".chips").getByText("paused").waitFor();
    await tab.getByRole("button", { name: "Resume" }).click();
    await tab.locator(".chips").getByText("running").waitFor();
    await changes.getByText("resume").waitFor({ timeout: 20_000 });
    // By its key: nothing has to be found first.
    await tab.locator("main").focus();
    await tab.keyboard.press("s");
    await tab.getByRole("dialog", { name: "Stop this run?" }).waitFor();
    expect(await focused(tab)).toBe("Stop");
    await tab.keyboard.press("Enter");
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "steered", level: 1 }).waitFor();
    const result = await resultOf(tab, await idOf(tab, "steered"));
    expect(result.rate.changes.map(({ what }) => what)).toEqual(["rate", "pause", "resume"]);
    expect(result.rate.changes[0]?.to_per_s).toBe(240);
    expect(result.run.stopped_by).not.toBeNull();
    expect(await tab.locator("#outcome .word").textContent()).toBe(
      `${result.verdict.outcome.replaceAll("_", " ").toUpperCase()} stopped early`,
    );
    await tab.getByText("Stopped by").waitFor();
    await tab.getByRole("link", { name: "Runs", exact: true }).click();
    await tab.getByRole("link", { name: "steered", exact: true }).waitFor();
    expect((await saved(tab)).length).toBe(before + 1);
    await close(opened);
  });

  test("the slowest requests are listed with their traces, also while a run goes on", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const flags = ["--duration=60s", "--trace-context", "--trace-link=https://traces.test/t/${trace_id}"];
    const id = await start(tab, { text: PLAN, flags, name: "traced" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    const slowest = tab.getByRole("group", { name: "The slowest requests" });
    const links = async () => {
      await expect.poll(() => slowest.getByRole("link").count(), { timeout: 20_000 }).toBe(5);
      const all = await slowest.getByRole("link").all();
      return Promise.all(all.map((one) => one.getAttribute("href")));
    };
    for (const href of await links()) expect(href).toMatch(/^https:\/\/traces\.test\/t\/[0-9a-f]{32}$/);
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "traced", level: 1 }).waitFor();
    const result = await resultOf(tab, await idOf(tab, "traced"));
    const known = result.by_step.flatMap(({ slowest = [] }) => slowest.map(({ trace_id }) => trace_id));
    for (const href of await links()) expect(known).toContain(href?.split("/").at(-1));
    await close(opened);
  });

  /** Symptom: neither the page of a run nor that of one that goes on had the metrics of its plan. */
  test("metrics of the plan's own have their figures, also while a run goes on", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const text = `run: {rate: 50/s, duration: 6s}
targets: {api: "\${env(TARGET)}"}
metrics: {paid: {kind: trend, unit: EUR}, orders: counter, left: gauge, known: rate}
data: {shops: {list: [[north, 2.5], [south, 1200]], columns: [shop, price]}}
scenarios:
  - steps:
      - get: /
        record: {paid: {value: "\${price}", tags: {shop: "\${shop}"}}, orders: 2, left: 7, known: true}
`;
    const id = await start(tab, { text, flags: [], name: "metered" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    const cells = async (name: string) => {
      const row = tab.locator("#own-metrics tr", { has: tab.getByRole("rowheader", { name, exact: true }) });
      return row.locator("td").allTextContents();
    };
    const orders = async () => Number((await cells("orders"))[0]?.replace(",", ""));
    await tab.locator("#own-metrics").waitFor();
    const early = await orders();
    expect(early).toBeLessThan(300);
    await expect.poll(orders, { timeout: 5_000 }).toBeGreaterThan(early);
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "metered", level: 1 }).waitFor();
    await tab.locator("#own-metrics").waitFor();
    expect(await orders()).toBe(300);
    expect((await cells("orders"))[1]).toBe("600");
    expect(await cells("left")).toEqual(["300", "7", "7", "7"]);
    expect(await cells("known")).toEqual(["300", "300", "100.0 %"]);
    expect((await cells("paid{shop:north} (EUR)")).slice(0, 2)).toEqual(["150", "2.5"]);
    expect((await cells("paid (EUR)")).at(-1)).toBe("1,200");
    expect(await violations(tab)).toEqual([]);
    expect(await overflow(tab)).toBeLessThanOrEqual(0);
    await removeRun(tab, await idOf(tab, "metered"));
    await close(opened);
  });

  test("a run of a terminal is seen while it goes on, and not steered", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    // Long enough for a busy machine to see it while it goes on.
    const over = served.save("shop.yaml", "--name", "from a shell", "-d", "15s");
    await tab.getByRole("list", { name: "Runs that go on" }).getByRole("link").click({ timeout: 20_000 });
    await tab.getByRole("heading", { name: "from a shell", level: 1 }).waitFor();
    await tab.locator("#outcome .word", { hasText: "so far" }).waitFor({ timeout: 20_000 });
    await tab.getByText("Started in a terminal, and steered there.").waitFor();
    expect(await tab.getByRole("button", { name: /Pause|Stop|Change/ }).count()).toBe(0);
    expect(await tab.locator("#by-step tbody tr").count()).toBe(2);
    await over;
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 20_000 });
    await tab.getByRole("heading", { name: "Heat map" }).waitFor();
    await removeRun(tab, new URL(tab.url()).hash.split("/").at(-1) ?? "");
    await close(opened);
  });

  test("a run of a terminal ends on its page with the outcome of the saved run", async () => {
    // The reloaded page asks for a run that goes on no more.
    const opened = await open(browser, served, { refusals: true });
    const { tab } = opened;
    const over = served.save("shop.yaml", "--name", "failterm", "-d", "8s", "--threshold", "p99<1us");
    await tab.getByRole("list", { name: "Runs that go on" }).getByRole("link").click({ timeout: 20_000 });
    const word = tab.locator("#outcome .word");
    await word.filter({ hasText: "so far" }).waitFor({ timeout: 20_000 });
    // Iterations are not known before its end, and none would be wrong.
    expect(await tab.locator(".tile").first().textContent()).toMatch(/^achieved rate so far[1-9]/);
    await over;
    await tab.getByRole("link", { name: "Open the saved run" }).waitFor({ timeout: 20_000 });
    const id = await idOf(tab, "failterm");
    const result = await resultOf(tab, id);
    // A busy machine judges nothing; so far it was DONE, whatever comes of it.
    expect(["fail", "no_verdict"]).toContain(result.verdict.outcome);
    expect(await word.textContent()).toBe(result.verdict.outcome.replaceAll("_", " ").toUpperCase());
    expect(await tab.locator("#outcome .summary").textContent()).toBe(result.verdict.summary);
    expect(await tab.locator("#outcome tbody tr").count()).toBe(result.thresholds.length);
    expect(await tab.locator(".tile").first().textContent()).toContain(
      perSecond(result.rate.iterations_started_per_s ?? 0),
    );
    // The page of a run that is over is that of the saved one.
    await tab.reload();
    await tab.waitForURL(new RegExp(`#/runs/${id}`), { timeout: 20_000 });
    await removeRun(tab, id);
    await close(opened);
  });

  test("a run of the page can be stopped after another start", async () => {
    const first = await startUi({ "shop.yaml": PLAN });
    const earlier = await open(browser, first);
    await start(earlier.tab, { text: PLAN, flags: ["--duration=120s"], name: "orphan" });
    await earlier.context.close();
    await first.kill();
    const second = await startUi({}, { after: first });
    const opened = await open(browser, second);
    const { tab } = opened;
    const going = tab.getByRole("region", { name: "Going on" });
    await going.getByText("from another start of plimsoll ui").waitFor({ timeout: 20_000 });
    await going.getByRole("link", { name: "orphan" }).click();
    await tab.getByText("it can be stopped here").waitFor({ timeout: 20_000 });
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "orphan", level: 1 }).waitFor();
    await close(opened);
    await second.end();
  });

  test("a run that goes on is not done, and a question about its stop ends with it", async () => {
    const text = PLAN.replace(/thresholds.*\n/, "").replace("duration: 2s", "duration: 6s");
    const opened = await open(browser, served);
    const { tab } = opened;
    const id = await start(tab, { text, flags: [], name: "short" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    // On a busy machine it is NO VERDICT so far; it is never DONE.
    await tab.locator("#outcome .word", { hasText: /^(RUNNING|NO VERDICT) so far$/ }).waitFor({ timeout: 20_000 });
    await tab.locator("main").focus();
    await tab.keyboard.press("s");
    const question = tab.getByRole("dialog", { name: "Stop this run?" });
    await question.waitFor();
    await tab.getByRole("link", { name: "Open the saved run" }).waitFor({ timeout: 20_000 });
    await question.waitFor({ state: "detached" });
    await tab.locator("#outcome .word", { hasText: /^(DONE|NO VERDICT)$/ }).waitFor();
    await removeRun(tab, await idOf(tab, "short"));
    await close(opened);
  });

  test("a search begins with the address of the last run, and a form with the values of its plan", async () => {
    const opened = await open(browser, served, { place: "#/find" });
    const { tab } = opened;
    // The runs before are against this server.
    await expect.poll(() => tab.getByLabel("Address").inputValue()).toMatch(/^http:\/\/127\.0\.0\.1:\d+/);
    await tab.evaluate(() => void (location.hash = "#/plan/shop.yaml"));
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    const placeholder = (name: string) =>
      tab.getByRole("textbox", { name, exact: true }).getAttribute("placeholder");
    await expect.poll(() => placeholder("Rate")).toBe("120/s");
    expect(await placeholder("Duration")).toBe("2s");
    await close(opened);
  });

  test("a comparison of runs that are not there has no figures, and announces none", async () => {
    const opened = await open(browser, served, { refusals: true, place: "#/compare?a=nothing1&b=nothing2" });
    await opened.tab.getByRole("alert").first().waitFor();
    expect(await opened.tab.getByText("The figures are below").count()).toBe(0);
    await close(opened);
  });

  test("a run that goes on is found again after another start, by its page", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const first = await startUi({ "shop.yaml": PLAN }, { token });
    const { tab, context } = await open(browser, first);
    const id = await start(tab, { text: PLAN, flags: ["--duration=120s"], name: "survivor" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    await tab.locator("#outcome").waitFor({ timeout: 20_000 });
    await first.kill();
    await tab.getByText("The run goes on by itself.").waitFor({ timeout: 20_000 });
    const second = await startUi({}, { after: first, token });
    await tab.getByText("it can be stopped here").waitFor({ timeout: 30_000 });
    expect(tab.url()).not.toContain(id);
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("heading", { name: "survivor", level: 1 }).waitFor();
    await context.close();
    await second.end();
  });

  test("an error goes with its page, and with the silence that it is about", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const first = await startUi({ "shop.yaml": PLAN }, { token });
    const { tab, context } = await open(browser, first, { refusals: true });
    const error = tab.locator(".note.bad");
    const id = await start(tab, { text: PLAN, flags: ["--duration=1s"], name: "over" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    await tab.getByRole("button", { name: "Pause" }).waitFor({ timeout: 20_000 });
    // It ends between what is seen and what is clicked.
    await tab.route("**/pause", (route) =>
      route.fulfill({
        headers: { "x-plimsoll-refusal": "409" },
        json: { error: "the run has ended", hint: "start it again" },
      }),
    );
    await tab.getByRole("button", { name: "Pause" }).click();
    await error.getByText("the run has ended").waitFor();
    await tab.getByRole("link", { name: "Plans", exact: true }).click();
    await error.waitFor({ state: "detached" });
    await tab.getByRole("link", { name: "shop.yaml" }).click();
    const text = tab.getByRole("textbox", { name: /^Text of/ });
    await text.click();
    await tab.keyboard.type("# more\n");
    await first.kill();
    await tab.getByRole("button", { name: "Save", exact: true }).click();
    await error.getByText("does not answer").waitFor();
    const second = await startUi({}, { after: first, token });
    await error.waitFor({ state: "detached", timeout: 30_000 });
    await context.close();
    await second.end();
  });

  test("where every request times out, every sentence is true", async () => {
    // It answers the first request, with which a run looks if somebody is there, and no other.
    let asked = 0;
    const silent = createServer((_, response) => void (asked++ === 0 && response.end("here")));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const limits = ["--timeout", "200ms", "--threshold", "p99<50ms"];
    await served.save(`http://127.0.0.1:${port}/`, "-R", "40", "-d", "3s", ...limits, "--name", "silent");
    silent.close();
    silent.closeAllConnections();
    const opened = await open(browser, served);
    const { tab } = opened;
    // What may be more says so in the list as on the page.
    const row = tab.getByRole("row").filter({ has: tab.getByRole("link", { name: "silent", exact: true }) });
    const id = await idOf(tab, "silent");
    const { response_time, thresholds } = await resultOf(tab, id);
    expect(response_time.at_least).toContain("50");
    expect(await row.textContent()).toContain(`≥ ${nanos(response_time.p["50"] ?? 0)}`);
    const table = read(program, ["runs", "--store", served.store]);
    expect(table.split("\n").find((line) => line.includes("silent"))).toContain("≥ ");
    await row.getByRole("link").click();
    await tab.getByRole("heading", { name: "silent", level: 1 }).waitFor();
    const page = (await tab.locator("main").textContent()) ?? "";
    // One that the generator's own stall has kept may be under way at the end.
    expect(page).toMatch(/No errors beside timeouts: 1[12]\d requests timed out\./);
    expect(page).not.toContain("No request failed.");
    expect(thresholds.length).toBe(1);
    expect(((await tab.locator("#outcome tbody td").last().textContent()) ?? "").length).toBeGreaterThan(0);
    await removeRun(tab, id);
    await close(opened);
  });

  test("where no request is answered well, there is nothing to draw, and nothing hidden", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.getByRole("link", { name: HOSTILE_NAME }).click();
    await tab.getByRole("heading", { name: "Response time", exact: true }).waitFor();
    await tab.getByText("Nothing to draw: no values.").first().waitFor();
    expect(await tab.getByText("All lines are hidden.").count()).toBe(0);
    await close(opened);
  });

  test("a run of a cluster has its faults and what the nodes were found to have", async () => {
    const args = ["cluster", "run", "cluster.yaml", "--save", "--store", served.store, "--quiet"];
    served.write("cluster.yaml", cluster());
    served.write("mixed.yaml", example("mixed.yaml"));
    await carriedOut(served.folder, [...args, "--name", "cluster"], [0, 1, 3, 6, 99]);
    const opened = await open(browser, served);
    const { tab } = opened;
    const result = await resultOf(tab, await idOf(tab, "cluster"));
    await tab.getByRole("link", { name: "cluster", exact: true }).click();
    const part = tab.locator("#cluster");
    await part.getByText("Faults, and their effect on the load").waitFor();
    const [fault] = result.faults ?? [];
    expect(fault?.fault).toBe("kill");
    expect(await part.locator("tbody tr").first().textContent()).toContain(count(fault?.ok ?? 0));
    expect(await part.locator("p .badge").textContent()).toContain(
      result.reconciliation?.consistent === true ? "consistent" : "inconsistent",
    );
    expect(await violations(tab)).toEqual([]);
    await removeRun(tab, result.run.id);
    await close(opened);
  });

  test("a live run is drawn in place: the page does not grow with each second", async () => {
    const opened = await open(browser, served);
    const { tab, context } = opened;
    const id = await start(tab, {
      text: PLAN,
      flags: ["--duration=8s", "--interval=100ms"],
      name: "growing",
    });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    await tab.locator("#outcome .word").waitFor();
    await expectPicture(tab);
    const canvases = await tab.locator("canvas").elementHandles();
    const session = await context.newCDPSession(tab);
    const nodes = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { nodes, jsEventListeners } = await session.send("Memory.getDOMCounters");
      return { nodes, jsEventListeners };
    };
    await tab.waitForTimeout(1_500);
    const early = await nodes();
    await tab.waitForTimeout(4_000);
    const late = await nodes();
    expect(late.nodes).toBeLessThan(early.nodes * 1.2 + 200);
    expect(late.jsEventListeners).toBeLessThan(early.jsEventListeners * 1.2 + 50);
    const stay = await Promise.all(
      canvases.map((canvas) => canvas.evaluate((element) => element.isConnected)),
    );
    expect(stay.length).toBeGreaterThan(3);
    expect(stay.filter((is) => !is).length).toBeLessThanOrEqual(1);
    await tab.getByRole("link", { name: "Open the saved run" }).waitFor({ timeout: 30_000 });
    await close(opened);
  });

  test("two runs are chosen and compared", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    for (const name of ["base", "new"]) {
      const row = tab.getByRole("row").filter({ has: tab.getByRole("link", { name, exact: true }) });
      await row.getByRole("checkbox").check();
    }
    await tab.getByRole("button", { name: "Compare 2" }).click();
    await tab.getByRole("heading", { name: "Comparison", level: 1 }).waitFor();
    const word = tab.locator("#judgement .word");
    await word.waitFor();
    expect(["BETTER", "WORSE", "SAME", "UNDECIDED", "NOT JUDGED"]).toContain(await word.textContent());
    const ids = [await idOf(tab, "base"), await idOf(tab, "new")];
    // As the command line has it.
    const args = ["compare", ...ids, "-o", "json", "--store", served.store];
    const compared = JSON.parse(read(program, args)) as {
      metrics: { metric: string; a_median: number; b_median: number; verdict: string | null }[];
    };
    const p50 = compared.metrics.find(({ metric }) => metric === "response_time.p50");
    const row = tab.locator("#judgement tbody tr").filter({ hasText: "p50" });
    const text = (await row.textContent()) ?? "";
    expect(text).toContain(nanos(p50?.a_median ?? 0));
    expect(text).toContain(nanos(p50?.b_median ?? 0));
    expect(text).toContain(p50?.verdict ?? "not judged");
    expect(await tab.locator("#judgement svg.change-drawn").count()).toBe(compared.metrics.length);
    for (const title of ["Percentile spectrum", "Histogram"]) {
      const chart = tab.locator("figure", { has: tab.getByRole("heading", { name: title, exact: true }) });
      expect(await chart.locator(".legend button").count()).toBe(2);
    }
    // The choice stays until it is let go: another run may be added to it, or one taken out.
    for (const leave of [() => tab.goBack(), () => tab.getByRole("link", { name: "Choose others" }).click()]) {
      await leave();
      await tab.getByRole("button", { name: "Deselect 2" }).waitFor();
      const checked = tab.getByRole("checkbox", { checked: true });
      await expect.poll(() => checked.count(), { timeout: 10_000 }).toBe(2);
      await tab.getByRole("button", { name: "Compare 2" }).click();
      await word.waitFor();
    }
    await tab.getByRole("button", { name: "Swap A and B" }).click();
    await expect.poll(() => tab.url()).toContain(`a=${ids[1]}&b=${ids[0]}`);
    await tab.getByRole("button", { name: "Move new to B" }).click();
    await tab.getByText("Each group needs a run").waitFor();
    await close(opened);
  });

  test("an undecided comparison has its next step: more runs of both sides, in turns", async () => {
    const plan = (path: string) => `run: {connections: 1, iterations: 40}
targets: {shop: "\${env(TARGET)}"}
scenarios: [{steps: [{get: ${path}}]}]
`;
    for (const side of ["left", "right"]) {
      served.write(`${side}.yaml`, plan(`/${side}`));
      await served.save(`${side}.yaml`, "--name", side);
    }
    const opened = await open(browser, served);
    const { tab } = opened;
    const ids = [await idOf(tab, "left"), await idOf(tab, "right")];
    await tab.evaluate(([a, b]) => void (location.hash = `#/compare?a=${a}&b=${b}`), ids);
    const more = tab.getByRole("button", { name: "Make 5 runs each, in turns" });
    await more.click();
    await tab.waitForURL(/compare\?a=(\w+,){4}\w+&b=(\w+,){4}\w+$/, { timeout: 60_000 });
    await tab.locator("#judgement .word").waitFor();
    // In turns, and then there are enough.
    const made = (await saved(tab)).filter(({ name }) => name === "left" || name === "right");
    const order = made.map(({ name }) => name).reverse();
    expect(order).toEqual(Array.from({ length: 6 }, () => ["left", "right"]).flat());
    expect(await more.count()).toBe(0);
    expect(await violations(tab)).toEqual([]);
    // One load on one address is not taken in turns: each side gets its runs when its server is up.
    const lefts = made.filter(({ name }) => name === "left").map(({ id }) => id);
    const [a, b] = [lefts.slice(0, 1), lefts.slice(1, 5)].map((ids) => ids.join(","));
    await tab.evaluate(([a, b]) => void (location.hash = `#/compare?a=${a}&b=${b}`), [a ?? "", b ?? ""]);
    await tab.locator("#judgement .word").waitFor();
    await tab.getByText("Both are one load on one address").waitFor();
    expect(await more.count()).toBe(0);
    await tab.getByRole("button", { name: "Make 4 more runs of A" }).waitFor();
    await tab.getByRole("button", { name: "Make 1 more run of B" }).click();
    await tab.waitForURL(new RegExp(`compare\\?a=${a}&b=${b},\\w+$`), { timeout: 60_000 });
    for (const { id } of (await saved(tab)).filter(({ name }) => name === "left" || name === "right")) {
      await removeRun(tab, id);
    }
    await close(opened);
  });

  test("several runs of a plan are started by its form and by a result, and their variation is said", async () => {
    served.write(
      "several.yaml",
      `run: {connections: 1, iterations: 40}
targets: {shop: "\${env(TARGET)}"}
scenarios: [{steps: [{get: /several}]}]
`,
    );
    const opened = await open(browser, served, { place: "#/plan/several.yaml" });
    const { tab } = opened;
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByLabel("Name of the run").fill("several");
    await tab.getByRole("textbox", { name: "Runs", exact: true }).fill("3");
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//);
    await tab.getByRole("heading", { name: "3 runs" }).waitFor({ timeout: 60_000 });
    expect(await tab.locator("#series tbody tr").count()).toBe(3);
    const between = tab.locator("#between tbody");
    expect(await between.getByRole("row", { name: /^response time p50/ }).textContent()).toContain("ms");
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("link", { name: "run 2", exact: true }).click();
    // A run of these once more is one run, and five of it are five.
    await tab.getByRole("button", { name: "Run again" }).click();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await tab.getByRole("button", { name: "Run 5 times" }).click();
    await tab.getByRole("heading", { name: "5 runs" }).waitFor({ timeout: 60_000 });
    expect(await between.textContent()).toContain(" to ");
    for (const { id } of (await saved(tab)).filter(({ name }) => name === "several")) await removeRun(tab, id);
    await close(opened);
  });

  test("several runs are stopped as a whole", async () => {
    served.write(
      "endless.yaml",
      `run: {rate: 20/s, duration: 60s}
targets: {shop: "\${env(TARGET)}"}
scenarios: [{steps: [{get: /}]}]
`,
    );
    const opened = await open(browser, served, { place: "#/plan/endless.yaml" });
    const { tab } = opened;
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByRole("textbox", { name: "Runs", exact: true }).fill("2");
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.locator("#series").getByText("1 of 2 have begun").waitFor();
    expect(await tab.getByRole("button", { name: /^(Pause|Change)/ }).count()).toBe(0);
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByRole("heading", { name: "1 run", exact: true }).waitFor();
    await tab.getByText("It was stopped: runs are missing.").waitFor();
    await close(opened);
  });

  test("a run is deleted, but not without an answer", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const made = served.save("shop.yaml", "-d", "4s", "--name", "short-lived");
    // The page follows the history by itself: a run of a terminal is seen while it goes on.
    const going = tab.getByRole("listitem").filter({ hasText: "short-lived" });
    await going.getByText("from a terminal").first().waitFor({ timeout: 20_000 });
    await made;
    const list = tab.getByRole("table", { name: "Saved runs" });
    const name = tab.getByRole("link", { name: "short-lived", exact: true });
    const link = list.locator(name);
    await link.waitFor({ timeout: 20_000 });
    const row = list.getByRole("row").filter({ has: name });
    await row.getByRole("button", { name: /^Delete short-lived/ }).click();
    const dialog = tab.getByRole("dialog", { name: "Delete this run?" });
    expect(await violations(tab)).toEqual([]);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect((await saved(tab, "short-lived")).length).toBe(1);
    await row.getByRole("button", { name: /^Delete short-lived/ }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await link.waitFor({ state: "detached" });
    expect((await saved(tab, "short-lived")).length).toBe(0);
    await close(opened);
  });

  /** Symptom: the page of a search was blank until its first trial had ended, and never had its time. */
  test("a search says what it tries, and how long it may take", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    const flags = ["--slo=p50<1s", "--from=50/s", "--to=200/s", "--duration=4s", "--max-time=90s"];
    const id = await start(tab, { text: PLAN, flags, name: "tried", command: "find" });
    await tab.evaluate((id) => void (location.hash = `#/live/${id}`), id);
    const progress = tab.locator(".progress", { hasText: /^trying 50\.0\/s · \d+ s, at most \d+ s left$/ });
    await progress.getByRole("progressbar").waitFor();
    const tile = (label: string) => tab.locator("#capacity .tile", { hasText: label });
    expect(await tile("being tried").textContent()).toContain("50.0/sfor 4.00 s, to find a rate that breaks");
    for (const label of ["holds, so far", "breaks, so far"])
      expect(await tile(label).locator(".value").textContent()).toBe("none yet");
    await tab.getByText("The load line is drawn once the first trial has ended.").waitFor();
    const before = await progress.textContent();
    await expect.poll(() => progress.textContent(), { timeout: 5_000 }).not.toBe(before);
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("heading", { name: "Load line", exact: true }).waitFor({ timeout: 20_000 });
    await tab.getByRole("button", { name: /^Stop/ }).click();
    await tab.getByText(/^exit code/).waitFor({ timeout: 30_000 });
    expect(await tile("being tried").count()).toBe(0);
    const kept = (await saved(tab)).find(({ name }) => name === "tried");
    if (kept !== undefined) await removeRun(tab, kept.id);
    await close(opened);
  });

  test("a search draws its load line", { timeout: 120_000 }, async () => {
    const opened = await open(browser, served, { place: "#/find" });
    const { tab } = opened;
    await tab.getByRole("heading", { name: "Find the capacity", level: 1 }).waitFor();
    // It begins with the address of the last run.
    await expect.poll(() => tab.getByLabel("Address").inputValue()).not.toBe("");
    await tab.getByLabel("Address").fill("");
    await tab.getByRole("button", { name: "Find" }).click();
    await tab.getByText("write an address, such as").waitFor();
    await tab.getByLabel("Address").fill(`${served.sink}/`);
    await tab.getByLabel("Objectives").fill("p50<1s");
    await tab.getByLabel("First rate").fill("50/s");
    await tab.getByLabel("Highest rate").fill("200/s");
    await tab.getByLabel("Shortest trial").fill("500ms");
    await tab.getByLabel("Longest search").fill("20s");
    await tab.getByRole("button", { name: "Find" }).click();
    await tab.locator("#trials tbody tr").first().waitFor({ timeout: 60_000 });
    await tab.getByText(/^exit code/).waitFor({ timeout: 90_000 });
    const line = tab.locator("figure", { has: tab.getByRole("heading", { name: "Load line", exact: true }) });
    await line.getByRole("slider").focus();
    await tab.keyboard.press("Home");
    expect(await line.getByRole("slider").getAttribute("aria-valuetext")).toMatch(/^[\d.]+\/s · \w+/);
    // The end has the result of the search itself.
    await tab.getByText("objective: ").waitFor();
    // It is kept, with its outcome, its downloads and its load once more.
    await tab.getByRole("link", { name: "Open the saved search" }).click();
    await tab.waitForURL(/#\/runs\//);
    await tab.getByRole("heading", { name: "Load line", exact: true }).waitFor();
    await tab.locator(".target .badge").waitFor();
    await tab.locator("summary", { hasText: "Download" }).waitFor();
    await tab.getByRole("button", { name: "Run again" }).click();
    await tab.waitForURL(/#\/live\//, { timeout: 30_000 });
    await tab.getByRole("button", { name: /^Stop/ }).click();
    await tab.getByText(/^exit code/).waitFor({ timeout: 30_000 });
    for (const { id } of await saved(tab, served.sink)) {
      const found = (await resultOf(tab, id)) as unknown as { search?: object };
      if (found.search !== undefined) await removeRun(tab, id);
    }
    await close(opened);
  });

  /** Symptom: a saved search was in no list of the page. */
  test("a saved search is listed and opens as the page of one that has just ended", async () => {
    const flags = ["--slo", "p50<1s", "--from", "20", "--to", "40", "-d", "100ms", "--max-time", "10s"];
    const saving = ["--name", "kept", "--store", served.store, "--quiet"];
    await carriedOut(served.folder, ["find", `${served.sink}/`, ...flags, ...saving], [0, 3, 99]);
    const opened = await open(browser, served);
    const { tab } = opened;
    const row = tab.getByRole("row", { name: /kept/ });
    await row.getByText("search", { exact: true }).waitFor();
    // With its sentence the list fits, and no name is cut within a word that has room.
    for (const width of [1920, 1440, 1280, 1251, 1250, 1101, 1024, 981, 980, 641, 640, 390]) {
      await tab.setViewportSize({ width, height: 800 });
      const names = await tab.locator(".runs tbody th a").evaluateAll((links) =>
        links.flatMap((link) => {
          const { height } = link.getBoundingClientRect();
          const isOneWord = /^[\w.-]{1,10}$/.test(link.textContent ?? "");
          return isOneWord && link.getClientRects().length > 1 ? [`${link.textContent} ${height}`] : [];
        }),
      );
      expect([width, await overflow(tab), names]).toEqual([width, 0, []]);
    }
    await tab.setViewportSize({ width: 1440, height: 900 });
    expect(await row.getByRole("checkbox").count()).toBe(0);
    await row.getByRole("link", { name: "kept" }).click();
    await tab.getByRole("heading", { name: "kept", level: 1 }).waitFor();
    await tab.getByRole("heading", { name: "Load line", exact: true }).waitFor();
    await tab.getByText("objective: ").waitFor();
    expect(await tab.locator("#trials tbody tr").count()).toBeGreaterThan(0);
    expect(await violations(tab)).toEqual([]);
    expect(await overflow(tab)).toBeLessThanOrEqual(0);
    // A wide screen has the tables beside the load line.
    await tab.setViewportSize({ width: 1920, height: 1080 });
    const left = async (part: string) => (await tab.locator(part).boundingBox())?.x ?? 0;
    expect(await left("#trials")).toBeGreaterThan((await left("#capacity")) + 800);
    await tab.setViewportSize({ width: 1440, height: 900 });
    expect(await left("#trials")).toBe(await left("#capacity"));
    const menu = tab.locator("details", { hasText: "Download" });
    expect(await menu.locator("a").count()).toBe(6);
    expect(await menu.locator("a", { hasText: "hgrm" }).count()).toBe(0);
    await tab.getByRole("button", { name: "Delete" }).click();
    await tab.getByRole("dialog", { name: "Delete this search?" }).getByRole("button", { name: "Delete" }).click();
    await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    expect((await saved(tab, "kept")).length).toBe(0);
    await close(opened);
  });

  test("everything can be reached by keyboard alone", async () => {
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.getByRole("link", { name: "base", exact: true }).waitFor();
    await tab.keyboard.press("Tab");
    expect(await focused(tab)).toBe("To the content");
    await tab.keyboard.press("Enter");
    expect(await tab.evaluate(() => document.activeElement?.id)).toBe("main");
    await tab.keyboard.press("?");
    const keys = tab.getByRole("dialog", { name: "Keys" });
    await keys.getByText("Anywhere").waitFor();
    expect(await violations(tab)).toEqual([]);
    // Letters can be turned off, and on again.
    const letters = keys.getByLabel("Letter shortcuts");
    await letters.uncheck();
    await tab.keyboard.press("Escape");
    await tab.keyboard.press("/");
    expect(await tab.evaluate(() => document.activeElement?.tagName)).not.toBe("INPUT");
    await tab.keyboard.press("?");
    await letters.check();
    // A window that is closed can be opened again by the very next key.
    await tab.evaluate(() => {
      document.querySelector<HTMLDialogElement>("dialog[open]")?.requestClose();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
    });
    await keys.getByText("Anywhere").waitFor();
    await tab.keyboard.press("Escape");
    await keys.waitFor({ state: "hidden" });
    await tab.keyboard.press("/");
    expect(await tab.evaluate(() => document.activeElement?.tagName)).toBe("INPUT");
    // Keys that are typed into a field are no shortcuts.
    await tab.keyboard.type("new?");
    expect(await tab.getByRole("dialog").count()).toBe(0);
    await tab.getByText("No run has “new?”").waitFor();
    await tab.getByLabel("Filter").fill("");
    await tab.getByRole("link", { name: "base", exact: true }).waitFor();
    await reach(tab, /^Choose base/);
    await tab.keyboard.press("Space");
    await reach(tab, /^Choose new/, "Shift+Tab");
    await tab.keyboard.press("Space");
    await tab.keyboard.press("c");
    await tab.getByRole("heading", { name: "Comparison", level: 1 }).waitFor();
    await tab.keyboard.press("g");
    await tab.keyboard.press("r");
    await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await reach(tab, /^base$/);
    expect(await outlined(tab)).toBe(true);
    await tab.keyboard.press("Enter");
    await tab.getByRole("heading", { name: "base", level: 1 }).waitFor();
    await tab.keyboard.press("u");
    await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    for (const [key, name] of [
      ["p", "Plans"],
      ["n", "New"],
      ["i", "Import"],
      ["f", "Find"],
    ] as const) {
      await tab.keyboard.press("g");
      await tab.keyboard.press(key);
      const link = tab.getByRole("navigation", { name: "Places" }).getByRole("link", { name, exact: true });
      await expect.poll(() => link.getAttribute("aria-current")).toBe("page");
    }
    await close(opened);
  });

  test("a place that is none, and a run that is none, say so", async () => {
    const opened = await open(browser, served, { place: "#/nowhere" });
    const { tab } = opened;
    await tab.getByRole("heading", { name: "Page not found" }).waitFor();
    await tab.evaluate(() => void (location.hash = "#/runs/ffffffffffffffff"));
    await tab.getByRole("alert").waitFor();
    expect(await tab.getByRole("alert").textContent()).toContain("ffffffffffffffff");
    await close(opened);
  });

  test("a page whose program is gone says so", async () => {
    const other = await serve();
    const { tab, context } = await open(browser, other);
    await tab.getByText("No run was saved yet").waitFor();
    expect(await violations(tab)).toEqual([]);
    await other.end();
    const notice = tab.getByText("The program does not answer at the moment");
    await notice.waitFor({ timeout: 20_000 });
    // Its token has gone with it.
    expect(await notice.textContent()).toContain("open the address that it prints");
    await tab.getByRole("link", { name: "Find", exact: true }).click();
    await tab.getByText("`plimsoll ui` does not answer").waitFor();
    await context.close();
  });

  test("fits a screen of 4K", async () => {
    const opened = await open(browser, served, { width: 3840 });
    const { tab } = opened;
    await tab.getByRole("link", { name: "base", exact: true }).click();
    await tab.getByRole("heading", { name: "Heat map" }).waitFor();
    expect(await overflow(tab)).toBe(0);
    // Parts stand beside each other.
    const boxes = await Promise.all(
      (await tab.locator(".parts > section").all()).map((section) => section.boundingBox()),
    );
    expect(new Set(boxes.map((box) => Math.round(box?.x ?? 0))).size).toBe(2);
    await close(opened);
  });

  for (const width of [390, 1440]) {
    for (const dark of [false, true]) {
      test(`fits ${width} px, ${dark ? "dark" : "light"}, and passes axe`, async () => {
        const opened = await open(browser, served, { width, dark });
        const { tab } = opened;
        const [base, other] = [await idOf(tab, "base"), await idOf(tab, HOSTILE_NAME)];
        const live = await start(tab, { text: PLAN, flags: ["--duration=60s"], name: "seen" });
        const places: [string, Locator][] = [
          ["#/runs", tab.getByRole("link", { name: "base", exact: true })],
          [`#/runs/${base}`, tab.getByRole("heading", { name: "Heat map" })],
          [`#/runs/${other}`, tab.locator("#responses")],
          [`#/compare?a=${base}&b=${await idOf(tab, "new")}`, tab.locator("#judgement .word")],
          [`#/live/${live}`, tab.locator("#outcome .word")],
          ["#/find", tab.getByRole("button", { name: "Find" })],
        ];
        for (const [place, there] of places) {
          await tab.evaluate((hash) => void (location.hash = hash), place);
          await there.first().waitFor({ timeout: 20_000 });
          await tab.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
          expect([place, await overflow(tab)]).toEqual([place, 0]);
          expect([place, await violations(tab)]).toEqual([place, []]);
        }
        await tab.evaluate((hash) => void (location.hash = hash), `#/live/${live}`);
        await tab.getByRole("button", { name: /^Stop/ }).click();
        await tab.getByText(/^exit code/).waitFor({ timeout: 30_000 });
        await close(opened);
      });
    }
  }

  test("10,000 runs are listed in under a second", { timeout: 180_000 }, async () => {
    await served.save(`${served.sink}/`, "-n", "30", "-c", "1", "--name", "small");
    multiply(served.store, "small", 10_000);
    const opened = await open(browser, served);
    const { tab } = opened;
    await tab.getByText("10,000 runs").waitFor({ timeout: 60_000 });
    /** The shortest of three: other work of the machine only adds to it. */
    const took = async (before: () => Promise<void>, what: () => Promise<void>) => {
      const times: number[] = [];
      for (let time = 0; time < 3; time += 1) {
        await before();
        const begin = performance.now();
        await what();
        times.push(performance.now() - begin);
      }
      return Math.min(...times);
    };
    const rows = tab.locator("table.runs tbody tr");
    const list = async () => {
      await tab.evaluate(() => void (location.hash = "#/runs"));
      await rows.nth(99).waitFor();
    };
    const elsewhere = async () => {
      await tab.evaluate(() => void (location.hash = "#/find"));
      await tab.getByRole("heading", { name: "Find the capacity" }).waitFor();
    };
    expect(await took(elsewhere, list)).toBeLessThan(1_000);
    const second = (await saved(tab, "", 100))[0]?.id;
    const next = async () => {
      await tab.getByRole("button", { name: "Earlier" }).click();
      await tab.getByText("101 to 200 of 10,000").waitFor();
      expect(await shownFirst(tab)).toBe(second);
    };
    expect(await took(list, next)).toBeLessThan(1_000);
    const filter = async () => {
      await tab.getByLabel("Filter").fill("copy-7777");
      await tab.getByRole("link", { name: "copy-7777", exact: true }).waitFor();
    };
    expect(await took(async () => void (await tab.getByLabel("Filter").fill("")), filter)).toBeLessThan(
      1_000,
    );
    expect(await rows.count()).toBe(1);
    await close(opened);
  });
});

/** Starts a run as the editor does. */
async function start(
  tab: Tab,
  run: { text: string; flags: string[]; name: string; command?: string },
): Promise<string> {
  return tab.evaluate(async (run) => {
    const response = await fetch("/api/live", {
      method: "POST",
      headers: { "x-plimsoll-ui": "1", "content-type": "application/json" },
      body: JSON.stringify({ path: null, command: "run", ...run }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return (JSON.parse(text) as { id: string }).id;
  }, run);
}

/** Deletes a run as the page does. */
async function removeRun(tab: Tab, id: string): Promise<void> {
  const status = await tab.evaluate(async (id) => {
    const headers = { "x-plimsoll-ui": "1", "content-type": "application/json" };
    return (await fetch(`/api/runs/${id}/delete`, { method: "POST", headers, body: "{}" })).status;
  }, id);
  expect(status).toBe(200);
}

/** The output of the program; 3, 4 and 5 are results of a comparison: not judged, worse, undecided. */
function read(program: string, args: string[]): string {
  try {
    return execFileSync(program, args, {
      encoding: "utf8",
      maxBuffer: 1 << 26,
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    const { status, stdout } = error as { status?: number; stdout?: string };
    if ([3, 4, 5].includes(status ?? 0) && stdout !== undefined) return stdout;
    throw error;
  }
}

/** The id of the first run of the list. */
const shownFirst = async (tab: Tab): Promise<string> => {
  const link = tab.locator("table.runs tbody tr a").first();
  return ((await link.getAttribute("href")) ?? "").split("/").at(-1) ?? "";
};

/** The name of the element with the focus. */
const focused = (tab: Tab): Promise<string> =>
  tab.evaluate(() => {
    const element = document.activeElement;
    return (element?.getAttribute("aria-label") ?? element?.textContent ?? "").trim();
  });

/** True if a ring is drawn around the element with the focus. */
const outlined = (tab: Tab): Promise<boolean> =>
  tab.evaluate(() => {
    const element = document.activeElement;
    return element !== null && getComputedStyle(element).outlineStyle !== "none";
  });

/** Presses a key until the element with the focus has this name. A list has several stops a row. */
async function reach(tab: Tab, name: RegExp, key = "Tab"): Promise<void> {
  for (let step = 0; step < 300; step += 1) {
    if (name.test(await focused(tab))) return;
    await tab.keyboard.press(key);
  }
  throw new Error(`${name} is not reached by ${key}`);
}

/** Copies of a run of a history, whole rows of its database, until there are so many runs. */
function multiply(store: string, name: string, wanted: number): void {
  const script = `
import sqlite3, sys
store, name, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(store, timeout=30)
columns = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
row = dict(zip(columns, db.execute("SELECT * FROM runs WHERE name = ?", (name,)).fetchone()))
number, = db.execute("SELECT max(number) FROM runs").fetchone()
begun = row["started_unix_ns"]
with db:
    while db.execute("SELECT count(*) FROM runs").fetchone()[0] < wanted:
        missing = wanted - db.execute("SELECT count(*) FROM runs").fetchone()[0]
        for copy in range(missing):
            number += 1
            row.update(number=number, id=f"{number:016x}", name=f"copy-{copy}")
            row.update(started_unix_ns=begun - number * 60_000_000_000)
            places = ", ".join("?" * len(columns))
            db.execute(f"INSERT INTO runs VALUES ({places})", [row[column] for column in columns])
`;
  execFileSync("python3", ["-c", script, store, name, String(wanted)]);
}
