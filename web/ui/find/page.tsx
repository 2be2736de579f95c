/** A search for the highest rate at which a server holds the conditions. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, PageHead, SelectField, TextField } from "../app/controls.tsx";
import { go, link, type Route } from "../app/router.ts";
import { about } from "../app/state.ts";
import { findFlags, isPlan, type Search, SWEEPS } from "./plan.ts";

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

/** The form of a search, which starts it. `plan` is chosen at first. */
export function SearchForm({ plan }: { plan: string | null }) {
  const [plans, setPlans] = useState<string[]>([]);
  const [search, setSearch] = useState<Search>({
    plan: plan ?? ADDRESS,
    url: about.value?.sink ?? "",
    objectives: "p99<10ms\nerror_rate<1%",
    from: "",
    to: "",
    duration: "",
    precision: "",
    maxTime: "",
    sweep: "",
    levels: "1,2,4,8,16,32",
  });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<api.ApiError | null>(null);
  const [lack, setLack] = useState<string | null>(null);
  useEffect(() => {
    api.files().then(
      ({ files }) => setPlans(files.map(({ path }) => path).filter(isPlan)),
      (thrown: unknown) => setError(api.errorOf(thrown)),
    );
  }, []);
  const set = (part: Partial<Search>) => setSearch((before) => ({ ...before, ...part }));
  const byAddress = search.plan === ADDRESS;

  const begin = async () => {
    setError(null);
    setLack(null);
    if (byAddress && !/^https?:\/\/./.test(search.url.trim())) {
      setLack("write an address, such as http://127.0.0.1:8080/");
      return;
    }
    setBusy(true);
    try {
      const { id } = await api.start({
        path: byAddress ? null : search.plan,
        text: byAddress ? (await api.planOf("run", { urls: [search.url.trim()] })).text : null,
        command: "find",
        flags: findFlags(search),
        name: byAddress ? search.url.trim() : search.plan,
      });
      go(link("live", id));
    } catch (thrown) {
      setError(api.errorOf(thrown));
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
        <form
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
              error={lack}
              placeholder="http://127.0.0.1:8080/"
              type="url"
            />
          )}
          <div class="field whole">
            <label for="objectives">Objectives</label>
            <textarea
              id="objectives"
              rows={3}
              value={search.objectives}
              onInput={(event) => set({ objectives: event.currentTarget.value })}
              aria-describedby="objectives-hint"
              spellcheck={false}
            />
            <p id="objectives-hint" class="hint">
              One a line: limits of percentiles, of the error rate and of the timeout rate. Without any, the
              thresholds of the plan.
            </p>
          </div>
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
                value={search.from}
                onInput={(from) => set({ from })}
                placeholder="100/s"
              />
              <TextField
                label="Highest rate"
                value={search.to}
                onInput={(to) => set({ to })}
                placeholder="none"
                hint="No higher rate is tried."
              />
            </>
          )}
          <TextField
            label="Shortest trial"
            value={search.duration}
            onInput={(duration) => set({ duration })}
            placeholder="2s"
          />
          {search.sweep === "" && (
            <>
              <TextField
                label="Longest search"
                value={search.maxTime}
                onInput={(maxTime) => set({ maxTime })}
                placeholder="2m"
              />
              <TextField
                label="Precision"
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
