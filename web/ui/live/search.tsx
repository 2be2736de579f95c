/** A search as it goes on: the load line, drawn while it is searched for. */

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { NANOS_LOG, powers } from "../../src/axes.ts";
import { type Axis, Chart, type Line } from "../../src/chart.tsx";
import { count, nanos, perSecond, seconds, short } from "../../src/figure.ts";
import { color } from "../../src/theme.tsx";
import { Badge, type BadgeKind, Table } from "../app/controls.tsx";
import { textInForm } from "../editor/argument-words.tsx";
import { LABELS } from "../find/plan.ts";
import { Part } from "../runs/parts.tsx";
import { nanosText, plural, rateText } from "../runs/words.ts";
import {
  type Capacity,
  type Finding,
  isSweep,
  latestTrying,
  type Level,
  levelsOf,
  type Limit,
  type Sweep,
  limitsOf,
  lineOf,
  purposeWords,
  type Rate,
  ratesOf,
  remarksOf,
  type Trial,
  trialOf,
  trialsOf,
  type Trying,
} from "./capacity.ts";
import type { Heard } from "./stream.ts";
import { SweepParts } from "./sweep.tsx";

const RATES: Axis = {
  log: true,
  range: (low, high) => [low / 1.15, high * 1.15],
  splits: powers,
  label: (value) => short(perSecond(value)),
};

/** An axis of times with these limits on it, and room above the lines for the findings. */
function timesWith(limits: Limit[]): Axis {
  const all = limits.map(({ ns }) => ns);
  const range = (low: number, high: number): [number, number] =>
    low > 0 ? [Math.min(low, ...all) / 1.5, Math.max(high, ...all) * 5] : [1e6, 1e9];
  return { ...NANOS_LOG, range };
}

const FINDINGS: Record<string, { word: string; kind: BadgeKind; sign: string; color: string }> = {
  holds: { word: "holds", kind: "good", sign: "✓", color: "good" },
  breaks: { word: "breaks", kind: "bad", sign: "✗", color: "bad" },
  unclear: { word: "unclear", kind: "doubtful", sign: "?", color: "doubtful" },
  not_applied: { word: "not applied", kind: "plain", sign: "–", color: "muted" },
};

const look = (finding: Finding) =>
  FINDINGS[finding] ?? { word: finding, kind: "plain" as const, sign: "?", color: "muted" };

export function SearchParts({ heard }: { heard: Heard }) {
  const found = heard.end?.capacity ?? null;
  if (found !== null) return <FoundParts found={found} />;
  const trying = heard.end === null ? latestTrying(heard.messages) : null;
  return <CapacityParts messages={heard.messages} capacity={null} trying={trying} />;
}

/** What a search or a sweep that is over has found. */
export function FoundParts({ found }: { found: Capacity | Sweep }) {
  return isSweep(found) ? <SweepParts sweep={found} /> : <CapacityParts messages={[]} capacity={found} />;
}

function CapacityParts(props: { messages: string[]; capacity: Capacity | null; trying?: Trying | null }) {
  const { messages, capacity, trying = null } = props;
  const trials = useMemo(
    () =>
      capacity !== null
        ? trialsOf(capacity)
        : messages.flatMap((message) => {
            const trial = trialOf(message);
            return trial === null ? [] : [trial];
          }),
    [capacity, messages],
  );
  const rates = useMemo(() => (capacity === null ? [] : ratesOf(capacity)), [capacity]);
  const levels = useMemo(() => (rates.length === 0 ? levelsOf(trials) : rates), [rates, trials]);
  const soFar = lineOf(levels);
  const low = capacity === null ? soFar.low : capacity.capacity.low_per_s;
  const high = capacity === null ? soFar.high : capacity.capacity.high_per_s;
  const end = (rate: number | null) => (rate === null && capacity === null ? "none yet" : rateText(rate));
  return (
    <div class={capacity === null ? "parts" : "parts still"}>
      <Part id="capacity" title="Capacity">
        <div class="tiles">
          {trying !== null && (
            <div class="tile">
              <span class="label">being tried</span>
              <span class="value">{perSecond(trying.rate_per_s)}</span>
              <span class="below">
                for {seconds(trying.length_s)}, {purposeWords(trying.purpose)}
              </span>
            </div>
          )}
          <div class="tile">
            <span class="label">{capacity === null ? "holds, so far" : "lower end"}</span>
            <span class="value">{end(low)}</span>
            <span class="below">
              {capacity?.capacity.confirmed === true ? "confirmed by another trial" : ""}
            </span>
          </div>
          <div class="tile">
            <span class="label">{capacity === null ? "breaks, so far" : "upper end"}</span>
            <span class="value">{end(high)}</span>
            <span class="below">iterations per second</span>
          </div>
          {capacity?.capacity.after_overload_per_s != null && (
            <div class="tile">
              <span class="label">right after an overload</span>
              <span class="value">{rateText(capacity.capacity.after_overload_per_s)}</span>
              <span class="below">the highest rate that did not break</span>
            </div>
          )}
        </div>
        {capacity !== null && (
          <>
            <p>
              <strong>{textInForm(capacity.capacity.statement, LABELS)}</strong>
            </p>
            <ul class="notes">
              <li>objective: {capacity.search.slo.join(", ")}</li>
              <li>{capacity.search.load}</li>
              {capacity.capacity.notes.map((note) => (
                <li>{textInForm(note, LABELS)}</li>
              ))}
            </ul>
          </>
        )}
        {levels.length === 0 && capacity === null ? (
          <p class="empty">The load line is drawn once the first trial has ended.</p>
        ) : (
          <LoadLine levels={levels} low={low} high={high} objectives={capacity?.search.slo ?? []} />
        )}
      </Part>
      {rates.length > 0 && (
        <Part id="rates" title="Rates">
          <Rates rates={rates} />
          <ul class="notes">
            {capacity !== null &&
              remarksOf(capacity).map(({ text, hint }) => (
                <li>
                  {text}
                  {hint !== "" && <span class="hint"> – {textInForm(hint, LABELS)}</span>}
                </li>
              ))}
          </ul>
        </Part>
      )}
      <Part id="trials" title="Trials">
        <Trials trials={trials} />
      </Part>
    </div>
  );
}

/** Load against response time, with the line between rates that hold and rates that break. */
function LoadLine(props: { levels: Level[]; low: number | null; high: number | null; objectives: string[] }) {
  const { levels, low, high, objectives } = props;
  const limits = limitsOf(objectives);
  const x = useMemo(() => levels.map(({ rate_per_s }) => rate_per_s), [levels]);
  const lines = useMemo((): Line[] => {
    const line = (label: "p50" | "p99", look: Partial<Line>): Line => ({
      label,
      color: "series-1",
      ...look,
      values: levels.map((level) => level[label]),
    });
    return [line("p50", { width: 2 }), line("p99", { color: "series-2", dash: [8, 4], width: 2.5 })];
  }, [levels]);
  return (
    <>
      <Chart
        title="Load line"
        about={<small>response time of each rate that was tried</small>}
        x={x}
        lines={lines}
        xAxis={RATES}
        yAxis={timesWith(limits)}
        height={300}
        at={(index) => {
          const level = levels[index];
          if (level === undefined) return "";
          const trials = plural(level.trials, "trial");
          return `${perSecond(level.rate_per_s)} · ${look(level.finding).word} · ${trials}`;
        }}
        value={nanos}
        below={(plot) => drawBetween(plot, low, high)}
        above={(plot) => {
          drawLimits(plot, limits);
          drawFindings(plot, levels);
        }}
      />
      <ul class="key">
        {["holds", "breaks", "unclear", "not_applied"].map((finding) => (
          <li>
            <span class={look(finding).color}>{look(finding).sign}</span> {look(finding).word}
          </li>
        ))}
        <li>shaded: between the rate that holds and the one that breaks</li>
        {limits.length > 0 && <li>dashed across: the objective, {limits.map(({ text }) => text).join(", ")}</li>}
      </ul>
    </>
  );
}

function drawBetween(plot: uPlot, low: number | null, high: number | null): void {
  const { ctx, bbox } = plot;
  const at = (rate: number) => plot.valToPos(rate, "x", true);
  if (low !== null && high !== null && high > low) {
    ctx.fillStyle = `${color("doubtful")}22`;
    ctx.fillRect(at(low), bbox.top, at(high) - at(low), bbox.height);
  }
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const [rate, name] of [
    [low, "good"],
    [high, "bad"],
  ] as const) {
    if (rate === null) continue;
    ctx.strokeStyle = color(name);
    ctx.beginPath();
    ctx.moveTo(at(rate), bbox.top);
    ctx.lineTo(at(rate), bbox.top + bbox.height);
    ctx.stroke();
  }
}

/** A line across for each objective, with its words. */
function drawLimits(plot: uPlot, limits: Limit[]): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.lineWidth = 1.5 * ratio;
  ctx.strokeStyle = color("ink");
  ctx.fillStyle = color("ink");
  for (const { text, ns } of limits) {
    const y = plot.valToPos(ns, "y", true);
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillText(text, bbox.left + 6 * ratio, y - 3 * ratio);
  }
}

/** A sign for each rate at the top of the chart: colours alone would not do. */
function drawFindings(plot: uPlot, levels: Level[]): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.font = `bold ${13 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  for (const { rate_per_s, finding } of levels) {
    const { sign, color: name } = look(finding);
    ctx.fillStyle = color(name);
    ctx.fillText(sign, plot.valToPos(rate_per_s, "x", true), bbox.top + 4 * ratio);
  }
}

/** The rates of a search that is over, each with the figures of its longest trial. */
function Rates({ rates }: { rates: Rate[] }) {
  return (
    <Table
      caption="Rates that were tried, with the figures of the longest trial of each"
      rows={rates}
      rowKey={({ rate_per_s }) => String(rate_per_s)}
      columns={[
        { key: "rate", title: "rate", cell: ({ rate_per_s }) => perSecond(rate_per_s), heads: true },
        {
          key: "finding",
          title: "finding",
          cell: ({ finding }) => <Badge kind={look(finding).kind}>{look(finding).word}</Badge>,
          text: true,
        },
        { key: "length", title: "measured", cell: ({ measured_s }) => seconds(measured_s) },
        { key: "p50", title: "p50", cell: ({ p50 }) => nanosText(p50) },
        { key: "p99", title: "p99", cell: ({ p99 }) => nanosText(p99) },
        { key: "why", title: "why", cell: ({ reason }) => reason, text: true, class: "breaks" },
      ]}
    />
  );
}

function Trials({ trials }: { trials: Trial[] }) {
  return (
    <Table
      caption="Trials, the latest first"
      rows={[...trials].reverse()}
      rowKey={({ at_s }, index) => `${at_s} ${index}`}
      empty="No trial has ended yet."
      columns={[
        { key: "at", title: "at", cell: ({ at_s }) => `${count(at_s)} s`, heads: true },
        { key: "purpose", title: "purpose", cell: ({ purpose }) => purpose, text: true },
        { key: "rate", title: "rate", cell: ({ rate_per_s }) => perSecond(rate_per_s) },
        { key: "length", title: "length", cell: ({ measured_s }) => seconds(measured_s) },
        { key: "p50", title: "p50", cell: ({ p50 }) => nanosText(p50) },
        { key: "p99", title: "p99", cell: ({ p99 }) => nanosText(p99) },
        { key: "errors", title: "errors", cell: ({ errors }) => errors },
        {
          key: "finding",
          title: "its rate then",
          cell: ({ finding }) => <Badge kind={look(finding).kind}>{look(finding).word}</Badge>,
          text: true,
        },
      ]}
    />
  );
}
