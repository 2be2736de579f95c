/** A series of runs, of a cluster or of one plan: its runs as they come, and their table at the end. */

import { count } from "../../src/figure.ts";
import type { Entries, Entry, Outcome } from "../app/api.ts";
import { Badge, OutcomeBadge, Table, type TableColumn } from "../app/controls.tsx";
import type { Result } from "../app/result.ts";
import { link } from "../app/router.ts";
import { ResultParts } from "../runs/page.tsx";
import { mainSummary, Part } from "../runs/parts.tsx";
import { figureOf, nanosText, plural, rateText } from "../runs/words.ts";
import type { Heard } from "./stream.ts";

/** The result of a series, see `plimsoll schema suite`. */
export interface Suite {
  cluster: string;
  suite: string;
  /** The parameters, in the order of the matrix. */
  parameters: string[];
  runs: SuiteRun[];
  /** True if all runs that the matrix asks for were made. */
  complete: boolean;
}

export interface SuiteRun {
  values: Record<string, string>;
  exit_code: number;
  /** Its result without the intervals; null if it could not be made. */
  result: Result | null;
  /** The reasons why it could not be made. */
  error?: string[];
}

/** The result of several runs of one plan, see `plimsoll schema repeated`. */
export interface Repeated {
  /** Fewer were made if it was stopped. */
  runs_wanted: number;
  verdict: { outcome: Outcome; summary: string };
  between_runs: BetweenRuns[];
  runs: Result[];
}

/** Variation of a figure from run to run. */
export interface BetweenRuns {
  metric: string;
  unit: "ns" | "per_s";
  mean: number | null;
  /** Standard deviation of the runs. */
  spread: number | null;
  /** The part of it that longer runs would average out, and the rest. */
  within: number | null;
  between: number | null;
  /** Ends of the 95 % interval of the mean. */
  low: number | null;
  high: number | null;
  reason: string | null;
}

/** The run that goes on; null between two of them. */
export const current = ({ runs }: Entries): Entry | null =>
  runs.at(-1)?.outcome === null ? (runs.at(-1) ?? null) : null;

export function SeriesParts(props: { heard: Heard; entries: Entries | null; isOfPlan: boolean }) {
  const { heard, entries, isOfPlan } = props;
  const { result, end } = heard;
  const suite = end?.suite ?? null;
  const repeated = end?.repeated ?? null;
  const now = entries === null || end !== null ? null : current(entries);
  return (
    <>
      <div class="parts">
        {suite !== null ? (
          <SuiteTable suite={suite} />
        ) : repeated !== null ? (
          <RepeatedTables repeated={repeated} />
        ) : (
          entries !== null && <EntriesTable entries={entries} isOver={end !== null} isOfPlan={isOfPlan} />
        )}
      </div>
      {now !== null && isOfPlan && (
        <p class="hint">Runs that are to be alike are not steered. Their figures come when all of them have ended.</p>
      )}
      {now !== null && !isOfPlan && (
        <>
          <h2>
            Run {now.number} of {entries?.of}: {now.name}
          </h2>
          {result !== null && heard.stat?.running === true ? (
            <ResultParts result={result} report={null} plan={null} soFar="running" />
          ) : (
            <p class="hint">The nodes are started or checked.</p>
          )}
        </>
      )}
    </>
  );
}

/** The runs so far, and how many there will be. */
function EntriesTable(props: { entries: Entries; isOver: boolean; isOfPlan: boolean }) {
  const { entries, isOver, isOfPlan } = props;
  const title = isOfPlan ? "Runs" : "Runs of the suite";
  const stateOf = (entry: Entry) => {
    const { outcome } = entry;
    if (outcome === null) {
      if (isOfPlan && entry !== entries.runs.at(-1)) return <Badge kind="done">ended</Badge>;
      return isOver ? <Badge kind="doubtful">not ended</Badge> : <Badge kind="live">running</Badge>;
    }
    const [word = ""] = outcome.split(",", 1);
    return <Badge kind={word === "PASS" || word === "DONE" ? "good" : "bad"}>{word}</Badge>;
  };
  return (
    <Part id="series" title={title}>
      <p class="hint" role="status">
        {entries.runs.length} of {entries.of} {isOver ? "were begun" : "have begun"}
      </p>
      <Table
        label={title}
        rows={entries.runs}
        rowKey={({ number }) => String(number)}
        columns={[
          { key: "state", title: "state", cell: stateOf, text: true },
          { key: "number", title: "run", cell: ({ number }) => count(number) },
          {
            key: "name",
            title: isOfPlan ? "seed" : "parameters",
            cell: (entry) => named(entry, isOver || (isOfPlan && entry !== entries.runs.at(-1))),
            heads: true,
            text: true,
            class: "breaks",
          },
          {
            key: "figures",
            title: "figures",
            // The outcome is the badge.
            cell: ({ outcome }) => outcome?.split(", ").slice(1).join(", ") ?? "",
            text: true,
            class: "breaks",
          },
        ]}
      />
    </Part>
  );
}

/** The parameters of a run that has ended lead to its page. */
function named({ name, run, outcome }: Entry, hasEnded: boolean) {
  return run !== null && (outcome !== null || hasEnded) ? <a href={link("run", run)}>{name}</a> : name;
}

/** The runs of one plan, and how much they differ. */
export function RepeatedTables({ repeated }: { repeated: Repeated }) {
  const { runs, runs_wanted, between_runs, verdict } = repeated;
  const rows = runs.map((result, index) => ({ result, number: index + 1 }));
  type Row = (typeof rows)[number];
  const time = (name: string): TableColumn<Row> => ({
    key: name,
    title: `p${name}`,
    cell: ({ result }) => figureOf(mainSummary(result)[1], name),
  });
  const shown = ({ unit }: BetweenRuns, value: number | null) =>
    unit === "ns" ? nanosText(value) : rateText(value);
  const of = (name: string, title: string, read: (figure: BetweenRuns) => number | null) => ({
    key: name,
    title,
    cell: (figure: BetweenRuns) => shown(figure, read(figure)),
  });
  return (
    <>
      <Part id="series" title={plural(runs.length, "run")}>
        <p>
          <OutcomeBadge outcome={verdict.outcome} /> {verdict.summary}
        </p>
        {runs.length < runs_wanted && <p class="notice">It was stopped: runs are missing.</p>}
        <Table
          label="Runs"
          rows={rows}
          rowKey={({ number }) => String(number)}
          columns={[
            {
              key: "run",
              title: "run",
              cell: ({ number, result }) => <a href={link("run", result.run.id)}>run {number}</a>,
              heads: true,
            },
            { key: "rate", title: "answered", cell: ({ result }) => rateText(result.rate.achieved_per_s) },
            time("50"),
            time("99"),
            {
              key: "outcome",
              title: "outcome",
              cell: ({ result }) => <OutcomeBadge outcome={result.verdict.outcome} />,
              text: true,
            },
            {
              key: "reason",
              title: "reason",
              // Of one that has passed the figures beside it say it.
              cell: ({ result: { verdict } }) =>
                verdict.outcome === "pass" || verdict.outcome === "done" ? "" : verdict.summary,
              text: true,
              class: "breaks",
            },
          ]}
        />
      </Part>
      <Part id="between" title="Variation between the runs">
        <Table
          label="Variation between the runs"
          rows={between_runs}
          rowKey={({ metric }) => metric}
          columns={[
            {
              key: "metric",
              title: "figure",
              cell: ({ metric }) => metric.replaceAll(/[._]/g, " "),
              heads: true,
              text: true,
            },
            of("mean", "mean", ({ mean }) => mean),
            {
              key: "interval",
              title: "95 % interval of the mean",
              cell: (figure) =>
                figure.low === null ? "-" : `${shown(figure, figure.low)} to ${shown(figure, figure.high)}`,
            },
            of("spread", "spread of the runs", ({ spread }) => spread),
            of("between", "of it, between runs", ({ between }) => between),
            { key: "reason", title: "note", cell: ({ reason }) => reason ?? "", text: true, class: "breaks" },
          ]}
        />
      </Part>
    </>
  );
}

/** The table that the command line prints, with each run a link. */
function SuiteTable({ suite }: { suite: Suite }) {
  const rows = suite.runs.map((run, index) => ({ ...run, number: index + 1 }));
  type Row = (typeof rows)[number];
  const times = (result: Result) =>
    result.model.kind === "open" ? result.response_time : result.service_time;
  const of = (read: (result: Result) => string | number) => (row: Row) =>
    row.result === null ? "-" : read(row.result);
  const time = (name: string): TableColumn<Row> => ({
    key: `p${name}`,
    title: `p${name}`,
    cell: of((result) => figureOf(times(result), name)),
  });
  return (
    <Part id="series" title={`Suite ${suite.suite} of ${suite.cluster}`}>
      {!suite.complete && <p class="notice">It was interrupted: runs are missing.</p>}
      <Table
        label={`Suite ${suite.suite}`}
        rows={rows}
        rowKey={({ number }) => String(number)}
        empty="No run was made."
        columns={[
          {
            key: "run",
            title: "run",
            cell: ({ number, result }) =>
              result === null ? `run ${number}` : <a href={link("run", result.run.id)}>run {number}</a>,
            heads: true,
          },
          ...suite.parameters.map((name) => ({
            key: `parameter ${name}`,
            title: name,
            cell: ({ values }: Row) => values[name] ?? "",
            text: true,
          })),
          { key: "rate", title: "answered", cell: of(({ rate }) => rateText(rate.achieved_per_s)) },
          time("50"),
          time("95"),
          time("99"),
          {
            key: "failed",
            title: "failed",
            cell: of(({ accounting }) => count(accounting.failed + accounting.timed_out)),
          },
          {
            key: "checks",
            title: "checks",
            cell: of(({ reconciliation }) =>
              reconciliation == null ? "-" : reconciliation.consistent ? "pass" : "INCONSISTENT",
            ),
            text: true,
          },
          {
            key: "outcome",
            title: "outcome",
            cell: ({ result, error = [] }) =>
              result === null ? (
                <>
                  <Badge kind="bad">FAIL</Badge> {error[0]}
                </>
              ) : (
                <OutcomeBadge outcome={result.verdict.outcome} />
              ),
            text: true,
            class: "breaks",
          },
        ]}
      />
    </Part>
  );
}
