import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { ApiError, type Schedule } from "../app/api.ts";
import { ErrorBox, Loading, Problems, Table } from "../app/controls.tsx";
import { fromZero, TIME } from "../../src/axes.ts";
import { Chart, type Line } from "../../src/chart.tsx";
import { count, perSecond, seconds, short } from "../../src/figure.ts";
import { color } from "../../src/theme.tsx";
import type { PlanModel } from "./model.ts";

/** Two points at one time make a step; a chart wants times that are apart. */
const APART_S = 1e-6;

/** The points of a schedule as a chart takes them: each time once, and later than the one before. */
export function drawable(points: readonly [number, number][]): { x: number[]; values: number[] } {
  const x: number[] = [];
  const values: number[] = [];
  for (const [time, value] of points) {
    const last = x[x.length - 1];
    // One stage ends where the next one begins.
    if (last !== undefined && time <= last && value === values[values.length - 1]) continue;
    x.push(last !== undefined && time <= last ? last + APART_S : time);
    values.push(value);
  }
  return { x, values };
}

/** The reason why there is no explanation, or why it is of an earlier text. */
export function Unexplained({ model }: { model: PlanModel }) {
  const why = model.unexplained.value;
  if (why === null) return null;
  return (
    <div class="notice" role="status">
      <p>
        {model.explanation.value === null
          ? "This plan cannot be explained as it is."
          : "This shows the text before: it cannot be explained as it is now."}
      </p>
      {why instanceof ApiError ? <ErrorBox error={why} /> : <Problems problems={why} />}
    </div>
  );
}

/** The load that a plan makes, drawn over time. */
export function ScheduleTab({ model }: { model: PlanModel }) {
  const explanation = model.explanation.value;
  return (
    <>
      <Unexplained model={model} />
      {explanation === null ? (
        model.unexplained.value === null && <Loading what="Explaining the plan" />
      ) : (
        <ScheduleView schedule={explanation.schedule} />
      )}
    </>
  );
}

export function ScheduleView({ schedule }: { schedule: Schedule }) {
  const { points, phases } = schedule;
  const unit: string = schedule.unit;
  const isOpen = schedule.model === "open";
  const warmup = "warmup_s" in schedule ? Number(schedule.warmup_s) : 0;
  const value = isOpen ? perSecond : (value: number) => count(value);
  const { x, lines } = useMemo(() => {
    const { x, values } = drawable(points);
    const line: Line = { label: isOpen ? "rate" : "users", color: "series-1", filled: true, values };
    return { x, lines: [line] };
  }, [points, isOpen]);
  return (
    <>
      {x.length < 2 ? (
        <p class="empty">
          {points[0] === undefined
            ? "No load over time to draw."
            : `${value(points[0][1])} for as long as it takes.`}
        </p>
      ) : (
        <Chart
          title={isOpen ? "Planned rate" : "Planned users"}
          about={<small> {unit}</small>}
          x={x}
          lines={lines}
          xAxis={TIME}
          yAxis={fromZero((value) => short(isOpen ? perSecond(value) : value % 1 === 0 ? count(value) : ""))}
          height={240}
          at={(index) => `${instant(x[index] ?? 0)}${phaseAt(phases, x[index] ?? 0)}`}
          value={value}
          below={(plot) => drawPhases(plot, phases)}
        />
      )}
      <dl class="plan-totals">
        <Total name="model" value={schedule.model} />
        <Total
          name="length"
          value={schedule.duration_s === null ? "until all are done" : seconds(schedule.duration_s)}
        />
        {warmup > 0 && <Total name="warm-up" value={seconds(warmup)} />}
        {schedule.iterations != null && (
          <Total
            name={unit.startsWith("requests") ? "requests" : "iterations"}
            value={count(schedule.iterations)}
          />
        )}
        {schedule.requests != null && <Total name="requests" value={count(schedule.requests)} />}
      </dl>
      {phases.length > 0 && (
        <Table
          label="Phases"
          columns={[
            { key: "name", title: "phase", cell: ({ name }) => name, heads: true, text: true },
            { key: "from", title: "from", cell: ({ from_s }) => instant(from_s) },
            { key: "to", title: "to", cell: ({ to_s }) => instant(to_s) },
          ]}
          rows={phases}
          rowKey={({ name }, index) => `${index} ${name}`}
        />
      )}
    </>
  );
}

/** An instant: also the first one in seconds. */
function instant(time_s: number): string {
  return time_s === 0 ? "0 s" : seconds(time_s);
}

function Total({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function phaseAt(phases: Schedule["phases"], time: number): string {
  const found = phases.find(({ from_s, to_s }) => from_s <= time && time < to_s);
  return found === undefined ? "" : `, ${found.name}`;
}

/** Every other phase has a darker ground, and each its name. */
function drawPhases(plot: uPlot, phases: Schedule["phases"]): void {
  const { ctx, bbox } = plot;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  phases.forEach(({ name, from_s, to_s }, index) => {
    const from = plot.valToPos(from_s, "x", true);
    const to = plot.valToPos(to_s, "x", true);
    if (index % 2 === 1) {
      ctx.fillStyle = `${color("muted")}1f`;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
    }
    if (ctx.measureText(name).width + 8 > to - from) return;
    ctx.fillStyle = color("muted");
    ctx.fillText(name, from + 4, bbox.top + 4);
  });
}

/** The explanation of a plan: each setting and its origin. */
export function ExplainTab({ model }: { model: PlanModel }) {
  const explanation = model.explanation.value;
  return (
    <>
      <Unexplained model={model} />
      {explanation === null ? (
        model.unexplained.value === null && <Loading what="Explaining the plan" />
      ) : (
        <>
          <Table
            caption={explanation.name === null ? "Settings" : `Settings of ${explanation.name}`}
            columns={[
              { key: "name", title: "setting", cell: ({ name }) => name, heads: true, text: true },
              { key: "value", title: "value", cell: ({ value }) => value, text: true },
              { key: "origin", title: "from", cell: ({ origin }) => origin, text: true },
            ]}
            rows={explanation.settings}
            rowKey={({ name }, index) => `${index} ${name}`}
          />
          <h3>In full</h3>
          <pre class="plan-pre" tabIndex={0} aria-label="Explanation in full">
            {explanation.text}
          </pre>
        </>
      )}
    </>
  );
}
