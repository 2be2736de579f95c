import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Field } from "../app/controls.tsx";
import { notify } from "../app/notify.tsx";
import {
  argumentsOf,
  type ArgumentGroup,
  filled,
  groupsOf,
  labelOf,
  type Values,
} from "./arguments.ts";
import { openAsNew } from "./drafts.ts";

/** A form for a command, that makes a plan of its values. */
export function CommandForm(props: { command: api.FormCommand; title: string; settings: readonly string[] }) {
  const { command, title, settings } = props;
  const values = useSignal<Values>({});
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const make = async () => {
    busy.value = true;
    failed.value = null;
    try {
      const { text, notes } = await api.planOf(command.name, filled(values.peek()));
      notes.forEach((note) => notify(note));
      await openAsNew(`${command.name}.yaml`, text);
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  const set = (id: string, value: string | string[] | true | undefined) => {
    const { [id]: _, ...others } = values.peek();
    values.value = value === undefined ? others : { ...others, [id]: value };
  };
  return (
    <form
      class="plan-command"
      aria-label={title}
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <h3>{title}</h3>
      {groupsOf({ ...command, arguments: argumentsOf(command, new Set(settings)) }).map((group) => (
        <ArgumentGroupView key={group.heading} group={group} values={values.value} set={set} />
      ))}
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <Button submit kind="primary" busy={busy.value}>
        Make plan
      </Button>
    </form>
  );
}

interface GroupOf {
  group: ArgumentGroup;
  values: Values;
  set: (id: string, value: string | string[] | true | undefined) => void;
}

function ArgumentGroupView({ group, values, set }: GroupOf) {
  const { heading, arguments: all, isFolded } = group;
  const fields = (
    <div class="plan-columns">
      {all.map((argument) => (
        <ArgumentField
          key={argument.id}
          argument={argument}
          value={values[argument.id]}
          set={(value) => set(argument.id, value)}
        />
      ))}
    </div>
  );
  if (heading === "") return fields;
  const count = all.filter(({ id }) => values[id] !== undefined).length;
  return (
    <details class="plan-fold" open={!isFolded}>
      <summary>
        {heading} {count > 0 && <small>{count} set</small>}
      </summary>
      {fields}
    </details>
  );
}

function ArgumentField(props: {
  argument: api.FormArgument;
  value: string | string[] | true | undefined;
  set: (value: string | string[] | true | undefined) => void;
}) {
  const { argument, value, set } = props;
  const { help, long_help, possible, multiple } = argument;
  const label = labelOf(argument);
  const preset = argument.default;
  const hint: ComponentChildren = (
    <>
      {help}
      {long_help !== null && long_help !== help && (
        <details class="plan-more">
          <summary>More</summary>
          <span class="preserved">{long_help}</span>
        </details>
      )}
    </>
  );
  if (argument.value === null) {
    return (
      <Field label={label} hint={hint} class="plan-switch">
        {(control) => (
          <input
            {...control}
            type="checkbox"
            checked={value === true}
            onChange={(event) => set(event.currentTarget.checked ? true : undefined)}
          />
        )}
      </Field>
    );
  }
  if (multiple) {
    const texts = Array.isArray(value) ? value : [];
    const rows = [...texts, ""];
    const change = (index: number, text: string) => {
      const next = rows
        .map((one, at) => (at === index ? text : one))
        .filter((one, at) => one !== "" || at < index);
      set(next.length === 0 ? undefined : next);
    };
    return (
      <Field label={label} hint={hint}>
        {(control) => (
          <div class="plan-rows">
            {rows.map((text, index) => (
              <input
                {...(index === 0 ? control : {})}
                key={index}
                aria-label={index === 0 ? undefined : `${label} ${index + 1}`}
                type="text"
                spellcheck={false}
                autocomplete="off"
                placeholder={index === 0 ? (argument.value ?? "") : "another"}
                value={text}
                onInput={(event) => change(index, event.currentTarget.value)}
              />
            ))}
          </div>
        )}
      </Field>
    );
  }
  const text = typeof value === "string" ? value : "";
  if (possible.length > 0) {
    return (
      <Field label={label} hint={hint}>
        {(control) => (
          <select {...control} value={text} onChange={(event) => set(event.currentTarget.value || undefined)}>
            <option value="">{preset === null ? "not set" : `not set (${preset})`}</option>
            {possible.map(({ name, help }) => (
              <option value={name}>{help === null || help === "" ? name : `${name} – ${help}`}</option>
            ))}
          </select>
        )}
      </Field>
    );
  }
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          type="text"
          spellcheck={false}
          autocomplete="off"
          placeholder={preset ?? argument.value ?? ""}
          value={text}
          onInput={(event) => set(event.currentTarget.value || undefined)}
        />
      )}
    </Field>
  );
}
