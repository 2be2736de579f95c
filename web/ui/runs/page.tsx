/** The page of a saved run: the outcome first, then its evidence. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { CourseCharts, MachineCharts, PictureCharts } from "../../src/course.tsx";
import type { RunData } from "../../src/data.ts";
import { HeatMaps } from "../../src/heat.tsx";
import { HistogramChart } from "../../src/histogram.tsx";
import { SpectrumChart } from "../../src/spectrum.tsx";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Loading, Menu, OutcomeBadge, PageHead } from "../app/controls.tsx";
import { useShortcuts } from "../app/keys.tsx";
import type { Result } from "../app/result.ts";
import { go, link, type Route } from "../app/router.ts";
import { type Capacity, circumstancesOf, isFound, isSweep, type Sweep } from "../live/capacity.ts";
import { FoundParts } from "../live/search.tsx";
import { AgentsPart } from "./agents.tsx";
import { dataOfReport, planOfReport, runDataOf } from "./chart-data.ts";
import { ClusterPart } from "./cluster.tsx";
import { remove, Tags, tagWords } from "./list.tsx";
import {
  Accounts,
  Answers,
  ChangesTable,
  GeneratorFacts,
  Origin,
  PaceFacts,
  Part,
  PhasesTable,
  Steps,
  TimesTables,
  VerdictPart,
  type Going,
} from "./parts.tsx";
import { seriesOf } from "./series.tsx";
import { SlowestTable } from "./slowest.tsx";
import { OwnMetricsPart } from "./own-metrics.tsx";
import { StreamsPart } from "./streams.tsx";
import { RunAgain, SearchAgain } from "./again.tsx";
import { titleOf, whenFull } from "./words.ts";

const FORMATS: { format: api.ExportFormat; label: string }[] = [
  { format: "html", label: "HTML, a page with charts" },
  { format: "json", label: "JSON, the result" },
  { format: "csv", label: "CSV, a row per interval" },
  { format: "markdown", label: "Markdown" },
  { format: "text", label: "Text" },
  { format: "junit", label: "JUnit" },
  { format: "ndjson", label: "NDJSON, a line per interval" },
  { format: "hgrm", label: "HdrHistogram percentiles (hgrm)" },
  { format: "hlog", label: "HdrHistogram log (hlog)" },
  { format: "k6", label: "k6 summary" },
];

/** Formats that searches have, too. */
const OF_SEARCHES: api.ExportFormat[] = ["html", "json", "csv", "markdown", "text", "junit"];

export interface Loaded {
  result: Result;
  /** As its report draws it; null until that is there, or if there is none. */
  report: RunData | null;
  /** The plan as it was written. */
  plan: string | null;
}

/** A saved run: its result, then the further data of its report; or what a saved search has found. */
export function useRun(id: string): {
  loaded: Loaded | null;
  found: Capacity | Sweep | null;
  error: api.ApiError | null;
} {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [found, setFound] = useState<Capacity | Sweep | null>(null);
  const [error, setError] = useState<api.ApiError | null>(null);
  useEffect(() => {
    const stopped = new AbortController();
    setLoaded(null);
    setFound(null);
    setError(null);
    void (async () => {
      try {
        const result = await api.saved(id, stopped.signal);
        if (isFound(result)) {
          setFound(result);
          return;
        }
        setLoaded({ result, report: null, plan: null });
        // Histograms and plan are in no result: the report has been made of them.
        const html = await api.exported(id, "html", stopped.signal);
        const report = dataOfReport(html)?.runs[0] ?? null;
        setLoaded({ result, report, plan: planOfReport(html) });
      } catch (thrown) {
        if (!stopped.signal.aborted) setError(api.errorOf(thrown));
      }
    })();
    return () => stopped.abort();
  }, [id]);
  return { loaded, found, error };
}

export function RunPage({ route }: { route: Route }) {
  const { loaded, found, error } = useRun(route.of);
  const tags = tagWords(useRow(route.of)?.tags);
  const series = seriesOf(tags);
  const result = loaded?.result ?? null;
  useEffect(() => {
    if (result !== null) document.title = `${titleOf(result)} – Plimsoll`;
    return () => void (document.title = "Plimsoll");
  }, [result]);
  const forget = async () => {
    if (result !== null && (await remove({ id: route.of, name: titleOf(result), kind: "run" }))) go(link("runs"));
  };
  useShortcuts([{ keys: "u", about: "Back to the list", act: () => go(link("runs")) }]);
  if (found !== null) return <FoundPage id={route.of} found={found} />;
  if (loaded === null || result === null) {
    return error === null ? <Loading what="Reading the run" /> : <ErrorBox error={error} />;
  }
  return (
    <>
      <PageHead
        title={titleOf(result)}
        below={
          <>
            <p class="target">
              {result.model.description.join(" · ")}
              <br />
              {whenFull(result.run.started_at_unix_ns / 1e9)} · run {result.run.id}
              {series !== null && (
                <>
                  {" · "}
                  <a href={link("series", series)}>all runs of its series</a>
                </>
              )}
            </p>
            <Tags tags={tags.filter((tag) => seriesOf([tag]) === null)} />
          </>
        }
      >
        <RunAgain result={result} plan={loaded.plan} />
        <Downloads id={route.of} />
        <Button kind="danger" onClick={() => void forget()}>
          Delete
        </Button>
      </PageHead>
      {error !== null && <ErrorBox error={error} />}
      <ResultParts result={result} report={loaded.report} plan={loaded.plan} />
    </>
  );
}

/** The row of a run or a search in the list; null until that is there. */
function useRow(id: string): api.RunRow | null {
  const [row, setRow] = useState<api.RunRow | null>(null);
  useEffect(() => {
    const stopped = new AbortController();
    setRow(null);
    api.runs(id, 1, 0, stopped.signal).then(
      ({ runs }) => setRow(runs.find((row) => row.id === id) ?? null),
      () => {},
    );
    return () => stopped.abort();
  }, [id]);
  return row;
}

/** The page of a saved search or sweep, as that of one that has just ended. */
function FoundPage({ id, found }: { id: string; found: Capacity | Sweep }) {
  const circumstances = circumstancesOf(found);
  const { name, targets, load, started_at } = circumstances;
  // Its outcome and its answer are those of the list.
  const row = useRow(id);
  const what = isSweep(found) ? "sweep" : "search";
  const title = name ?? targets.join(", ");
  useEffect(() => {
    document.title = `${title} – Plimsoll`;
    return () => void (document.title = "Plimsoll");
  }, [title]);
  const forget = async () => {
    if (await remove({ id, name: title, kind: what })) go(link("runs"));
  };
  return (
    <>
      <PageHead
        title={title}
        below={
          <p class="target">
            {[...(name === undefined ? [] : targets), load].join(" · ")}
            <br />
            {whenFull(Date.parse(started_at) / 1000)} · {what} {id}
            {row !== null && (
              <>
                <br />
                <OutcomeBadge outcome={row.outcome} /> {row.answer}
              </>
            )}
          </p>
        }
      >
        <SearchAgain of={circumstances} />
        <Downloads id={id} formats={FORMATS.filter(({ format }) => OF_SEARCHES.includes(format))} />
        <Button kind="danger" onClick={() => void forget()}>
          Delete
        </Button>
      </PageHead>
      <FoundParts found={found} />
    </>
  );
}

/** Everything below the head of a run's page. */
export function ResultParts(props: {
  result: Result;
  report: RunData | null;
  plan: string | null;
  /** The state of a run that goes on. */
  soFar?: Going;
}) {
  const { result, report, plan } = props;
  const soFar = props.soFar !== undefined;
  const runs = useMemo(() => [report ?? runDataOf(result, "run")], [result, report]);
  return (
    <div class={soFar ? "parts" : "parts still"}>
      <VerdictPart result={result} {...(props.soFar !== undefined && { soFar: props.soFar })}>
        <PictureCharts runs={runs} />
      </VerdictPart>
      <ClusterPart result={result} />
      <AgentsPart result={result} />
      <StreamsPart result={result} />
      <OwnMetricsPart result={result} />
      <Part id="course" title="Over time">
        <div class="charts">
          <CourseCharts runs={runs} picture={false} />
          {!soFar && <HeatMaps runs={runs} />}
        </div>
        <PaceFacts result={result} />
        <PhasesTable result={result} />
        <ChangesTable result={result} />
      </Part>
      <Part id="times" title="Response and service time">
        <div class="charts">
          <div>
            <SpectrumChart runs={runs} />
          </div>
          <div>
            <HistogramChart runs={runs} />
          </div>
        </div>
        <div class="tables">
          <div>
            <TimesTables result={result} />
          </div>
          <div>
            <SlowestTable result={result} />
          </div>
        </div>
      </Part>
      <Part id="by-step" title="Steps">
        <Steps result={result} />
      </Part>
      <Part id="responses" title="Answers, errors and connections">
        <Answers result={result} soFar={soFar} />
      </Part>
      <Part id="accounting" title="Accounting">
        <Accounts result={result} />
      </Part>
      <Part id="machine" title="Generator and machine">
        <div class="charts">
          <MachineCharts runs={runs} />
        </div>
        <GeneratorFacts result={result} />
      </Part>
      <Part id="origin" title="Plan and origin">
        <Origin result={result} plan={plan} />
      </Part>
    </div>
  );
}

/** Every format, as downloads. */
function Downloads({ id, formats = FORMATS }: { id: string; formats?: typeof FORMATS }) {
  return (
    <Menu label="Download">
      {formats.map(({ format, label }) => (
        <li>
          <a href={api.exportAddress(id, format)} download>
            {label}
          </a>
        </li>
      ))}
    </Menu>
  );
}
