import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { NANOS_LOG } from "./axes.ts";
import { type Axis, Chart, type Line } from "./chart.tsx";
import { runLook } from "./course.tsx";
import { type RunData, type Spectrum, type TimeKey, timeName } from "./data.ts";
import { count, nanos, percentile } from "./figure.ts";
import { color } from "./theme.tsx";

/** The axis of percentiles: the number of requests for each that is slower. */
const SLOWER: Axis = {
  log: true,
  range: (_, high) => [1, Math.max(high * 1.2, 20)],
  splits: (low, high) => [1, 2, 4, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((x) => x >= low && x <= high),
  label: (value) => (value === 1 ? "p0" : percentile(1 - 1 / value)),
};

interface Drawn {
  spectrum: Spectrum;
  name: string;
  look: { color: string; dash: number[] | undefined };
}

/** Percentiles on an axis that shows the slowest requests as well as the usual ones. */
export function SpectrumChart({ runs }: { runs: RunData[] }) {
  const single = runs.length === 1;
  const [time, setTime] = useState<TimeKey>(runs[0]?.time ?? "response_time");
  const drawn = useMemo(() => (single ? bothTimes(runs) : eachRun(runs, time)), [runs, time]);
  const { x, lines } = useMemo(() => linesOf(drawn), [drawn]);
  const missing = runs.find((run) => run.missing !== null)?.missing;
  return (
    <>
      <Chart
        title="Percentile spectrum"
        about={<small>further to the right are fewer, slower requests</small>}
        x={x}
        lines={lines}
        xAxis={SLOWER}
        yAxis={timesOf(drawn)}
        height={300}
        at={(index) => at(x[index] ?? 1)}
        value={(value, line, index) => {
          const own = drawn.find(({ name }) => name === line.label)?.spectrum;
          return (own !== undefined && isBound(own, x[index] ?? 1) ? "≥ " : "") + nanos(value);
        }}
        below={(plot) => drawUnknown(plot, drawn)}
        above={(plot) => drawn.forEach((one) => drawIntervals(plot, one))}
      >
        {!single && (
          <div class="buttons" role="group" aria-label="Time">
            {(["response_time", "service_time"] as const).map((one) => (
              <button type="button" aria-pressed={one === time} onClick={() => setTime(one)}>
                {timeName(one)}
              </button>
            ))}
          </div>
        )}
      </Chart>
      <ul class="key">
        <li>bars: 95 % intervals of percentiles</li>
        {drawn.some(({ spectrum }) => spectrum.count > 0) && (
          <li>shaded: too few requests are as slow for a bound on the percentile</li>
        )}
        {drawn.some(({ spectrum }) => spectrum.at_least_from !== null) && (
          <li>≥ and open circles: lower bounds, because requests timed out</li>
        )}
        {missing != null && <li class="missing">{missing}</li>}
      </ul>
    </>
  );
}

/** An axis of times on which the ends of all intervals are, too: a bar that is cut says less than there is. */
function timesOf(drawn: Drawn[]): Axis {
  const ends = drawn.flatMap(({ spectrum }) => spectrum.intervals.flatMap(([, low, high]) => [low, high]));
  const known = ends.filter((end) => end !== null && end > 0) as number[];
  const range = (low: number, high: number): [number, number] => {
    const usual = NANOS_LOG.range?.(low, high) ?? [low, high];
    return [Math.min(usual[0], ...known), Math.max(usual[1], ...known.map((end) => end * 1.1))];
  };
  return { ...NANOS_LOG, range };
}

function bothTimes(runs: RunData[]): Drawn[] {
  const [run] = runs;
  if (run === undefined) return [];
  return run.spectra
    .filter((spectrum) => spectrum.points.length > 0)
    .map((spectrum) => {
      const isMain = spectrum.time === run.time;
      const look = isMain ? { color: "series-1", dash: undefined } : { color: "series-2", dash: [7, 4] };
      return { spectrum, name: timeName(spectrum.time), look };
    })
    .sort((a, b) => Number(b.spectrum.time === run.time) - Number(a.spectrum.time === run.time));
}

function eachRun(runs: RunData[], time: TimeKey): Drawn[] {
  return runs.flatMap((run, number) => {
    const spectrum = run.spectra.find((one) => one.time === time);
    if (spectrum === undefined || spectrum.points.length === 0) return [];
    return [{ spectrum, name: run.name, look: runLook(number) }];
  });
}

/** The requests for each that is slower than this share of them. */
function slower(share: number): number {
  // Whole digits: 1 − 0.99 is not quite a hundredth.
  return Number((1 / (1 - share)).toPrecision(9));
}

function linesOf(drawn: Drawn[]): { x: number[]; lines: Line[] } {
  const xs = drawn.flatMap(({ spectrum }) => spectrum.points.map(([share]) => slower(share)));
  const x = [...new Set(xs)].sort((a, b) => a - b);
  const lines = drawn.map(({ spectrum, name, look }): Line => {
    const values = new Map(spectrum.points.map(([share, value]) => [slower(share), Math.max(value, 1)]));
    return { ...look, label: name, values: x.map((at) => values.get(at)), width: 2 };
  });
  return { x, lines };
}

function at(slower: number): string {
  const name = slower === 1 ? "fastest" : percentile(1 - 1 / slower);
  return slower <= 2 ? name : `${name} · 1 of ${count(slower)} is slower`;
}

function isBound(spectrum: Spectrum, x: number): boolean {
  const from = spectrum.at_least_from;
  const first = from === null ? undefined : spectrum.points[from];
  return first !== undefined && x >= slower(first[0]);
}

/** The place from which too few requests are as slow for any bound on the percentile. */
function drawUnknown(plot: uPlot, drawn: Drawn[]): void {
  const { ctx, bbox } = plot;
  const known = Math.max(...drawn.map(({ spectrum }) => slower(spectrum.known_to)));
  if (!Number.isFinite(known)) return;
  const left = plot.valToPos(known, "x", true);
  ctx.fillStyle = `${color("muted")}1c`;
  ctx.fillRect(left, bbox.top, bbox.left + bbox.width - left, bbox.height);
}

function drawIntervals(plot: uPlot, { spectrum, name, look }: Drawn): void {
  const series = plot.series.find((one) => one.label === name);
  if (series?.show !== true) return;
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.strokeStyle = color(look.color);
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([]);
  for (const [share, low, high] of spectrum.intervals) {
    if (low === null && high === null) continue;
    const x = plot.valToPos(slower(share), "x", true);
    const bottom = low === null ? bbox.top + bbox.height : plot.valToPos(low, "y", true);
    const top = high === null ? bbox.top : plot.valToPos(high, "y", true);
    const arm = 4 * ratio;
    ctx.beginPath();
    ctx.moveTo(x, bottom);
    ctx.lineTo(x, top);
    if (low !== null) {
      ctx.moveTo(x - arm, bottom);
      ctx.lineTo(x + arm, bottom);
    }
    if (high !== null) {
      ctx.moveTo(x - arm, top);
      ctx.lineTo(x + arm, top);
    }
    ctx.stroke();
  }
  // Not at every point: at those that have a name.
  const named = new Set([...spectrum.intervals.map(([share]) => share), spectrum.points.at(-1)?.[0]]);
  const from = spectrum.at_least_from ?? spectrum.points.length;
  const bounds = spectrum.points.slice(from).filter(([share]) => named.has(share));
  ctx.fillStyle = color("card");
  for (const [share, value] of bounds) {
    ctx.beginPath();
    ctx.arc(plot.valToPos(slower(share), "x", true), plot.valToPos(value, "y", true), 3.5 * ratio, 0, 7);
    ctx.fill();
    ctx.stroke();
  }
}
