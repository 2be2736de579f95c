import { type ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { isMap, isScalar, isSeq } from "yaml";
import { Button } from "../app/controls.tsx";
import { holderOf } from "./complete.ts";
import { COMMON_SETTINGS, goesWith, shortFor, UNIT_HINTS, unitOf, valuesOf } from "./knowledge.ts";
import type { PlanModel } from "./model.ts";
import { referredAt } from "./names.ts";
import { items } from "./outline.ts";
import { pairOf, takesLines } from "./pasted.ts";
import { lineOf } from "./places.ts";
import { RawField } from "./raw.tsx";
import { Typed } from "./scalar.ts";
import { defaultIn, type Key, type Path, type SchemaTree, type Shape, withoutDefault } from "./schema.ts";
import { keysIn, nodeAt, rangeOf, typed } from "./tree.ts";
import { Words } from "./words.tsx";

/** The properties that every field has. */
export interface Of {
  model: PlanModel;
  schema: SchemaTree;
  path: Path;
}

/** Keys whose texts have several lines. */
const LONG = new Set(["body", "script", "description"]);
/** A map with so few keys shows all of them. */
const FEW = 8;

/** The field for a value, by the shapes that the schema has for it. */
export function ValueField(props: Of & { description?: string; label?: string }) {
  const { model, schema, path } = props;
  const shapes = schema.at(path);
  const key = path[path.length - 1];
  const label = props.label ?? (typeof key === "number" ? `item ${key + 1}` : String(key ?? "plan"));
  const description = props.description ?? schema.describe(path);
  const common = { model, schema, path, shapes, label, description };
  switch (widgetFor(shapes)) {
    case "boolean":
      return <BooleanField {...common} />;
    case "text":
      return <ScalarField {...common} />;
    case "texts":
      return <TextsField {...common} />;
    case "pairs":
      return <PairsField {...common} />;
    case "named":
      return <NamedField {...common} />;
    case "map":
      return (
        <Group {...common}>
          <MapFields model={model} schema={schema} path={path} />
        </Group>
      );
    case "text or map":
      return <UnionField {...common} />;
    case "items":
      // One item may stand in the place of a list.
      return isMap(nodeAt(model.tree.value, path)) ? (
        <Group {...common}>
          <MapFields model={model} schema={schema} path={path} />
        </Group>
      ) : (
        <ItemsField {...common} />
      );
    default:
      return <RawField {...common} />;
  }
}

export interface FieldOf extends Of {
  shapes: Shape[];
  label: string;
  description: string;
}

type Widget = "boolean" | "text" | "texts" | "pairs" | "named" | "map" | "text or map" | "items" | "raw";

/** The kind of field for a value. */
export function widgetFor(shapes: Shape[]): Widget {
  const kinds = new Set(shapes.map(({ kind }) => kind));
  const map = shapes.find(({ kind }) => kind === "map");
  const lists = shapes.filter(({ kind }) => kind === "list");
  if (kinds.has("any") || kinds.size === 0) return "raw";
  if (lists.length > 0) {
    if (map !== undefined) return "items";
    const inner = lists.map(({ schema }) => JSON.stringify(schema.items ?? {}));
    return inner.every((items) => /^\{"type":\[/.test(items)) ? "texts" : "raw";
  }
  if (map !== undefined) {
    if (map.schema.properties === undefined) {
      const other = map.schema.additionalProperties;
      const isText =
        typeof other === "object" && other.type !== undefined && !String(other.type).includes("object");
      return isText ? "pairs" : "named";
    }
    return kinds.size > 1 ? "text or map" : "map";
  }
  return kinds.has("boolean") && !kinds.has("scalar") ? "boolean" : "text";
}

/** The frame of a field: its label, its description, findings, and a link to its place in the text. */
export function Row(
  props: FieldOf & {
    children: (control: {
      id: string;
      "aria-describedby": string | undefined;
      "aria-invalid": boolean;
    }) => ComponentChildren;
    hint?: string;
    class?: string;
  },
) {
  const { model, path, label, description, children, hint } = props;
  const id = useId();
  const findings = model.findingsAt(path, true);
  const ids = [findings.length > 0 && `${id}-error`, (description !== "" || hint) && `${id}-hint`].filter(
    Boolean,
  );
  return (
    <div class={`field plan-field ${props.class ?? ""}`}>
      <div class="plan-label">
        <label for={id}>{label}</label>
        <PlaceLink model={model} path={path} label={label} />
      </div>
      {children({
        id,
        "aria-describedby": ids.length === 0 ? undefined : ids.join(" "),
        "aria-invalid": findings.some(({ severity }) => severity === "error"),
      })}
      {findings.length > 0 && (
        <p id={`${id}-error`} class="field-error preserved">
          {findings.map(({ message, hint }) => (hint === null ? message : `${message} – ${hint}`)).join("\n")}
        </p>
      )}
      {(description !== "" || hint) && (
        <p id={`${id}-hint`} class="hint">
          <Words text={withoutDefault(description)} />
          {hint && <span class="plan-unit"> {hint}</span>}
        </p>
      )}
    </div>
  );
}

/** A button that shows the place of a value in the text. */
export function PlaceLink({ model, path, label }: { model: PlanModel; path: Path; label: string }) {
  const range = rangeOf(model.tree.value, path);
  if (range === null || path.length === 0) return null;
  const line = lineOf(model.text.value, range.from);
  return (
    <button
      type="button"
      class="plan-place"
      aria-label={`Line ${line}: show ${label} in the text`}
      onClick={() => model.reveal(path)}
    >
      line {line}
    </button>
  );
}

/** Several fields with a common title. */
export function Group(props: FieldOf & { children: ComponentChildren; actions?: ComponentChildren }) {
  const { model, path, label, description, children, actions } = props;
  return (
    <fieldset class="plan-group">
      <legend>
        {label} <PlaceLink model={model} path={path} label={label} />
      </legend>
      {description !== "" && (
        <p class="hint">
          <Words text={withoutDefault(description)} />
        </p>
      )}
      {children}
      {actions !== undefined && <div class="plan-actions">{actions}</div>}
    </fieldset>
  );
}

/** The value of a control that is taken over when it is left, or by Enter. */
function useDraft(value: string, take: (value: string) => void) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  return {
    value: draft,
    onInput: (event: { currentTarget: { value: string } }) => setDraft(event.currentTarget.value),
    onChange: (event: { currentTarget: { value: string } }) => {
      if (event.currentTarget.value !== value) take(event.currentTarget.value);
    },
  };
}

/** Puts a typed text in a place, or takes it away if nothing was typed. */
function put({ model, schema, path }: Of, text: string): void {
  const order = orderOf(schema, path.slice(0, -1));
  if (text !== "") model.edit({ kind: "set", path, value: new Typed(text), order });
  else if (nodeAt(model.tree.peek(), path) !== null) model.edit({ kind: "remove", path });
}

/** The order that keys of a map have in the schema. */
export function orderOf(schema: SchemaTree, path: Path): string[] {
  return schema.keysAt(path).map(({ name }) => name);
}

/** A text, a number, or one of a few words. */
export function ScalarField(props: FieldOf) {
  const { model, schema, path, shapes, description } = props;
  const [def, key] = holderOf(path, schema);
  const node = nodeAt(model.tree.value, path);
  const value = typed(node) ?? "";
  const values = valuesOf(def, key, shapes);
  const unit = unitOf(def, key);
  const preset = defaultIn(description);
  const known = referredAt(path, model.names.value);
  const list = useId();
  const draft = useDraft(value, (text) => put(props, text));
  if (node !== null && !isScalar(node)) return <RawField {...props} />;
  if (values.length > 0) {
    const all = value === "" || values.includes(value) ? values : [...values, value];
    return (
      <Row {...props}>
        {(control) => (
          <select {...control} value={value} onChange={(event) => put(props, event.currentTarget.value)}>
            <option value="">{preset === null ? "not set" : `not set (${preset})`}</option>
            {all.map((value) => (
              <option value={value}>{value}</option>
            ))}
          </select>
        )}
      </Row>
    );
  }
  const isLong = LONG.has(String(key)) || value.includes("\n");
  const hint = unit === null ? "" : `Such as ${UNIT_HINTS[unit]}.`;
  return (
    <Row {...props} hint={hint}>
      {(control) =>
        isLong ? (
          <textarea
            {...control}
            {...draft}
            rows={Math.min(14, value.split("\n").length + 1)}
            spellcheck={false}
          />
        ) : (
          <>
            <input
              {...control}
              {...draft}
              type="text"
              autocomplete="off"
              spellcheck={false}
              placeholder={preset ?? ""}
              list={known.length === 0 ? undefined : list}
            />
            {known.length > 0 && (
              <datalist id={list}>
                {known.map((name) => (
                  <option value={name} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Row>
  );
}

function BooleanField(props: FieldOf) {
  const { model, path, description } = props;
  const value = typed(nodeAt(model.tree.value, path)) ?? "";
  const preset = defaultIn(description);
  return (
    <Row {...props}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => put(props, event.currentTarget.value)}>
          <option value="">{preset === null ? "not set" : `not set (${preset})`}</option>
          <option value="true">true</option>
          <option value="false">false</option>
          {!["", "true", "false"].includes(value) && <option value={value}>{value}</option>}
        </select>
      )}
    </Row>
  );
}

/** One text or several. */
function TextsField(props: FieldOf) {
  const { model, schema, path, label } = props;
  const node = nodeAt(model.tree.value, path);
  if (isSeq(node) && node.items.some((item) => !isScalar(item))) return <RawField {...props} />;
  if (isMap(node)) return <RawField {...props} />;
  const values = isSeq(node)
    ? node.items.map((item) => typed(item) ?? "")
    : node === null
      ? []
      : [typed(node) ?? ""];
  const isList = isSeq(node);
  const take = (index: number, text: string) => {
    const own = isList ? [...path, index] : path;
    if (text === "") model.edit({ kind: "remove", path: own });
    else model.edit({ kind: "set", path: own, value: new Typed(text) });
  };
  const addAt = (text: string, index: number) => {
    if (index === 0 && node === null) put({ model, schema, path }, text);
    else model.edit({ kind: "insert", path, index, value: new Typed(text) });
  };
  const add = (text: string) => {
    if (text !== "") addAt(text, values.length);
  };
  const paste = (lines: string[]) => lines.forEach((line, at) => addAt(line, values.length + at));
  return (
    <Group {...props}>
      {values.map((value, index) => (
        <TextRow
          key={index}
          label={`${label} ${index + 1}`}
          value={value}
          take={(text) => take(index, text)}
          drop={() => take(index, "")}
        />
      ))}
      <TextRow key={`new ${values.length}`} label={`another ${label}`} value="" take={add} paste={paste} />
    </Group>
  );
}

function TextRow(props: {
  label: string;
  value: string;
  take: (text: string) => void;
  drop?: () => void;
  paste?: (lines: string[]) => void;
}) {
  const { label, value, take, drop, paste } = props;
  const draft = useDraft(value, take);
  return (
    <div class="plan-row">
      <input
        type="text"
        aria-label={label}
        placeholder={drop === undefined ? "add" : ""}
        {...draft}
        {...(paste !== undefined && { onPaste: takesLines(paste) })}
        spellcheck={false}
      />
      {drop !== undefined && (
        <Button label={`Remove ${label}`} onClick={drop}>
          ✕
        </Button>
      )}
    </div>
  );
}

/** Names with a text each: headers, variables. */
function PairsField(props: FieldOf) {
  const { model, path, label } = props;
  const node = nodeAt(model.tree.value, path);
  const keys = keysIn(model.tree.value, path);
  const list = useId();
  if (node !== null && !isMap(node) && !(isScalar(node) && node.value === null))
    return <RawField {...props} />;
  return (
    <Group {...props}>
      {keys.map((key, index) => (
        <PairRow
          key={index}
          name={key}
          label={label}
          value={typed(nodeAt(model.tree.value, [...path, key])) ?? ""}
          rename={(name) => model.edit({ kind: "rename", path: [...path, key], key: name })}
          take={(text) => model.edit({ kind: "set", path: [...path, key], value: new Typed(text) })}
          drop={() => model.edit({ kind: "remove", path: [...path, key] })}
        />
      ))}
      <NewName
        key={keys.length}
        label={`name of another of ${label}`}
        taken={keys}
        list={list}
        add={(name) => model.edit({ kind: "set", path: [...path, name], value: new Typed("") })}
        paste={(lines) =>
          lines.forEach((line) => {
            const { name, value } = pairOf(line) ?? { name: line, value: "" };
            model.edit({ kind: "set", path: [...path, name], value: new Typed(value) });
          })
        }
      />
    </Group>
  );
}

function PairRow(props: {
  name: string;
  label: string;
  value: string;
  rename: (name: string) => void;
  take: (text: string) => void;
  drop: () => void;
}) {
  const { name, label, value, rename, take, drop } = props;
  const own = useDraft(name, (name) => name !== "" && rename(name));
  const draft = useDraft(value, take);
  return (
    <div class="plan-row pair">
      <input type="text" aria-label={`${label}: name`} {...own} spellcheck={false} />
      <input type="text" aria-label={`${label}: ${name}`} {...draft} spellcheck={false} />
      <Button label={`Remove ${name}`} onClick={drop}>
        ✕
      </Button>
    </div>
  );
}

function NewName(props: {
  label: string;
  taken: string[];
  list: string;
  add: (name: string) => void;
  action?: string;
  paste?: (lines: string[]) => void;
}) {
  const { label, taken, add, paste } = props;
  const [name, setName] = useState("");
  const isTaken = taken.includes(name);
  const take = () => {
    if (name !== "" && !isTaken) add(name);
  };
  return (
    <div class="plan-row">
      <input
        type="text"
        aria-label={label}
        aria-invalid={isTaken}
        placeholder="name"
        value={name}
        spellcheck={false}
        onInput={(event) => setName(event.currentTarget.value)}
        {...(paste !== undefined && { onPaste: takesLines(paste) })}
        onKeyDown={(event) => event.key === "Enter" && take()}
      />
      <Button onClick={take} disabled={name === "" || isTaken}>
        {props.action ?? "Add"}
      </Button>
    </div>
  );
}

/** Names with a form each: targets, data, extractions. */
function NamedField(props: FieldOf) {
  const { model, schema, path, label } = props;
  const node = nodeAt(model.tree.value, path);
  const keys = keysIn(model.tree.value, path);
  const list = useId();
  if (node !== null && !isMap(node) && !(isScalar(node) && node.value === null))
    return <RawField {...props} />;
  return (
    <Group {...props}>
      {keys.map((key, index) => (
        <NamedEntry key={index} {...props} path={[...path, key]} name={key} />
      ))}
      <NewName
        key={keys.length}
        label={`name of another of ${label}`}
        taken={keys}
        list={list}
        add={(name) =>
          model.edit({ kind: "set", path: [...path, name], value: startOf(schema, [...path, name]) })
        }
      />
    </Group>
  );
}

/** One of several that have names: its name and its form. */
export function NamedEntry(props: Of & { name: string }) {
  const { model, schema, path, name } = props;
  const rename = useDraft(name, (key) => key !== "" && model.edit({ kind: "rename", path, key }));
  return (
    <fieldset class="plan-group">
      <legend>
        {name} <PlaceLink model={model} path={path} label={name} />
      </legend>
      <div class="plan-row">
        <input type="text" aria-label={`Name of ${name}`} {...rename} spellcheck={false} />
        <Button label={`Remove ${name}`} onClick={() => model.edit({ kind: "remove", path })}>
          ✕
        </Button>
      </div>
      <Inner model={model} schema={schema} path={path} name={name} />
    </fieldset>
  );
}

/** The form of a value without a frame of its own, where there is one around it. */
function Inner({ model, schema, path, name }: Of & { name: string }) {
  if (widgetFor(schema.at(path)) === "map") return <MapFields model={model} schema={schema} path={path} />;
  return <ValueField model={model} schema={schema} path={path} label={`${name}: value`} description="" />;
}

/** The value that a new place begins with. */
function startOf(schema: SchemaTree, path: Path): unknown {
  const shapes = schema.at(path);
  const def = shapes.find(({ def }) => def !== null)?.def;
  if (def === "TargetSpec") return new Typed("http://127.0.0.1:8080");
  if (def === "DataSpec") return { csv: new Typed("data.csv") };
  if (def === "ExtractSpec") return { json: new Typed("/id") };
  if (def === "TokenSettings") return { key: new Typed("env:KEY") };
  if (shapes.some(({ kind }) => kind === "scalar")) return new Typed("value");
  return shapes.some(({ kind }) => kind === "map") ? {} : new Typed("value");
}

/** A short text, or a map that says more. */
function UnionField(props: FieldOf) {
  const { model, schema, path, shapes, label } = props;
  const node = nodeAt(model.tree.value, path);
  const def = shapes.find(({ def }) => def !== null)?.def ?? null;
  const short = shortFor(def, path);
  if (isMap(node)) {
    return (
      <Group {...props}>
        <MapFields model={model} schema={schema} path={path} />
      </Group>
    );
  }
  if (node !== null && !isScalar(node)) return <RawField {...props} />;
  const scalars = shapes.filter(({ kind }) => kind === "scalar");
  const text = typed(node) ?? "";
  const more = () => {
    if (short !== null) model.edit({ kind: "set", path, value: { [short]: new Typed(text) } });
  };
  return (
    <>
      <ScalarField {...props} shapes={scalars} />
      {text !== "" && short !== null && (
        <div class="plan-actions">
          <Button onClick={more} label={`More about ${label}`}>
            More
          </Button>
        </div>
      )}
    </>
  );
}

/** The fields of a map with known keys: those that are there, the usual ones, and a way to add others. */
export function MapFields(props: Of & { only?: readonly string[]; without?: readonly string[] }) {
  const { model, schema, path, only, without = [] } = props;
  const there = new Set(keysIn(model.tree.value, path));
  const [opened, setOpened] = useState<string[]>([]);
  const all = schema
    .keysAt(path)
    .filter(({ name }) => (only?.includes(name) ?? true) && !without.includes(name));
  const isSettings = all[0]?.def === "Settings";
  const isFew = all.length <= FEW;
  const isShown = ({ name, def }: Key) => {
    if (there.has(name) || opened.includes(name)) return true;
    return (isFew || (isSettings && COMMON_SETTINGS.includes(name))) && goesWith(def, name, there);
  };
  const rank = ({ name }: Key) => (isSettings ? COMMON_SETTINGS.indexOf(name) + 1 || 999 : 0);
  const shown = all.filter(isShown).sort((one, other) => rank(one) - rank(other));
  const others = all.filter((key) => !isShown(key) && goesWith(key.def, key.name, there));
  const unknown = [...there].filter((name) => !schema.keysAt(path).some((key) => key.name === name));
  return (
    <>
      {shown.map((key) => (
        <ValueField
          key={key.name}
          model={model}
          schema={schema}
          path={[...path, key.name]}
          label={key.name}
          description={key.description}
        />
      ))}
      {only === undefined &&
        unknown.map((name) => (
          <p class="field-error" key={name}>
            {name} is not a key here. <PlaceLink model={model} path={[...path, name]} label={name} />
          </p>
        ))}
      {others.length > 0 && <AddKey keys={others} add={(name) => setOpened([...opened, name])} />}
    </>
  );
}

/** Chooses a field to show that the plan does not have. */
function AddKey({ keys, add }: { keys: Key[]; add: (name: string) => void }) {
  const [chosen, setChosen] = useState(keys[0]?.name ?? "");
  const name = keys.some(({ name }) => name === chosen) ? chosen : (keys[0]?.name ?? "");
  const about = keys.find((key) => key.name === name)?.description ?? "";
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const show = () => {
    const holder = box.current?.parentElement;
    add(name);
    // The new field is the next thing to fill in.
    requestAnimationFrame(() => {
      const labels = [...(holder?.querySelectorAll("label") ?? [])];
      const label = labels.findLast((label) => label.textContent === name);
      if (label?.htmlFor) document.getElementById(label.htmlFor)?.focus();
    });
  };
  return (
    <div class="field plan-field" ref={box}>
      <div class="plan-label">
        <label for={id}>More fields</label>
      </div>
      <div class="plan-row">
        <select
          id={id}
          value={name}
          aria-describedby={`${id}-hint`}
          onChange={(event) => setChosen(event.currentTarget.value)}
        >
          {keys.map(({ name }) => (
            <option value={name}>{name}</option>
          ))}
        </select>
        <Button onClick={show} label={`Show field ${name}`}>
          Show
        </Button>
      </div>
      <p class="hint" id={`${id}-hint`}>
        <Words text={withoutDefault(about)} />
      </p>
    </div>
  );
}

/** A list of maps: each with its form within it. */
function ItemsField(props: FieldOf) {
  const { model, schema, path, label } = props;
  const paths = items(model.tree.value, path);
  const one = singular(label);
  return (
    <Group {...props}>
      {paths.map((own, index) => (
        <ItemFrame
          key={index}
          {...{ model, schema, path }}
          own={own}
          index={index}
          count={paths.length}
          name={`${one} ${index + 1}`}
        >
          <Inner model={model} schema={schema} path={own} name={`${one} ${index + 1}`} />
        </ItemFrame>
      ))}
      <div class="plan-actions">
        <Button
          onClick={() => model.edit({ kind: "insert", path, index: paths.length, value: newItem(path) })}
        >
          Add {one}
        </Button>
      </div>
    </Group>
  );
}

/** An item with its actions. */
export function ItemFrame(
  props: Of & {
    own: Path;
    index: number;
    count: number;
    name: string;
    children: ComponentChildren;
  },
) {
  const { model, own, name, children } = props;
  return (
    <fieldset class="plan-group">
      <legend>
        {name} <PlaceLink model={model} path={own} label={name} />
      </legend>
      {children}
      <div class="plan-actions">
        <ItemButtons {...props} />
      </div>
    </fieldset>
  );
}

/** Buttons that move an item of a list, and take it away. */
export function ItemButtons(props: Of & { own: Path; index: number; count: number; name: string }) {
  const { model, path, own, index, count, name } = props;
  const move = (to: number) => model.edit({ kind: "move", path, from: index, to });
  return (
    <>
      <Button label={`Move ${name} up`} disabled={index === 0} onClick={() => move(index - 1)}>
        ↑
      </Button>
      <Button label={`Move ${name} down`} disabled={index >= count - 1} onClick={() => move(index + 1)}>
        ↓
      </Button>
      <Button label={`Remove ${name}`} onClick={() => model.edit({ kind: "remove", path: own })}>
        ✕
      </Button>
    </>
  );
}

function singular(label: string): string {
  return label.replace(/s$/, "");
}

/** The value that a new item of a list begins with. */
function newItem(path: Path): unknown {
  switch (path[path.length - 1]) {
    case "phases":
      return { name: new Typed("another"), rate: new Typed("100"), duration: new Typed("30s") };
    case "thresholds":
      return new Typed("p99<250ms");
    case "scenarios":
      return { name: new Typed("another"), steps: [{ get: new Typed("/") }] };
    case "body":
      return new Typed("text");
    default:
      return { get: new Typed("/") };
  }
}
