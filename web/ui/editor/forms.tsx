import { useEffect } from "preact/hooks";
import { isMap } from "yaml";
import { MapFields, NamedEntry, type Of, PlaceLink, ValueField } from "./fields.tsx";
import type { PlanModel } from "./model.ts";
import { environmentIn } from "./names.ts";
import { type Entry, entryAt } from "./outline.ts";
import { lineOf } from "./places.ts";
import { samePath, type Path, pathText, type SchemaTree } from "./schema.ts";
import { ScenarioForm, ScenarioList, StepForm } from "./steps.tsx";
import { nodeAt } from "./tree.ts";
import { Words } from "./words.tsx";

/** The outline of a plan, and the form of the part of it that is chosen. */
export function OutlineAndForms({ model, schema }: { model: PlanModel; schema: SchemaTree }) {
  const outline = model.outline.value;
  const here = entryAt(outline, model.cursorPath.value);
  const cursor = model.cursor.value;
  useEffect(() => {
    // The forms follow the cursor while the text has the focus.
    if (model.view?.hasFocus === true && here !== null) model.chosen.value = here.path;
  }, [model, cursor, here?.path.join()]);
  const chosen = model.chosen.value;
  return (
    <div class="plan-forms">
      <nav class="plan-outline" aria-label="Outline">
        <Entries entries={outline} model={model} chosen={chosen} here={here?.path ?? null} />
      </nav>
      <div class="plan-form" role="region" aria-label="Form">
        {model.isYaml.value ? (
          <Part model={model} schema={schema} path={chosen} key={pathText(chosen)} />
        ) : (
          <p class="notice">The text is not valid YAML. Fix it, and the forms come back.</p>
        )}
      </div>
    </div>
  );
}

interface EntriesOf {
  entries: readonly Entry[];
  model: PlanModel;
  chosen: Path;
  here: Path | null;
}

function Entries({ entries, model, chosen, here }: EntriesOf) {
  return (
    <ul>
      {entries.map(({ path, label, detail, children, exists }) => {
        const findings = path.length === 0 ? [] : model.findingsAt(path, children.length === 0);
        const isHere = here !== null && samePath(here, path);
        return (
          <li key={pathText(path)}>
            <button
              type="button"
              class={`${isHere ? "here" : ""} ${exists ? "" : "absent"}`}
              aria-current={samePath(chosen, path) ? "true" : undefined}
              onClick={() => model.choose(path)}
            >
              {label}
              {detail !== "" && <small> {detail}</small>}
              {findings.length > 0 && (
                <span class="plan-wrong">
                  {" "}
                  ✗<span class="unseen"> has a problem</span>
                </span>
              )}
            </button>
            {children.length > 0 && <Entries entries={children} model={model} chosen={chosen} here={here} />}
          </li>
        );
      })}
    </ul>
  );
}

/** The form of a part of a plan. */
function Part({ model, schema, path }: Of) {
  const of = { model, schema, path };
  const [part, ...rest] = path;
  const last = path[path.length - 1];
  if (part === undefined) {
    return (
      <>
        <h3>Name and description</h3>
        <MapFields {...of} only={["name", "description"]} />
        <Secrets model={model} />
      </>
    );
  }
  if (part === "scenarios") {
    if (rest.length === 0 && !isOne(model, path)) {
      return (
        <>
          <h3>Scenarios</h3>
          <ScenarioList {...of} />
        </>
      );
    }
    if (isSteps(path)) return <StepForm {...of} />;
    if (rest.length === 0 || (rest.length === 1 && typeof last === "number")) return <ScenarioForm {...of} />;
  }
  if (rest.length === 1 && typeof last === "string") return <NamedEntry {...of} name={last} />;
  if (part === "run" && rest.length === 0) {
    return (
      <>
        <h3>
          Load and settings <PlaceLink model={model} path={path} label="run" />
        </h3>
        <p class="hint">
          <Words text={schema.describe(path)} />
        </p>
        <MapFields {...of} />
      </>
    );
  }
  return <ValueField {...of} />;
}

/** True if one scenario stands in the place of a list. */
function isOne(model: PlanModel, path: Path): boolean {
  return isMap(nodeAt(model.tree.value, path));
}

/** True if a path is that of a step. */
function isSteps(path: Path): boolean {
  const inner = path.findLast((key) => typeof key === "string");
  return (
    typeof path[path.length - 1] === "number" && ["steps", "then", "else", "parallel"].includes(String(inner))
  );
}

/** Variables that a plan wants from its environment. Secrets are never in it: only their names are. */
function Secrets({ model }: { model: PlanModel }) {
  const text = model.text.value;
  const { secrets } = model.names.value;
  const environment = environmentIn(text);
  const place = (word: string) => {
    const from = text.indexOf(word);
    if (from !== -1) model.select(from, from + word.length);
  };
  return (
    <fieldset class="plan-group">
      <legend>Secrets and environment</legend>
      <p class="hint">
        A secret stands in a plan by its name alone, as in <code>{"Bearer ${secret(TOKEN)}"}</code>. Its value
        is the variable of that name in the environment of <code>plimsoll ui</code>, or the first line of the
        file that NAME_FILE names; it is neither shown nor stored.
      </p>
      {secrets.length + environment.length === 0 && <p class="hint">This plan wants neither.</p>}
      <ul class="plan-items">
        {secrets.map((name) => (
          <li key={name}>
            <span>
              <code>{name}</code> <small>secret</small>
            </span>
            <button type="button" class="plan-place" onClick={() => place(`secret(${name}`)}>
              line {lineOf(text, text.indexOf(`secret(${name}`))}
            </button>
          </li>
        ))}
        {environment.map(({ name, fallback }) => (
          <li key={name}>
            <span>
              <code>{name}</code> <small>{fallback === null ? "needed" : `else ${fallback}`}</small>
            </span>
            <button type="button" class="plan-place" onClick={() => place(`env(${name}`)}>
              line {lineOf(text, text.indexOf(`env(${name}`))}
            </button>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
