/** A fleet: the agents that a broker tells of, and runs that they carry out together. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { count } from "../../src/figure.ts";
import * as api from "../app/api.ts";
import {
  Badge,
  Button,
  ErrorBox,
  Loading,
  PageHead,
  SelectField,
  Table,
  TextField,
} from "../app/controls.tsx";
import { go, link } from "../app/router.ts";
import { flagsOf } from "../editor/flags.ts";
import { isPlan } from "../find/plan.ts";
import { brokerOf, keepBroker, lastBroker, needsOf, ON_LOSS } from "./broker.ts";
import { BrokerFields } from "./machines.tsx";

/** Time between two looks at the agents. Each tells of itself once a second. */
const LOOK_MS = 3_000;

export function FleetPage() {
  const typed = useSignal(lastBroker());
  /** The broker that is looked at. */
  const broker = useSignal<api.Broker | null>(null);
  const agents = useSignal<api.Agent[] | null>(null);
  const failed = useSignal<api.ApiError | null>(null);
  const busy = useSignal(false);
  const chosen = useSignal<ReadonlySet<string>>(new Set());

  const current = broker.value;
  useEffect(() => {
    if (current === null) return;
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      try {
        const found = (await api.fleet(current)).agents;
        if (over) return;
        agents.value = found;
        failed.value = null;
      } catch (error) {
        if (over) return;
        failed.value = api.errorOf(error);
      }
      busy.value = false;
      // Another process asks the broker: not for a page that nobody sees.
      const again = () => (document.hidden ? (timer = setTimeout(again, LOOK_MS)) : void look());
      timer = setTimeout(again, LOOK_MS);
    };
    busy.value = true;
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [current]);

  const set = (part: Partial<typeof typed.value>) => (typed.value = { ...typed.peek(), ...part });
  const open = (event: Event) => {
    event.preventDefault();
    keepBroker(typed.peek());
    agents.value = null;
    failed.value = null;
    broker.value = brokerOf(typed.peek());
  };
  const toggle = (agent: string) => {
    const next = new Set(chosen.peek());
    if (!next.delete(agent)) next.add(agent);
    chosen.value = next;
  };
  return (
    <>
      <PageHead
        title="Fleet"
        below={
          <p class="target">
            Machines that carry out one load together. Each runs <code>plimsoll agent</code>;{" "}
            <code>plimsoll fleet up</code> starts the broker that passes their messages on.
          </p>
        }
      />
      <section aria-label="Broker">
        <form class="form" onSubmit={open}>
          <BrokerFields value={typed.value} set={set} />
          <div class="whole actions">
            <Button kind="primary" submit busy={busy.value}>
              Look for agents
            </Button>
          </div>
        </form>
        {failed.value !== null && <ErrorBox error={failed.value} />}
      </section>
      {current !== null && failed.value === null && agents.value === null && (
        <Loading what="Listening for agents" />
      )}
      {agents.value !== null && (
        <>
          <Agents agents={agents.value} chosen={chosen.value} toggle={toggle} />
          {current !== null && (
            <RunOnFleet broker={current} agents={agents.value} chosen={[...chosen.value]} />
          )}
        </>
      )}
    </>
  );
}

function Agents(props: {
  agents: api.Agent[];
  chosen: ReadonlySet<string>;
  toggle: (agent: string) => void;
}) {
  const { agents, chosen, toggle } = props;
  const free = agents.filter(({ run }) => run === null).length;
  return (
    <section aria-labelledby="agents-title">
      <h2 id="agents-title">Agents</h2>
      <p class="hint" role="status">
        {agents.length === 1 ? "1 agent" : `${agents.length} agents`}, {free} free
      </p>
      <Table
        label="Agents"
        rows={agents}
        rowKey={({ agent }) => agent}
        empty="No agent has told of itself. `plimsoll agent` starts one on each machine."
        columns={[
          {
            key: "chosen",
            title: <span class="unseen">chosen</span>,
            cell: ({ agent, run }) => (
              <input
                type="checkbox"
                aria-label={`Choose ${agent}`}
                checked={chosen.has(agent)}
                disabled={run !== null}
                onChange={() => toggle(agent)}
              />
            ),
          },
          { key: "agent", title: "agent", cell: ({ agent }) => agent, heads: true, text: true },
          {
            key: "state",
            title: "state",
            cell: ({ run }) =>
              run === null ? <Badge kind="good">free</Badge> : <Badge kind="live">run {run}</Badge>,
            text: true,
          },
          { key: "cores", title: "cores", cell: ({ cores }) => count(cores) },
          { key: "version", title: "version", cell: ({ version }) => version, text: true },
          { key: "wire", title: "wire", cell: ({ wire }) => count(wire) },
        ]}
      />
    </section>
  );
}

function RunOnFleet(props: { broker: api.Broker; agents: api.Agent[]; chosen: string[] }) {
  const { broker, agents, chosen } = props;
  const plans = useSignal<string[]>([]);
  const plan = useSignal("");
  const rate = useSignal("");
  const duration = useSignal("");
  const onLoss = useSignal<api.OnLoss>("abort");
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const isOver = useRef(false);
  useEffect(() => {
    api.files().then(
      ({ files }) => {
        plans.value = files.map(({ path }) => path).filter(isPlan);
        plan.value ||= plans.value[0] ?? "";
      },
      (error: unknown) => (failed.value = api.errorOf(error)),
    );
    return () => void (isOver.current = true);
  }, []);
  const start = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    failed.value = null;
    try {
      const { id } = await api.start({
        path: plan.peek(),
        text: null,
        command: "run",
        flags: flagsOf({ "--rate": rate.peek(), "--duration": duration.peek() }, ""),
        name: plan.peek(),
        fleet: {
          broker,
          agents: chosen.length === 0 ? null : chosen.join(","),
          on_loss: onLoss.peek(),
        },
      });
      if (!isOver.current) go(link("live", id));
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  const free = agents.filter(({ run }) => run === null).length;
  return (
    <section aria-labelledby="fleet-run-title">
      <h2 id="fleet-run-title">Run on this fleet</h2>
      <form class="form" onSubmit={(event) => void start(event)}>
        <SelectField
          label="Plan"
          value={plan.value}
          onChange={(path) => (plan.value = path)}
          options={plans.value.map((value) => ({ value, label: value }))}
          hint="Rates, users and connections are those of the whole load."
        />
        <TextField
          label="Rate"
          value={rate.value}
          onInput={(value) => (rate.value = value)}
          placeholder="that of the plan"
        />
        <TextField
          label="Duration"
          value={duration.value}
          onInput={(value) => (duration.value = value)}
          placeholder="that of the plan"
        />
        <SelectField
          label="If an agent is lost"
          value={onLoss.value}
          onChange={(value) => (onLoss.value = value)}
          options={ON_LOSS}
          hint={needsOf(onLoss.value)}
        />
        <p class="whole hint">
          {chosen.length === 0
            ? `All free agents take part: ${free}.`
            : `These take part: ${chosen.join(", ")}.`}
        </p>
        <div class="whole actions">
          <Button kind="primary" submit busy={busy.value} disabled={plan.value === "" || free === 0}>
            Start the run
          </Button>
        </div>
      </form>
      {failed.value !== null && <ErrorBox error={failed.value} />}
    </section>
  );
}
