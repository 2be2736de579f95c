import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { NANOS_LOG, TIME } from "./axes.ts";
import { type Axis, Chart, type Line } from "./chart.tsx";
import { type Heat, type RunData, timeName } from "./data.ts";
import { count, nanos, seconds } from "./figure.ts";
import { color } from "./theme.tsx";

/** The spread of times over the course of each run. */
export function HeatMaps({ runs }: { runs: RunData[] }) {
  const several = runs.length > 1;
  const without = runs.filter((run) => run.heat === null);
  // Data that all of them lack are mentioned once.
  const alike = new Set(without.map((run) => run.missing)).size === 1;
  return (
    <>
      {runs.map((run) => run.heat !== null && <HeatMap name={several ? run.name : null} heat={run.heat} />)}
      {(alike ? without.slice(0, 1) : without).map((run) => (
        <p class="empty missing">
          {several && `${alike ? without.map(({ name }) => name).join(", ") : run.name}: `}
          {run.missing ?? "No heat map: not one value."}
        </p>
      ))}
    </>
  );
}

function HeatMap({ name, heat }: { name: string | null; heat: Heat }) {
  const { x, median, byColumn, most } = useMemo(() => prepared(heat), [heat]);
  const limits = heat.limits_ns;
  const yAxis: Axis = {
    ...NANOS_LOG,
    range: () => [Math.max(1, limits[0] ?? 1), limits[limits.length - 1] ?? 10],
  };
  const lines = useMemo(
    (): Line[] => [{ label: "median", color: "series-2", width: 2, values: median, steps: -1 }],
    [median],
  );
  return (
    <Chart
      title={name === null ? "Heat map" : `Heat map, ${name}`}
      about={
        <small>
          {timeName(heat.time)}; <Scale most={most} />
        </small>
      }
      x={x}
      lines={lines}
      xAxis={TIME}
      yAxis={yAxis}
      height={240}
      first={1}
      group="course"
      at={(index) => {
        const column = heat.columns[index - 1];
        if (column === undefined) return "";
        const cells = byColumn[index - 1] ?? [];
        const [low, high] = [cells[0]?.[1], cells[cells.length - 1]?.[1]];
        const total = cells.reduce((sum, [, , n]) => sum + n, 0);
        const when = `${seconds(column[0])} to ${seconds(column[1])}`;
        if (low === undefined || high === undefined) return `${when} · no values`;
        const from = nanos(limits[low] ?? 0);
        return `${when} · ${count(total)} values from ${from} to ${nanos(limits[high + 1] ?? 0)}`;
      }}
      value={nanos}
      below={(plot) => drawCells(plot, heat, most)}
    />
  );
}

/** The range of values of a cell, by its colour. */
function Scale({ most }: { most: number }) {
  return (
    <span class="scale">
      1 <span class="ramp" aria-hidden="true" /> {count(most)} values, logarithmic
    </span>
  );
}

function prepared(heat: Heat) {
  const [first] = heat.columns;
  const x = first === undefined ? [] : [first[0], ...heat.columns.map(([, to]) => to)];
  const byColumn: Heat["cells"][] = heat.columns.map(() => []);
  heat.cells.forEach((cell) => byColumn[cell[0]]?.push(cell));
  const middle = (cells: Heat["cells"]) => {
    const half = cells.reduce((sum, [, , n]) => sum + n, 0) / 2;
    let passed = 0;
    const found = cells.find(([, , n]) => (passed += n) >= half);
    if (found === undefined) return null;
    // The middle of its range, as the axis has it.
    return Math.sqrt(Math.max(1, heat.limits_ns[found[1]] ?? 1) * (heat.limits_ns[found[1] + 1] ?? 1));
  };
  const medians = byColumn.map(middle);
  const median = [medians[0] ?? null, ...medians];
  const most = Math.max(1, ...heat.cells.map(([, , n]) => n));
  return { x, median, byColumn, most };
}

function drawCells(plot: uPlot, heat: Heat, most: number): void {
  const { ctx } = plot;
  const steps = ["heat-1", "heat-2", "heat-3", "heat-4", "heat-5", "heat-6", "heat-7"].map(color);
  for (const [column, row, n] of heat.cells) {
    const [from, to] = heat.columns[column] ?? [0, 0];
    const level = most > 1 ? Math.log(n) / Math.log(most) : 1;
    ctx.fillStyle = steps[Math.min(steps.length - 1, Math.floor(level * steps.length))] ?? "";
    const left = Math.floor(plot.valToPos(from, "x", true));
    const right = Math.ceil(plot.valToPos(to, "x", true));
    const top = Math.floor(plot.valToPos(heat.limits_ns[row + 1] ?? 1, "y", true));
    const bottom = Math.ceil(plot.valToPos(Math.max(1, heat.limits_ns[row] ?? 1), "y", true));
    ctx.fillRect(left, top, right - left, bottom - top);
  }
}
