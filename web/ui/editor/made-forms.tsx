/** Forms for documents that no command of the program makes: scenarios of steps, and clusters. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Field, SelectField, TextField } from "../app/controls.tsx";
import { useKept } from "../app/kept.ts";
import { about } from "../app/state.ts";
import { isPlanName, openAsNew } from "./drafts.ts";
import {
  CHECKS,
  type ClusterForm as Cluster,
  clusterProblems,
  clusterSpec,
  FAULTS,
  type FaultForm,
  type ScenarioForm as Scenario,
  scenarioPlan,
  scenarioProblems,
  USUAL_CLUSTER,
  USUAL_SCENARIO,
} from "./made.ts";

/** A field of several lines. */
function LinesField(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint: string;
  error?: string | undefined;
  rows?: number;
}) {
  const { label, value, onInput, hint, error, rows = 3 } = props;
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <textarea
          {...control}
          rows={rows}
          spellcheck={false}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A form whose fields are checked when it is sent, and that opens what it makes in the editor. */
function useForm<T extends object>(
  kind: string,
  usual: T,
  problemsOf: (form: T) => Partial<Record<keyof T, string>>,
  make: (form: T) => { name: string; text: string },
) {
  const form = useKept<T>(`made ${kind}`, usual);
  const wasTried = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const problems = wasTried.value ? problemsOf(form.value) : {};
  const set = (part: Partial<T>) => void (form.value = { ...form.peek(), ...part });
  const send = async (event: Event) => {
    event.preventDefault();
    wasTried.value = true;
    failed.value = null;
    if (Object.keys(problemsOf(form.peek())).length > 0) return;
    try {
      const { name, text } = make(form.peek());
      await openAsNew(name, text);
    } catch (error) {
      failed.value = api.errorOf(error);
    }
  };
  /** A field of one line. */
  const field = (key: keyof T, label: string, more: { hint?: string; placeholder?: string } = {}) => (
    <TextField
      label={label}
      value={String(form.value[key])}
      onInput={(value) => set({ [key]: value } as unknown as Partial<T>)}
      error={(problems as Partial<Record<keyof T, string>>)[key]}
      {...more}
    />
  );
  return { form, problems: problems as Partial<Record<keyof T, string>>, failed, set, send, field };
}

/** A form for a scenario: requests one after the other. */
export function ScenarioForm({ title }: { title: string }) {
  const { form, problems, failed, set, send, field } = useForm<Scenario>(
    "scenario",
    { ...USUAL_SCENARIO, server: about.peek()?.sink ?? USUAL_SCENARIO.server },
    scenarioProblems,
    (form) => ({ name: "scenario.yaml", text: scenarioPlan(form) }),
  );
  return (
    <form class="plan-command" aria-label={title} onSubmit={(event) => void send(event)}>
      <h3>{title}</h3>
      <div class="plan-columns">
        {field("server", "Server", { placeholder: "http://127.0.0.1:8080" })}
        <LinesField
          label="Steps"
          hint="A request a line, in order: GET /items, POST /orders"
          value={form.value.steps}
          onInput={(steps) => set({ steps })}
          error={problems.steps}
        />
        <LinesField
          label="JSON"
          hint="Body of POST, PUT and PATCH"
          value={form.value.body}
          onInput={(body) => set({ body })}
          error={problems.body}
          rows={2}
        />
        {field("rate", "Rate", { hint: "Iterations per second, whatever the server does" })}
        {field("users", "Users", { hint: "In place of a rate: each begins again when it has ended" })}
        {field("duration", "Duration", { placeholder: "10s" })}
        {field("think", "Think time", { hint: "Pause after each request", placeholder: "none" })}
        <LinesField
          label="Thresholds"
          hint="One a line: what has to hold"
          value={form.value.thresholds}
          onInput={(thresholds) => set({ thresholds })}
          rows={2}
        />
      </div>
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <Button submit kind="primary">
        Make plan
      </Button>
    </form>
  );
}

/** A form for a cluster: its nodes, its load, the faults, and what has to hold. */
export function ClusterForm({ title }: { title: string }) {
  const { form, problems, failed, set, send, field } = useForm<Cluster>(
    "cluster",
    USUAL_CLUSTER,
    clusterProblems,
    (form) => ({ name: `${form.name.trim()}.yaml`, text: clusterSpec(form) }),
  );
  const plans = useSignal<string[]>([]);
  useEffect(() => {
    api.files().then(
      ({ files }) => (plans.value = files.map(({ path }) => path).filter(isPlanName)),
      (error: unknown) => (failed.value = api.errorOf(error)),
    );
  }, []);
  const { command, plan, faults, checks } = form.value;
  const toggle = (check: string) =>
    set({ checks: CHECKS.filter((one) => (one === check) !== checks.includes(one)) });
  return (
    <form class="plan-command" aria-label={title} onSubmit={(event) => void send(event)}>
      <h3>{title}</h3>
      <div class="plan-columns">
        {field("name", "Name")}
        {field("nodes", "Nodes")}
        {field("command", "Program", {
          hint: "The program of each node; empty: the reference cluster that is built in",
          placeholder: "built in",
        })}
        {command.trim() !== "" && (
          <>
            <LinesField
              label="Arguments"
              hint="One a line; ${id}, ${address.http} and ${data} are those of the node"
              value={form.value.arguments}
              onInput={(text) => set({ arguments: text })}
            />
            <LinesField
              label="Arguments for each other node"
              hint="One a line; ${peer.id} and ${peer.http} are those of the other"
              value={form.value.perPeer}
              onInput={(perPeer) => set({ perPeer })}
              rows={2}
            />
            {field("ready", "Path that a ready node answers", { placeholder: "its port is open" })}
            {field("leaderPath", "Path that tells the leader", { placeholder: "nobody leads" })}
            {field("leaderPointer", "JSON pointer of the leader’s id")}
          </>
        )}
        <SelectField
          label="Load"
          value={plan}
          onChange={(plan) => set({ plan })}
          options={[
            { value: "", label: "Creates, reads, updates, deletes" },
            ...plans.value.map((path) => ({ value: path, label: path })),
          ]}
        />
        {plan === "" && (
          <>
            {field("resource", "Resource")}
            {field("concurrency", "Connections")}
            {field("duration", "Duration")}
          </>
        )}
      </div>
      <FaultRows faults={faults} onChange={(faults) => set({ faults })} />
      <fieldset class="plan-group">
        <legend>Checks after the load</legend>
        {CHECKS.map((check) => (
          <label class="plan-check" key={check}>
            <input type="checkbox" checked={checks.includes(check)} onChange={() => toggle(check)} /> {check}
          </label>
        ))}
      </fieldset>
      {problems.name !== undefined && <p class="unseen">The form is not complete.</p>}
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <Button submit kind="primary">
        Make spec
      </Button>
    </form>
  );
}

const TARGETS = ["leader", "follower", "random", "all"];
const optionsOf = (names: readonly string[]) => names.map((value) => ({ value, label: value }));

/** Faults that happen while the load goes on. */
function FaultRows({ faults, onChange }: { faults: FaultForm[]; onChange: (faults: FaultForm[]) => void }) {
  const change = (index: number, part: Partial<FaultForm>) =>
    onChange(faults.map((fault, at) => (at === index ? { ...fault, ...part } : fault)));
  return (
    <fieldset class="plan-group">
      <legend>Faults</legend>
      {faults.map((fault, index) => (
        <div class="plan-columns" role="group" aria-label={`Fault ${index + 1}`} key={index}>
          <SelectField
            label="Fault"
            value={fault.fault}
            options={optionsOf(FAULTS)}
            onChange={(fault) => change(index, { fault })}
          />
          <SelectField
            label="Node"
            value={fault.target}
            options={optionsOf(TARGETS)}
            onChange={(target) => change(index, { target })}
          />
          <TextField label="At" value={fault.at} onInput={(at) => change(index, { at })} />
          <TextField label="For" value={fault.for} onInput={(length) => change(index, { for: length })} />
          <Button
            label={`Remove fault ${index + 1}`}
            onClick={() => onChange(faults.filter((_, at) => at !== index))}
          >
            Remove
          </Button>
        </div>
      ))}
      <Button onClick={() => onChange([...faults, { fault: "stop", target: "random", at: "5s", for: "2s" }])}>
        Add a fault
      </Button>
    </fieldset>
  );
}
