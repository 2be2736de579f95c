import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Field, Loading, SelectField, TextField } from "../app/controls.tsx";
import { useKept } from "../app/kept.ts";
import { notify, notifyError } from "../app/notify.tsx";
import { go, link } from "../app/router.ts";
import { draftOf, forgetRun, isPlanName, nameProblem, planNameFor, unusedName } from "./drafts.ts";

const KINDS: { value: api.ImportKind | "auto"; label: string }[] = [
  { value: "auto", label: "detected" },
  { value: "curl", label: "curl command" },
  { value: "har", label: "HAR recording" },
  { value: "openapi", label: "OpenAPI description" },
  { value: "h2loadrunner", label: "h2loadrunner's JSON" },
  { value: "vegeta", label: "vegeta's targets" },
  { value: "postman", label: "Postman collection" },
  { value: "artillery", label: "Artillery script" },
  { value: "jmeter", label: "JMeter test plan" },
  { value: "k6", label: "k6 script" },
  { value: "gatling", label: "Gatling simulation" },
  { value: "locust", label: "Locust file" },
];

/** Plans from files of other tools. */
export function ImportPage() {
  const kind = useKept<api.ImportKind | "auto">("import kind", "auto");
  const pasted = useKept("import pasted", "");
  const over = useSignal(false);
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const done = useSignal<{ name: string; imported: api.Imported } | null>(null);
  const chooser = useRef<HTMLInputElement>(null);

  const take = async (name: string, text: string) => {
    busy.value = true;
    failed.value = null;
    done.value = null;
    try {
      const chosen = kind.peek();
      const given = chosen === "auto" ? null : chosen;
      done.value = { name, imported: await api.importPlan(name, text, given) };
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  const takeFile = async (file: File | undefined) => {
    if (file !== undefined) await take(file.name, await file.text());
  };
  return (
    <>
      <h1>Import</h1>
      <section aria-label="What to import">
        <SelectField
          label="Kind"
          value={kind.value}
          options={KINDS}
          onChange={(value) => (kind.value = value)}
        />
        <div
          class={`plan-drop ${over.value ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            over.value = true;
          }}
          onDragLeave={() => (over.value = false)}
          onDrop={(event) => {
            event.preventDefault();
            over.value = false;
            void takeFile(event.dataTransfer?.files[0]);
          }}
        >
          <p>
            Drop a file here: a HAR recording, an OpenAPI description, h2loadrunner's JSON, vegeta's targets,
            a Postman collection, an Artillery script, a JMeter test plan, a script of k6, Gatling or Locust.
          </p>
          <input
            ref={chooser}
            type="file"
            class="unseen"
            tabIndex={-1}
            aria-label="File to import"
            onChange={(event) => {
              const { currentTarget } = event;
              void takeFile(currentTarget.files?.[0]);
              currentTarget.value = "";
            }}
          />
          <Button onClick={() => chooser.current?.click()}>Choose a file</Button>
        </div>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void take("", pasted.peek());
          }}
        >
          <Field label="Or paste a curl command, or the text of such a file">
            {(control) => (
              <textarea
                {...control}
                rows={5}
                spellcheck={false}
                placeholder="curl -X POST https://shop.test/orders -d '{…}'"
                value={pasted.value}
                onInput={(event) => (pasted.value = event.currentTarget.value)}
              />
            )}
          </Field>
          <Button submit kind="primary" disabled={pasted.value.trim() === ""} busy={busy.value}>
            Import
          </Button>
        </form>
        {busy.value && <Loading what="Importing" />}
        {failed.value !== null && <ErrorBox error={failed.value} />}
      </section>
      {done.value !== null && <Outcome name={done.value.name} imported={done.value.imported} />}
    </>
  );
}

function Outcome({ name, imported }: { name: string; imported: api.Imported }) {
  const { plan, notes } = imported;
  const path = useSignal("");
  const busy = useSignal(false);
  const wrong = useSignal<string | null>(null);
  useEffect(() => {
    unusedName(planNameFor(name)).then((free) => (path.value = path.peek() === "" ? free : path.peek()), notifyError);
  }, [imported]);
  const save = async () => {
    busy.value = true;
    try {
      const typed = path.peek().trim() || (await unusedName(planNameFor(name)));
      const isKept = draftOf(typed) !== null;
      const isPlan = isPlanName(typed) ? null : "plans end in .yaml, .yml or .json";
      wrong.value = isKept ? "there is a text of this name that is not saved" : (nameProblem(typed) ?? isPlan);
      if (wrong.value !== null) return;
      await api.saveFile(typed, plan, null);
      forgetRun(typed);
      notify(`${typed} is saved.`);
      go(link("plan", typed));
    } catch (error) {
      if (api.errorOf(error).status === 409) wrong.value = "there is such a file";
      else notifyError(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <section aria-labelledby="imported">
      <h2 id="imported">The plan</h2>
      <form
        class="plan-new"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField
          label="Name of the plan"
          value={path.value}
          onInput={(value) => (path.value = value)}
          error={wrong.value ?? undefined}
        />
        <Button submit kind="primary" busy={busy.value}>
          Save as plan
        </Button>
      </form>
      <div class="plan-imported">
        <pre class="plan-pre" tabIndex={0} aria-label="The plan">
          {plan}
        </pre>
        <div>
          <h3>Not taken over as it was</h3>
          {notes.length === 0 ? (
            <p class="empty">All of it was taken over.</p>
          ) : (
            <ul class="plan-notes">
              {notes.map((note) => (
                <li class="preserved">{note}</li>
              ))}
            </ul>
          )}
        </div>
      </div>
    </section>
  );
}
