/** Every workload is started by a form, and what a form makes is what the command line carries out. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Result } from "../ui/app/result.ts";
import {
  clusterProblems,
  clusterSpec,
  scenarioPlan,
  scenarioProblems,
  stepOf,
  USUAL_CLUSTER,
  USUAL_SCENARIO,
} from "../ui/editor/made.ts";
import { carriedOut, ended, listening, type Listening } from "./program.ts";
import { hasBrowser, launch, open, serve, type Served, violations } from "./ui.ts";

/** Exit codes of a run that came to a result: a busy machine makes it invalid, a check may not hold. */
const OUTCOMES = [0, 1, 3, 6, 99];

describe("documents that forms make", () => {
  test("a line is a method and a path, or a path alone", () => {
    expect(stepOf("POST /orders")).toEqual({ method: "post", path: "/orders" });
    expect(stepOf("/items?a=b c")).toEqual({ method: "get", path: "/items?a=b c" });
    expect(stepOf("items")).toEqual({ method: "get", path: "/items" });
    expect(stepOf("Brew /pot")).toEqual({ method: "get", path: "/Brew /pot" });
  });

  test("what is wrong with a form is said by field", () => {
    expect(scenarioProblems(USUAL_SCENARIO)).toEqual({});
    const wrong = { ...USUAL_SCENARIO, server: " ", steps: "\n", users: "3", body: "{" };
    expect(Object.keys(scenarioProblems(wrong)).sort()).toEqual(["body", "server", "steps", "users"]);
    for (const [steps, word] of [
      ["GET /\nFETCH /x", "FETCH"],
      ["brew /pot", "brew"],
      ["CONNECT x", "CONNECT"],
      ["GET /a b\n/c d\nitems of today", null],
    ] as const) {
      const { steps: said } = scenarioProblems({ ...USUAL_SCENARIO, steps });
      const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
      expect(said).toBe(word === null ? undefined : `${word} is no method: ${methods}`);
    }
    expect(clusterProblems(USUAL_CLUSTER)).toEqual({});
    const broken = { ...USUAL_CLUSTER, name: "a b", nodes: "0", resource: "x" };
    expect(Object.keys(clusterProblems(broken)).sort()).toEqual(["name", "nodes", "resource"]);
  });

  test("only what was filled in is in a plan", () => {
    const text = scenarioPlan({ ...USUAL_SCENARIO, rate: "", users: "4", thresholds: "", body: '{"a": 1}' });
    expect(text).toContain("users:");
    for (const absent of ["rate", "thresholds", "json", "think"]) expect(text).not.toContain(absent);
  });

  test("links are there for the faults that need them", () => {
    expect(clusterSpec(USUAL_CLUSTER)).not.toContain("links");
    const faults = [{ fault: "delay", target: "all", at: "1s", for: "1s" }];
    const text = clusterSpec({ ...USUAL_CLUSTER, faults });
    expect(text).toContain("links");
    expect(text).toContain("amount: 50ms");
  });
});

/** A workload: its form with what is filled in, and the words of the same load on a command line. */
interface Case {
  form: string;
  title: string;
  /** The server: its command, and what it says when it listens. */
  server: string[];
  fields: (address: string) => Record<string, string>;
  words: (address: string) => string[];
}

/** What a server says of the port that load is put on; others have a port for other purposes, too. */
const LISTENING = /listening on (?:http:\/\/)?(127\.0\.0\.1:\d+)/;
const SHORT = { Seed: "5", Duration: "1s" };
const SHORT_FLAGS = ["--seed", "5", "--duration", "1s"];
const CASES: Case[] = [
  {
    // Nothing is random about it, so that no seed is needed.
    form: "run",
    title: "Load on a URL",
    server: ["sink"],
    fields: (address) => ({ Address: `http://${address}/a`, Rate: "50/s", Duration: "1s" }),
    words: (address) => ["run", `http://${address}/a`, "--rate", "50/s", "--duration", "1s"],
  },
  {
    form: "crud",
    title: "A REST resource",
    server: ["target", "crud-node", "--id", "0", "--raft", "127.0.0.1:0", "--data", "node"],
    fields: (address) => ({ Leader: `http://${address}`, Total: "40", Concurrency: "4", Seed: "5" }),
    words: (address) => {
      const size = ["--total", "40", "--concurrency", "4", "--seed", "5"];
      return ["crud", "--leader", `http://${address}`, ...size];
    },
  },
  {
    form: "cache",
    title: "A cache",
    server: ["target", "cache", "--http", "off"],
    fields: (address) => ({ Server: address, Requests: "40", Connections: "2", Seed: "5" }),
    words: (address) => {
      const size = ["--requests", "40", "--connections", "2", "--seed", "5"];
      return ["cache", "--server", address, ...size];
    },
  },
  {
    form: "ingest",
    title: "Observability data",
    server: ["target", "ingest"],
    fields: (address) => ({ Kind: "logs", Url: `http://${address}`, "Batch size": "10", ...SHORT }),
    words: (address) => ["ingest", "logs", "--url", `http://${address}`, "--batch-size", "10", ...SHORT_FLAGS],
  },
  {
    form: "canister",
    title: "A canister",
    server: ["sink", "--canister"],
    fields: (address) => ({ Address: `http://${address}`, Iterations: "20", Seed: "5" }),
    words: (address) => ["canister", `http://${address}`, "--iterations", "20", "--seed", "5"],
  },
  {
    form: "llm",
    title: "A language model",
    server: ["target", "llm", "--ttft", "constant:5ms", "--gap", "constant:1ms"],
    fields: (address) => ({
      Address: `http://${address}`,
      Model: "plimsoll",
      Iterations: "5",
      Seed: "5",
      "Output tokens": "8",
    }),
    words: (address) => {
      const size = ["--iterations", "5", "--seed", "5", "--output-tokens", "8"];
      return ["llm", `http://${address}`, "--model", "plimsoll", ...size];
    },
  },
];

describe.skipIf(!hasBrowser())("forms for every workload", () => {
  let browser: Browser;
  let served: Served;
  const servers: Listening[] = [];

  beforeAll(async () => {
    browser = await launch();
    served = await serve();
  });

  afterAll(async () => {
    await browser?.close();
    await served?.end();
    await Promise.all(servers.map(ended));
  });

  const resultIn = (name: string) => JSON.parse(readFileSync(join(served.folder, name), "utf8")) as Result;
  const badge = (tab: Tab, words: string) =>
    tab.locator(".plan-state .badge", { hasText: new RegExp(`^\\W*${words}$`) }).waitFor();

  /** Saves what is in the editor, runs it by the page, and returns its path and its result. */
  async function savedAndRun(tab: Tab): Promise<{ path: string; result: Result }> {
    await badge(tab, "new, not saved");
    await badge(tab, "no errors");
    const path = decodeURIComponent(new URL(tab.url()).hash.replace("#/plan/", ""));
    await tab.getByRole("button", { name: "Save", exact: true }).click();
    await badge(tab, "saved");
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.waitForURL(/#\/live\//, { timeout: 60_000 });
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 60_000 });
    await tab.waitForURL(/#\/runs\//);
    const id = new URL(tab.url()).hash.split("/").at(-1) ?? "";
    const result = await tab.evaluate(
      async (id) => (await (await fetch(`/api/runs/${id}`)).json()) as Result,
      id,
    );
    return { path, result };
  }

  /** Symptom: the form for a URL was the help of the command line. */
  test("the form of a load on a URL speaks of fields, and not of flags", async () => {
    const opened = await open(browser, served, { place: "#/new?form=run" });
    const { tab } = opened;
    const hints = tab.locator("form.plan-command .hint");
    await hints.first().waitFor();
    // What is folded below a hint is for those who want more.
    const said = await hints.evaluateAll((all) =>
      all.map((hint) => {
        const parts = [...hint.childNodes].filter(({ nodeName }) => nodeName !== "DETAILS");
        return parts.map(({ textContent }) => textContent).join("");
      }),
    );
    expect(said.length).toBeGreaterThan(50);
    expect(said.filter((text) => /--|@file|\[default|repeatable|\bflags?\b|stdin|exit code/.test(text))).toEqual([]);
    await opened.end();
  });

  for (const { form: name, title, server, fields, words } of CASES) {
    test(`${name}: the page, the file and the flags are one load`, { timeout: 120_000 }, async () => {
      const command = [...server, "--listen", "127.0.0.1:0"];
      const listens = await listening(command, LISTENING, served.folder);
      servers.push(listens);
      const opened = await open(browser, served, { place: `#/new?form=${name}` });
      const { tab } = opened;
      const form = tab.getByRole("form", { name: title });
      await form.waitFor();
      await form.evaluate((form) => form.querySelectorAll("details").forEach((fold) => (fold.open = true)));
      for (const [label, value] of Object.entries(fields(listens.address))) {
        const field = form.getByLabel(label, { exact: true }).first();
        const isChoice = await field.evaluate((element) => element.tagName === "SELECT");
        await (isChoice ? field.selectOption(value) : field.fill(value));
      }
      expect(await violations(tab)).toEqual([]);
      await form.getByRole("button", { name: "Make plan" }).click();
      const { path, result } = await savedAndRun(tab);
      await carriedOut(served.folder, ["run", path, "--quiet", "--json", `${name}-file.json`], OUTCOMES);
      const flags = [...words(listens.address), "--quiet", "--json", `${name}-flags.json`];
      await carriedOut(served.folder, flags, OUTCOMES);
      const [byFile, byFlags] = [resultIn(`${name}-file.json`), resultIn(`${name}-flags.json`)];
      expect(result.accounting.started).toBeGreaterThan(0);
      expect(result.run.load_checksum).not.toBeNull();
      expect([byFile.run.load_checksum, byFlags.run.load_checksum]).toEqual([
        result.run.load_checksum,
        result.run.load_checksum,
      ]);
      await opened.end();
    });
  }

  test("tokens and goodput of a language model are seen", { timeout: 60_000 }, async () => {
    const laws = ["--ttft", "constant:5ms", "--gap", "constant:1ms", "--tokens", "8"];
    const server = ["target", "llm", ...laws, "--listen", "127.0.0.1:0"];
    const listens = await listening(server, LISTENING);
    servers.push(listens);
    const opened = await open(browser, served);
    const { tab } = opened;
    const post = (path: string, body: unknown) =>
      tab.evaluate(
        async ([path, body]) => {
          const headers = { "x-plimsoll-ui": "1", "content-type": "application/json" };
          const response = await fetch(path, { method: "POST", headers, body });
          return (await response.json()) as Record<string, string>;
        },
        [path, JSON.stringify(body)] as const,
      );
    const values = { model: "plimsoll", goodput: "ttft<10s", duration: "6s" };
    const filled = { command: "llm", arguments: { urls: [`http://${listens.address}`], ...values } };
    const { text } = await post("/api/plan-of", filled);
    const { id } = await post("/api/live", { path: null, text, command: "run", flags: [], name: "llm" });
    await tab.evaluate((hash) => void (location.hash = hash), `#/live/${id}`);
    const part = tab.locator("#streams");
    await part.getByText("TTFT p50").waitFor({ timeout: 20_000 });
    await part.getByText("goodput").first().waitFor();
    await tab.getByRole("link", { name: "Open the saved run" }).click({ timeout: 30_000 });
    await part.getByRole("rowheader", { name: "ITL", exact: true }).waitFor();
    expect(await violations(tab)).toEqual([]);
    await opened.end();
  });

  test("a scenario of steps is made by a form", { timeout: 60_000 }, async () => {
    const opened = await open(browser, served, { place: "#/new?form=scenario" });
    const { tab } = opened;
    const form = tab.getByRole("form", { name: "A scenario of steps" });
    await form.getByLabel("Server").fill("");
    await form.getByRole("button", { name: "Make plan" }).click();
    await form.getByText("name the server").waitFor();
    await form.getByLabel("Server").fill(served.sink);
    await form.getByLabel("Steps").fill("GET /items\nPOST /orders\n/about");
    await form.getByLabel("JSON").fill('{"item": 7}');
    await form.getByLabel("Rate").fill("40/s");
    await form.getByLabel("Duration").fill("1s");
    expect(await violations(tab)).toEqual([]);
    await form.getByRole("button", { name: "Make plan" }).click();
    const { path, result } = await savedAndRun(tab);
    expect(result.by_step.map(({ step }) => step)).toEqual(["GET /items", "POST /orders", "GET /about"]);
    await carriedOut(served.folder, ["run", path, "--quiet", "--json", "scenario.json"], OUTCOMES);
    expect(resultIn("scenario.json").run.load_checksum).toBe(result.run.load_checksum);
    await opened.end();
  });

  test("a cluster is made by a form, checked, broken and judged", { timeout: 180_000 }, async () => {
    const opened = await open(browser, served, { place: "#/new?form=cluster" });
    const { tab } = opened;
    const form = tab.getByRole("form", { name: "A cluster under test" });
    await form.getByLabel("Duration").fill("5s");
    const fault = form.getByRole("group", { name: "Fault 1" });
    await fault.getByLabel("At", { exact: true }).fill("1s");
    await fault.getByLabel("For", { exact: true }).fill("1s");
    expect(await violations(tab)).toEqual([]);
    await form.getByRole("button", { name: "Make spec" }).click();
    await badge(tab, "no errors");
    // Its parts have forms, and its keys are those of clusters.
    await tab.getByRole("button", { name: /^kill/ }).waitFor();
    expect(await tab.getByRole("tab", { name: "Try once" }).count()).toBe(0);
    await tab.getByRole("button", { name: /^Checks/ }).click();
    // The fault is marked as soon as it has begun.
    let wasSeen = false;
    const key = tab.getByText("fault of the cluster under test").first();
    const seen = key.waitFor({ timeout: 120_000 }).then(async () => {
      wasSeen = (await tab.getByText("so far").count()) > 0;
    });
    const { path, result } = await savedAndRun(tab);
    await seen;
    expect(wasSeen).toBe(true);
    await carriedOut(served.folder, ["cluster", "check", path], [0]);
    expect(result.faults?.map(({ fault }) => fault)).toEqual(["kill"]);
    expect(result.by_step.map(({ step }) => step)).toEqual(["create", "read", "update", "delete"]);
    expect(result.reconciliation?.findings?.map(({ check }) => check)).toContain("convergence");
    await tab.locator("#cluster").getByText("Faults, and their effect on the load").waitFor();
    expect(await violations(tab)).toEqual([]);
    await opened.end();
  });

  test("a mistake in a spec is found at its place", { timeout: 60_000 }, async () => {
    served.write("wrong.yaml", clusterSpec(USUAL_CLUSTER).replace("fault: kill", "fault: kil"));
    const opened = await open(browser, served, { place: "#/plan/wrong.yaml" });
    const { tab } = opened;
    await badge(tab, "1 error");
    const finding = tab.locator(".plan-findings li");
    await finding.getByRole("button", { name: /kil/ }).click();
    await expect.poll(() => tab.evaluate(() => String(getSelection()))).toBe("kil");
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await tab.getByRole("button", { name: "Start the run" }).click();
    await tab.getByRole("alert").waitFor({ timeout: 30_000 });
    expect(await tab.getByRole("alert").textContent()).toContain("kil");
    await opened.end();
  });

  test("a setting is swept, and its curve drawn", { timeout: 120_000 }, async () => {
    const opened = await open(browser, served, { place: "#/find" });
    const { tab } = opened;
    await tab.getByLabel("Address").fill(served.sink);
    await tab.getByLabel("What is tried").selectOption("connections");
    await tab.getByLabel("Levels").fill("1, 2, 4");
    await tab.getByLabel("Shortest trial").fill("1s");
    await tab.getByRole("button", { name: "Sweep" }).click();
    await tab.waitForURL(/#\/live\//, { timeout: 60_000 });
    await tab.getByRole("heading", { name: "Sweep of connections" }).waitFor({ timeout: 60_000 });
    expect(await tab.locator("#levels tbody tr").count()).toBe(3);
    await tab.getByRole("heading", { name: "Throughput by connections" }).waitFor();
    expect(await violations(tab)).toEqual([]);
    // It is kept, with its downloads.
    await tab.getByRole("link", { name: "Open the saved sweep" }).click();
    await tab.waitForURL(/#\/runs\//);
    await tab.getByRole("heading", { name: "Sweep of connections" }).waitFor();
    await tab.locator("summary", { hasText: "Download" }).waitFor();
    await tab.getByRole("link", { name: "Runs", exact: true }).click();
    await tab.getByRole("row").filter({ hasText: "sweep" }).getByRole("link", { name: served.sink }).waitFor();
    await opened.end();
  });
});
