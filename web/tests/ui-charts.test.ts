import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunData } from "../src/data.ts";
import type { Result } from "../ui/app/result.ts";
import { clusterSpec, USUAL_CLUSTER } from "../ui/editor/made.ts";
import { dataOfReport, planOfReport, runDataOf } from "../ui/runs/chart-data.ts";
import { carriedOut, ended, startSink, target } from "./program.ts";

/** Of a hundred million requests; a test of the Rust side has left it. */
const merged = { html: join(target, "tmp/merged.html"), json: join(target, "tmp/merged.json") };

/** Phases, a warm-up, timeouts, a server that stalls and is watched, a threshold that fails in windows. */
const PLAN = `# Its quotes: "<&>"
phases:
  - {name: warm, rate: 200, duration: 1s, measured: false}
  - {name: low, rate: 200, duration: 2s}
  - {name: high, rate: 500, duration: 2s}
run:
  timeout: 400ms
targets:
  api: \${env(TARGET)}
thresholds:
  - {that: "p99<5ms", window: 1s}
scenarios:
  - name: browse
    steps:
      - get: /items
      - get: /items/1
`;

interface Made {
  result: Result;
  html: string;
}

let folder: string;
const made: Record<string, Made> = {};

beforeAll(async () => {
  const text = (path: string) => readFileSync(path, "utf8");
  const of = (json: string, html: string): Made => ({
    result: JSON.parse(text(json)) as Result,
    html: text(html),
  });
  const read = (name: string) => of(join(folder, `${name}.json`), join(folder, `${name}.html`));
  made["merged"] = of(merged.json, merged.html);
  folder = mkdtempSync(join(tmpdir(), "plimsoll-ui-charts-"));
  writeFileSync(join(folder, "plan.yaml"), PLAN);
  const faults = [
    { fault: "kill", target: "leader", at: "1s", for: "1s" },
    { fault: "restart", target: "follower", at: "3s", for: "" },
  ];
  writeFileSync(join(folder, "spec.yaml"), clusterSpec({ ...USUAL_CLUSTER, duration: "5s", faults }));
  const sink = await startSink(
    "--delay",
    "lognormal:3ms,0.5",
    "--freeze",
    "3s+700ms",
    "--drop",
    "1%",
  );
  try {
    const files = (name: string) => ["--json", `${name}.json`, "--report", `${name}.html`, "--quiet"];
    const run = async (name: string, ...args: string[]) => {
      await carriedOut(folder, ["run", ...args, ...files(name)], [0, 3, 99]);
      made[name] = read(name);
    };
    process.env["TARGET"] = sink.address;
    await run("phases", "plan.yaml", "--watch-pid", String(sink.child.pid));
    await carriedOut(folder, ["cluster", "run", "spec.yaml", ...files("cluster")], [0, 1, 3, 6, 99]);
    made["cluster"] = read("cluster");
    await run("closed", `${sink.address}/`, "-c", "4", "-d", "2s", "--timeout", "400ms");
  } finally {
    await ended(sink);
  }
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

for (const name of ["phases", "closed", "merged", "cluster"]) {
  test(`${name}: a result gives the charts of its report`, () => {
    const { result, html } = made[name] as Made;
    const report = dataOfReport(html)?.runs[0] as RunData;
    const own = runDataOf(result, report.name);
    expect(own.course.at_s.length).toBeGreaterThan(1);
    for (const key of ["name", "is_open", "time", "spans", "marks", "histograms"] as const) {
      expect([key, own[key]]).toEqual([key, report[key]]);
    }
    expect(own.course.series.map(({ name }) => name)).toEqual(report.course.series.map(({ name }) => name));
    expect(own.course).toEqual(report.course);
    own.spectra.forEach((spectrum, index) => {
      const whole = report.spectra[index];
      if (whole === undefined) throw new Error("a time is missing");
      const { count, known_to, intervals } = whole;
      expect([spectrum.count, spectrum.intervals]).toEqual([count, intervals]);
      expect(spectrum.known_to).toBeCloseTo(known_to, 9);
      // Each point of the result is one of the histograms.
      const at = new Map(whole.points.map(([share, value]) => [share.toPrecision(9), value]));
      for (const [share, value] of spectrum.points)
        expect([share, at.get(share.toPrecision(9))]).toEqual([share, value]);
      const bound = spectrum.at_least_from === null ? null : spectrum.points[spectrum.at_least_from]?.[1];
      const first = whole.at_least_from === null ? null : whole.points[whole.at_least_from]?.[1];
      expect(bound === null).toBe(first === null);
    });
  });
}

test("the runs have what is to be drawn", () => {
  const of = (name: string) => runDataOf((made[name] as Made).result, name);
  expect(of("phases").spans.map(({ name }) => name)).toEqual(expect.arrayContaining(["warm", "low", "high"]));
  expect(of("phases").marks.some(({ kind }) => kind === "threshold")).toBe(true);
  expect(of("phases").course.series.some(({ name }) => name.startsWith("open "))).toBe(true);
  const faults = of("cluster").marks.filter(({ kind }) => kind === "fault");
  expect(faults.map(({ text }) => text.replace(/\d+$/, "N"))).toEqual(["kill of node N", "restart of node N"]);
  expect(faults.map(({ length_s }) => length_s > 0)).toEqual([true, false]);
  expect(of("closed").course.series.some(({ name }) => name === "scheduled_per_s")).toBe(false);
  expect(of("merged").course.joined).toBeGreaterThan(1);
});

test("a report has the plan as it was written, if there was one", () => {
  expect(planOfReport((made["phases"] as Made).html)).toBe(PLAN);
  expect(planOfReport((made["closed"] as Made).html)).toBeNull();
});
