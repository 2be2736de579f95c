import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BYTES } from "../src/axes.ts";
import { bytes, count, nanos, number, percentile, perSecond, share, short } from "../src/figure.ts";

const written: Record<string, (value: number) => string> = {
  nanos,
  count,
  number,
  per_second: perSecond,
  share,
  bytes,
};

// The examples that `crates/report/src/html/tests.rs` holds the page's own figures to.
const examples = JSON.parse(readFileSync(new URL("figures.json", import.meta.url), "utf8")) as Record<
  string,
  [number, string][]
>;

for (const [kind, pairs] of Object.entries(examples)) {
  test(`figures of the kind ${kind} are written as on the page`, () => {
    for (const [value, text] of pairs) expect(written[kind]?.(value)).toBe(text);
  });
}

test("shares of requests are named as percentiles", () => {
  const names = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999].map(percentile);
  expect(names).toEqual(["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99"]);
});

test("an axis of memory has whole steps of its own units", () => {
  // Symptom: 9.54, 19.1, 28.6 MiB.
  for (const step of BYTES.steps ?? []) expect(BYTES.label(step)).toMatch(/^\d+ ([KMGT]i)?B$/);
});

test("labels of axes have no zeros that say nothing", () => {
  const labels = ["1.00 ms", "1.50 ms", "10.0 µs", "100 ns", "1,000/s", "0.50/s", "20.0 %"].map(short);
  expect(labels).toEqual(["1 ms", "1.5 ms", "10 µs", "100 ns", "1,000/s", "0.5/s", "20 %"]);
});
