/** A search for the highest rate at which a server holds the conditions. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Field, PageHead, SelectField, TextField } from "../app/controls.tsx";
import { useKept } from "../app/kept.ts";
import { go, link, type Route } from "../app/router.ts";
import { about } from "../app/state.ts";
import { type FieldError, fieldError, inForm } from "../editor/argument-words.tsx";
import { fieldsOf, findFlags, isPlan, LABELS, type Search, ownAddress, searchName, SWEEPS } from "./plan.ts";

/** Stands for an address rather than a plan among the choices. */
const ADDRESS = "";

export function FindPage({ route }: { route: Route }) {
  return (
    <>
      <PageHead
        title="Find the capacity"
        below={
          <p class="target">
            The highest rate at which a server meets its objectives: rates grow until one breaks, and are
            halved until the line between them is near.
          </p>
        }
      />
      <section aria-label="Search">
        <SearchForm plan={route.query.get("plan")} />
      </section>
    </>
  );
}

/** Runs that are looked through for an address. */
const LOOKED_AT = 50;

/** The address of the last run that is none of an example; else that of the server for examples. */
async function usualAddress(): Promise<string> {
  const sink = about.peek()?.sink ?? "";
  const runs = await api.runs("", LOOKED_AT, 0).then(
    ({ runs }) => runs,
    () => [],
  );
  return ownAddress(runs, sink) ?? sink;
}

/** The form of a search, which starts it. `plan` is chosen at first. */
export function SearchForm({ plan }: { plan: string | null }) {
  const [plans, setPlans] = useState<string[]>([]);
  const kept = useKept<Search>("search", {
    plan: ADDRESS,
    url: "",
    objectives: "p99<10ms\nerror_rate<1%",
    from: "",
    to: "",
    duration: "",
    precision: "",
    maxTime: "",
    sweep: "",
    levels: "1,2,4,8,16,32",
  });
  useEffect(() => {
    if (kept.peek().url !== "") return;
    void usualAddress().then((url) => {
      if (kept.peek().url === "") kept.value = { ...kept.peek(), url };
    });
  }, []);
  // A link that names a plan means that one.
  useMemo(() => {
    if (plan !== null) kept.value = { ...kept.peek(), plan };
  }, [plan]);
  const search = kept.value;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<api.ApiError | null>(null);
  const [wrong, setWrong] = useState<FieldError | null>(null);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    api.files().then(
      ({ files }) => setPlans(files.map(({ path }) => path).filter(isPlan)),
      (thrown: unknown) => setError(api.errorOf(thrown)),
    );
  }, []);
  useEffect(() => {
    if (wrong !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    else if (error !== null) document.querySelector(".error-box")?.scrollIntoView({ block: "center" });
  }, [wrong, error]);
  const set = (part: Partial<Search>) => void (kept.value = { ...kept.peek(), ...part });
  const wrongAt = (id: keyof Search) => (wrong?.id === id ? wrong.said : undefined);
  const byAddress = search.plan === ADDRESS;

  const begin = async () => {
    setError(null);
    setWrong(null);
    if (byAddress && !/^https?:\/\/./.test(search.url.trim())) {
      setWrong({ id: "url", said: "write an address, such as http://127.0.0.1:8080/" });
      return;
    }
    setBusy(true);
    try {
      const { id } = await api.start({
        path: byAddress ? null : search.plan,
        text: byAddress ? (await api.planOf("run", { urls: [search.url.trim()] })).text : null,
        command: "find",
        flags: findFlags(search),
        name: searchName(byAddress ? search.url.trim() : search.plan),
      });
      go(link("live", id));
    } catch (thrown) {
      const refusal = api.errorOf(thrown);
      const shown = fieldsOf(search);
      const found = refusal.problems.length > 1 ? null : fieldError(refusal, shown, { ...search }, LABELS);
      setWrong(found);
      setError(found === null ? inForm(refusal, LABELS) : null);
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
        <form
          ref={form}
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void begin();
          }}
        >
          <SelectField
            label="Load"
            value={search.plan}
            onChange={(plan) => set({ plan })}
            options={[
              { value: ADDRESS, label: "GET of an address" },
              ...plans.map((path) => ({ value: path, label: path })),
            ]}
            hint="A plan of this folder, or an address."
          />
          {byAddress && (
            <TextField
              label="Address"
              value={search.url}
              onInput={(url) => set({ url })}
              error={wrongAt("url")}
              placeholder="http://127.0.0.1:8080/"
              type="url"
            />
          )}
          <Field
            label="Objectives"
            class="whole"
            error={wrongAt("objectives")}
            hint={
              "One a line: limits of percentiles, of the error rate and of the timeout rate. Without any, the " +
              "thresholds of the plan. Without one about errors, error_rate<1% is added."
            }
          >
            {(control) => (
              <textarea
                {...control}
                rows={3}
                value={search.objectives}
                onInput={(event) => set({ objectives: event.currentTarget.value })}
                spellcheck={false}
              />
            )}
          </Field>
          <SelectField
            label="What is tried"
            value={search.sweep}
            onChange={(sweep) => set({ sweep, objectives: sweep === "" ? search.objectives : "" })}
            options={[
              { value: "", label: "rates: the highest that holds" },
              ...SWEEPS.map((value) => ({ value, label: `each of these numbers of ${value}` })),
            ]}
          />
          {search.sweep !== "" && (
            <TextField
              label="Levels"
              error={wrongAt("levels")}
              value={search.levels}
              onInput={(levels) => set({ levels })}
              placeholder="1,2,4,8,16,32"
              hint="A run at each; from six on the law of scaling that fits them."
            />
          )}
          {search.sweep === "" && (
            <>
              <TextField
                label="First rate"
                error={wrongAt("from")}
                value={search.from}
                onInput={(from) => set({ from })}
                placeholder="100/s"
              />
              <TextField
                label="Highest rate"
                error={wrongAt("to")}
                value={search.to}
                onInput={(to) => set({ to })}
                placeholder="none"
                hint="No higher rate is tried."
              />
            </>
          )}
          <TextField
            label="Shortest trial"
            error={wrongAt("duration")}
            value={search.duration}
            onInput={(duration) => set({ duration })}
            placeholder="2s"
          />
          {search.sweep === "" && (
            <>
              <TextField
                label="Longest search"
                error={wrongAt("maxTime")}
                value={search.maxTime}
                onInput={(maxTime) => set({ maxTime })}
                placeholder="2m"
              />
              <TextField
                label="Precision"
                error={wrongAt("precision")}
                value={search.precision}
                onInput={(precision) => set({ precision })}
                placeholder="5%"
                hint="Width of the answer to aim at."
              />
            </>
          )}
          <div class="whole actions">
            <Button kind="primary" submit busy={busy}>
              {search.sweep === "" ? "Find" : "Sweep"}
            </Button>
          </div>
        </form>
        {error !== null && <ErrorBox error={error} />}
    </>
  );
}
