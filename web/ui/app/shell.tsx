/** The frame of the page: navigation, runs under way, and the visible part. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ThemeChoice } from "../../src/theme.tsx";
import { ComparePage } from "../compare/page.tsx";
import { FindPage } from "../find/page.tsx";
import { FleetPage } from "../fleet/page.tsx";
import { LivePage } from "../live/page.tsx";
import { RunPage } from "../runs/page.tsx";
import { RunsPage } from "../runs/list.tsx";
import { SeriesPage } from "../runs/series.tsx";
import { liveTitle } from "../runs/words.ts";
import { errorOf, type LiveRun } from "./api.ts";
import { ErrorBox, Loading, StateBadge } from "./controls.tsx";
import { helpOpen, KeysDialog } from "./keys.tsx";
import { Notices, Questions } from "./notify.tsx";
import { link, route, type Route, type RouteName } from "./router.ts";
import { about, connected, isTokenWrong, liveRuns, openSession, session } from "./state.ts";

/** A part of the page, which gets its place. */
export type PagePart = ComponentType<{ route: Route }>;

/** The parts that the editor has, once they are loaded. */
const editor = signal<typeof import("../editor/pages.tsx") | null>(null);
const editorFailed = signal<unknown>(null);

function Editor({
  part,
  route,
}: {
  part: "PlansPage" | "PlanPage" | "NewPage" | "ImportPage";
  route: Route;
}) {
  useEffect(() => {
    if (editor.peek() !== null) return;
    import("../editor/pages.tsx").then(
      (pages) => (editor.value = pages),
      (error: unknown) => (editorFailed.value = error),
    );
  }, []);
  if (editorFailed.value !== null) return <ErrorBox error={errorOf(editorFailed.value)} />;
  if (editor.value === null) return <Loading what="Loading the editor" />;
  const Part: PagePart = editor.value[part];
  return <Part route={route} />;
}

const PARTS: Record<RouteName, PagePart> = {
  runs: RunsPage,
  run: RunPage,
  compare: ComparePage,
  live: LivePage,
  series: SeriesPage,
  plans: ({ route }) => <Editor part="PlansPage" route={route} />,
  plan: ({ route }) => <Editor part="PlanPage" route={route} />,
  new: ({ route }) => <Editor part="NewPage" route={route} />,
  import: ({ route }) => <Editor part="ImportPage" route={route} />,
  find: FindPage,
  fleet: FleetPage,
  unknown: ({ route }) => (
    <>
      <h1>Page not found</h1>
      <p>
        “{route.of}” does not exist. <a href={link("runs")}>To the runs</a>
      </p>
    </>
  ),
};

const LINKS: { name: RouteName; label: string; also: RouteName[] }[] = [
  { name: "runs", label: "Runs", also: ["run", "compare", "live", "series"] },
  { name: "plans", label: "Plans", also: ["plan"] },
  { name: "new", label: "New", also: [] },
  { name: "import", label: "Import", also: [] },
  { name: "find", label: "Find", also: [] },
  { name: "fleet", label: "Fleet", also: [] },
];

export function Shell() {
  const now = route.value;
  const main = useRef<HTMLElement>(null);
  const place = `${now.name}/${now.of}`;
  const before = useRef(place);
  useLayoutEffect(() => {
    if (before.current === place) return;
    before.current = place;
    // As a browser does with a new page: to its top, and the focus is there, too.
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [place]);
  const Part = PARTS[now.name];
  const isOpen = session.value === "open";
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          // The address is the place, which stays.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        To the content
      </a>
      <header class="top">
        <a class="brand" href={link("runs")}>
          Plimsoll
        </a>
        {isOpen && (
          <nav class="places" aria-label="Places">
            {LINKS.map(({ name, label, also }) => (
              <a
                href={link(name)}
                aria-current={name === now.name ? "page" : also.includes(now.name) ? "true" : undefined}
              >
                {label}
              </a>
            ))}
          </nav>
        )}
        <div class="top-end">
          <ThemeChoice />
          <button
            type="button"
            class="button"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => (helpOpen.value = true)}
          >
            ?
          </button>
        </div>
        {isOpen && <Chips runs={liveRuns.value} />}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {!connected.value && isOpen && (
          <p class="notice" role="status">
            The program does not answer at the moment; the page tries again. If it has ended, start{" "}
            <code>plimsoll ui</code> again, and open the address that it prints: without <code>--token</code> it is
            another one.
          </p>
        )}
        {isOpen ? <Part route={now} key={place} /> : <NoSession />}
      </main>
      {about.value !== null && (
        <footer class="foot">
          <p>
            Plimsoll {about.value.version} · folder <span class="path">{about.value.folder}</span>
            {about.value.store !== null && (
              <>
                {" "}
                · runs in <span class="path">{about.value.store}</span>
              </>
            )}
          </p>
        </footer>
      )}
      <KeysDialog />
      <Questions />
      <Notices />
    </>
  );
}

/** Chips of runs that go on, and of those that ended a moment ago. */
function Chips({ runs }: { runs: LiveRun[] }) {
  const going = runs.filter(({ state }) => state === "running");
  if (going.length === 0) return null;
  return (
    <ul class="chips" aria-label="Runs that go on">
      {going.map((run) => (
        <li key={run.id}>
          <a class="chip" href={link("live", run.id)}>
            <StateBadge run={run} />
            {liveTitle(run)}
            {run.from === "terminal" && <small> from a terminal</small>}
            {run.from === "page" && <small> from another start</small>}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** The page without a session. */
function NoSession() {
  if (session.value === "unknown") return <Loading what="Opening" />;
  if (session.value === "unreachable") {
    return (
      <section>
        <h1>The program does not answer</h1>
        <p>
          See whether <code>plimsoll ui</code> still runs. Runs that it has started go on without it.
        </p>
        <button type="button" class="button primary" onClick={() => void openSession()}>
          Try again
        </button>
      </section>
    );
  }
  return (
    <section>
      <h1>
        {isTokenWrong.value
          ? "The token of this address is not valid"
          : "Open the address that plimsoll ui printed"}
      </h1>
      {isTokenWrong.value && (
        <p>
          It is that of another start of <code>plimsoll ui</code>, or is not complete. Open the address that the
          program which runs now has printed.
        </p>
      )}
      <p>
        This page belongs to the user who started <code>plimsoll ui</code>. The address that it printed ends in a
        token, which lets a browser in; it looks like this:
      </p>
      <pre>http://127.0.0.1:7450/#token=…</pre>
      <p class="hint">
        The token is another one each time the program is started, unless <code>--token</code> gives it. Text that
        was not saved is there again afterwards.
      </p>
    </section>
  );
}
