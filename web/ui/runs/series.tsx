/** The page of several runs of one plan, made of what is saved of them. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ErrorBox, Loading, PageHead } from "../app/controls.tsx";
import { go, link, type Route } from "../app/router.ts";
import { savedVersion } from "../app/state.ts";
import { type Repeated, RepeatedTables } from "../live/series.tsx";
import { plural, titleOf, whenFull } from "./words.ts";

/** Words of the tag that names a series. */
const TAG = /^series=(.+)$/;

/** The series that tags name; null if they name none. */
export function seriesOf(tags: readonly string[]): string | null {
  return tags.map((tag) => TAG.exec(tag)?.[1] ?? null).find((found) => found !== null) ?? null;
}

/** The series that the flags of a command line name; null if they name none. */
export function seriesOfArgs(args: readonly string[]): string | null {
  const tags = args.map((arg, at) => (args[at - 1] === "--tag" ? arg : arg.replace(/^--tag=/, "")));
  return seriesOf(tags);
}

export function SeriesPage({ route }: { route: Route }) {
  const id = route.of;
  const [repeated, setRepeated] = useState<Repeated | null>(null);
  const [error, setError] = useState<api.ApiError | null>(null);
  const version = savedVersion.value;
  useEffect(() => {
    const stopped = new AbortController();
    api.series(id, stopped.signal).then(
      (found) => {
        setRepeated(found);
        setError(null);
      },
      (thrown: unknown) => {
        if (!stopped.signal.aborted) setError(api.errorOf(thrown));
      },
    );
    return () => stopped.abort();
  }, [id, version]);
  const first = repeated?.runs[0] ?? null;
  const title = first === null ? "Runs" : `${titleOf(first)}, ${plural(repeated?.runs.length ?? 0, "run")}`;
  useEffect(() => {
    document.title = `${title} – Plimsoll`;
    return () => void (document.title = "Plimsoll");
  }, [title]);
  if (error !== null) {
    return (
      <>
        <PageHead title={title} />
        <ErrorBox error={error} />
      </>
    );
  }
  if (repeated === null || first === null) return <Loading what="Reading the runs" />;
  // The oldest one alone is the baseline.
  const [a, ...b] = repeated.runs.map(({ run }) => run.id);
  return (
    <>
      <PageHead
        title={title}
        below={
          <p class="target">
            {first.model.description.join(" · ")}
            <br />
            {whenFull(first.run.started_at_unix_ns / 1e9)} · series {id}
          </p>
        }
      >
        <Button onClick={() => go(link("runs", "", { filter: `series=${id}` }))}>In the list</Button>
        {b.length > 0 && (
          <Button onClick={() => go(link("compare", "", { a: a ?? "", b: b.join(",") }))}>Compare</Button>
        )}
      </PageHead>
      <div class="parts">
        <RepeatedTables repeated={repeated} />
      </div>
    </>
  );
}
