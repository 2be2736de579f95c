/** The agents of a fleet that carried out a run: their shares, clocks, limits, and what was lost. */

import { count, nanos, perSecond, seconds, share } from "../../src/figure.ts";
import { Badge, type BadgeKind, Table } from "../app/controls.tsx";
import type { AgentResult, Result } from "../app/result.ts";
import { Facts, Part } from "./parts.tsx";
import { nanosText, spaced } from "./words.ts";

/** Nothing, if one machine made the load. */
export function AgentsPart({ result }: { result: Result }) {
  const { agents = [], accounting } = result;
  if (agents.length === 0) return null;
  const bounds = agents.flatMap(({ clock_bound_ns }) => (clock_bound_ns == null ? [] : [clock_bound_ns]));
  const unknown = accounting.unknown ?? 0;
  const facts: [string, string][] = [];
  if (bounds.length > 0)
    facts.push(["start", `each within ${nanos(Math.max(...bounds))} of the instant that all were told`]);
  if (unknown > 0) {
    const part = share(unknown / Math.max(1, accounting.scheduled));
    facts.push(["unknown", `${count(unknown)} arrivals (${part}) of lost agents`]);
  }
  return (
    <Part id="agents" title={agents.length === 1 ? "1 agent" : `${agents.length} agents`}>
      <Table
        caption="Agents"
        rows={agents}
        rowKey={({ name, shard, from_s }) => `${name} ${shard} ${from_s ?? 0}`}
        columns={[
          {
            key: "state",
            title: <span class="unseen">state</span>,
            cell: (agent) => {
              const { word, kind } = stateOf(agent);
              return <Badge kind={kind}>{word}</Badge>;
            },
            text: true,
          },
          { key: "name", title: "agent", cell: ({ name }) => name, heads: true, text: true },
          { key: "shard", title: "shard", cell: shardText },
          { key: "started", title: "started", cell: ({ started }) => count(started) },
          { key: "failed", title: "failed", cell: ({ failed }) => count(failed) },
          { key: "unknown", title: "unknown", cell: ({ unknown }) => count(unknown) },
          {
            key: "rate",
            title: "rate",
            cell: ({ rate_per_s }) => (rate_per_s === null ? "-" : perSecond(rate_per_s)),
          },
          { key: "lag", title: "start lag p99", cell: ({ start_lag_p99_ns }) => nanosText(start_lag_p99_ns) },
          {
            key: "cpu",
            title: "CPU",
            cell: ({ cpu_cores, cores }) => (cpu_cores === null ? "-" : `${cpu_cores.toFixed(2)} of ${cores}`),
          },
          { key: "clock", title: "clock", cell: clockText, class: "breaks" },
          { key: "limit", title: "limited by", cell: ({ limited_by }) => spaced(limited_by), text: true },
        ]}
      />
      {facts.length > 0 && <Facts facts={facts} />}
    </Part>
  );
}

function stateOf({ state, valid }: AgentResult): { word: string; kind: BadgeKind } {
  if (state === "lost") return { word: "lost", kind: "bad" };
  if (state === "silent") return { word: "silent", kind: "doubtful" };
  if (state === "running") return { word: "running", kind: "live" };
  return valid ? { word: "ok", kind: "good" } : { word: "invalid", kind: "doubtful" };
}

/** Its shard, and from when on it has it if it was another's. */
export const shardText = ({ shard, from_s }: AgentResult): string =>
  from_s == null ? shard : `${shard} from ${seconds(from_s)}`;

/** By how much the clock of an agent was ahead, and the bound of that: `+1.2 ms ± 0.1 ms`. */
export function clockText({ clock_ahead_ns, clock_bound_ns }: AgentResult): string {
  if (clock_ahead_ns === null || clock_bound_ns === null) return "-";
  const sign = clock_ahead_ns < 0 ? "-" : "+";
  return `${sign}${nanos(Math.abs(clock_ahead_ns))} ± ${nanos(clock_bound_ns)}`;
}
