import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { BYTES, COUNT, fromZero, NANOS_LOG, SHARE, TIME } from "./axes.ts";
import { type Axis, Chart, type Line } from "./chart.tsx";
import type { Mark, RunData, Span } from "./data.ts";
import { bytes, count, nanos, perSecond, seconds, share, short } from "./figure.ts";
import { color } from "./theme.tsx";

type Values = (number | null | undefined)[];

/** The runs of a page on one axis of time. */
interface Time {
  x: number[];
  of: (run: number, series: string) => Values | null;
}

const PERCENTILES = ["p50", "p90", "p99", "p99.9", "max"];
/** Each percentile has its colour and its dashes. */
const LOOKS: Record<string, { color: string; dash?: number[]; width?: number }> = {
  p50: { color: "series-1", width: 2 },
  p90: { color: "series-3", dash: [8, 4] },
  p99: { color: "series-2", width: 2.5 },
  "p99.9": { color: "series-4", dash: [3, 3] },
  max: { color: "series-5", dash: [1, 3], width: 1.5 },
};
/** Dashes that tell runs apart beside their colours. */
const RUN_DASHES: (number[] | undefined)[] = [undefined, [9, 4], [3, 3], [12, 3, 2, 3]];
const GROUP = "course";

/** The look of a run among others. */
export function runLook(run: number): { color: string; dash: number[] | undefined } {
  return { color: `series-${(run % 6) + 1}`, dash: RUN_DASHES[run % RUN_DASHES.length] };
}

const PER_S = fromZero((value: number) => short(perSecond(value)));

/** The properties that charts of the course have in common. */
function commonOf(runs: RunData[], time: Time) {
  return {
    x: time.x,
    xAxis: TIME,
    first: 1,
    group: GROUP,
    at: (index: number) => where(runs, time.x, index),
    below: (plot: uPlot) => drawSpans(plot, runs),
    above: (plot: uPlot) => drawMarks(plot, runs),
  };
}

/** Rate and response times over time, with the signs in them: the picture beside the outcome of a run. */
export function PictureCharts({ runs }: { runs: RunData[] }) {
  return (
    <>
      <RateAndTimes runs={runs} heights={[150, 200]} />
      <Signs runs={runs} />
    </>
  );
}

/** Everything over time; without rate and response times where the page has those elsewhere. */
export function CourseCharts({ runs, picture = true }: { runs: RunData[]; picture?: boolean }) {
  const time = useMemo(() => timeOf(runs), [runs]);
  const errors = useMemo(() => errorLines(runs, time), [runs, time]);
  const flights = useMemo(() => flightLines(runs, time), [runs, time]);
  const common = commonOf(runs, time);
  return (
    <>
      {picture && <Signs runs={runs} />}
      <p class="key usage">
        <span>
          Point at a chart, or focus it and use the arrow keys. Drag or <kbd>+</kbd> zooms, double click or{" "}
          <kbd>0</kbd> shows the whole range.
        </span>
      </p>
      {picture && <RateAndTimes runs={runs} heights={[190, 240]} />}
      {errors.length === 0 ? (
        <p class="empty">No request failed or timed out at any time.</p>
      ) : (
        <Chart {...common} title="Errors" lines={errors} yAxis={PER_S} height={150} value={perSecond} />
      )}
      <Chart {...common} title="In flight" lines={flights} yAxis={COUNT} height={150} value={count} />
    </>
  );
}

function RateAndTimes({ runs, heights }: { runs: RunData[]; heights: [number, number] }) {
  const time = useMemo(() => timeOf(runs), [runs]);
  const [percentile, setPercentile] = useState(() => usualPercentile(runs));
  const single = runs.length === 1;
  const rates = useMemo(() => rateLines(runs, time), [runs, time]);
  const times = useMemo(
    () => (single ? percentileLines(time) : eachRun(runs, time, percentile)),
    [runs, time, percentile],
  );
  const common = commonOf(runs, time);
  const choices = PERCENTILES.filter((name) => runs.some((_, run) => has(time.of(run, name))));
  return (
    <>
      <Chart {...common} title="Rate" lines={rates} yAxis={PER_S} height={heights[0]} value={perSecond} />
      <Chart
        {...common}
        title={single ? "Response time" : `Response time, ${percentile}`}
        lines={times}
        yAxis={NANOS_LOG}
        height={heights[1]}
        value={nanos}
      >
        {!single && (
          <div class="buttons" role="group" aria-label="Percentile">
            {choices.map((name) => (
              <button type="button" aria-pressed={name === percentile} onClick={() => setPercentile(name)}>
                {name}
              </button>
            ))}
          </div>
        )}
      </Chart>
    </>
  );
}

/** The content of the charts of the machine: the series that begin with a word, or equal it. */
interface MachineKind {
  title: string;
  about: string;
  words: string[];
  axis: Axis;
  value: (value: number) => string;
}

const perS = (value: number) => `${bytes(value)}/s`;
const MACHINE: MachineKind[] = [
  {
    title: "CPU over time",
    about: "shares of one processor",
    words: ["worker ", "target", "server "],
    axis: SHARE,
    value: share,
  },
  {
    title: "Memory over time",
    about: "resident memory of watched servers",
    words: ["memory "],
    axis: BYTES,
    value: bytes,
  },
  {
    title: "Disk over time",
    about: "reads and writes of watched servers",
    words: ["disk "],
    axis: fromZero((value) => short(perS(value))),
    value: perS,
  },
  {
    title: "Descriptors and threads over time",
    about: "those of watched servers",
    words: ["open "],
    axis: COUNT,
    value: count,
  },
];

/** CPU time of the generator's threads and of the target, and the usage of watched servers, over time. */
export function MachineCharts({ runs }: { runs: RunData[] }) {
  const time = useMemo(() => timeOf(runs), [runs]);
  const charts = useMemo(
    () => MACHINE.map((kind) => ({ kind, lines: machineLines(runs, time, kind.words) })),
    [runs, time],
  );
  return (
    <>
      {charts
        .filter(({ lines }) => lines.length > 0)
        .map(({ kind, lines }) => (
          <Chart
            title={kind.title}
            about={<small>{kind.about}</small>}
            x={time.x}
            lines={lines}
            xAxis={TIME}
            yAxis={kind.axis}
            height={170}
            first={1}
            group={GROUP}
            at={(index) => where(runs, time.x, index)}
            value={kind.value}
            below={(plot) => drawSpans(plot, runs)}
            above={(plot) => drawMarks(plot, runs)}
          />
        ))}
    </>
  );
}

/** All runs on one axis: an interval reaches from the point before to its own. */
function timeOf(runs: RunData[]): Time {
  const own = runs.map(({ course }) => (course.at_s.length === 0 ? [] : [course.from_s, ...course.at_s]));
  const x = [...new Set(own.flat())].sort((a, b) => a - b);
  const place = new Map(x.map((at, index) => [at, index]));
  const of = (run: number, name: string) => {
    const found = runs[run]?.course.series.find((series) => series.name === name);
    if (found === undefined) return null;
    const values: Values = runs.length === 1 ? [] : new Array<undefined>(x.length).fill(undefined);
    const padded = [found.values[0] ?? null, ...found.values];
    own[run]?.forEach((at, index) => (values[place.get(at) ?? 0] = padded[index] ?? null));
    return values;
  };
  return { x, of };
}

function has(values: Values | null): boolean {
  return values?.some((value) => value != null && value > 0) ?? false;
}

/** The highest percentile that most intervals of every run have. */
function usualPercentile(runs: RunData[]): string {
  const often = (name: string) =>
    runs.every(({ course }) => {
      const values = course.series.find((series) => series.name === name)?.values ?? [];
      return values.filter((value) => value !== null).length * 2 > values.length;
    });
  return ["p99", "p90", "p50"].find(often) ?? "max";
}

function rateLines(runs: RunData[], time: Time): Line[] {
  const single = runs.length === 1;
  return runs.flatMap((run, number) => {
    const name = (word: string) => (single ? word : `${run.name} ${word}`);
    const look = single ? { color: "series-1", dash: undefined } : runLook(number);
    const achieved = time.of(number, "achieved_per_s");
    const asked = time.of(number, "scheduled_per_s");
    const lines: Line[] = [];
    if (achieved !== null) {
      lines.push({ ...look, label: name("achieved"), values: achieved, steps: -1, filled: single });
    }
    if (asked !== null) {
      const color = single ? "ink" : look.color;
      lines.push({ label: name("asked for"), color, dash: [2, 3], width: 1.5, values: asked, steps: -1 });
    }
    return lines;
  });
}

function percentileLines(time: Time): Line[] {
  return PERCENTILES.flatMap((name) => {
    const values = time.of(0, name);
    if (!has(values)) return [];
    return [{ label: name, color: "series-1", ...LOOKS[name], values: positive(values), steps: -1 as const }];
  });
}

function eachRun(runs: RunData[], time: Time, series: string): Line[] {
  return runs.flatMap((run, number) => {
    const values = time.of(number, series);
    if (!has(values)) return [];
    return [{ ...runLook(number), label: run.name, values: positive(values), steps: -1 as const }];
  });
}

/** A logarithmic axis has no zero. */
function positive(values: Values | null): Values {
  return (values ?? []).map((value) => (value == null ? value : Math.max(value, 1)));
}

function errorLines(runs: RunData[], time: Time): Line[] {
  const kinds = [
    { series: "failed_per_s", word: "failed", color: "series-2", dash: undefined },
    { series: "timed_out_per_s", word: "timed out", color: "series-4", dash: [4, 3] },
  ];
  const single = runs.length === 1;
  return kinds.flatMap(({ series, word, color, dash }) =>
    runs.flatMap((run, number) => {
      const values = time.of(number, series);
      if (values === null || !has(values)) return [];
      const look = single ? { color } : { color: runLook(number).color };
      const label = single ? word : `${run.name} ${word}`;
      return [{ ...look, dash, label, values, steps: -1 as const, filled: single }];
    }),
  );
}

function flightLines(runs: RunData[], time: Time): Line[] {
  const single = runs.length === 1;
  return runs.flatMap((run, number) => {
    const look = single ? { color: "series-1", dash: undefined } : runLook(number);
    const name = (word: string) => (single ? word : `${run.name} ${word}`);
    const flight = time.of(number, "in_flight") ?? [];
    const open = time.of(number, "connections") ?? [];
    return [
      { ...look, label: name("in flight"), values: flight, steps: -1 as const, filled: single },
      {
        label: name("connections"),
        color: single ? "series-3" : look.color,
        dash: [2, 3],
        width: 1.5,
        values: open,
        steps: -1 as const,
        shown: single,
      },
    ];
  });
}

function machineLines(runs: RunData[], time: Time, words: string[]): Line[] {
  const single = runs.length === 1;
  let number = 0;
  return runs.flatMap((run, at) =>
    run.course.series.flatMap(({ name }) => {
      const word = words.find((word) => name === word || (word.endsWith(" ") && name.startsWith(word)));
      if (word === undefined) return [];
      const values = time.of(at, name) ?? [];
      const look = runLook(single ? number : at);
      number += 1;
      // The target's lines are thin dots, in any look of its run.
      const thin = name === "target" ? { dash: [2, 3], width: 1.5 } : {};
      const label = word === "worker " || word === "target" ? name : name.slice(word.length);
      return [{ ...look, ...thin, label: single ? label : `${run.name} ${label}`, values, steps: -1 as const }];
    }),
  );
}

/** An instant, and its event. */
function where(runs: RunData[], x: number[], index: number): string {
  const at = x[index] ?? 0;
  const before = x[index - 1] ?? at;
  const single = runs.length === 1;
  const meets = (from: number, to: number) => from < at && Math.max(to, from + 1e-9) > before;
  const said = runs.flatMap((run) => {
    const spans = run.spans.filter((span) => meets(span.from_s, span.to_s)).map((span) => span.name);
    const marks = run.marks.filter((mark) => meets(mark.at_s, mark.at_s + mark.length_s)).map(({ text }) => text);
    return [...spans, ...new Set(marks)].map((text) => (single ? text : `${run.name}: ${text}`));
  });
  const joined = Math.max(...runs.map((run) => run.course.joined));
  if (joined > 1) said.push(`one extreme of ${joined} intervals`);
  return [`until ${seconds(at)}`, ...said].join(" · ");
}

const SPAN_COLORS: Record<Span["kind"], string> = {
  warmup: "muted",
  drain: "muted",
  settling: "doubtful",
  phase: "series-1",
  silent: "bad",
};

function drawSpans(plot: uPlot, runs: RunData[]): void {
  const [only] = runs;
  if (only === undefined || runs.length > 1) return;
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  let phase = 0;
  for (const span of only.spans) {
    const left = plot.valToPos(span.from_s, "x", true);
    const width = plot.valToPos(span.to_s, "x", true) - left;
    if (span.kind === "silent") {
      hatch(ctx, left, bbox.top, width, bbox.height, color("bad"));
      continue;
    }
    // Phases take turns, so that one can be told from the next.
    const faint = span.kind === "phase" && (phase += 1) % 2 === 1 ? "0a" : "1c";
    ctx.fillStyle = color(SPAN_COLORS[span.kind]) + faint;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    if (ctx.measureText(span.name).width + 8 * ratio < width) {
      ctx.fillStyle = color("muted");
      ctx.fillText(span.name, left + 4 * ratio, bbox.top + 3 * ratio);
    }
  }
}

function drawMarks(plot: uPlot, runs: RunData[]): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  for (const mark of runs.flatMap((run) => run.marks)) {
    const left = plot.valToPos(mark.at_s, "x", true);
    const width = Math.max(2 * ratio, plot.valToPos(mark.at_s + mark.length_s, "x", true) - left);
    if (mark.kind === "stall") hatch(ctx, left, bbox.top, width, bbox.height, color("doubtful"));
    if (mark.kind === "fault") drawFault(ctx, bbox, left, width, runs.length === 1 ? mark.text : "");
    if (mark.kind === "threshold") {
      ctx.fillStyle = color("bad");
      ctx.fillRect(left, bbox.top + bbox.height - 4 * ratio, width, 4 * ratio);
    }
    if (mark.kind === "change") {
      ctx.strokeStyle = color("ink");
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillStyle = color("ink");
      ctx.beginPath();
      ctx.moveTo(left - 5 * ratio, bbox.top);
      ctx.lineTo(left + 5 * ratio, bbox.top);
      ctx.lineTo(left, bbox.top + 8 * ratio);
      ctx.fill();
    }
  }
}

/** A fault: a line where it begins, a bar above for as long as it lasts, and its name if there is room. */
function drawFault(
  ctx: CanvasRenderingContext2D,
  bbox: uPlot["bbox"],
  left: number,
  width: number,
  name: string,
): void {
  const ratio = devicePixelRatio;
  const look = color("bad");
  ctx.fillStyle = look;
  ctx.fillRect(left, bbox.top, width, 4 * ratio);
  ctx.fillRect(left, bbox.top, 1.5 * ratio, bbox.height);
  ctx.fillStyle = `${look}14`;
  ctx.fillRect(left, bbox.top, width, bbox.height);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "bottom";
  ctx.textAlign = "left";
  const room = bbox.left + bbox.width - left;
  if (name === "" || ctx.measureText(name).width + 8 * ratio > room) return;
  ctx.fillStyle = color("ink");
  ctx.fillText(name, left + 4 * ratio, bbox.top + bbox.height - 3 * ratio);
}

/** Stripes: they differ from a mere tint, also in print. */
function hatch(
  ctx: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
  color: string,
): void {
  const distance = 7 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.fillStyle = `${color}14`;
  ctx.fillRect(left, top, width, height);
  ctx.strokeStyle = `${color}55`;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (let at = left - height; at < left + width; at += distance) {
    ctx.moveTo(at, top + height);
    ctx.lineTo(at + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

/** The meanings of the signs that occur in the charts. */
function Signs({ runs }: { runs: RunData[] }) {
  const marked = (kind: Mark["kind"]) => runs.some((run) => run.marks.some((mark) => mark.kind === kind));
  const spanned = (kind: Span["kind"]) =>
    runs.length === 1 && runs.some((run) => run.spans.some((span) => span.kind === kind));
  const signs = [
    { is: marked("change"), sign: "▼", class: "ink", text: "change of the rate" },
    { is: marked("fault"), sign: "▌", class: "bad", text: "fault of the cluster under test, while it lasted" },
    { is: marked("stall"), sign: "▨", class: "doubtful", text: "stall of the generator" },
    { is: spanned("silent"), sign: "▨", class: "bad", text: "no response came, although requests were in flight" },
    { is: marked("threshold"), sign: "▂", class: "bad", text: "a threshold did not hold" },
    { is: spanned("settling"), sign: "■", class: "doubtful", text: "not yet steady" },
  ].filter(({ is }) => is);
  if (signs.length === 0) return null;
  return (
    <ul class="key">
      {signs.map(({ sign, class: look, text }) => (
        <li>
          <span class={look} aria-hidden="true">
            {sign}
          </span>{" "}
          {text}
        </li>
      ))}
    </ul>
  );
}
