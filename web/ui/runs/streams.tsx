/** Responses that are streams of events: tokens, the times to and between them, and goodput. */

import { fromZero, NANOS_LOG, TIME } from "../../src/axes.ts";
import { Chart, type Line } from "../../src/chart.tsx";
import { bytes, count, nanos, perSecond, seconds, share, short } from "../../src/figure.ts";
import { Table } from "../app/controls.tsx";
import type { EventStreams, Interval, Result, Summary } from "../app/result.ts";
import { Facts, Part, Tile } from "./parts.tsx";
import { figureOf, plural, rateText } from "./words.ts";

/** Nothing, if no response was such a stream. */
export function StreamsPart({ result }: { result: Result }) {
  const { event_streams: streams = null, intervals } = result;
  const over = intervals.filter(({ event_streams }) => event_streams != null);
  if (streams === null && over.length === 0) return null;
  return (
    <Part id="streams" title="Streams and tokens">
      {streams !== null && <Figures streams={streams} />}
      {over.length > 0 && <StreamCharts intervals={intervals} />}
    </Part>
  );
}

/** Tokens and times to first token over time, also while a run goes on. */
function StreamCharts({ intervals }: { intervals: Interval[] }) {
  const seen = intervals.filter(({ length_s }) => length_s > 0);
  const of = (value: (streams: NonNullable<Interval["event_streams"]>) => number | null | undefined) =>
    seen.map(({ event_streams }) => (event_streams == null ? null : (value(event_streams) ?? null)));
  const x = seen.map(({ at_s }) => at_s);
  const common = {
    x,
    xAxis: TIME,
    height: 170,
    at: (index: number) => `until ${seconds(x[index] ?? 0)}`,
  };
  const rates: Line[] = [
    {
      label: "events with content",
      color: "series-1",
      values: of(({ content_events_per_s }) => content_events_per_s),
      steps: -1,
      filled: true,
    },
  ];
  const times: Line[] = [
    { label: "p50", color: "series-1", width: 2, values: of(({ ttft }) => ttft?.[0]), steps: -1 },
    { label: "p99", color: "series-2", dash: [8, 4], values: of(({ ttft }) => ttft?.[2]), steps: -1 },
  ];
  return (
    <div class="charts">
      <Chart {...common} title="Tokens over time" lines={rates} yAxis={RATES} value={perSecond} />
      <Chart {...common} title="TTFT over time" lines={times} yAxis={NANOS_LOG} value={nanos} />
    </div>
  );
}

function Figures({ streams }: { streams: EventStreams }) {
  const { ttft, itl, goodput } = streams;
  return (
    <>
      <div class="tiles">
        <Tile
          label="TTFT p50"
          value={figureOf(ttft, "50")}
          below={`p99 ${figureOf(ttft, "99")}, from when a request was due`}
        />
        <Tile
          label="ITL p50"
          value={figureOf(itl, "50")}
          below={`p99 ${figureOf(itl, "99")}, between tokens`}
        />
        <Tile
          label="tokens per second"
          value={rateText(streams.tokens_per_s)}
          below={
            streams.tokens_per_s_per_user === null
              ? "of good requests"
              : `${rateText(streams.tokens_per_s_per_user)} of a user`
          }
        />
        {goodput != null && (
          <Tile
            label="goodput"
            value={goodput.share === null ? "-" : share(goodput.share)}
            below={`${count(goodput.good)} requests hold ${goodput.bounds}`}
          />
        )}
      </div>
      <Times streams={streams} />
      <Facts
        facts={[
          ["requests", count(streams.requests)],
          ["tokens", `${count(streams.tokens)}, and ${count(streams.prompt_tokens)} of prompts`],
          ["events", `${count(streams.events)}, ${count(streams.content_events)} of them with content`],
          ["body bytes", bytes(streams.bytes)],
        ]}
      />
      <Notes streams={streams} />
    </>
  );
}

const RATES = fromZero((value: number) => short(perSecond(value)));

const COLUMNS = ["50", "90", "99", "max", "mean"];

function Times({ streams }: { streams: EventStreams }) {
  const all: [string, Summary | undefined][] = [
    ["TTFT, from due", streams.ttft],
    ["TTFT, from sent", streams.ttft_from_sent],
    ["TTFA, the first answer", streams.ttfa],
    ["first event", streams.first_event_time],
    ["last event", streams.last_event_time],
    ["ITL", streams.itl],
    ["ITL per token", streams.itl_per_token],
    ["TPOT", streams.tpot],
    ["NTPOT", streams.ntpot],
  ];
  const rows = all.filter((row): row is [string, Summary] => row[1] !== undefined && row[1].count > 0);
  if (rows.length === 0) return <p class="hint">No good request had any content so far.</p>;
  return (
    <Table
      caption="Times of streams"
      rows={rows}
      rowKey={([name]) => name}
      columns={[
        { key: "name", title: <span class="unseen">time</span>, cell: ([name]) => name, heads: true },
        { key: "count", title: "count", cell: ([, summary]) => count(summary.count) },
        ...COLUMNS.map((p) => ({
          key: p,
          title: /^\d/.test(p) ? `p${p}` : p,
          cell: ([, summary]: [string, Summary]) => figureOf(summary, p),
        })),
      ]}
    />
  );
}

function Notes({ streams }: { streams: EventStreams }) {
  const { shared_events, uncounted, count_differs, empty, disbelieved = 0, unanswered = 0 } = streams;
  const notes = [
    shared_events > 0 && `${plural(shared_events, "event")} shared the time of the event before`,
    uncounted > 0 && `of ${plural(uncounted, "request")} the server did not count the tokens: events stand for them`,
    count_differs > 0 &&
      `in ${plural(count_differs, "request")} the server counted another number of tokens than there were events`,
    disbelieved > 0 &&
      `in ${plural(disbelieved, "request")} the server's count of tokens cannot be: events stand for them`,
    empty > 0 && `${plural(empty, "good request")} had no content`,
    unanswered > 0 && `${plural(unanswered, "good request")} had reasoning and no answer`,
  ].filter((note) => note !== false);
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li>{note}</li>
      ))}
    </ul>
  );
}
