import { useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, SelectField, TextField } from "../app/controls.tsx";
import { go, link } from "../app/router.ts";
import { fleetOf, type Machines, thisMachine } from "../fleet/broker.ts";
import { MachineFields } from "../fleet/machines.tsx";
import { useKept } from "../app/kept.ts";
import { runInput } from "./drafts.ts";
import { CLUSTER_OVERRIDES, flagsOf, OVERRIDES, unsetWords, withoutTags, words } from "./flags.ts";
import type { PlanModel } from "./model.ts";
import { keysIn, nodeAt, typed } from "./tree.ts";

/** Stands for one run rather than a suite among the choices. */
const ONE_RUN = "";

/** Time that a check waits for the next letter. */
const TYPING_MS = 300;

/** Flags of several runs, which a check of one does not take. */
const OF_SEVERAL = ["--repeat", "--pause"];

/** The program's words about a plan with flags: figures that such a run will not show, and the load. */
interface Forecast {
  notes: string[];
  load: api.Explanation | null;
}

/** Asks for the forecast once nobody types; with flags that are null or wrong the earlier load stays. */
function useForecast(model: PlanModel, flags: string[] | null): Forecast {
  const [notes, setNotes] = useState<string[]>([]);
  const [load, setLoad] = useState<api.Explanation | null>(null);
  const text = model.text.value;
  const asked = JSON.stringify(flags);
  useEffect(() => {
    if (flags === null) return;
    const stopped = new AbortController();
    const single = flags.filter((flag, at) => {
      const [name = ""] = flag.split("=", 1);
      return !OF_SEVERAL.includes(name) && !OF_SEVERAL.includes(flags[at - 1] ?? "");
    });
    // The start says what is wrong: what is not answered is not shown.
    const look = () => {
      const text = model.forFile();
      api.check(model.path, text, "plan", stopped.signal, single).then(
        ({ problems }) => {
          const found = problems.filter(({ severity }) => severity === "note");
          setNotes(found.map(({ message }) => message));
        },
        () => stopped.signal.aborted || setNotes([]),
      );
      api.explain(model.path, text, single, stopped.signal).then(
        (answer) => answer.ok && setLoad(answer.explanation),
        () => {},
      );
    };
    const timer = setTimeout(look, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stopped.abort();
    };
  }, [asked, text, model]);
  return { notes, load };
}

/** Starts a run of the plan as it is in the editor, with flags over its settings. */
export function RunTab({ model }: { model: PlanModel }) {
  const values = useKept<Record<string, string>>(runInput(model.path, "values"), {});
  const more = useKept(runInput(model.path, "more"), "");
  const name = useKept(runInput(model.path, "name"), "");
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const suite = useSignal(ONE_RUN);
  const machines = useSignal<Machines>(thisMachine());
  const isCluster = model.kind.value === "cluster";
  const suites = isCluster ? keysIn(model.tree.value, ["suites"]) : [];
  const overrides = isCluster ? CLUSTER_OVERRIDES : OVERRIDES;
  /** The value that a plan has, which counts as long as the field is empty. */
  const inPlan = (flag: string) =>
    isCluster ? null : typed(nodeAt(model.tree.value, ["run", flag.slice(2).replaceAll("-", "_")]));
  const flags = flagsOf(values.value, more.value, overrides);
  const { notes, load } = useForecast(model, isCluster ? null : flags);
  const start = async () => {
    busy.value = true;
    failed.value = null;
    try {
      // The text that is seen is run, also if the file has another one by now.
      const { id } = await api.start({
        path: model.path,
        text: model.forFile(),
        command: isCluster ? "cluster" : "run",
        flags: [
          ...(suites.includes(suite.peek()) ? [`--suite=${suite.peek()}`] : []),
          ...flagsOf(values.peek(), more.peek(), overrides),
        ],
        name: name.peek().trim() === "" ? null : name.peek().trim(),
        ...(isCluster ? {} : fleetOf(machines.peek())),
      });
      // The next run may be of another server: it is not called the same, nor tagged so.
      name.value = "";
      more.value = withoutTags(more.peek());
      go(link("live", id));
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  // What was typed there is named as it was typed; other fields have flags of their own.
  const flag = failed.value === null ? undefined : /^`([^`]+)`|`(-[^`]*)`|^(--[a-z-]+)/.exec(failed.value.message);
  const named = flag?.slice(1).find((part) => part !== undefined);
  const isTyped = named !== undefined && words(more.value).some((word) => word.split("=", 1)[0] === named);
  const wrong = isTyped ? [failed.value?.message, failed.value?.hint].filter(Boolean).join(": ") : undefined;
  return (
    <form
      class="plan-run"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <p>
        Runs the text as it is in the editor; it need not be saved.{" "}
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
        {overrides.map((override) => {
          const { flag, label, hint } = override;
          const value = values.value[flag] ?? "";
          const planned = inPlan(flag);
          const unset = planned === null && value.trim() === "" ? unsetWords(override, load) : null;
          return (
            <TextField
              key={flag}
              label={label}
              hint={[`${hint} (${flag})`, unset].filter((part) => part !== null).join("; ")}
              placeholder={planned ?? ""}
              value={value}
              onInput={(value) => (values.value = { ...values.value, [flag]: value })}
            />
          );
        })}
        <TextField
          label="Other flags"
          value={more.value}
          onInput={(value) => (more.value = value)}
          error={wrong}
          hint={`As for plimsoll ${isCluster ? "cluster run" : "run"}, such as --tag evening`}
        />
      </div>
      {notes.map((note) => (
        <p class="notice">{note}</p>
      ))}
      {failed.value !== null && wrong === undefined && <ErrorBox error={failed.value} />}
      <Button kind="primary" submit busy={busy.value}>
        Start the run
      </Button>
    </form>
  );
}
