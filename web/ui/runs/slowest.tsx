/** The slowest requests, with what finds them at their server. */

import { nanos, seconds } from "../../src/figure.ts";
import { Table, type TableColumn } from "../app/controls.tsx";
import type { Result } from "../app/result.ts";
import { type Slow, slowestOf, spaced, timingText, traceAddress } from "./words.ts";

/** Requests that are shown, of all steps together: as many as in reports. */
const SHOWN = 5;

export function SlowestTable({ result }: { result: Result }) {
  const rows = slowestOf(result, SHOWN);
  if (rows.length === 0) return null;
  const open = result.model.kind === "open";
  const columns: TableColumn<Slow>[] = [
    { key: "step", title: "step", cell: ({ step }) => step, heads: true, class: "breaks" },
    { key: "at", title: "due at", cell: ({ request }) => seconds(request.at_s) },
    {
      key: "time",
      // Requests of the closed model are never due.
      title: open ? "response" : "service",
      cell: ({ request }) => nanos(open ? request.response_time : (request.service_time ?? request.response_time)),
    },
    {
      key: "answer",
      title: "answer",
      cell: ({ request }) => request.status ?? (request.failure === null ? "-" : spaced(request.failure)),
    },
  ];
  if (rows.some(({ request }) => request.server_timing !== undefined)) {
    columns.push({
      key: "server",
      title: "its server",
      cell: ({ request }) => timingText(request.server_timing ?? []),
      text: true,
      class: "breaks",
    });
  }
  if (rows.some(({ request }) => request.trace_id !== null)) {
    columns.push({
      key: "trace",
      title: "trace",
      cell: ({ request: { trace_id } }) => {
        const address = traceAddress(result.run.trace_link, trace_id);
        return address === null ? (trace_id ?? "") : <a href={address}>{trace_id}</a>;
      },
      text: true,
      class: "breaks",
    });
  }
  return (
    <Table
      label="The slowest requests"
      caption="The slowest requests"
      rows={rows}
      rowKey={({ step, request }, index) => `${step} ${request.at_s} ${request.worker} ${index}`}
      columns={columns}
    />
  );
}
