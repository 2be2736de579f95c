/**
 * Figures for people, on axes and at a chart's cursor.
 *
 * The rules are those of `crates/core/src/figure.rs`, which writes every figure that stands on the page;
 * `tests/figures.json` holds both to the same examples.
 */

/** From this on the next smaller unit would show four digits: 999.5 rounds to 1000. */
const NEXT_UNIT = 999.5;

/** Digits behind those shown that tell a tie from values near it. */
const MORE = 40;

/** A whole number with separators: `1,234,567`. */
export function count(value: number): string {
  return Math.round(value)
    .toFixed(0)
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A duration with three significant digits and a fitting unit: `850 ns`, `1.23 ms`, `12.3 s`, `2m05s`. */
export function nanos(value: number): string {
  if (value < NEXT_UNIT) return `${Math.round(value)} ns`;
  if (value < NEXT_UNIT * 1e3) return `${threeDigits(value / 1e3)} µs`;
  if (value < NEXT_UNIT * 1e6) return `${threeDigits(value / 1e6)} ms`;
  const seconds = Math.round(value / 1e9);
  const two = (part: number) => String(Math.floor(part)).padStart(2, "0");
  if (seconds < 100) return `${threeDigits(value / 1e9)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${two((seconds % 3600) / 60)}m`;
}

/** Seconds as a duration. */
export function seconds(value: number): string {
  return nanos(value * 1e9);
}

/** A rate: `12.5/s`, `48,120/s`. */
export function perSecond(value: number): string {
  return value >= NEXT_UNIT ? `${count(value)}/s` : `${threeDigits(value)}/s`;
}

/** A share of one as a percentage, never rounded to nothing or to a whole that it is not. */
export function share(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  if (percent >= 99.95 && percent < 100) return "> 99.9 %";
  return `${fixed(percent, 1)} %`;
}

/** A number of any sign with six significant digits: `1,234.5`, `-0.25`. The part before the point keeps all. */
export function number(value: number): string {
  const digits = 6;
  const magnitude = Math.abs(value);
  const ahead = magnitude < 1 ? 0 : Math.floor(Math.log10(magnitude)) + 1;
  const [whole = "0", behind = ""] = fixed(magnitude, Math.min(Math.max(digits - ahead, 0), digits)).split(".");
  const fraction = behind.replace(/0+$/, "");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction === "" ? "" : `.${fraction}`);
  return value < 0 && text !== "0" ? `-${text}` : text;
}

/** A number of bytes: `512 B`, `3.42 MiB`. */
export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let scaled = value / 1024;
  let unit = 0;
  while (scaled >= NEXT_UNIT && unit + 1 < units.length) {
    scaled /= 1024;
    unit += 1;
  }
  return `${threeDigits(scaled)} ${units[unit]}`;
}

/** A share of the requests as the percentile that it is: `p99.9`. */
export function percentile(share: number): string {
  const slower = 1 - share;
  // As many digits as it takes to tell it from the whole.
  const digits = slower <= 0 ? 6 : Math.max(0, Math.ceil(-Math.log10(slower) - 1e-9) - 1);
  const text = (share * 100).toFixed(Math.min(digits, 6));
  return `p${text.includes(".") ? text.replace(/\.?0+$/, "") : text}`;
}

function threeDigits(value: number): string {
  // The limits lie where rounding would add a digit: 9.995 is 10.0.
  const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fixed(value, decimals);
}

/** As Rust rounds: a tie goes to the even digit, and not up. */
function fixed(value: number, decimals: number): string {
  const rounded = value.toFixed(decimals);
  const exact = value.toFixed(decimals + MORE);
  const kept = exact.slice(0, -MORE).replace(/\.$/, "");
  const isTie = /^50*$/.test(exact.slice(-MORE));
  return isTie && /[02468]$/.test(kept) ? kept : rounded;
}

/** A label of an axis: the same without the zeros that three digits have. */
export function short(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}
