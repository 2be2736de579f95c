import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Field } from "../app/controls.tsx";
import { useKept } from "../app/kept.ts";
import { notify } from "../app/notify.tsx";
import {
  argumentsOf,
  type ArgumentGroup,
  filled,
  groupsOf,
  type Values,
} from "./arguments.ts";
import {
  type FieldError,
  fieldError,
  hintOf,
  inForm,
  labelOf,
  moreOf,
  shownWhenEmpty,
} from "./argument-words.tsx";
import { openAsNew } from "./drafts.ts";
import { takesLines } from "./pasted.ts";

/** The values that a form begins with, by the command: a load on a URL is an open one that ends. */
const BEGINS: Record<string, Values> = { run: { rate: "100/s", duration: "10s" } };

/** Addresses as they may be written, by the command. */
const ADDRESSES: Record<string, string> = {
  ws: "ws://127.0.0.1:9000/chat",
  grpc: "http://127.0.0.1:50051/package.Service/Method",
};
const ADDRESS = "http://127.0.0.1:8080/";

/** True if a call of gRPC has its method: in its own field, or as the path or the second word of the address. */
export function hasMethod({ call, urls }: Values): boolean {
  const words = Array.isArray(urls) ? urls : [urls];
  return call !== undefined || words.length > 1 || words.some((url) => /[^/:]\/[^/]/.test(String(url)));
}

/** A form for a command, that makes a plan of its values. */
export function CommandForm(props: { command: api.FormCommand; title: string; settings: readonly string[] }) {
  const { command, title, settings } = props;
  const values = useKept<Values>(`command ${command.name}`, BEGINS[command.name] ?? {});
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const wrong = useSignal<FieldError | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const known = argumentsOf(command, new Set(settings));
  const make = async () => {
    failed.value = null;
    wrong.value = null;
    if (known.some(({ id }) => id === "urls") && filled(values.peek())["urls"] === undefined) {
      wrong.value = { id: "urls", said: `an address is needed, such as ${ADDRESSES[command.name] ?? ADDRESS}` };
      return;
    }
    if (command.name === "grpc" && !hasMethod(filled(values.peek()))) {
      wrong.value = { id: "call", said: "a method is needed, such as package.Service/Method" };
      return;
    }
    busy.value = true;
    try {
      const { text, notes } = await api.planOf(command.name, filled(values.peek()));
      notes.forEach((note) => notify(note));
      await openAsNew(`${command.name}.yaml`, text);
    } catch (error) {
      const refusal = api.errorOf(error);
      wrong.value = fieldError(refusal, known, values.peek());
      failed.value = wrong.value === null ? inForm(refusal) : null;
    } finally {
      busy.value = false;
    }
  };
  useEffect(() => {
    if (wrong.value !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    // The form may be longer than the window.
    else if (failed.value !== null) form.current?.querySelector(".error-box")?.scrollIntoView({ block: "center" });
  }, [wrong.value, failed.value]);
  const set = (id: string, value: string | string[] | true | undefined) => {
    const { [id]: _, ...others } = values.peek();
    values.value = value === undefined ? others : { ...others, [id]: value };
  };
  return (
    <form
      ref={form}
      class="plan-command"
      aria-label={title}
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <h3>{title}</h3>
      {groupsOf({ ...command, arguments: known }).map((group) => (
        <ArgumentGroupView
          key={group.heading}
          group={group}
          values={values.value}
          wrong={wrong.value}
          set={set}
        />
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
  wrong: FieldError | null;
  set: (id: string, value: string | string[] | true | undefined) => void;
}

function ArgumentGroupView({ group, values, wrong, set }: GroupOf) {
  const { heading, arguments: all, isFolded } = group;
  const fields = (
    <div class="plan-columns">
      {all.map((argument) => (
        <ArgumentField
          key={argument.id}
          argument={argument}
          value={values[argument.id]}
          error={wrong?.id === argument.id ? wrong.said : null}
          set={(value) => set(argument.id, value)}
        />
      ))}
    </div>
  );
  if (heading === "") return fields;
  const count = all.filter(({ id }) => values[id] !== undefined).length;
  return (
    <details class="plan-fold" open={!isFolded || all.some(({ id }) => id === wrong?.id)}>
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
  error: ComponentChildren;
  set: (value: string | string[] | true | undefined) => void;
}) {
  const { argument, value, error, set } = props;
  const { possible, multiple } = argument;
  const label = labelOf(argument);
  const preset = argument.default;
  const more = moreOf(argument);
  const hint: ComponentChildren = (
    <>
      {hintOf(argument)}
      {more !== null && (
        <details class="plan-more">
          <summary>More</summary>
          <span class="preserved">{more}</span>
        </details>
      )}
    </>
  );
  if (argument.value === null) {
    return (
      <Field label={label} hint={hint} error={error} class="plan-switch">
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
    const put = (index: number, lines: string[]) => {
      const next = [...texts.slice(0, index), ...lines, ...texts.slice(index + 1)];
      set(next.length === 0 ? undefined : next);
    };
    return (
      <Field label={label} hint={hint} error={error}>
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
                placeholder={index === 0 ? shownWhenEmpty(argument) : "another"}
                value={text}
                onInput={(event) => change(index, event.currentTarget.value)}
                onPaste={takesLines((lines) => put(index, lines))}
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
      <Field label={label} hint={hint} error={error}>
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
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <input
          {...control}
          type="text"
          spellcheck={false}
          autocomplete="off"
          placeholder={shownWhenEmpty(argument)}
          value={text}
          onInput={(event) => set(event.currentTarget.value || undefined)}
        />
      )}
    </Field>
  );
}
