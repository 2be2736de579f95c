/** The screen of fleets, against a real broker and real agents. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentResult, Result } from "../ui/app/result.ts";
import { brokerOf, fleetIn, fleetOf, type Machines, USUAL_BROKER } from "../ui/fleet/broker.ts";
import { clockText, shardText } from "../ui/runs/agents.tsx";
import { ended, listening, type Listening, program } from "./program.ts";
import { hasBrowser, launch, open, serve, type Served, violations } from "./ui.ts";

const PLAN = `run: {rate: 60/s, duration: 4s}
targets: {api: "\${env(TARGET)}"}
scenarios:
  - steps:
      - get: /items
`;

test("a broker is the usual one where none is typed", () => {
  expect(brokerOf({ nats: " ", creds: "", ca: " " })).toEqual({ nats: USUAL_BROKER, creds: null, ca: null });
  expect(brokerOf({ nats: "tls://a:4222", creds: "a.key", ca: "ca.pem" }).creds).toBe("a.key");
});

test("a run is on this machine, or on the agents that were typed", () => {
  globalThis.localStorage ??= { setItem: () => {} } as unknown as Storage;
  const typed = { nats: "", creds: "fleet/c.key", ca: "", agents: " a , b", onLoss: "takeover" } as const;
  const machines = (on: Machines["on"]): Machines => ({ ...typed, on });
  expect(fleetOf(machines("here"))).toEqual({});
  const broker = { nats: USUAL_BROKER, creds: "fleet/c.key", ca: null };
  expect(fleetOf(machines("fleet"))).toEqual({ fleet: { broker, agents: "a,b", on_loss: "takeover" } });
});

test("the fleet of a command line is that of another run", () => {
  expect(fleetIn(["run", "-", "--rate", "5"], "/plans")).toEqual({});
  const args = [`--fleet=${USUAL_BROKER}`, "--fleet-creds=/plans/fleet/c.key", "--agents", "2"];
  const broker = { nats: USUAL_BROKER, creds: "fleet/c.key", ca: null };
  expect(fleetIn(args, "/plans")).toEqual({ fleet: { broker, agents: "2", on_loss: "abort" } });
  const lossy = (onLoss: string) => fleetIn([...args, `--on-loss=${onLoss}`], "/plans").fleet?.on_loss;
  expect(["continue", "takeover", "cry"].map(lossy)).toEqual(["continue", "takeover", "abort"]);
});

test("a clock is told with its bound", () => {
  const agent = (clock_ahead_ns: number | null) =>
    clockText({ clock_ahead_ns, clock_bound_ns: 2_000 } as AgentResult);
  expect([agent(null), agent(1_500), agent(-1_500_000)]).toEqual([
    "-",
    "+1.50 µs ± 2.00 µs",
    "-1.50 ms ± 2.00 µs",
  ]);
});

test("shards that an agent has taken over are told apart", () => {
  const shard = (from_s: number | null) => shardText({ shard: "2/3", from_s } as AgentResult);
  expect([shard(null), shard(15)]).toEqual(["2/3", "2/3 from 15.0 s"]);
});

/** True if there is a broker's program; where there must be one, its absence is an error. */
function hasBroker(): boolean {
  try {
    execFileSync(process.env["PLIMSOLL_NATS_SERVER"] ?? "nats-server", ["--version"]);
    return true;
  } catch {
    if (process.env["CI"] !== undefined) throw new Error("nats-server is missing");
    console.warn("fleets are not tried: install nats-server, or name it by PLIMSOLL_NATS_SERVER");
    return false;
  }
}

describe.skipIf(!hasBrowser() || !hasBroker())("a fleet", () => {
  const AGENTS = ["a", "b"];
  let browser: Browser;
  let served: Served;
  let broker: string;
  const agents: Listening[] = [];

  beforeAll(async () => {
    browser = await launch();
    served = await serve({ "shop.yaml": PLAN });
    const place = join(served.folder, "fleet");
    const up = ["fleet", "up", "--listen", "127.0.0.1:0", "--agents", AGENTS.join(","), "--folder", place];
    broker = /broker: (\S+)/.exec(execFileSync(program, up, { encoding: "utf8" }))?.[1] ?? "";
    for (const name of AGENTS) {
      const flags = ["--nats", broker, "--creds", join(place, `${name}.key`)];
      const runs = join(served.store, `../runs-${name}`);
      agents.push(await listening(["agent", ...flags, "--folder", runs], /agent \w+: ready/));
    }
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await Promise.all(agents.map(ended));
    if (broker !== undefined) execFileSync(program, ["fleet", "down", "--folder", join(served.folder, "fleet")]);
    await served?.end();
  });

  test("its agents are listed, and carry out a run", { timeout: 120_000 }, async () => {
    const opened = await open(browser, served, { place: "#/fleet", refusals: true });
    const { tab } = opened;
    await tab.getByRole("heading", { level: 1, name: "Fleet" }).waitFor();
    await tab.getByRole("textbox", { name: "Broker" }).fill(broker);
    // A key elsewhere is not used, and without one the broker lets nobody in.
    await tab.getByRole("textbox", { name: "Key" }).fill("../runs.key");
    await tab.getByRole("button", { name: "Look for agents" }).click();
    await tab.getByRole("alert").waitFor({ timeout: 30_000 });
    await tab.getByRole("textbox", { name: "Key" }).fill("fleet/coordinator.key");
    await tab.getByRole("button", { name: "Look for agents" }).click();
    await tab.getByText("2 agents, 2 free").waitFor({ timeout: 30_000 });
    const rows = tab.locator("[aria-labelledby=agents-title] tbody tr");
    expect(await rows.count()).toBe(2);
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("combobox", { name: "Plan" }).selectOption("shop.yaml");
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//, { timeout: 60_000 });
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 60_000 });
    await tab.waitForURL(/#\/runs\//);
    const id = new URL(tab.url()).hash.split("/").at(-1) ?? "";
    const result = await tab.evaluate(
      async (id) => (await (await fetch(`/api/runs/${id}`)).json()) as Result,
      id,
    );
    expect(result.agents?.map(({ name, state }) => [name, state])).toEqual([
      ["a", "finished"],
      ["b", "finished"],
    ]);
    const part = tab.locator("#agents");
    await part.getByRole("heading", { name: "2 agents" }).waitFor();
    const [first] = result.agents ?? [];
    expect(await part.locator("tbody tr").first().textContent()).toContain(clockText(first as AgentResult));
    expect(await violations(tab)).toEqual([]);
    await opened.end();
  });

  test("a plan is put on it from its page, and a loss shows as it happens", { timeout: 180_000 }, async () => {
    const opened = await open(browser, served, { place: "#/plan/shop.yaml" });
    const { tab } = opened;
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByRole("combobox", { name: "Machines" }).selectOption("a fleet");
    await tab.getByRole("textbox", { name: "Broker" }).fill(broker);
    await tab.getByRole("textbox", { name: "Key" }).fill("fleet/coordinator.key");
    await tab.getByRole("textbox", { name: "Agents" }).fill("a, b");
    const loss = tab.getByRole("combobox", { name: "If an agent is lost" });
    await loss.selectOption("the others go on");
    expect(await tab.getByText("without data and scripts").count()).toBe(0);
    await loss.selectOption("another takes its shards over");
    await tab.getByText("For a load with a rate, without data and scripts").waitFor();
    await tab.getByRole("textbox", { name: "Duration" }).fill("60s");
    await tab.getByRole("textbox", { name: "Name of the run" }).fill("lossy");
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//, { timeout: 60_000 });
    const part = tab.locator("#agents");
    const row = (name: string) => part.locator("tbody tr", { has: tab.getByRole("rowheader", { name, exact: true }) });
    await row("b").getByText("running").waitFor({ timeout: 60_000 });
    // Shards and clock of each, while the load goes on. Each has as many shards as cores.
    expect(await row("a").textContent()).toMatch(/a1(-\d+)?\/\d+.*±/);
    expect(await row("b").textContent()).toMatch(/b\d+(-\d+)?\/\d+.*±/);
    const lost = agents.pop();
    lost?.child.kill("SIGKILL");
    await row("b").getByText("lost").waitFor({ timeout: 90_000 });
    // It has the shards of the lost one, too, from a multiple of five seconds on.
    await part.locator("tbody tr", { hasText: /a\d+(-\d+)?\/\d+ from \d+/ }).getByText("running").waitFor({ timeout: 60_000 });
    expect(await violations(tab)).toEqual([]);
    await tab.getByRole("button", { name: "Stop" }).click();
    await tab.getByText("exit code 7").waitFor({ timeout: 60_000 });
    await tab.getByRole("link", { name: "Open the saved run" }).click();
    await tab.waitForURL(/#\/runs\//);
    await part.getByText(/arrivals .* of lost agents/).waitFor({ timeout: 30_000 });
    await opened.end();
  });
});
