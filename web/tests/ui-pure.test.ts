import { describe, expect, test } from "vitest";
import { ApiError, errorOf, errorOfResponse, exportAddress, type LiveRun, type RunRow } from "../ui/app/api.ts";
import type {
  ErrorExample,
  RateChange,
  Result,
  SlowRequest,
  Step,
  Summary,
  ThresholdOutcome,
  Verdict,
} from "../ui/app/result.ts";
import { link, parseRoute, tokenOf } from "../ui/app/router.ts";
import {
  amount,
  type Change,
  drawn,
  intervalText,
  type Metric,
  scaleOf,
  shares,
  valueText,
} from "../ui/compare/contract.ts";
import { fieldError, inForm } from "../ui/editor/argument-words.tsx";
import { hasMethod } from "../ui/editor/command.tsx";
import { withoutTags } from "../ui/editor/flags.ts";
import { fieldsOf, findFlags, LABELS, ownAddress, searchName } from "../ui/find/plan.ts";
import {
  latestTrying,
  levelsOf,
  limitsOf,
  lineOf,
  nanosOf,
  peakOf,
  ratesOf,
  remarksOf,
  trialOf,
  tryingOf,
} from "../ui/live/capacity.ts";
import { flightText, paceUnit, rateOf, requestsText } from "../ui/live/pace.ts";
import { levelAxis } from "../ui/live/sweep.tsx";
import { heardAfter, MOST_MESSAGES, NOTHING_HEARD } from "../ui/live/stream.ts";
import { loadFlags, planPath, searchOf } from "../ui/runs/again.tsx";
import { dataOfReport, extremes, planOfReport } from "../ui/runs/chart-data.ts";
import { grouped, groupsOf, tagWords } from "../ui/runs/list.tsx";
import { headOf, quoted } from "../ui/runs/parts.tsx";
import { seriesOf, seriesOfArgs } from "../ui/runs/series.tsx";
import { sparkPoints } from "../ui/runs/sparkline.tsx";
import {
  badShare,
  besideAccounts,
  changeText,
  exampleSaid,
  figureOf,
  intervalOf,
  leftOut,
  liveTitle,
  namesApart,
  paceOf,
  plural,
  sameMinute,
  shortTarget,
  slowestOf,
  steeredBy,
  thresholdHeading,
  thresholdSeen,
  thresholdWord,
  timingText,
  traceAddress,
  unreached,
  validityLine,
  whenText,
} from "../ui/runs/words.ts";

describe("errors of the API", () => {
  test("an answer of the program says what is wrong, and what to do", () => {
    const problem = { severity: "error", message: "no", hint: null, line: 3, column: 1, length: 2 };
    const body = { error: "the plan is wrong", hint: "mend it", problems: [problem], etag: "x" };
    const error = errorOfResponse(422, JSON.stringify(body));
    expect([error.status, error.message, error.hint]).toEqual([422, "the plan is wrong", "mend it"]);
    expect(error.problems).toEqual([problem]);
    expect(error.body["etag"]).toBe("x");
  });

  test("any other answer is said as it is, but for pages of HTML", () => {
    expect(errorOfResponse(502, "bad gateway\nmore").message).toBe("bad gateway");
    expect(errorOfResponse(500, "<html>").message).toBe("the program answered with status 500");
    expect(errorOfResponse(500, "").message).toBe("the program answered with status 500");
    expect(errorOfResponse(500, "[1]").message).toBe("[1]");
    expect(errorOfResponse(400, '{"error":"e","hint":""}').hint).toBeNull();
  });

  test("whatever is thrown becomes one", () => {
    const error = new ApiError(409, { error: "changed" });
    expect(errorOf(error)).toBe(error);
    expect([errorOf(new TypeError("t")).status, errorOf("text").message]).toEqual([0, "text"]);
  });

  test("ids are parts of an address", () => {
    expect(exportAddress("a/b?c", "html")).toBe("/api/runs/a%2Fb%3Fc/export?format=html");
  });
});

describe("places", () => {
  const place = (hash: string) => {
    const { name, of } = parseRoute(hash);
    return [name, of];
  };

  test("an address leads to its place", () => {
    for (const [hash, name, of] of [
      ["", "runs", ""],
      ["#/", "runs", ""],
      ["#/runs", "runs", ""],
      ["#/runs/3d15", "run", "3d15"],
      ["#/live/7", "live", "7"],
      ["#/live", "unknown", "/live"],
      ["#/plan/a/b%20c.yaml", "plan", "a/b c.yaml"],
      ["#/plan", "unknown", "/plan"],
      ["#/plans", "plans", ""],
      ["#/find?plan=x.yaml", "find", ""],
      ["#/run/3d15", "unknown", "/run/3d15"],
      ["#/elsewhere", "unknown", "/elsewhere"],
      ["#/plan/%E0%A4%A", "plan", "%E0%A4%A"],
    ] as const) {
      expect([hash, ...place(hash)]).toEqual([hash, name, of]);
    }
  });

  test("what link makes, parseRoute reads", () => {
    expect(link("plan", "my plans/50 %?.yaml")).toBe("#/plan/my%20plans/50%20%25%3F.yaml");
    expect(place(link("plan", "my plans/50 %?#.yaml"))).toEqual(["plan", "my plans/50 %?#.yaml"]);
    expect(place(link("run", "3d15"))).toEqual(["run", "3d15"]);
    const { query } = parseRoute(link("compare", "", { a: "1,2", b: "3&4" }));
    expect([query.get("a"), query.get("b")]).toEqual(["1,2", "3&4"]);
  });

  test("only the address that was printed has a token", () => {
    expect(tokenOf("#token=00ff")).toBe("00ff");
    for (const hash of ["", "#token=", "#token=a b", "#/runs?token=00ff", "#token=00ff&x"])
      expect(tokenOf(hash)).toBeNull();
  });
});

const summary = (more: Partial<Summary>): Summary => ({
  unit: "ns",
  count: 1,
  min: 1,
  mean: 1,
  stdev: 0,
  max: 1,
  p: {},
  censored: 0,
  overflow: 0,
  distribution: [],
  ...more,
});

describe("words about a result", () => {
  const verdict: Verdict = {
    outcome: "pass",
    cause: null,
    summary: "",
    valid: true,
    invalid_reasons: [],
    evidence: [],
    warnings: [],
    thresholds: "pass",
    limited_by: { what: "connection_limit", evidence: "", hint: "" },
  };

  test("validity and limit are one line", () => {
    expect(validityLine(verdict)).toBe("measurement valid · limited by the number of connections");
    const invalid = { ...verdict, valid: false, invalid_reasons: ["start_lag", "stalls"] };
    expect(validityLine(invalid)).toBe(
      "measurement INVALID: start lag, stalls · limited by the number of connections",
    );
    const unknown = { ...verdict, limited_by: { what: "unknown", evidence: "", hint: "" } };
    expect(validityLine(unknown)).toBe("measurement valid · the limit is unknown");
  });

  test("a figure that is a lower bound says so, and one that is not there is a dash", () => {
    const times = summary({ p: { "50": 1_234_567, "99": null }, max: 2e9, at_least: ["max"] });
    expect(["50", "99", "99.9", "max"].map((name) => figureOf(times, name))).toEqual([
      "1.23 ms",
      "-",
      "-",
      "≥ 2.00 s",
    ]);
    const bounds = { confidence: 0.95, reason: null };
    const interval = {
      "50": { low: 1e6, high: null, ...bounds },
      "99": { low: null, high: null, ...bounds },
      "75": null,
    };
    const of = summary({ interval });
    expect(["50", "75", "99", "90"].map((name) => intervalOf(of, name))).toEqual([
      "at least 1.00 ms",
      "",
      "",
      "",
    ]);
    const other = { "50": { low: null, high: 2e6, ...bounds }, "99": { low: 1e6, high: 2e6, ...bounds } };
    expect(["50", "99"].map((name) => intervalOf(summary({ interval: other }), name))).toEqual([
      "at most 2.00 ms",
      "[1.00 ms, 2.00 ms]",
    ]);
  });

  test("a threshold that proves nothing is not judged", () => {
    const threshold: ThresholdOutcome = {
      text: "p99<20ms",
      scenario: "buy",
      step: "pay",
      phase: null,
      window_s: 10,
      passed: true,
      observed: { value: 1, unit: "ns", at_least: false, text: "11.4 ms" },
      reason: null,
      windows: { judged: 1200, failed: 3, first_failed_at_s: 40 },
      ended_run: false,
      proven: false,
    };
    expect(thresholdWord(threshold).word).toBe("not judged");
    expect(thresholdWord({ ...threshold, proven: true }).word).toBe("pass");
    expect(thresholdWord({ ...threshold, proven: true, passed: false }).word).toBe("fail");
    expect(thresholdHeading(threshold)).toBe('p99<20ms of step "pay" of scenario "buy" in every 10.0 s');
    expect(thresholdSeen(threshold)).toBe(
      "11.4 ms; in 3 of 1,200 windows, first in the one that ended at 40.0 s",
    );
    const whole = { ...threshold, windows: null, reason: "too few values" };
    expect(thresholdSeen(whole)).toBe("11.4 ms, too few values");
    const unreached = { ...whole, observed: null, reason: null, unreached: "not reached: 2 % failed" };
    expect(thresholdSeen(unreached)).toBe("not reached: 2 % failed");
    // Symptom: the worst series of a query was named in reports only.
    const observed = { value: 7, unit: "number", at_least: false, text: "7" };
    const of = (labels: Record<string, string>, value: string, count: number) => ({ labels, value, count });
    for (const [seen, series, said] of [
      [observed, of({ __name__: "up", job: "a" }, "7", 3), '7 of up{job="a"}, the worst of 3 series'],
      [observed, of({ __name__: "up" }, "7", 1), "7 of up"],
      [observed, of({ job: 'a"b' }, "7", 1), '7 of {job="a\\"b"}'],
      [observed, of({}, "7", 1), "7"],
      [null, of({}, "+Inf", 2), "+Inf, the worst of 2 series"],
    ] as const) {
      expect(thresholdSeen({ ...whole, reason: null, observed: seen, series })).toBe(said);
    }
  });

  test("the accounts have every request that is in neither sum", () => {
    const none = { scheduled: 4, started: 4, dropped: 0, never_started: 0, without_data: 0, ok: 4, failed: 0 };
    const of = (accounting: object, run: object = {}) =>
      besideAccounts({ accounting: { ...none, ...accounting }, run } as unknown as Result);
    expect(of({ unmeasured: 0 })).toEqual([]);
    const closed = "since the target had closed the connection without an answer";
    const refused = "since the target had not processed them (GOAWAY, REFUSED_STREAM)";
    for (const [accounting, run, fact] of [
      [{ incomplete: true }, {}, ["incomplete", "without workers that have not come back"]],
      [{ without_data: 3 }, {}, ["never started for lack of data", "3"]],
      [{ since_warmup: 2 }, {}, ["in flight since the warm-up", "2"]],
      [{ undelivered: 1 }, {}, ["undelivered, of those started", "1"]],
      [{ unmeasured: 1234 }, {}, ["unmeasured, beside these", "1,234"]],
      [{ redirects_followed: 5 }, {}, ["redirects followed", "5"]],
      [{ polls: 6 }, {}, ["sent again while the answer was to come", "6"]],
      [{ resent: 7, resent_closed: 7 }, {}, ["sent again", `7, ${closed}`]],
      [{ resent: 1 }, {}, ["sent again", `1, ${refused.replace("them", "it")}`]],
      [{ resent: 1234, resent_closed: 4 }, {}, ["sent again", `1,234: 4 ${closed}, the others ${refused}`]],
      [{}, { setup: { requests: 1, duration_ns: 2e6 } }, ["setup", "1 request, 2.00 ms"]],
      [{}, { teardown: { requests: 2, duration_ns: 2e6 } }, ["teardown", "2 requests, 2.00 ms"]],
      [{}, { refresh: { times: 1, requests: 3 } }, ["refreshed", "1 time, 3 requests"]],
    ] as const) {
      expect(of(accounting, run)).toEqual([fact]);
    }
  });

  test("errors are told of all requests, those without an answer at the end among them", () => {
    const of = (counts: Partial<Result["accounting"]>, goesOn = false) => {
      const none = { ok: 0, failed: 0, timed_out: 0, aborted: 0, in_flight_at_stop: 0 };
      return badShare({ accounting: { ...none, ...counts } as Result["accounting"] }, goesOn);
    };
    expect(of({})).toEqual({ bad: 0, all: 0, share: null });
    const given = { timed_out: 49, in_flight_at_stop: 66 };
    expect(of(given)).toEqual({ bad: 49, all: 115, share: 49 / 115 });
    expect(of(given, true)).toEqual({ bad: 49, all: 49, share: 1 });
    expect(of({ ok: 5, failed: 2, timed_out: 1, aborted: 2 })).toEqual({ bad: 3, all: 10, share: 0.3 });
  });

  test("the slowest requests of all steps, with what their server says of them", () => {
    const request = (response_time: number): SlowRequest => ({
      at_s: 1,
      response_time,
      service_time: response_time,
      first_byte_time: null,
      status: 200,
      failure: null,
      worker: 0,
      trace_id: "abc",
    });
    const step = (name: string, slowest?: SlowRequest[]) => ({ step: name, slowest }) as Step;
    const by_step = [step("a", [request(5), request(3)]), step("b", [request(4)]), step("of before")];
    const found = slowestOf({ by_step }, 2).map(({ step, request }) => [step, request.response_time]);
    expect(found).toEqual([
      ["a", 5],
      ["b", 4],
    ]);
    const db = { name: "db", duration: 53_200_000, description: "a shard" };
    const timing = [db, { name: "miss", duration: null, description: null }];
    expect(timingText(timing)).toBe("db 53.2 ms (a shard), miss");
    const example: ErrorExample = {
      at_s: 1,
      status: 503,
      reason: "status 503",
      body: "busy",
      worker: 0,
      connection: 1,
      address: null,
    };
    expect(exampleSaid(example)).toBe("503: busy");
    expect(exampleSaid({ ...example, server_timing: timing })).toBe("503: busy; its server: db 53.2 ms (a shard), miss");
    for (const [link, id, address] of [
      ["https://traces.test/${trace_id}?x=${trace_id}", "abc", "https://traces.test/abc?x=abc"],
      ["javascript:alert(${trace_id})", "abc", null],
      [undefined, "abc", null],
      ["https://traces.test/${trace_id}", null, null],
    ] as const) {
      expect(traceAddress(link, id)).toBe(address);
    }
  });

  test("changes, numbers and days", () => {
    const change: RateChange = { at_s: 1, what: "rate", from_per_s: 200, to_per_s: 5000, by: "http" };
    expect(changeText(change)).toBe("200/s to 5,000/s");
    expect(changeText({ ...change, what: "pause" })).toBe("pause");
    expect(changeText({ ...change, from_per_s: null })).toBe("rate");
    expect([plural(1, "run"), plural(1200, "run")]).toEqual(["1 run", "1,200 runs"]);
    const now = new Date(2026, 10, 25, 23, 10);
    const at = (...parts: [number, number, number, number, number]) => new Date(...parts).getTime() / 1000;
    expect(whenText(at(2026, 10, 25, 4, 5), now)).toBe("today 04:05");
    expect(whenText(at(2026, 10, 24, 4, 5), now)).toBe("11-24 04:05");
    expect(whenText(at(2025, 10, 25, 4, 5), now)).toBe("2025-11-25");
  });

  test("an argument is quoted as a shell wants it", () => {
    expect(["--rate=5k/s", "p99<20ms", "it's", ""].map(quoted)).toEqual([
      "--rate=5k/s",
      "'p99<20ms'",
      "'it'\\''s'",
      "''",
    ]);
  });
});

describe("the list of runs", () => {
  const row = (id: string, name: string | null, started_unix_s: number) =>
    ({ id, name, started_unix_s }) as RunRow;

  test("the oldest of several runs is compared with the rest, unless there are two names", () => {
    expect(groupsOf([row("new", "x", 2), row("old", "x", 1)])).toEqual({ a: ["old"], b: ["new"] });
    const three = [row("3", null, 3), row("1", null, 1), row("2", null, 2)];
    expect(groupsOf(three)).toEqual({ a: ["1"], b: ["2", "3"] });
    const two = [row("b1", "new", 3), row("a1", "base", 1), row("b2", "new", 2), row("a2", "base", 4)];
    expect(groupsOf(two)).toEqual({ a: ["a1", "a2"], b: ["b2", "b1"] });
  });

  test("tags are words", () => {
    expect(tagWords({ nightly: "", branch: "main" })).toEqual(["nightly", "branch=main"]);
    expect(tagWords(["a=b"])).toEqual(["a=b"]);
    expect(tagWords(null)).toEqual([]);
  });

  test("a small line fills its box", () => {
    expect(sparkPoints([0, 10, 5])).toBe("0.0,21.0 48.0,1.0 96.0,11.0");
    expect(sparkPoints([0, 0])).toBe("0.0,21.0 96.0,21.0");
  });

  test("once more: the load, and not where its results went", () => {
    const args = [
      "-",
      "--rate=5k",
      "-d",
      "3s",
      "--save",
      "--store",
      "/x.db",
      "--name=n",
      "-o",
      "json",
      "--control=127.0.0.1:0",
      "--repeat=5",
      "--pause",
      "1s",
    ];
    expect(loadFlags(args, null)).toEqual(["--rate=5k", "-d", "3s"]);
    expect(loadFlags(["./shop.yaml", "--http2", "--json", "r.json"], "./shop.yaml")).toEqual(["--http2"]);
    expect(planPath(["plimsoll", "run", "./shop.yaml"], ["shop.yaml"])).toBe("shop.yaml");
    expect(planPath(["plimsoll", "run", "gone.yaml", "http://a/"], ["shop.yaml"])).toBeNull();
  });
});

describe("what is drawn", () => {
  test("the smallest and the largest value stay in their order", () => {
    expect(extremes([2, null, 9, 1])).toEqual([9, 1]);
    expect(extremes([1, 3, 2])).toEqual([1, 3]);
    expect(extremes([null, null])).toEqual([null, null]);
  });

  test("a report has the data of its charts and the plan, which may be any text", () => {
    const data = { runs: [] };
    const plan = "# <script> &amp; \"'\nrun: {}\n";
    const escaped = plan
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', "&#34;");
    const html =
      `<details><summary>The plan as it was written</summary><pre tabindex="0">${escaped}</pre></details>` +
      `<script type="application/json" id="chart-data">${JSON.stringify(data)}</script>`;
    expect(dataOfReport(html)).toEqual(data);
    expect(planOfReport(html)).toBe(plan);
    expect([dataOfReport("<p>"), planOfReport("<p>")]).toEqual([null, null]);
    expect(dataOfReport('<script type="application/json" id="chart-data">{</script>')).toBeNull();
  });
});

describe("a comparison", () => {
  const change: Change = {
    kind: "relative",
    estimate: -0.031,
    low: -0.06,
    high: null,
    p: 0.0004,
    p_adjusted: null,
    method: "ranks",
  };
  const metric = { metric: "response_time.p99", unit: "ns", change } as Metric;

  test("figures are those of the command line", () => {
    expect(valueText(metric, 1_500_000)).toBe("1.50 ms");
    expect(valueText({ ...metric, unit: "us" }, 111)).toBe("111 µs");
    expect(valueText(metric, null)).toBe("-");
    expect(amount(change, change.estimate)).toBe("−3.1 %");
    expect(amount({ ...change, kind: "absolute" }, 0.0012)).toBe("+0.12 points");
    expect(intervalText(change)).toBe("[−6.0 %, ?]");
    expect(intervalText({ ...change, low: null })).toBe("-");
  });

  test("zero is in the middle, and what has no bound reaches the edge", () => {
    const scale = scaleOf([metric], "relative", 0.05);
    expect(scale).toBeCloseTo(0.165);
    const { low, high, at, band, openLow, openHigh } = drawn(change, scale, 0.05);
    expect(low).toBeCloseTo(0.5 - 0.06 / scale / 2);
    expect(at).toBeGreaterThan(low);
    expect([high, openLow, openHigh]).toEqual([1, false, true]);
    expect((band[0] + band[1]) / 2).toBeCloseTo(0.5);
    // One row that is far beyond does not make all others points.
    expect(scaleOf([{ ...metric, change: { ...change, high: 70 } }], "relative", 0.05)).toBe(1);
  });
});

describe("a run that goes on", () => {
  test("messages are bounded, and figures are replaced", () => {
    let heard = NOTHING_HEARD;
    for (let number = 0; number < MOST_MESSAGES + 5; number += 1) {
      heard = heardAfter(heard, "message", { text: String(number) });
    }
    expect([heard.messages.length, heard.messages[0]]).toEqual([MOST_MESSAGES, "5"]);
    heard = heardAfter(heard, "result", { stat: { elapsed_s: 1 }, result: { schema_version: 1 } });
    heard = heardAfter(heard, "result", { stat: { elapsed_s: 2 }, result: { schema_version: 2 } });
    expect([heard.stat?.elapsed_s, heard.result?.schema_version]).toEqual([2, 2]);
    // Intervals that the page has are not told again.
    const of = (...ends: number[]) => ({ intervals: ends.map((at_s) => ({ at_s })) });
    heard = heardAfter(heard, "result", { stat: { elapsed_s: 2 }, result: of(1, 2, 2.5) });
    heard = heardAfter(heard, "result", { stat: { elapsed_s: 3 }, result: of(3), kept: 2 });
    expect(heard.result).toEqual(of(1, 2, 3));
    heard = heardAfter(heard, "result", { stat: { elapsed_s: 4 }, result: of(2, 4) });
    expect(heard.result).toEqual(of(2, 4));
    heard = heardAfter(heard, "end", { exit_code: 99, run: "3d15" });
    expect(heard.end).toEqual({ exit_code: 99, run: "3d15" });
    expect(heardAfter(heard, "other", {})).toBe(heard);
  });

  test("three hours of seconds hold the intervals of an hour at most", () => {
    const MOST = 3_600;
    let heard = NOTHING_HEARD;
    let known: { at_s: number }[] = [];
    for (let second = 1; second <= 3 * 3_600; second += 1) {
      known.push({ at_s: second });
      // A record that is full joins its intervals in pairs, and the page is told all of it.
      const isFull = known.length > MOST;
      if (isFull) known = known.filter((_, at) => at % 2 === 1);
      const kept = isFull ? 0 : Math.max(0, known.length - 2);
      const result = { intervals: known.slice(kept) };
      heard = heardAfter(heard, "result", { stat: { elapsed_s: second }, result, kept });
      if (heard.result?.intervals.length !== known.length || known.length > MOST)
        throw new Error(`${heard.result?.intervals.length} of ${known.length} after ${second} s`);
    }
    expect(heard.result?.intervals.at(-1)?.at_s).toBe(3 * 3_600);
  });

  test("a search tells its trials in messages", () => {
    const line =
      "   8 s  from above      3,000/s     2 s  p50 3.16 ms  p99 393 ms  errors < 0.1 %  not applied: it stood";
    expect(trialOf(line)).toEqual({
      at_s: 8,
      purpose: "from above",
      rate_per_s: 3000,
      measured_s: 2,
      p50: 3_160_000,
      p99: 393_000_000,
      errors: "< 0.1 %",
      finding: "not_applied",
    });
    const first = trialOf(
      "   0 s  ramp             12.5/s     1 s  p50 58.4 µs  p99 -  errors 0.0 %  unclear",
    );
    expect([first?.rate_per_s, first?.p50, first?.p99, first?.finding]).toEqual([
      12.5,
      58_400,
      null,
      "unclear",
    ]);
    expect(trialOf("error: no such host")).toBeNull();
    const announced = "trying 1,200/s, from above, for 4.0 s, at 12.5 s of 120.0 s";
    expect(latestTrying(["trying 1/s, ramp, for 1.0 s, at 0.0 s of 2.0 s", announced, line])).toEqual({
      rate_per_s: 1200,
      purpose: "from above",
      length_s: 4,
      at_s: 12.5,
      most_s: 120,
    });
    expect([latestTrying([line]), tryingOf(line), trialOf(announced)]).toEqual([null, null, null]);
    expect([nanosOf("2m05s"), nanosOf("1h00m"), nanosOf("850 ns"), nanosOf("-"), nanosOf("")]).toEqual([
      125e9,
      3600e9,
      850,
      null,
      null,
    ]);
  });

  test("the load line lies between what holds and what breaks", () => {
    const trial = (rate_per_s: number, finding: string) => ({
      at_s: 0,
      purpose: "ramp",
      rate_per_s,
      measured_s: 1,
      p50: rate_per_s,
      p99: null,
      errors: "",
      finding,
    });
    const levels = levelsOf([
      trial(400, "holds"),
      trial(100, "unclear"),
      trial(100, "holds"),
      trial(1600, "breaks"),
      trial(400, "not_applied"),
    ]);
    expect(levels.map(({ rate_per_s, finding, trials }) => [rate_per_s, finding, trials])).toEqual([
      [100, "holds", 2],
      [400, "holds", 2],
      [1600, "breaks", 1],
    ]);
    expect(lineOf(levels)).toEqual({ low: 400, high: 1600 });
    expect(lineOf([])).toEqual({ low: null, high: null });
  });

  test("the usual address is that of the last run of the user's own", () => {
    const sink = "http://127.0.0.1:4000";
    const runs = [
      { name: "example open-rate", target: "http://127.0.0.1:4100/" },
      { name: null, target: `${sink}/` },
      { name: "several", target: "2 targets" },
      { name: "mine", target: "http://shop.test/" },
      { name: "older", target: "http://old.test/" },
    ];
    expect(ownAddress(runs, sink)).toBe("http://shop.test/");
    expect(ownAddress(runs.slice(0, 3), sink)).toBeNull();
    expect(ownAddress([{ name: null }], "")).toBeNull();
  });

  test("a run that goes on is headed by its state unless something is judged", () => {
    expect([headOf("done"), headOf("done", "paused"), headOf("fail", "paused")].map(({ word }) => word)).toEqual([
      "DONE",
      "PAUSED",
      "FAIL",
    ]);
  });

  test("a search is started with what its form has", () => {
    const search = {
      plan: "",
      url: "",
      objectives: " p99<10ms \n\nerror_rate<1%",
      from: "",
      to: "5k/s",
      duration: "1s",
      precision: "",
      maxTime: "",
      sweep: "",
      levels: "1, 2,4",
    };
    expect(findFlags(search)).toEqual([
      "--slo=p99<10ms",
      "--slo=error_rate<1%",
      "--duration=1s",
      "--to=5k/s",
    ]);
    // A sweep has levels in the place of bounds.
    expect(findFlags({ ...search, objectives: "", sweep: "connections" })).toEqual([
      "--duration=1s",
      "--sweep=connections=1,2,4",
    ]);
  });
});

test("the rates of a search that is over have the findings of the whole search, with their reasons", () => {
  const found = (code: string) => ({ code, evidence: `${code} here`, hint: "" });
  const trial = (rate_per_s: number, measured_s: number, p99: number, finding: string, codes: string[] = []) => ({
    ...{ purpose: "bisection", at_s: 0, rate_per_s, measured_s, p50: 1, p99, error_rate: 0, finding },
    findings: codes.map(found),
  });
  const level = (rate_per_s: number, finding: string, reason?: string) => ({
    ...{ rate_per_s, finding, measured_s: 10, shares: [] },
    ...(reason !== undefined && { reason }),
  });
  const capacity = {
    levels: [level(100, "holds"), level(200, "unclear", "held for 8.00 s"), level(400, "breaks")],
    trials: [
      trial(100, 8, 5, "holds", ["start_lag"]),
      trial(200, 2, 9, "holds", ["start_lag", "too_few_samples"]),
      trial(200, 8, 6, "holds"),
      trial(400, 2, 80, "breaks", ["overloaded"]),
    ],
  };
  expect(ratesOf(capacity).map(({ p99, finding, trials, reason }) => [p99, finding, trials, reason])).toEqual([
    [5, "holds", 1, ""],
    [6, "unclear", 2, "held for 8.00 s"],
    [80, "breaks", 1, ""],
  ]);
  expect(remarksOf(capacity)).toEqual([{ text: "in 2 of 4 trials, first: start_lag here", hint: "" }]);
});

test("the peak of a sweep is that of its law, or what was measured where the law is far off", () => {
  const levels = [[1, 90], [8, 353], [16, 352]].map(([value, achieved_per_s]) => ({ value, achieved_per_s }));
  const sweep = (error: number, extrapolated = false) =>
    ({
      setting: "connections",
      levels,
      usl: { alpha: 0, peak_concurrency: 13.2, peak_per_s: 395, extrapolated, error },
    }) as unknown as Parameters<typeof peakOf>[0];
  expect(peakOf(sweep(0.01))).toEqual([395, "at 13 in flight"]);
  expect(peakOf(sweep(0.01, true))).toEqual([395, "at 13 in flight, calculated and not seen"]);
  expect(peakOf(sweep(0.12))).toEqual([353, "measured, at 8 connections"]);
});

test("objectives that are limits of times are lines on the load line", () => {
  expect(limitsOf(["p99<40ms", "p99.9 <= 1.5s", "errors<1%", "max<500us", "goodput>99%"])).toEqual([
    { text: "p99<40ms", ns: 40e6 },
    { text: "p99.9 <= 1.5s", ns: 1.5e9 },
    { text: "max<500us", ns: 500e3 },
  ]);
});

describe("percentiles of the good answers alone", () => {
  const result = (count: number, lost: Partial<Result["accounting"]>) => {
    const accounting = { failed: 0, dropped: 0, never_started: 0, without_data: 0, ...lost };
    return { accounting, response_time: { count, p: { "50": 1, "99": 2, "99.9": null } } } as unknown as Result;
  };

  test("say which are none of what was due", () => {
    const half = result(100, { failed: 90, never_started: 20, without_data: 10 });
    expect([leftOut(half, "50"), leftOut(half, "99"), leftOut(half, "99.9")]).toEqual([
      null,
      "45.0 % failed, 5.0 % never started",
      null,
    ]);
    expect(unreached(half, ["50", "99", "99.9"])).toBe(
      "these are of the good answers alone: of what was due, 45.0 % failed, 5.0 % never started, more than p99 leaves out",
    );
  });

  test("say nothing where all of them are", () => {
    // One of a thousand is beyond p99.9, which has no value here.
    expect(unreached(result(999, { failed: 1 }), ["50", "99", "99.9"])).toBeNull();
    expect(unreached(result(0, { failed: 5 }), ["50", "99"])).toBeNull();
  });
});

describe("rates of runs of several requests", () => {
  const result = (started: number | null, description = ["open: 80 requests/s (40 iterations/s of 2 requests)"]) => {
    const step = { scenario: "browse" };
    const rate = { achieved_per_s: 80, iterations_started_per_s: started, target_per_s: 40 };
    return { by_step: [step, step], rate, model: { description } } as unknown as Result;
  };

  test("iterations that are not known yet are not zero", () => {
    expect(paceOf(result(40))).toEqual({ label: "iterations started", achieved: 40, asked: 40, unit: "iterations" });
    expect(paceOf(result(null))).toEqual({ label: "achieved rate", achieved: 80, asked: null, unit: "requests" });
  });

  test("a typed rate is of iterations, and said in requests, too", () => {
    expect(paceUnit(result(40))).toEqual({ name: "iterations", requests: 2 });
    expect(paceUnit(result(40, ["open: 40 iterations/s"]))).toEqual({ name: "iterations", requests: null });
    expect(paceUnit(null)).toEqual({ name: "requests", requests: null });
    expect(["500", "5k/s", "300/m", "50/10s", "0.5", "fast", ""].map(rateOf)).toEqual([
      500,
      5_000,
      5,
      5,
      0.5,
      null,
      null,
    ]);
    expect([requestsText("80", 2), requestsText("", 2), requestsText("80", null)]).toEqual([
      "= 160/s requests",
      "an iteration has 2 requests",
      undefined,
    ]);
  });
});

test("a broken threshold without a figure says why", () => {
  const threshold = { observed: null, unreached: "not reached: 100.0 % failed", reason: null, windows: null };
  expect(thresholdSeen(threshold as unknown as ThresholdOutcome)).toBe("not reached: 100.0 % failed");
  expect([steeredBy("http"), steeredBy("agent_left")]).toEqual([
    "the page, or another request to the control port",
    "agent left",
  ]);
});

test("as many runs of each side are drawn", () => {
  const of = (a: number, b: number) => Object.values(shares(a, b, 6));
  expect([of(5, 5), of(1, 9), of(9, 1), of(2, 2), of(4, 1), of(0, 3), of(2, 7)]).toEqual([
    [3, 3],
    [1, 5],
    [5, 1],
    [2, 2],
    [4, 1],
    [0, 3],
    [2, 4],
  ]);
});

test("a median that is a lower bound says so in a comparison", () => {
  const metric = { unit: "ns" } as Metric;
  expect([valueText(metric, 5e8, true), valueText(metric, 5e8), valueText(metric, null, true)]).toEqual([
    "≥ 500 ms",
    "500 ms",
    "-",
  ]);
});

test("the ticks of a sweep are its levels", () => {
  const labels = (levels: number[]) => {
    const { splits, label } = levelAxis(levels);
    return splits?.(0, 5).map(label);
  };
  expect(labels([1, 2, 4])).toEqual(["1", "2", "4"]);
  expect(labels([1, 2, 4, 100, 1000])).toEqual(["4", "100", "1,000"]);
});

describe("refusals of a search", () => {
  const error = (message: string, hint: string | null = null) => new ApiError(422, { error: message, hint });
  const at = (message: string, hint: string | null = null, values = {}) => {
    const found = fieldError(error(message, hint), fieldsOf({ plan: "", sweep: "" }), values, LABELS);
    return found === null ? null : [found.id, texts(found.said).join("")];
  };
  /** The texts of what is drawn. */
  const texts = (node: unknown): string[] => {
    if (typeof node === "string") return [node];
    if (Array.isArray(node)) return node.flatMap(texts);
    const { props } = (node ?? {}) as { props?: { children?: unknown } };
    return props === undefined ? [] : texts(props.children);
  };

  test("are at their fields, in the words of the form", () => {
    expect(at("--slo: the limit is missing", "write one, such as p99<10ms")).toEqual([
      "objectives",
      "the limit is missing: write one, such as p99<10ms",
    ]);
    const advice = "write --max-time 6s or more, or shorter trials with -d";
    expect(at("--max-time: 1 s leave no room for 3 trials of 2 s", advice)).toEqual([
      "maxTime",
      "1 s leave no room for 3 trials of 2 s: " +
        "write “Longest search” 6s or more, or shorter trials with “Shortest trial”",
    ]);
    expect(at("`often` is not a rate", null, { from: "often" })).toEqual(["from", "often is not a rate"]);
    expect(at("the plan has no steps")).toBeNull();
    // Fields that are not there mark nothing.
    const sweep = fieldsOf({ plan: "a.yaml", sweep: "threads" });
    const marked = (message: string) => fieldError(error(message), sweep, {}, LABELS)?.id;
    expect([marked("--from: no"), marked("`x` is not a host"), marked("--sweep: no")]).toEqual([
      undefined,
      undefined,
      "levels",
    ]);
  });

  test("have no advice for a terminal", () => {
    const said = inForm(error("`plimsoll ws` opens WebSockets at one URL", "write it as in `plimsoll ws ws://a`"));
    expect([said.message, said.hint]).toEqual(["this load opens WebSockets at one URL", null]);
    const forced = inForm(error("they differ", "make the runs alike; --force compares them anyway"));
    expect(forced.hint).toBe("make the runs alike");
  });

  test("a name that no saved run may have is none", () => {
    expect(["a.yaml", "http://a/", "http://a/?b=1", "latest"].map(searchName)).toEqual([
      "a.yaml",
      "http://a/",
      null,
      null,
    ]);
  });
});

test("a search once more has its plan or its address, and its flags", () => {
  const args = ["plimsoll", "find", "-", "--slo=p99<10ms", "--from=5", "-o", "json", "--save", "--name=a.yaml"];
  const flags = ["--slo=p99<10ms", "--from=5"];
  expect(searchOf({ args, name: "a.yaml" }, ["a.yaml"])).toEqual({ path: "a.yaml", url: null, flags });
  expect(searchOf({ args, name: "http://a/" }, ["a.yaml"])).toEqual({ path: null, url: "http://a/", flags });
  expect(searchOf({ args, name: "b.yaml" }, ["a.yaml"])).toBeNull();
  const terminal = ["plimsoll", "find", "http://b/", ...flags];
  expect(searchOf({ args: terminal }, [])).toEqual({ path: null, url: "http://b/", flags });
});

test("a call of gRPC without a method is known before it is sent", () => {
  expect(hasMethod({ urls: ["http://127.0.0.1:1/"] })).toBe(false);
  expect(hasMethod({ urls: ["127.0.0.1:1"] })).toBe(false);
  expect(hasMethod({ urls: ["http://127.0.0.1:1/a.B/C"] })).toBe(true);
  expect(hasMethod({ urls: ["127.0.0.1:1", "a.B/C"] })).toBe(true);
  expect(hasMethod({ urls: ["http://127.0.0.1:1/"], call: "a.B/C" })).toBe(true);
});

describe("runs that are told apart", () => {
  const row = (id: string, tags: string[]) => ({ id, tags }) as unknown as RunRow;
  const run = (name: string | null, authority: string, seconds = 0) => ({
    run: { name, targets: [{ authority }], started_at_unix_ns: seconds * 1e9 } as unknown as Result["run"],
  });

  test("what is in flight is said before any answer, and how long it is waited for", () => {
    const stat = { running: true, stopping: false, paused: false, target_per_s: 10, elapsed_s: 2, end_s: 5 };
    expect(flightText(stat)).toBeNull();
    expect(flightText({ ...stat, sent: 1200, in_flight: 50 })).toBe("1,200 sent, 50 in flight");
    const over = { ...stat, sent: 50, in_flight: 50, drain_left_s: 26.2 };
    expect(flightText(over)).toBe("waiting for the last 50 answers, at most 27 s left");
    expect(flightText({ ...over, in_flight: 0 })).toBeNull();
  });

  test("a run has the same title while it goes on as afterwards, and its number in a series", () => {
    const live = { command: "repeat", name: "fast", entry: { number: 2, of: 5 } };
    const title = (more: object) => liveTitle({ ...live, ...more } as unknown as LiveRun);
    expect([title({}), title({ name: null })]).toEqual(["fast · run 2 of 5", "run · run 2 of 5"]);
    expect(title({ name: null, target: "a:80", entry: null })).toBe("a:80");
  });

  test("a target in little room keeps its host and port, and the end of its path", () => {
    expect(shortTarget("http://127.0.0.1:18080/")).toBe("127.0.0.1:18080");
    const short = shortTarget("https://127.0.0.1:18080/a/very/long/path/to/some/items");
    expect(short).toMatch(/^127\.0\.0\.1:18080….*\/items$/);
    expect(short.length).toBeLessThanOrEqual(34);
  });

  test("times within one minute have their seconds", () => {
    const at = new Date(2026, 1, 3, 14, 5, 7).getTime() / 1000;
    expect([...sameMinute([at, at + 3, at + 600])]).toEqual([at, at + 3]);
    expect(whenText(at, new Date(at * 1000), true)).toBe("today 14:05:07");
  });

  test("runs of the same name have their targets in a comparison, or their times", () => {
    expect(namesApart([run("a", "x:1"), run("b", "x:1")])).toEqual(["a", "b"]);
    expect(namesApart([run("a", "x:1"), run("a", "x:2")])).toEqual(["a · x:1", "a · x:2"]);
    const [one, other] = namesApart([run("a", "x:1", 5), run("a", "x:1", 6)]);
    expect(one).toMatch(/^a · .*:05$/);
    expect(other).toMatch(/^a · .*:06$/);
  });

  test("rows of a series are together, and one alone is none", () => {
    const rows = [row("1", ["series=x"]), row("2", []), row("3", ["series=x"]), row("4", ["series=y"])];
    const ids = grouped(rows).map(({ series, rows }) => [series, rows.map(({ id }) => id).join()]);
    expect(ids).toEqual([["x", "1,3"], [null, "2"], [null, "4"]]);
    expect([seriesOf(["nightly", "series=x"]), seriesOf(["series"])]).toEqual(["x", null]);
    expect(seriesOfArgs(["run", "--tag=a", "--tag", "series=y"])).toBe("y");
    expect(seriesOfArgs(["run", "--tag=series=z"])).toBe("z");
  });

  test("another run has neither the tags nor the series of the one before", () => {
    expect(withoutTags("--http2 --tag evening --tag=a=b")).toBe("--http2");
    expect(withoutTags("--think  1s")).toBe("--think  1s");
    expect(loadFlags(["--tag=series=x", "--rate", "5", "--tag", "series=x"], null)).toEqual(["--rate", "5"]);
  });
});
