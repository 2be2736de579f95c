import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import * as api from "../app/api.ts";
import { Badge, Button, Dialog, ErrorBox, Loading, Tabs } from "../app/controls.tsx";
import { useShortcuts } from "../app/keys.tsx";
import { notify, notifyError } from "../app/notify.tsx";
import { go, link, type Route } from "../app/router.ts";
import { draftOf, dropDraft, EMPTY_PLAN, forgetRun, isPlanName, keepDraft, missingFile } from "./drafts.ts";
import { AddFiles } from "./files.tsx";
import { OutlineAndForms } from "./forms.tsx";
import { PlanModel } from "./model.ts";
import { lineOf, type Finding } from "./places.ts";
import { RunTab } from "./runtab.tsx";
import { ExplainTab, ScheduleTab } from "./schedule.tsx";
import type { SchemaTree } from "./schema.ts";
import { schemaOf } from "./schemas.ts";
import { PlanText } from "./text.tsx";
import { TryTab } from "./try.tsx";

/** A plan in the editor. */
export function PlanPage({ route }: { route: Route }) {
  const path = route.of;
  const model = useMemo(() => new PlanModel(path, isPlanName(path)), [path]);
  const schema = useSignal<SchemaTree | null>(null);
  const state = useSignal<"loading" | "open" | api.ApiError>("loading");
  const conflict = useSignal<string | null | undefined>(undefined);
  const saving = useSignal(false);

  const open = async () => {
    state.value = "loading";
    try {
      if (await load(model)) notify(`The text of ${path} that was not saved is here again.`);
      if (model.isPlan) schema.value = await schemaOf(model.kind.peek());
      state.value = "open";
    } catch (error) {
      state.value = api.errorOf(error);
    }
  };
  useEffect(() => {
    void open();
    return () => model.end();
  }, [model]);

  // The text may become one of the other kind.
  const kind = model.kind.value;
  useEffect(() => {
    if (state.peek() !== "open" || !model.isPlan) return;
    schemaOf(kind).then((found) => (schema.value = found), notifyError);
    model.changed(model.text.peek());
  }, [model, kind]);

  // Neither a session or a page that ends nor another place takes a text with it: it is kept at once.
  useEffect(
    () =>
      effect(() => {
        const { value: text } = model.text;
        if (state.value !== "open") return;
        if (text === model.saved.value) dropDraft(path);
        else keepDraft(path, model.draft());
      }),
    [model],
  );

  // Another page or an editor may have written the file meanwhile.
  useEffect(() => {
    const look = async () => {
      if (document.visibilityState === "hidden" || state.peek() !== "open" || saving.peek()) return;
      try {
        if (await model.follow()) notify(`${path} was changed elsewhere: this is its text now.`);
      } catch {
        // Without an answer the text here stays, and saving says what is wrong.
      }
    };
    addEventListener("focus", look);
    document.addEventListener("visibilitychange", look);
    return () => {
      removeEventListener("focus", look);
      document.removeEventListener("visibilitychange", look);
    };
  }, [model]);

  const save = async (etag?: string | null) => {
    if (saving.peek()) return;
    saving.value = true;
    try {
      await model.save(...(etag === undefined ? [] : [etag]));
      dropDraft(path);
      conflict.value = undefined;
      notify(`${path} is saved.`);
    } catch (thrown) {
      const error = api.errorOf(thrown);
      if (error.status !== 409) notifyError(error);
      else conflict.value = typeof error.body["etag"] === "string" ? error.body["etag"] : null;
    } finally {
      saving.value = false;
    }
  };
  useShortcuts([{ keys: "s", about: "Save (Ctrl-S in the text, too)", act: () => void save() }]);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "s" || event.defaultPrevented) return;
      event.preventDefault();
      void save();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [model]);

  if (state.value === "loading") return <Loading what={`Opening ${path}`} />;
  if (state.value !== "open") {
    const error = state.value;
    const create = () => {
      forgetRun(path);
      keepDraft(path, { text: EMPTY_PLAN, etag: null });
      void open();
    };
    return (
      <>
        <h1>{path}</h1>
        <ErrorBox error={error} again={() => void open()} />
        {error.status === 404 && isPlanName(path) && (
          <Button onClick={create}>Begin a new plan of this name</Button>
        )}
      </>
    );
  }
  const reload = async () => {
    conflict.value = undefined;
    dropDraft(path);
    try {
      await load(model);
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <div class="plan-page">
      <PlanBar model={model} save={() => void save()} saving={saving.value} />
      <div class="plan-halves">
        <section class="plan-left" aria-label="Text">
          <h2 class="unseen">Text</h2>
          <PlanText model={model} schema={schema.value} onSave={() => void save()} />
          {model.isPlan && <Findings model={model} />}
        </section>
        {model.isPlan && schema.value !== null && (
          <section class="plan-right" aria-label="Tools">
            <h2 class="unseen">Tools</h2>
            <Tools
              model={model}
              schema={schema.value}
              tool={route.query.get("tool") ?? "forms"}
            />
          </section>
        )}
      </div>
      <Dialog
        title="The file has changed"
        open={conflict.value !== undefined}
        onClose={() => (conflict.value = undefined)}
        actions={
          <>
            <Button onClick={() => (conflict.value = undefined)}>Keep editing</Button>
            <Button onClick={() => void reload()}>Reload the file</Button>
            <Button kind="danger" onClick={() => void save(conflict.peek() ?? null)}>
              Overwrite
            </Button>
          </>
        }
      >
        <p>
          {path} was changed by something else since it was opened here. Reloading drops your text,
          overwriting drops that of the file.
        </p>
      </Dialog>
    </div>
  );
}

/** Reads the file, or the draft that was left of it. True if there was one of a file. */
async function load(model: PlanModel): Promise<boolean> {
  const draft = draftOf(model.path);
  if (draft !== null && draft.etag === null) {
    model.load(draft.begun ?? draft.text, null);
    if (draft.text !== (draft.begun ?? draft.text)) model.changed(draft.text);
    return false;
  }
  const found = await api.file(model.path).catch((error: unknown) => {
    // The file was removed, and its text that was not saved is all that there is of it.
    if (draft !== null && api.errorOf(error).status === 404) return null;
    throw error;
  });
  if (found === null) {
    model.load("", null);
    model.changed(draft?.text ?? "");
    return true;
  }
  const { text, etag } = found;
  model.load(text, etag);
  if (draft === null || draft.text === model.text.peek()) return false;
  model.changed(draft.text);
  model.etag.value = draft.etag;
  model.isBehind.value = draft.etag !== etag;
  return true;
}

function PlanBar({ model, save, saving }: { model: PlanModel; save: () => void; saving: boolean }) {
  const errors = model.findings.value.filter(({ severity }) => severity === "error").length;
  const isChanged = model.isChanged.value;
  return (
    <header class="plan-bar">
      <h1>
        <a href={link("plans")}>Plans</a> / <span class="path">{model.path}</span>
      </h1>
      <p class="plan-state" role="status">
        {model.saved.value === null ? (
          <Badge kind="doubtful">new, not saved</Badge>
        ) : isChanged ? (
          <Badge kind="doubtful">not saved</Badge>
        ) : (
          <Badge kind="plain">saved</Badge>
        )}{" "}
        {model.isBehind.value && (
          <>
            <Badge kind="doubtful" title="Saving asks which text is to stay">
              the file was changed elsewhere
            </Badge>{" "}
          </>
        )}
        {model.isPlan &&
          (model.unchecked.value !== null ? (
            <Badge kind="doubtful">not checked</Badge>
          ) : model.checking.value ? (
            <span class="hint">checking</span>
          ) : errors === 0 ? (
            <Badge kind="good">no errors</Badge>
          ) : (
            <Badge kind="bad">{errors === 1 ? "1 error" : `${errors} errors`}</Badge>
          ))}
      </p>
      <div class="plan-buttons">
        <Button onClick={() => model.undo()} label="Undo">
          ↶
        </Button>
        <Button onClick={() => model.redo()} label="Redo">
          ↷
        </Button>
        <Button kind="primary" onClick={save} busy={saving} disabled={!isChanged}>
          Save
        </Button>
      </div>
    </header>
  );
}

/** Findings in the text; each leads to its place. */
function Findings({ model }: { model: PlanModel }) {
  const findings = model.findings.value;
  const text = model.text.value;
  const unchecked = model.unchecked.value;
  if (unchecked !== null) return <ErrorBox error={unchecked} />;
  if (findings.length === 0) return null;
  const place = ({ from, to }: Finding) => {
    if (from !== null) model.select(from, to ?? from);
  };
  return (
    <div class="plan-findings" role="region" aria-label="Findings">
      <ul>
        {findings.map((finding) => {
          const { from, to, severity, message, hint, mend } = finding;
          return (
            <li>
              <Badge kind={severity === "error" ? "bad" : "doubtful"}>{severity}</Badge>{" "}
              {from === null ? (
                <span class="preserved">{message}</span>
              ) : (
                <button type="button" class="plan-open" onClick={() => place(finding)}>
                  <small>line {lineOf(text, from)}</small> <span class="preserved">{message}</span>
                </button>
              )}
              {hint !== null && hint !== "" && <p class="hint preserved">{hint}</p>}
              {mend !== null && from !== null && to !== null && (
                <Button onClick={() => model.replace(from, to, mend)}>Change to {mend}</Button>
              )}
              <Missing model={model} path={missingFile(model.path, message)} />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Ways to a file that a plan reads and that is not there. */
function Missing({ model, path }: { model: PlanModel; path: string | null }) {
  if (path === null) return null;
  const write = () => {
    if (draftOf(path) === null) keepDraft(path, { text: "", etag: null });
    // What is here is kept for the way back.
    if (model.isChanged.peek()) keepDraft(model.path, model.draft());
    go(link("plan", path));
  };
  return (
    <p class="plan-actions">
      <AddFiles label={`Choose a file for ${path}`} as={path} added={() => model.changed(model.text.peek())} />
      <Button onClick={write}>Write {path}</Button>
    </p>
  );
}

function Tools(props: { model: PlanModel; schema: SchemaTree; tool: string }) {
  const { model, schema } = props;
  const chosen = useSignal(props.tool);
  useEffect(() => {
    const wants = chosen.value === "schedule" || chosen.value === "explain";
    model.explain(wants);
  }, [model, chosen.value]);
  const forms = {
    id: "forms",
    label: "Outline and forms",
    panel: () => <OutlineAndForms model={model} schema={schema} />,
  };
  const run = { id: "run", label: "Run", panel: () => <RunTab model={model} /> };
  // A cluster has no load before its nodes run.
  if (model.kind.value === "cluster") return <Tabs label="Tools" tabs={[forms, run]} />;
  return (
    <Tabs
      label="Tools"
      chosen={chosen.value}
      onChoose={(id) => (chosen.value = id)}
      tabs={[
        forms,
        { id: "schedule", label: "Schedule", panel: () => <ScheduleTab model={model} /> },
        { id: "explain", label: "Explain", panel: () => <ExplainTab model={model} /> },
        { id: "try", label: "Try once", panel: () => <TryTab model={model} schema={schema} /> },
        run,
      ]}
    />
  );
}
