import { useMemo, useState } from "preact/hooks";
import { fromZero, NANOS_LOG } from "./axes.ts";
import { type Axis, Chart, type Line } from "./chart.tsx";
import { runLook } from "./course.tsx";
import { type Histogram, type RunData, type TimeKey, timeName } from "./data.ts";
import { count, nanos, share, short } from "./figure.ts";

const SHARES: Axis = fromZero((value) => short(share(value)));
const VALUES: Axis = { ...NANOS_LOG, range: (low, high) => [low, high] };

/** The spread of values: the share of requests in each of twenty ranges per power of ten. */
export function HistogramChart({ runs }: { runs: RunData[] }) {
  const [time, setTime] = useState<TimeKey>(runs[0]?.time ?? "response_time");
  const { x, lines, counts } = useMemo(() => stepsOf(runs, time), [runs, time]);
  if (runs.every((run) => run.histograms.every((histogram) => histogram.count === 0))) return null;
  const range = (index: number) => `${nanos(x[index] ?? 0)} – ${nanos(x[index + 1] ?? 0)}`;
  return (
    <Chart
      title="Histogram"
      about={<small>share of requests, by {timeName(time)}</small>}
      x={x}
      lines={lines}
      xAxis={VALUES}
      yAxis={SHARES}
      height={220}
      at={range}
      value={(value, line, index) => {
        const of = counts[lines.indexOf(line)]?.[index] ?? 0;
        return `${share(value)} (${count(of)})`;
      }}
    >
      <div class="buttons" role="group" aria-label="Time">
        {(["response_time", "service_time"] as const).map((one) => (
          <button type="button" aria-pressed={one === time} onClick={() => setTime(one)}>
            {timeName(one)}
          </button>
        ))}
      </div>
    </Chart>
  );
}

/** Limits of ranges, and for each run the share and the number of requests from each limit on. */
function stepsOf(runs: RunData[], time: TimeKey): { x: number[]; lines: Line[]; counts: number[][] } {
  const own = runs.map((run) => run.histograms.find((histogram) => histogram.time === time));
  const limits = own.flatMap((histogram) => (histogram?.bars ?? []).flatMap(([from, below]) => [from, below]));
  const x = [...new Set(limits.map((limit) => Math.max(limit, 1)))].sort((a, b) => a - b);
  const single = runs.length === 1;
  const counts = own.map((histogram) => countsOf(histogram, x));
  const lines = runs.map((run, number): Line => {
    const all = Math.max(1, own[number]?.count ?? 0);
    const look = single ? { color: "series-1", dash: undefined } : runLook(number);
    const values = (counts[number] ?? []).map((count) => count / all);
    return { ...look, label: single ? timeName(time) : run.name, values, steps: 1, filled: true, width: 1.5 };
  });
  return { x, lines, counts };
}

function countsOf(histogram: Histogram | undefined, x: number[]): number[] {
  const counts = new Map((histogram?.bars ?? []).map(([from, , count]) => [Math.max(from, 1), count]));
  return x.map((limit) => counts.get(limit) ?? 0);
}
