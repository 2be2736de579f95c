import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Loading, TextField } from "../app/controls.tsx";
import { notify, notifyError } from "../app/notify.tsx";
import { go, link, type Route } from "../app/router.ts";
import { refreshAbout } from "../app/state.ts";
import { SearchForm } from "../find/page.tsx";
import { CommandForm } from "./command.tsx";
import { ClusterForm, ScenarioForm } from "./made-forms.tsx";
import { openAsNew } from "./drafts.ts";
import { schemaOfPlans } from "./schemas.ts";

/** New plans: from forms for each kind of load, and from examples. */
export function NewPage({ route }: { route: Route }) {
  const commands = useSignal<api.FormCommand[] | null>(null);
  const examples = useSignal<api.Example[] | null>(null);
  const settings = useSignal<string[]>([]);
  const failed = useSignal<api.ApiError | null>(null);
  const load = async () => {
    failed.value = null;
    try {
      const [forms, found, schema] = await Promise.all([api.forms(), api.examples(), schemaOfPlans()]);
      settings.value = schema.keysAt(["run"]).map(({ name }) => name);
      const [run, ...others] = forms.commands;
      commands.value = [...(run === undefined ? [] : [run]), OF_SCENARIO, ...others, OF_CLUSTER];
      examples.value = found.examples;
    } catch (error) {
      failed.value = api.errorOf(error);
    }
  };
  useEffect(() => void load(), []);
  const wanted = route.query.get("form");
  const form = commands.value?.find(({ name }) => name === wanted);
  return (
    <>
      <h1>New plan</h1>
      {failed.value !== null && <ErrorBox error={failed.value} again={() => void load()} />}
      {failed.value === null && commands.value === null && <Loading what="Fetching forms and examples" />}
      {commands.value !== null && (
        <section aria-labelledby="new-forms">
          <h2 id="new-forms">From a form</h2>
          <ul class="plan-kinds">
            {commands.value.map(({ name, summary }) => (
              <li key={name}>
                <a
                  href={link("new", "", { form: name })}
                  aria-current={name === wanted ? "true" : undefined}
                >
                  <strong>{TITLES[name] ?? name}</strong>
                  <small>{SUMMARIES[name] ?? summary}</small>
                </a>
              </li>
            ))}
          </ul>
          {form?.name === "find" && (
            <section class="plan-command" aria-labelledby="new-search">
              <h3 id="new-search">{TITLES["find"]}</h3>
              <SearchForm plan={null} />
            </section>
          )}
          {form === OF_SCENARIO && <ScenarioForm title={TITLES["scenario"] ?? ""} />}
          {form === OF_CLUSTER && <ClusterForm title={TITLES["cluster"] ?? ""} />}
          {form !== undefined && form.name !== "find" && form.arguments.length > 0 && (
            <CommandForm
              key={form.name}
              command={form}
              title={TITLES[form.name] ?? form.name}
              settings={settings.value}
            />
          )}
        </section>
      )}
      {examples.value !== null && <Examples examples={examples.value} />}
    </>
  );
}

/** Kinds that no command makes a plan of. */
const made = (name: string, summary: string): api.FormCommand => ({ name, summary, arguments: [] });
const OF_SCENARIO = made("scenario", "Requests one after the other, as a user makes them");
const OF_CLUSTER = made("cluster", "Servers that are started, broken under load, and checked");

/** Words for kinds whose own are those of a terminal. */
const SUMMARIES: Record<string, string> = {
  run: "Requests to one address or to several, at a rate or from users",
};

const TITLES: Record<string, string> = {
  run: "Load on a URL",
  scenario: "A scenario of steps",
  cluster: "A cluster under test",
  llm: "A language model",
  grpc: "A gRPC service",
  ws: "A WebSocket server",
  crud: "A REST resource",
  cache: "A cache",
  ingest: "Observability data",
  canister: "A canister",
  find: "The highest rate, or a sweep",
};

function Examples({ examples }: { examples: api.Example[] }) {
  const search = useSignal("");
  const words = search.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found = examples.filter(({ name, group, title, description, text }) => {
    const all = `${name} ${group} ${title} ${description} ${text}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return (
    <section aria-labelledby="new-examples">
      <h2 id="new-examples">From an example</h2>
      <p class="hint">
        <em>Run</em> starts the built-in server that the example is for, and a run of a few seconds against
        it. <em>Edit</em> opens the example as a new file of the folder.
      </p>
      <TextField
        label="Search in examples"
        type="search"
        value={search.value}
        onInput={(value) => (search.value = value)}
        placeholder="extract, phases, http2"
      />
      <p class="hint" role="status">
        {found.length === 1 ? "1 example" : `${found.length} examples`}
      </p>
      {[...new Set(found.map(({ group }) => group))].map((group) => (
        <div key={group} role="group" aria-label={group}>
          <h3>{group}</h3>
          <ul class="plan-cards">
            {found
              .filter((example) => example.group === group)
              .map((example) => (
                <li key={example.name}>
                  <ExampleCard example={example} />
                </li>
              ))}
          </ul>
        </div>
      ))}
    </section>
  );
}

function ExampleCard({ example }: { example: api.Example }) {
  const { name, title, description, server, text } = example;
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const edit = async () => {
    try {
      const { written, kept } = await api.exampleFiles(name);
      if (written.length > 0) notify(`${written.join(", ")} was put into the folder: the plan reads it`);
      if (kept.length > 0) notify(`${kept.join(", ")} was in the folder, and stays as it is`);
      await openAsNew(`${name}.yaml`, text);
    } catch (error) {
      notifyError(error);
    }
  };
  const run = async () => {
    busy.value = true;
    failed.value = null;
    try {
      const { id } = await api.start({
        path: null,
        text,
        command: "run",
        flags: [],
        name: `example ${name}`,
      });
      void refreshAbout();
      go(link("live", id));
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <article class="plan-card" aria-label={name}>
      <h4>{title}</h4>
      <p>{description}</p>
      <details>
        <summary>{name}.yaml</summary>
        <p class="hint">
          Its server: <code>plimsoll {server}</code>
        </p>
        <pre class="plan-pre" tabIndex={0} aria-label={`Text of ${name}`}>
          {text}
        </pre>
      </details>
      {failed.value !== null && <ErrorBox error={failed.value} />}
      <div class="plan-actions">
        <Button
          onClick={() => void run()}
          busy={busy.value}
          label={`Run against a built-in server: ${name}`}
        >
          Run
        </Button>
        <Button onClick={() => void edit()} label={`Edit as new file: ${name}`}>
          Edit
        </Button>
      </div>
    </article>
  );
}
