import { useSignal } from "@preact/signals";
import * as api from "../app/api.ts";
import { Button, ErrorBox, SelectField, TextField } from "../app/controls.tsx";
import { go, link } from "../app/router.ts";
import { fleetOf, type Machines, thisMachine } from "../fleet/broker.ts";
import { MachineFields } from "../fleet/machines.tsx";
import { CLUSTER_OVERRIDES, flagsOf, OVERRIDES } from "./flags.ts";
import type { PlanModel } from "./model.ts";
import { keysIn } from "./tree.ts";

/** Stands for one run rather than a suite among the choices. */
const ONE_RUN = "";

/** Starts a run of the plan as it is in the editor, with flags over its settings. */
export function RunTab({ model, leave }: { model: PlanModel; leave: () => void }) {
  const values = useSignal<Record<string, string>>({});
  const more = useSignal("");
  const name = useSignal("");
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const suite = useSignal(ONE_RUN);
  const machines = useSignal<Machines>(thisMachine());
  const isCluster = model.kind.value === "cluster";
  const suites = isCluster ? keysIn(model.tree.value, ["suites"]) : [];
  const overrides = isCluster ? CLUSTER_OVERRIDES : OVERRIDES;
  const start = async () => {
    busy.value = true;
    failed.value = null;
    try {
      const { id } = await api.start({
        path: model.path,
        text: model.isChanged.peek() ? model.forFile() : null,
        command: isCluster ? "cluster" : "run",
        flags: [
          ...(suites.includes(suite.peek()) ? [`--suite=${suite.peek()}`] : []),
          ...flagsOf(values.peek(), more.peek(), overrides),
        ],
        name: name.peek().trim() === "" ? null : name.peek().trim(),
        ...(isCluster ? {} : fleetOf(machines.peek())),
      });
      leave();
      go(link("live", id));
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <form
      class="plan-run"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <p>
        {model.isChanged.value
          ? "Runs the text as it is in the editor; it need not be saved."
          : "Runs the file as it is."}{" "}
        {isCluster && "The nodes are started, broken as the spec says, checked and ended. "}
        Values here override those of the plan, for this run alone.
      </p>
      <div class="plan-columns">
        <TextField
          label="Name of the run"
          value={name.value}
          onInput={(value) => (name.value = value)}
          hint="For the list of runs"
        />
        {suites.length > 0 && (
          <SelectField
            label="Suite"
            value={suite.value}
            onChange={(name) => (suite.value = name)}
            options={[
              { value: ONE_RUN, label: "none: one run" },
              ...suites.map((value) => ({ value, label: value })),
            ]}
            hint="A run for each combination of its parameters (--suite)"
          />
        )}
        {!isCluster && <MachineFields value={machines.value} onChange={(next) => (machines.value = next)} />}
        {overrides.map(({ flag, label, hint, placeholder }) => (
          <TextField
            key={flag}
            label={label}
            hint={`${hint} (${flag})`}
            placeholder={placeholder}
            value={values.value[flag] ?? ""}
            onInput={(value) => (values.value = { ...values.value, [flag]: value })}
          />
        ))}
        <TextField
          label="Other flags"
          value={more.value}
          onInput={(value) => (more.value = value)}
          placeholder="--http2 --tag evening"
          hint={`As on the command line of plimsoll ${isCluster ? "cluster run" : "run"}`}
        />
      </div>
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <Button kind="primary" submit busy={busy.value}>
        Start the run
      </Button>
    </form>
  );
}
