/** Two groups of runs: better, worse, the same, or undecided; and their charts over each other. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { CourseCharts } from "../../src/course.tsx";
import type { RunData } from "../../src/data.ts";
import { HistogramChart } from "../../src/histogram.tsx";
import { SpectrumChart } from "../../src/spectrum.tsx";
import * as api from "../app/api.ts";
import { Badge, Button, ErrorBox, Loading, Menu, OutcomeBadge, PageHead, Table } from "../app/controls.tsx";
import type { Result } from "../app/result.ts";
import { go, link, type Route } from "../app/router.ts";
import { inForm } from "../editor/argument-words.tsx";
import { ENOUGH } from "../runs/again.tsx";
import { dataOfReport, runDataOf } from "../runs/chart-data.ts";
import { mainSummary, Part } from "../runs/parts.tsx";
import {
  badShare,
  figureOf,
  namesApart,
  paceOf,
  rateText,
  shareText,
  titleOf,
  whenText,
} from "../runs/words.ts";
import {
  amount,
  type Comparison,
  drawn,
  intervalText,
  type Metric,
  probability,
  question,
  reasonsOf,
  scaleOf,
  shares,
  shortName,
  valueText,
  type Word,
  WORDS,
} from "./contract.ts";
import { Turns } from "./turns.tsx";

/** Runs that are drawn over each other at most: more colours cannot be told apart. */
const MOST_DRAWN = 6;

const DOWNLOADS = [
  { format: "html", label: "HTML, a page with charts" },
  { format: "json", label: "JSON, the comparison" },
] as const;

interface Member {
  id: string;
  group: "A" | "B";
  /** Its name in charts, which no other has. */
  label: string;
  result: Result;
}

const listOf = (text: string | null) => (text ?? "").split(",").filter((id) => id !== "");

export function ComparePage({ route }: { route: Route }) {
  const [aText, bText] = [route.query.get("a") ?? "", route.query.get("b") ?? ""];
  const [a, b] = useMemo(() => [listOf(aText), listOf(bText)], [aText, bText]);
  const { members, error } = useMembers(a, b);
  const [comparison, refusal] = useComparison(a, b);

  const put = (a: string[], b: string[]) =>
    go(link("compare", "", { a: a.join(","), b: b.join(",") }), { replace: true });
  const move = (id: string, to: "A" | "B" | null) => {
    const without = (ids: string[]) => ids.filter((one) => one !== id);
    put([...without(a), ...(to === "A" ? [id] : [])], [...without(b), ...(to === "B" ? [id] : [])]);
  };
  const lacks = a.length === 0 || b.length === 0;
  return (
    <>
      <PageHead title="Comparison">
        {!lacks && (
          <Menu label="Download">
            {DOWNLOADS.map(({ format, label }) => (
              <li>
                <a href={api.comparisonAddress(a, b, format)} download>
                  {label}
                </a>
              </li>
            ))}
          </Menu>
        )}
        <Button onClick={() => put(b, a)}>Swap A and B</Button>
        <a class="button plain" href={link("runs")}>
          Choose others
        </a>
      </PageHead>
      <section aria-label="Groups">
        <div class="groups">
          <GroupList letter="A" about="the baseline" ids={a} members={members} move={move} />
          <GroupList letter="B" about="compared with the baseline" ids={b} members={members} move={move} />
        </div>
      </section>
      {error !== null && <ErrorBox error={error} />}
      {lacks && <p class="empty">Each group needs a run: choose two or more in the list of runs.</p>}
      {!lacks && refusal !== null && (
        <>
          <ErrorBox error={inForm(refusal)} />
          {members !== null && members.length > 0 && <p class="hint">The figures are below.</p>}
        </>
      )}
      {!lacks && comparison === null && refusal === null && <Loading what="Comparing" />}
      {comparison !== null && (
        <Verdict comparison={comparison}>
          {comparison.verdict === "undecided" && Math.min(a.length, b.length) < ENOUGH && (
            <Turns a={a} b={b} />
          )}
        </Verdict>
      )}
      {members !== null && members.length > 0 && <Beside members={members} />}
    </>
  );
}

/** The results of all runs. */
function useMembers(a: string[], b: string[]): { members: Member[] | null; error: api.ApiError | null } {
  const [members, setMembers] = useState<Member[] | null>(null);
  const [error, setError] = useState<api.ApiError | null>(null);
  useEffect(() => {
    const stopped = new AbortController();
    setError(null);
    const wanted = [...a.map((id) => ["A", id] as const), ...b.map((id) => ["B", id] as const)];
    Promise.all(wanted.map(([, id]) => api.run(id, stopped.signal))).then(
      (results) => {
        const several = { A: a.length > 1, B: b.length > 1 };
        const number = { A: 0, B: 0 };
        const names = namesApart(results);
        setMembers(
          results.flatMap((result, at): Member[] => {
            const [group, id] = wanted[at] ?? [];
            if (group === undefined || id === undefined) return [];
            number[group] += 1;
            const label = `${group}${several[group] ? number[group] : ""} ${names[at] ?? titleOf(result)}`;
            return [{ id, group, label, result }];
          }),
        );
      },
      (thrown: unknown) => {
        if (!stopped.signal.aborted) setError(api.errorOf(thrown));
      },
    );
    return () => stopped.abort();
  }, [a, b]);
  return { members, error };
}

function useComparison(a: string[], b: string[]): [Comparison | null, api.ApiError | null] {
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const [refusal, setRefusal] = useState<api.ApiError | null>(null);
  useEffect(() => {
    setComparison(null);
    setRefusal(null);
    if (a.length === 0 || b.length === 0) return;
    const stopped = new AbortController();
    api.compare<Comparison>(a, b, stopped.signal).then(setComparison, (thrown: unknown) => {
      if (!stopped.signal.aborted) setRefusal(api.errorOf(thrown));
    });
    return () => stopped.abort();
  }, [a, b]);
  return [comparison, refusal];
}

function GroupList(props: {
  letter: "A" | "B";
  about: string;
  ids: string[];
  members: Member[] | null;
  move: (id: string, to: "A" | "B" | null) => void;
}) {
  const { letter, about, ids, members, move } = props;
  const other = letter === "A" ? "B" : "A";
  return (
    <div>
      <h2>
        <span class="letter">{letter}</span> {about}
      </h2>
      {ids.length === 0 && <p class="empty">No run.</p>}
      <ul class="group">
        {ids.map((id) => {
          const result = members?.find((member) => member.id === id)?.result ?? null;
          const apart = namesApart(members?.map(({ result }) => result) ?? []);
          const at = members?.findIndex((member) => member.id === id) ?? -1;
          const name = result === null ? id.slice(0, 8) : (apart[at] ?? titleOf(result));
          return (
            <li key={id}>
              <a href={link("run", id)}>{name}</a>
              {result !== null && (
                <>
                  <OutcomeBadge outcome={result.verdict.outcome} />
                  <small>{whenText(result.run.started_at_unix_ns / 1e9)}</small>
                </>
              )}
              <Button onClick={() => move(id, other)} label={`Move ${name} to ${other}`}>
                to {other}
              </Button>
              <Button onClick={() => move(id, null)} label={`Leave ${name} out`}>
                ✕
              </Button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

export function WordBadge({ word }: { word: Word | null }) {
  if (word === null) return <Badge kind="plain">not judged</Badge>;
  const { kind, sign } = WORDS[word] ?? { kind: "plain", sign: "" };
  return (
    <span class={`badge ${kind}`}>
      <span aria-hidden="true">{sign}</span>
      {word}
    </span>
  );
}

/** What the comparison says; `children` are what to do next. */
function Verdict({ comparison, children }: { comparison: Comparison; children: ComponentChildren }) {
  const { refused, verdict, metrics, notes } = comparison;
  // What is not judged has not failed.
  const { kind, sign } = refused !== null ? { kind: "doubtful", sign: "!" } : WORDS[verdict];
  const named = (word: Word) => metrics.filter((metric) => metric.verdict === word).map(shortName);
  const said = (["worse", "better", "undecided"] as const).filter((word) => named(word).length > 0);
  return (
    <Part id="judgement" title="Verdict" quiet>
      <div class={`verdict ${kind}`}>
        <span class={`sign ${kind}`} aria-hidden="true">
          {sign}
        </span>
        <div>
          <p class="word">{refused !== null ? "NOT JUDGED" : verdict.toUpperCase()}</p>
          <p class="summary">
            {refused !== null
              ? `${refused}; no conclusions are drawn`
              : said.map((word) => `${word}: ${named(word).join(", ")}`).join("; ")}
          </p>
        </div>
      </div>
      {children}
      {notes.map(({ text }) => (
        <p class="notice">{text}</p>
      ))}
      <Figures comparison={comparison} />
      <ul class="notes">
        {reasonsOf(comparison).map(([names, reason]) => (
          <li>
            {names}: {reason}
          </li>
        ))}
        <li>{question(comparison)}</li>
      </ul>
    </Part>
  );
}

function Figures({ comparison }: { comparison: Comparison }) {
  const { metrics, settings } = comparison;
  const effectOf = (kind: string) => (kind === "absolute" ? settings.error_effect : settings.effect);
  const scales = useMemo(
    () => ({
      relative: scaleOf(metrics, "relative", settings.effect),
      absolute: scaleOf(metrics, "absolute", settings.error_effect),
    }),
    [metrics, settings],
  );
  return (
    <Table
      caption="Figures of A and B"
      rows={metrics}
      rowKey={({ metric }) => metric}
      columns={[
        {
          key: "name",
          title: "figure",
          // Below are rates in iterations, where these are asked for.
          cell: (metric) => (metric.metric === "rate" ? "rate (requests)" : shortName(metric)),
          heads: true,
        },
        // The word early, so that it is in sight on a narrow screen.
        { key: "word", title: "judgement", cell: ({ verdict }) => <WordBadge word={verdict} />, text: true },
        { key: "a", title: "A", cell: (metric) => valueText(metric, metric.a_median, metric.a_at_least) },
        { key: "b", title: "B", cell: (metric) => valueText(metric, metric.b_median, metric.b_at_least) },
        {
          key: "change",
          title: "change",
          cell: ({ change }) => (change === null ? "-" : amount(change, change.estimate)),
        },
        {
          key: "drawn",
          title: "interval, drawn",
          cell: (metric) =>
            metric.change !== null && (
              <ChangeDrawn
                metric={metric}
                scale={metric.change.kind === "absolute" ? scales.absolute : scales.relative}
                effect={effectOf(metric.change.kind)}
              />
            ),
        },
        {
          key: "interval",
          title: `${settings.confidence * 100} % interval`,
          cell: ({ change }) => <span class="interval">{change === null ? "-" : intervalText(change)}</span>,
        },
        { key: "p", title: "p", cell: ({ change }) => (change === null ? "-" : probability(change)) },
      ]}
    />
  );
}

const WIDTH = 220;
const HEIGHT = 22;
const MARGIN = 8;

/** A change with its interval, beside zero and the changes that do not matter. */
function ChangeDrawn({ metric, scale, effect }: { metric: Metric; scale: number; effect: number }) {
  const { change, verdict } = metric;
  if (change === null) return null;
  const { low, high, at, band, openLow, openHigh } = drawn(change, scale, effect);
  const x = (place: number) => MARGIN + place * (WIDTH - 2 * MARGIN);
  const middle = HEIGHT / 2;
  const isBounded = change.low !== null || change.high !== null;
  const look = verdict === "better" || verdict === "worse" ? verdict : "";
  const label = `change ${amount(change, change.estimate)}, interval ${intervalText(change)}`;
  return (
    <svg
      class="change-drawn"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <rect class="band" x={x(band[0])} width={x(band[1]) - x(band[0])} y="0" height={HEIGHT} />
      <line class="zero" x1={x(0.5)} x2={x(0.5)} y1="0" y2={HEIGHT} />
      {isBounded && <line class={`range ${look}`} x1={x(low)} x2={x(high)} y1={middle} y2={middle} />}
      {!isBounded ? null : openLow ? (
        <path
          class={`range ${look}`}
          fill="none"
          d={`M${x(low) + 5} ${middle - 4}L${x(low)} ${middle}l5 4`}
        />
      ) : (
        <line class={`range ${look}`} x1={x(low)} x2={x(low)} y1={middle - 5} y2={middle + 5} />
      )}
      {!isBounded ? null : openHigh ? (
        <path
          class={`range ${look}`}
          fill="none"
          d={`M${x(high) - 5} ${middle - 4}L${x(high)} ${middle}l-5 4`}
        />
      ) : (
        <line class={`range ${look}`} x1={x(high)} x2={x(high)} y1={middle - 5} y2={middle + 5} />
      )}
      <circle class="at" cx={x(at)} cy={middle} r="3.5" />
    </svg>
  );
}

/** The runs over each other. */
function Beside({ members }: { members: Member[] }) {
  const [a, b] = useMemo(
    () => (["A", "B"] as const).map((letter) => members.filter(({ group }) => group === letter)),
    [members],
  ) as [Member[], Member[]];
  const seen = useMemo(() => {
    const drawn = shares(a.length, b.length, MOST_DRAWN);
    return [...a.slice(0, drawn.a), ...b.slice(0, drawn.b)];
  }, [a, b]);
  const units = new Set(members.map(({ result }) => paceOf(result).unit));
  const ofA = seen.filter(({ group }) => group === "A").length;
  const runs = useReports(seen);
  return (
    <>
      <Part id="times" title="Response and service time">
        <div class="charts" key={seen.map(({ label }) => label).join()}>
          <div>
            <SpectrumChart runs={runs} />
          </div>
          <div>
            <HistogramChart runs={runs} />
          </div>
        </div>
        {members.length > seen.length && (
          <p class="hint">
            Of {members.length} runs {ofA} of A and {seen.length - ofA} of B are drawn; all of them are judged.
          </p>
        )}
      </Part>
      <Part id="course" title="Over time">
        <div class="charts" key={seen.map(({ label }) => label).join()}>
          <CourseCharts runs={runs} />
        </div>
      </Part>
      <Part id="runs" title="Run by run">
        <Table
          label="Runs side by side"
          rows={members}
          rowKey={({ group, id }) => `${group} ${id}`}
          columns={[
            {
              key: "run",
              title: "run",
              cell: ({ id, label }) => <a href={link("run", id)}>{label}</a>,
              heads: true,
              class: "breaks",
            },
            {
              key: "outcome",
              title: "outcome",
              cell: ({ result }) => <OutcomeBadge outcome={result.verdict.outcome} />,
              text: true,
            },
            {
              key: "rate",
              title: units.size === 1 ? `rate (${[...units][0]})` : "rate",
              cell: ({ result }) => {
                const { achieved, unit } = paceOf(result);
                return units.size === 1 || achieved === null ? rateText(achieved) : `${rateText(achieved)} ${unit}`;
              },
            },
            { key: "asked", title: "asked for", cell: ({ result }) => rateText(paceOf(result).asked) },
            ...["50", "99", "max"].map((p) => ({
              key: p,
              title: p === "max" ? p : `p${p}`,
              cell: ({ result }: Member) => figureOf(mainSummary(result)[1], p),
            })),
            { key: "errors", title: "errors", cell: ({ result }) => shareText(badShare(result).share) },
          ]}
        />
      </Part>
    </>
  );
}

/** The data of the charts: of the results at first, then of the reports, which have every percentile. */
function useReports(members: Member[]): RunData[] {
  const plain = useMemo(() => members.map(({ result, label }) => runDataOf(result, label)), [members]);
  const [reports, setReports] = useState<{ of: Member[]; runs: RunData[] } | null>(null);
  useEffect(() => {
    const stopped = new AbortController();
    const one = async ({ id, result, label }: Member) => {
      const html = await api.exported(id, "html", stopped.signal);
      const data = dataOfReport(html)?.runs[0];
      return data === undefined ? runDataOf(result, label) : { ...data, name: label };
    };
    Promise.all(members.map(one)).then(
      (runs) => setReports({ of: members, runs }),
      // What the results say is drawn already.
      () => {},
    );
    return () => stopped.abort();
  }, [members]);
  return reports?.of === members ? reports.runs : plain;
}
