/** A sweep when it is over: the figures of a server at each level of a setting, and the law that fits them. */

import { COUNT, fromZero } from "../../src/axes.ts";
import { type Axis, Chart, type Line } from "../../src/chart.tsx";
import { count, perSecond, share, short } from "../../src/figure.ts";
import { Table } from "../app/controls.tsx";
import { Part } from "../runs/parts.tsx";
import { nanosText, rateText, spaced } from "../runs/words.ts";
import { peakOf, type Sweep } from "./capacity.ts";

/** Part of the axis that two of its labels are apart at least. */
const APART = 0.05;

/** The axis of these ascending levels: its ticks are the levels, as far as their labels have room. */
export function levelAxis(levels: number[]): Axis {
  const least = (levels.at(-1) ?? 0) * APART;
  // From the end, so that the highest is there.
  const ticks = levels.reduceRight<number[]>(
    (ticks, level) => (ticks[0] === undefined || ticks[0] - level >= least ? [level, ...ticks] : ticks),
    [],
  );
  return { ...COUNT, splits: () => ticks, label: (value) => short(count(value)) };
}
const RATES = fromZero((value: number) => short(perSecond(value)));

export function SweepParts({ sweep }: { sweep: Sweep }) {
  const { setting, levels, usl, usl_missing } = sweep;
  const sorted = [...levels].sort((a, b) => a.value - b.value);
  const axis = levelAxis(sorted.map(({ value }) => value));
  const lines: Line[] = [
    {
      label: "answered",
      color: "series-1",
      width: 2.5,
      values: sorted.map(({ achieved_per_s }) => achieved_per_s),
    },
  ];
  const [peak, wherePeak] = peakOf(sweep);
  return (
    <div class="parts still">
      <Part id="sweep" title={`Sweep of ${setting}`}>
        {usl !== null && (
          <div class="tiles">
            <div class="tile">
              <span class="label">highest throughput</span>
              <span class="value">{rateText(peak)}</span>
              <span class="below">{wherePeak}</span>
            </div>
            <div class="tile">
              <span class="label">contention</span>
              <span class="value">{share(usl.alpha)}</span>
              <span class="below">of the work is done one at a time</span>
            </div>
          </div>
        )}
        {usl_missing !== null && <p class="hint">No law of scaling: {usl_missing}.</p>}
        <p class="target">{sweep.sweep.load}</p>
        <Chart
          title={`Throughput by ${setting}`}
          x={sorted.map(({ value }) => value)}
          lines={lines}
          xAxis={axis}
          yAxis={RATES}
          height={280}
          at={(index) => `${count(sorted[index]?.value ?? 0)} ${setting}`}
          value={perSecond}
        />
      </Part>
      <Part id="levels" title="Levels">
        <Table
          caption="Levels, in the order in which they were tried"
          rows={levels}
          rowKey={({ value }, index) => `${value} ${index}`}
          empty="No level was tried."
          columns={[
            { key: "value", title: setting, cell: ({ value }) => count(value), heads: true },
            { key: "rate", title: "answered", cell: ({ achieved_per_s }) => perSecond(achieved_per_s) },
            { key: "flight", title: "in flight", cell: ({ in_flight }) => in_flight.toFixed(1) },
            { key: "p50", title: "p50", cell: ({ p50 }) => nanosText(p50) },
            { key: "p99", title: "p99", cell: ({ p99 }) => nanosText(p99) },
            { key: "errors", title: "errors", cell: ({ error_rate }) => share(error_rate) },
            { key: "limit", title: "limited by", cell: ({ limited_by }) => spaced(limited_by), text: true },
          ]}
        />
      </Part>
    </div>
  );
}
