/** Faults that were injected while a run went on, and what the servers had in the end. */

import { count, seconds } from "../../src/figure.ts";
import { Badge, Table } from "../app/controls.tsx";
import type { Fault, Reconciliation, Result } from "../app/result.ts";
import { figureOf } from "./words.ts";
import { Part } from "./parts.tsx";

/** Nothing, if there were no faults and no server was checked. */
export function ClusterPart({ result }: { result: Result }) {
  const { faults = [], reconciliation = null } = result;
  if (faults.length === 0 && reconciliation === null) return null;
  return (
    <Part id="cluster" title="Faults and checks">
      {faults.length > 0 && <Faults faults={faults} />}
      {reconciliation !== null && <Checks of={reconciliation} />}
    </Part>
  );
}

const EFFECTS = {
  none: { kind: "good", word: "none" },
  recovered: { kind: "doubtful", word: "recovered" },
  lasting: { kind: "bad", word: "lasting" },
} as const;

const after = (time: number | null) => (time === null ? "–" : `after ${seconds(time)}`);

function Faults({ faults }: { faults: Fault[] }) {
  return (
    <Table
      caption="Faults, and their effect on the load"
      rows={faults}
      rowKey={({ at_s }, index) => `${at_s} ${index}`}
      columns={[
        {
          key: "fault",
          title: "fault",
          cell: ({ fault, nodes }) => [fault, nodes.join(", ")].filter(Boolean).join(" "),
          heads: true,
          class: "breaks",
        },
        {
          key: "at",
          title: "from",
          cell: ({ at_s, until_s }) =>
            until_s === null ? seconds(at_s) : `${seconds(at_s)} to ${seconds(until_s)}`,
        },
        {
          key: "effect",
          title: "effect",
          cell: ({ effect, error }) =>
            error === null ? (
              <Badge kind={EFFECTS[effect].kind}>{EFFECTS[effect].word}</Badge>
            ) : (
              `not done: ${error}`
            ),
          text: true,
          class: "breaks",
        },
        { key: "first", title: "first failure", cell: ({ first_failure_s }) => after(first_failure_s) },
        { key: "recovery", title: "well again", cell: ({ recovery_s }) => after(recovery_s) },
        { key: "ok", title: "ok", cell: ({ ok }) => count(ok) },
        { key: "failed", title: "failed", cell: ({ failed }) => count(failed) },
        { key: "timed", title: "timed out", cell: ({ timed_out }) => count(timed_out) },
        { key: "resent", title: "sent again", cell: ({ resent = 0 }) => count(resent) },
        { key: "p99", title: "response p99", cell: ({ response_time }) => figureOf(response_time, "99") },
      ]}
    />
  );
}

function Checks({ of }: { of: Reconciliation }) {
  const { store, consistent, checks, findings = [] } = of;
  return (
    <>
      <p>
        <Badge kind={consistent ? "good" : "bad"}>{consistent ? "consistent" : "inconsistent"}</Badge> {store}{" "}
        was asked for what it had acknowledged.
      </p>
      {checks.length > 0 && (
        <Table
          caption="Records"
          rows={checks}
          rowKey={({ tables }) => tables}
          columns={[
            { key: "tables", title: "of", cell: ({ tables }) => tables, heads: true, class: "breaks" },
            { key: "acknowledged", title: "acknowledged", cell: ({ acknowledged }) => count(acknowledged) },
            { key: "uncertain", title: "uncertain", cell: ({ uncertain }) => count(uncertain) },
            { key: "stored", title: "stored", cell: ({ stored }) => count(stored) },
            { key: "missing", title: "missing", cell: ({ missing }) => count(missing) },
            { key: "surplus", title: "surplus", cell: ({ surplus }) => count(surplus) },
          ]}
        />
      )}
      {findings.length > 0 && (
        <Table
          caption="Checks"
          rows={findings}
          rowKey={({ check }, index) => `${check} ${index}`}
          columns={[
            {
              key: "passed",
              title: <span class="unseen">result</span>,
              cell: ({ passed }) => <Badge kind={passed ? "good" : "bad"}>{passed ? "pass" : "fail"}</Badge>,
              text: true,
            },
            { key: "check", title: "check", cell: ({ check }) => check, heads: true, text: true },
            {
              key: "said",
              title: "found",
              cell: ({ said, evidence = [] }) => (
                <>
                  {said}
                  {evidence.length > 0 && (
                    <ul class="notes">
                      {evidence.map((text) => (
                        <li>{text}</li>
                      ))}
                    </ul>
                  )}
                </>
              ),
              text: true,
              class: "breaks",
            },
            { key: "took", title: "took", cell: ({ took_s }) => seconds(took_s) },
          ]}
        />
      )}
    </>
  );
}
