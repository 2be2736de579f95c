/** Fields of the machines that carry out a run: this one, or the agents of a fleet. */

import { SelectField, TextField } from "../app/controls.tsx";
import { type Machines, needsOf, ON_LOSS, type Typed, USUAL_BROKER } from "./broker.ts";

/** The broker of a fleet, and the files that it knows us by. */
export function BrokerFields(props: { value: Typed; set: (part: Partial<Typed>) => void }) {
  const { value, set } = props;
  return (
    <>
      <TextField
        label="Broker"
        value={value.nats}
        onInput={(nats) => set({ nats })}
        placeholder={USUAL_BROKER}
      />
      <TextField
        label="Key"
        value={value.creds}
        onInput={(creds) => set({ creds })}
        placeholder="none"
        hint="A file below the folder that is open, such as fleet/coordinator.key."
      />
      <TextField
        label="Certificates"
        value={value.ca}
        onInput={(ca) => set({ ca })}
        placeholder="those of the system"
        hint="For tls://, such as fleet/ca.pem."
      />
    </>
  );
}

export function MachineFields({ value, onChange }: { value: Machines; onChange: (next: Machines) => void }) {
  const set = (part: Partial<Machines>) => onChange({ ...value, ...part });
  return (
    <>
      <SelectField
        label="Machines"
        value={value.on}
        onChange={(on) => set({ on })}
        options={[
          { value: "here", label: "this one" },
          { value: "fleet", label: "a fleet" },
        ]}
        hint="Rates, users and connections are those of the whole load."
      />
      {value.on === "fleet" && (
        <>
          <BrokerFields value={value} set={set} />
          <TextField
            label="Agents"
            value={value.agents}
            onInput={(agents) => set({ agents })}
            placeholder="all that are free"
            hint="A number, or names with commas between (--agents)"
          />
          <SelectField
            label="If an agent is lost"
            value={value.onLoss}
            onChange={(onLoss) => set({ onLoss })}
            options={ON_LOSS}
            hint={needsOf(value.onLoss)}
          />
        </>
      )}
    </>
  );
}
