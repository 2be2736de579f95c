import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { Browser, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterSpec, USUAL_CLUSTER } from "../ui/editor/made.ts";
import { carriedOut } from "./program.ts";
import { hasBrowser, launch, open, overflow, serve, type Served, startSuite, violations } from "./ui.ts";

/**
 * Every view at every width: nothing is wider than the window, axe has no finding, and the console is empty.
 *
 * The pictures are for the documentation: `PLIMSOLL_SCREENS=1 npx vitest run tests/ui-screens.test.ts` writes
 * them where docs/ui.md shows them. Without the variable they are taken all the same, and thrown away.
 */
const KEPT = process.env["PLIMSOLL_SCREENS"] !== undefined;
const images = fileURLToPath(new URL("../../docs/images/ui", import.meta.url));

const PLAN = `# Customers of a shop: they look at items, and some of them order.
run: {rate: 200/s, duration: 12s}
targets: {shop: "\${env(TARGET)}"}
thresholds: ["p99<25ms", "error_rate<0.1%"]
scenarios:
  - name: browse
    weight: 4
    steps:
      - get: /items
      - get: /items/1
        think: 200ms
  - name: order
    steps:
      - post: /orders
        json: {item: 1}
        expect: {status: 200}
`;

/** Two rates on one sink. */
const SUITE = `name: sinks
nodes:
  command: \${plimsoll}
  arguments: [sink, --listen, "\${address.http}"]
  ports: {http: 0}
parameters: {rate: 50}
workload:
  run: {rate: "\${matrix.rate}/s", duration: 3s}
  targets: {api: "http://\${node.0.http}"}
  scenarios: [{steps: [{get: /items}]}]
suites:
  rates: {restart: false, matrix: {rate: [50, 100]}}
`;

/** A view, and the steps before its picture. */
interface View {
  name: string;
  place: string;
  ready: (tab: Tab) => Promise<void>;
  /** The part that is shown, if it is not the top. */
  from?: string;
}

/** Windows, each with the suffix of the names of its pictures; those without one are in no document. */
const WINDOWS = [
  { suffix: "", width: 1280 },
  { suffix: "-dark", width: 1280, dark: true },
  { suffix: "-narrow", width: 390 },
  { suffix: null, width: 1920 },
] as const;

/** Looks at what a tab shows, with everything that can be opened. */
async function inspect(tab: Tab, name: string): Promise<void> {
  await tab.evaluate(() => {
    for (const details of document.querySelectorAll<HTMLDetailsElement>("main details")) details.open = true;
  });
  expect([name, await overflow(tab), await violations(tab)]).toEqual([name, 0, []]);
}

const heading = (name: string | RegExp) => (tab: Tab) =>
  tab.getByRole("heading", { level: 1, name }).waitFor();

describe.skipIf(!hasBrowser())("pictures of the web UI", () => {
  let browser: Browser;
  let served: Served;
  let views: View[];
  /** Those without a picture. */
  let others: View[];

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "shop.yaml": PLAN });
    for (const name of ["before", "after"]) {
      await served.save("shop.yaml", "--name", name, "-d", "4s", "--seed", "1");
    }
    const spec = { ...USUAL_CLUSTER, name: "orders", duration: "8s" };
    served.write("sinks.yaml", SUITE);
    served.write("orders.yaml", clusterSpec(spec));
    const cluster = ["cluster", "run", "orders.yaml", "--save", "--store", served.store, "--quiet"];
    await carriedOut(served.folder, [...cluster, "--name", "orders"], [0, 1, 3, 6, 99]);
    const trials = ["--slo", "p50<1s", "--from", "20", "--to", "40", "-d", "100ms", "--max-time", "10s"];
    for (const [name, ...flags] of [
      ["search", ...trials],
      ["sweep", "--sweep", "connections=1,2,4,8,16,32", "-d", "200ms"],
    ] as const) {
      const args = ["find", `${served.sink}/`, ...flags, "--name", name, "--store", served.store, "--quiet"];
      await carriedOut(served.folder, args, [0, 3, 99]);
    }
    await served.save("shop.yaml", "--repeat", "2", "-d", "1s", "--tag", "series=pair", "--name", "pair");
    const { tab, context } = await open(browser, served);
    const ids = await tab.evaluate(async () => {
      const response = await fetch("/api/runs?limit=10&offset=0&filter=");
      const { runs } = (await response.json()) as { runs: { id: string; name: string }[] };
      return Object.fromEntries(runs.map(({ name, id }) => [name, id]));
    });
    const { orders, after, before, search, sweep } = ids;
    await tab.evaluate((hash) => void (location.hash = hash), "#/plan/sinks.yaml");
    await startSuite(tab, "rates");
    const suite = new URL(tab.url()).hash;
    const suiteTable = (tab: Tab) =>
      tab.getByRole("heading", { name: "Suite rates of sinks" }).waitFor({ timeout: 90_000 });
    await suiteTable(tab);
    await context.close();
    views = [
      { name: "runs", place: "#/runs", ready: (tab) => tab.getByRole("link", { name: "before" }).waitFor() },
      { name: "run", place: `#/runs/${after}`, ready: heading("after") },
      {
        name: "compare",
        place: `#/compare?a=${before}&b=${after}`,
        ready: (tab) => tab.locator("table").first().waitFor(),
      },
      {
        name: "plan",
        place: "#/plan/shop.yaml",
        ready: (tab) => tab.getByText("no errors").first().waitFor(),
      },
      { name: "new", place: "#/new", ready: (tab) => tab.getByText(/^\d+ examples$/).waitFor() },
      {
        name: "cluster",
        place: `#/runs/${orders}`,
        ready: (tab) => tab.getByText("Faults, and their effect on the load").waitFor(),
        from: "#cluster",
      },
      {
        name: "spec",
        place: "#/plan/orders.yaml",
        ready: (tab) => tab.getByText("no errors").first().waitFor(),
      },
      { name: "suite", place: suite, ready: suiteTable },
      {
        name: "form",
        place: "#/new?form=cluster",
        ready: (tab) => tab.getByRole("form", { name: "A cluster under test" }).waitFor(),
        from: "form[aria-label='A cluster under test']",
      },
      { name: "fleet", place: "#/fleet", ready: heading("Fleet") },
      { name: "import", place: "#/import", ready: heading(/Import/) },
      { name: "find", place: "#/find", ready: heading(/Find|load line/) },
    ];
    others = [
      { name: "search", place: `#/runs/${search}`, ready: heading("search") },
      { name: "sweep", place: `#/runs/${sweep}`, ready: heading("sweep") },
      { name: "series", place: "#/series/pair", ready: heading(/pair/) },
      { name: "plans", place: "#/plans", ready: heading(/Plans/) },
      { name: "unknown", place: "#/nowhere", ready: heading(/./) },
    ];
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
  });

  const isOther = (name: string) => others.some((other) => other.name === name);
  for (const { suffix, ...how } of WINDOWS) {
    test(`every view at ${how.width} px${"dark" in how ? ", dark" : ""}`, { timeout: 120_000 }, async () => {
      mkdirSync(images, { recursive: true });
      const { tab, context, trouble } = await open(browser, served, how);
      for (const { name, place, ready, from } of [...views, ...others]) {
        await tab.evaluate((hash) => void (location.hash = hash), place);
        await ready(tab);
        if (from !== undefined) await tab.locator(from).evaluate((part) => part.scrollIntoView());
        // Charts are drawn in the frame after.
        await tab.waitForTimeout(400);
        const picture = await tab.screenshot(
          KEPT && suffix !== null && !isOther(name) ? { path: join(images, `${name}${suffix}.png`) } : undefined,
        );
        expect(picture.length).toBeGreaterThan(5_000);
        await inspect(tab, name);
      }
      expect(trouble).toEqual([]);
      await context.close();
    });
  }

  test("a run that goes on", { timeout: 120_000 }, async () => {
    const { tab, context, trouble } = await open(browser, served, { width: 1280 });
    const id = await tab.evaluate(async () => {
      const flags = ["--duration", "120s"];
      const body = { path: "shop.yaml", text: null, command: "run", flags, name: "evening" };
      const headers = { "x-plimsoll-ui": "1", "content-type": "application/json" };
      const response = await fetch("/api/live", { method: "POST", headers, body: JSON.stringify(body) });
      return ((await response.json()) as { id: string }).id;
    });
    for (const { suffix, ...how } of WINDOWS) {
      const seen = await open(browser, served, { ...how, place: `#/live/${id}` });
      await seen.tab.getByRole("button", { name: /Pause/ }).waitFor();
      const chart = seen.tab.getByRole("heading", { name: "Over time", exact: true });
      await chart.waitFor({ timeout: 20_000 });
      await seen.tab.waitForTimeout(4_000);
      const path = join(images, `live${suffix ?? ""}.png`);
      const picture = await seen.tab.screenshot(KEPT && suffix !== null ? { path } : undefined);
      expect(picture.length).toBeGreaterThan(5_000);
      await inspect(seen.tab, "live");
      expect(await seen.tab.getByText("running").count()).toBeGreaterThan(0);
      expect(seen.trouble).toEqual([]);
      await seen.context.close();
    }
    await tab.evaluate((hash) => void (location.hash = hash), `#/live/${id}`);
    await tab.getByRole("button", { name: /Stop/ }).first().click();
    expect(trouble).toEqual([]);
    await context.close();
  });
});
