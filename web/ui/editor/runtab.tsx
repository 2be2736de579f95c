import { useSignal } from "@preact/signals";
import * as api from "../app/api.ts";
import { Button, ErrorBox, TextField } from "../app/controls.tsx";
import { go, link } from "../app/router.ts";
import { flagsOf, OVERRIDES } from "./flags.ts";
import type { PlanModel } from "./model.ts";

/** Starts a run of the plan as it is in the editor, with flags over its settings. */
export function RunTab({ model, leave }: { model: PlanModel; leave: () => void }) {
  const values = useSignal<Record<string, string>>({});
  const more = useSignal("");
  const name = useSignal("");
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const start = async () => {
    busy.value = true;
    failed.value = null;
    try {
      const { id } = await api.start({
        path: model.path,
        text: model.isChanged.peek() ? model.forFile() : null,
        command: "run",
        flags: flagsOf(values.peek(), more.peek()),
        name: name.peek().trim() === "" ? null : name.peek().trim(),
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
        What is filled in here goes above what the plan says, for this run alone.
      </p>
      <div class="plan-columns">
        <TextField
          label="Name of the run"
          value={name.value}
          onInput={(value) => (name.value = value)}
          hint="For the list of runs"
        />
        {OVERRIDES.map(({ flag, label, hint, placeholder }) => (
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
          hint="As on the command line of plimsoll run"
        />
      </div>
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <Button kind="primary" submit busy={busy.value}>
        Start the run
      </Button>
    </form>
  );
}
