import type { Axis } from "./chart.tsx";
import { bytes, count, nanos, seconds, share, short } from "./figure.ts";

/** Seconds since the start of a run. */
export const TIME: Axis = {
  steps: [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400,
  ],
  // Not in milliseconds, even at the beginning: it is one axis.
  label: (value) => (value < 100 ? `${Number(value.toFixed(3))} s` : short(seconds(value))),
};

/** Nanoseconds, logarithmically: latencies differ by powers of ten. */
export const NANOS_LOG: Axis = {
  log: true,
  range: aroundLog,
  splits: powers,
  label: (value) => short(nanos(value)),
};

/** From zero to a little above the largest value. */
export function fromZero(label: (value: number) => string): Axis {
  return { range: (_, high) => [0, high > 0 ? high * 1.18 : 1], label };
}

/** Whole numbers from zero. */
export const COUNT: Axis = {
  ...fromZero((value) => (value % 1 === 0 ? count(value) : "")),
};

/** Shares of one from zero. */
export const SHARE: Axis = fromZero((value) => short(share(value)));

/** Bytes from zero, in steps of KiB, MiB and so on that are whole. */
export const BYTES: Axis = {
  ...fromZero((value) => short(bytes(value))),
  steps: Array.from({ length: 50 }, (_, power) => 2 ** power),
};

/** A little more than the values take, on a logarithmic axis, and not less than a factor of four. */
function aroundLog(low: number, high: number): [number, number] {
  if (!(low > 0) || !(high > 0)) return [1e6, 1e9];
  const middle = Math.sqrt(low * high);
  const half = Math.max(Math.sqrt(high / low) * 1.15, 2);
  return [middle / half, middle * half];
}

/** Powers of ten; with their halves and fifths if there are few of them. */
export function powers(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const factors = decades > 3 ? [1] : decades > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}
