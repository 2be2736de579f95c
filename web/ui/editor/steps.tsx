import { useState } from "preact/hooks";
import { isMap } from "yaml";
import { Button, SelectField } from "../app/controls.tsx";
import { ItemButtons, MapFields, type Of, orderOf, PlaceLink, ValueField } from "./fields.tsx";
import { isRequest, METHODS, stepKind } from "./knowledge.ts";
import { items, stepLabel } from "./outline.ts";
import { Typed } from "./scalar.ts";
import type { Path } from "./schema.ts";
import { keysIn, nodeAt, typedAt } from "./tree.ts";

/** Kinds of steps, with the initial text of a new one. */
const KINDS: { value: string; label: string; begin: () => unknown }[] = [
  ...METHODS.map((method) => ({
    value: method as string,
    label: method.toUpperCase(),
    begin: (): unknown => ({ [method]: new Typed("/") }),
  })),
  {
    value: "request",
    label: "other method",
    begin: () => ({ request: new Typed("/"), method: new Typed("OPTIONS") }),
  },
  { value: "same_url", label: "same URL again", begin: () => ({ same_url: new Typed("true") }) },
  { value: "think", label: "think", begin: () => ({ think: new Typed("1s") }) },
  { value: "record", label: "record a metric", begin: () => ({ record: { name: new Typed("1") } }) },
  { value: "set", label: "set variables", begin: () => ({ set: { name: new Typed("value") } }) },
  {
    value: "if",
    label: "if",
    begin: () => ({ if: new Typed("${worker} == 0"), then: [{ get: new Typed("/") }] }),
  },
  {
    value: "repeat",
    label: "repeat",
    begin: () => ({ repeat: new Typed("3"), steps: [{ get: new Typed("/") }] }),
  },
  {
    value: "while",
    label: "while",
    begin: () => ({ while: new Typed("${worker} != 0"), steps: [{ get: new Typed("/") }] }),
  },
  {
    value: "parallel",
    label: "at once",
    begin: () => ({ parallel: [{ get: new Typed("/a") }, { get: new Typed("/b") }] }),
  },
  { value: "keep", label: "keep a row", begin: () => ({ keep: { rows: new Typed("name") } }) },
  { value: "take", label: "take a row", begin: () => ({ take: new Typed("rows") }) },
  { value: "pick", label: "pick a row", begin: () => ({ pick: new Typed("rows") }) },
  {
    value: "websocket",
    label: "WebSocket",
    begin: () => ({ websocket: { send: new Typed("hello"), receive: { any: new Typed("true") } } }),
  },
  { value: "cache", label: "ask a cache", begin: () => ({ cache: { get: new Typed("key") } }) },
];

/** Keys of a step that hold steps, in this order. */
const INNER = ["then", "else", "steps", "parallel"];
/** Fields that most requests have, which are shown whether or not they are set. */
const USUAL = ["name", "target", "headers", "expect", "think", "extract"];

/** The steps of a scenario, a branch or a loop, as a list in which they are chosen, moved and added. */
export function StepList(props: Of & { label: string }) {
  const { model, schema, path, label } = props;
  const [kind, setKind] = useState("get");
  const paths = items(model.tree.value, path);
  const add = () => {
    const begin = KINDS.find(({ value }) => value === kind)?.begin();
    if (model.edit({ kind: "insert", path, index: paths.length, value: begin })) {
      model.choose(paths.length === 0 ? [...path, 0] : [...path, paths.length]);
    }
  };
  return (
    <fieldset class="plan-group">
      <legend>
        {label} <PlaceLink model={model} path={path} label={label} />
      </legend>
      <ol class="plan-items">
        {paths.map((own, index) => {
          const { label, detail } = stepLabel(model.tree.value, own);
          return (
            <li key={index}>
              <button type="button" class="plan-open" onClick={() => model.choose(own)}>
                {label} {detail !== "" && <small>{detail}</small>}
              </button>
              <span class="plan-buttons">
                <ItemButtons
                  {...{ model, schema, path, own, index }}
                  count={paths.length}
                  name={`step ${index + 1}`}
                />
              </span>
            </li>
          );
        })}
      </ol>
      <div class="plan-add">
        <SelectField label={`New step in ${label}`} value={kind} options={KINDS} onChange={setKind} />
        <Button onClick={add}>Add step</Button>
      </div>
    </fieldset>
  );
}

/** The form of a step. */
export function StepForm({ model, schema, path }: Of) {
  const tree = model.tree.value;
  const keys = keysIn(tree, path);
  const kind = stepKind(keys);
  const isMethod = (METHODS as readonly string[]).includes(kind ?? "");
  const { label } = stepLabel(tree, path);
  const inner = INNER.filter((key) => keys.includes(key));
  const list = path.slice(0, -1);
  const index = path[path.length - 1];
  const rename = (key: string) => {
    if (kind !== null && key !== kind) model.edit({ kind: "rename", path: [...path, kind], key });
  };
  if (!isMap(nodeAt(tree, path))) return <ValueField model={model} schema={schema} path={path} />;
  return (
    <>
      <div class="plan-head">
        <h3>{label}</h3>
        {typeof index === "number" && (
          <span class="plan-buttons">
            <ItemButtons
              {...{ model, schema, index }}
              path={list}
              own={path}
              count={items(tree, list).length}
              name={`step ${index + 1}`}
            />
          </span>
        )}
      </div>
      {isMethod && kind !== null && (
        <SelectField
          label="method"
          value={kind}
          options={METHODS.map((value) => ({ value: value as string, label: value.toUpperCase() }))}
          onChange={rename}
        />
      )}
      {isMethod && kind !== null && (
        <ValueField model={model} schema={schema} path={[...path, kind]} label="path or URL" />
      )}
      {isRequest(kind) && isMethod ? (
        <RequestFields {...{ model, schema, path }} without={[...METHODS, ...INNER]} />
      ) : (
        <MapFields {...{ model, schema, path }} without={INNER} />
      )}
      {inner.map((key) => (
        <StepList key={key} {...{ model, schema }} path={[...path, key]} label={key} />
      ))}
      {kind === "if" && !keys.includes("else") && (
        <div class="plan-actions">
          <Button
            onClick={() =>
              model.edit({ kind: "set", path: [...path, "else"], value: [{ get: new Typed("/") }] })
            }
          >
            Add else
          </Button>
        </div>
      )}
    </>
  );
}

/** Fields of a request beside its path: the usual ones, then the rest. */
function RequestFields({ model, schema, path, without }: Of & { without: readonly string[] }) {
  const there = new Set(keysIn(model.tree.value, path));
  const usual = USUAL.filter((key) => !without.includes(key));
  return (
    <>
      {usual.map((key) => (
        <Fold key={key} {...{ model, schema }} path={[...path, key]} open={there.has(key)} name={key} />
      ))}
      <MapFields {...{ model, schema, path }} without={[...without, ...usual]} />
    </>
  );
}

/** A field that is folded as long as the plan does not have it, where it would take much room. */
function Fold({ model, schema, path, open, name }: Of & { open: boolean; name: string }) {
  const field = <ValueField {...{ model, schema, path }} label={name} />;
  if (open || ["name", "target", "think"].includes(name)) return field;
  return (
    <details class="plan-fold">
      <summary>{name}</summary>
      {field}
    </details>
  );
}

/** The form of a scenario: its settings, and its steps. */
export function ScenarioForm({ model, schema, path }: Of) {
  const index = path[path.length - 1];
  const list = path.slice(0, -1);
  const name =
    typedAt(model.tree.value, [...path, "name"]) ??
    (typeof index === "number" ? `scenario ${index + 1}` : "scenario");
  return (
    <>
      <div class="plan-head">
        <h3>{name}</h3>
        {typeof index === "number" && (
          <span class="plan-buttons">
            <ItemButtons
              {...{ model, schema, index }}
              path={list}
              own={path}
              count={items(model.tree.value, list).length}
              name={name}
            />
          </span>
        )}
      </div>
      <StepList {...{ model, schema }} path={[...path, "steps"]} label="steps" />
      <MapFields {...{ model, schema, path }} without={["steps"]} />
    </>
  );
}

/** All scenarios, as a list in which one is chosen. */
export function ScenarioList({ model, schema, path }: Of) {
  const tree = model.tree.value;
  const paths = items(tree, path);
  const order = orderOf(schema, []);
  const add = () => {
    const value = { name: new Typed(`scenario ${paths.length + 1}`), steps: [{ get: new Typed("/") }] };
    const isDone =
      paths.length === 0
        ? model.edit({ kind: "set", path, value: [value], order })
        : model.edit({ kind: "insert", path, index: paths.length, value });
    if (isDone) model.choose([...path, paths.length]);
  };
  return (
    <>
      <ol class="plan-items">
        {paths.map((own: Path, index) => {
          const name = typedAt(tree, [...own, "name"]) ?? `scenario ${index + 1}`;
          return (
            <li key={index}>
              <button type="button" class="plan-open" onClick={() => model.choose(own)}>
                {name}
              </button>
              <span class="plan-buttons">
                <ItemButtons {...{ model, schema, path, own, index, name }} count={paths.length} />
              </span>
            </li>
          );
        })}
      </ol>
      <Button onClick={add}>Add scenario</Button>
    </>
  );
}
