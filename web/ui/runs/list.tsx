/** The list of runs: those that go on, then the saved ones, the latest first. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { count, nanos } from "../../src/figure.ts";
import * as api from "../app/api.ts";
import type { LiveRun, RunRow } from "../app/api.ts";
import {
  Badge,
  Button,
  ErrorBox,
  Loading,
  OutcomeBadge,
  PageHead,
  StateBadge,
  TextField,
} from "../app/controls.tsx";
import { useShortcuts } from "../app/keys.tsx";
import { ask, notify, notifyError } from "../app/notify.tsx";
import { go, link, type Route } from "../app/router.ts";
import { liveRuns, savedVersion } from "../app/state.ts";
import { Sparkline } from "./sparkline.tsx";
import { seriesOf } from "./series.tsx";
import {
  boundText,
  hostOf,
  liveTitle,
  plural,
  rateText,
  sameMinute,
  secondsText,
  shareText,
  shortTarget,
  whenFull,
  whenText,
} from "./words.ts";

/** Rows of a page. */
const ROWS = 100;
/** Time that the filter waits for the next letter. */
const TYPING_MS = 150;

/** Runs chosen for a comparison: they stay so from page to page, until they are let go. */
const chosen = signal<ReadonlyMap<string, RunRow>>(new Map());

/** Words of a run: `nightly`, `branch=main`. */
export function tagWords(tags: RunRow["tags"] | null | undefined): string[] {
  if (tags == null) return [];
  if (Array.isArray(tags)) return tags;
  return Object.entries(tags).map(([name, value]) =>
    value === "" || value == null ? name : `${name}=${value}`,
  );
}

/** The groups of a comparison: of several runs the oldest alone, unless there are two names. */
export function groupsOf(rows: RunRow[]): { a: string[]; b: string[] } {
  const sorted = [...rows].sort((one, other) => one.started_unix_s - other.started_unix_s);
  const [first] = sorted;
  const names = new Set(sorted.map(({ name }) => name));
  const inA = (row: RunRow) => (names.size === 2 ? row.name === first?.name : row === first);
  return {
    a: sorted.filter(inA).map(({ id }) => id),
    b: sorted.filter((row) => !inA(row)).map(({ id }) => id),
  };
}

export function RunsPage({ route }: { route: Route }) {
  const filter = route.query.get("filter") ?? "";
  const offset = Math.max(0, Number(route.query.get("from") ?? 0) || 0);
  const [typed, setTyped] = useState(filter);
  const [list, setList] = useState<{ runs: RunRow[]; total: number; offset: number } | null>(null);
  const [error, setError] = useState<api.ApiError | null>(null);
  const [again, setAgain] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  const version = savedVersion.value;

  useEffect(() => {
    const stopped = new AbortController();
    api.runs(filter, ROWS, offset, stopped.signal).then(
      (list) => {
        setList({ ...list, offset });
        setError(null);
      },
      (thrown: unknown) => {
        if (!stopped.signal.aborted) setError(api.errorOf(thrown));
      },
    );
    return () => stopped.abort();
  }, [filter, offset, version, again]);

  const search = (text: string, from = 0) => {
    const query: Record<string, string> = {};
    if (text !== "") query["filter"] = text;
    if (from > 0) query["from"] = String(from);
    go(link("runs", "", query), { replace: true });
  };
  useEffect(() => {
    if (typed === filter) return;
    const timer = setTimeout(() => search(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const compare = () => {
    const { a, b } = groupsOf([...chosen.value.values()]);
    if (a.length > 0 && b.length > 0) go(link("compare", "", { a: a.join(","), b: b.join(",") }));
  };
  useShortcuts([
    { keys: "/", about: "Filter", act: () => box.current?.focus() },
    { keys: "c", about: "Compare the chosen runs", act: compare },
  ]);

  const going = liveRuns.value.filter(({ state }) => state === "running");
  const total = list?.total ?? 0;
  const several = chosen.value.size >= 2;
  // Runs under way are listed above.
  const saved = (list?.runs ?? []).filter(({ id }) => !going.some(({ run }) => run === id));
  return (
    <>
      <PageHead title="Runs">
        <a class="button primary" href={link("new")}>
          New run
        </a>
      </PageHead>
      <GoingOn runs={going} />
      <section aria-label="Saved runs" class="flush">
        <div class="toolbar">
          <TextField
            label="Filter"
            type="search"
            value={typed}
            onInput={setTyped}
            placeholder="name, URL, tag or outcome"
            inputRef={box}
            class="inline"
          />
          <p class="hint" role="status">
            {list === null ? "" : plural(total, "run")}
          </p>
          <div class="actions">
            {chosen.value.size > 0 && (
              <Button onClick={() => (chosen.value = new Map())}>Deselect {chosen.value.size}</Button>
            )}
            <Button kind="primary" disabled={!several} shortcut="c" onClick={compare}>
              Compare{several ? ` ${chosen.value.size}` : ""}
            </Button>
          </div>
        </div>
        {error !== null && <ErrorBox error={error} again={() => setAgain((times) => times + 1)} />}
        {list === null && error === null && <Loading what="Reading the runs" />}
        {list !== null && list.runs.length === 0 && <None filter={filter} />}
        {saved.length > 0 && <Rows rows={saved} />}
        {list !== null && total > ROWS && (
          <nav class="pages" aria-label="Pages of the list">
            <Button disabled={offset === 0} onClick={() => search(filter, Math.max(0, offset - ROWS))}>
              Later
            </Button>
            <span>
              {count(list.offset + 1)} to {count(Math.min(total, list.offset + ROWS))} of {count(total)}
            </span>
            <Button disabled={offset + ROWS >= total} onClick={() => search(filter, offset + ROWS)}>
              Earlier
            </Button>
          </nav>
        )}
      </section>
    </>
  );
}

function None({ filter }: { filter: string }) {
  if (filter !== "") {
    return <p class="empty">No run has “{filter}” in its name, its URL, its tags or its outcome.</p>;
  }
  return (
    <p class="empty">
      No run was saved yet. Start one from an <a href={link("new")}>example or a form</a>, or from one of
      your <a href={link("plans")}>plans</a>; runs of the command line with <code>--save</code> are here, too.
    </p>
  );
}

/** Runs that go on, on top. */
function GoingOn({ runs }: { runs: LiveRun[] }) {
  if (runs.length === 0) return null;
  return (
    <section aria-labelledby="going-on">
      <h2 id="going-on">Going on</h2>
      <ul class="going">
        {runs.map((run) => (
          <li key={run.id}>
            <StateBadge run={run} />
            <a href={link("live", run.id)}>{liveTitle(run)}</a>
            <span class="hint">
              {run.command}, since {whenText(run.started_unix_s)}
              {run.from === "terminal" && ", from a terminal"}
              {run.from === "page" && ", from another start of plimsoll ui"}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Rows({ rows }: { rows: RunRow[] }) {
  // Unfinished ones on top: they may still grow.
  const sorted = [
    ...rows.filter(({ unfinished }) => unfinished),
    ...rows.filter(({ unfinished }) => !unfinished),
  ];
  // One without a name is called by its target already.
  const hasTargets = rows.some((row) => row.target != null && shortTarget(row.target) !== nameOf(row));
  const hasSparklines = rows.some(({ sparkline }) => sparkline !== null && sparkline.length > 1);
  const columns = 10 + Number(hasTargets) + Number(hasSparklines);
  const exact = sameMinute(rows.map(({ started_unix_s }) => started_unix_s));
  return (
    <table class="runs" aria-label="Saved runs">
      <thead>
        <tr>
          <th scope="col" class="pick">
            <span class="unseen">chosen</span>
          </th>
          <th scope="col" class="text">
            run
          </th>
          {hasTargets && (
            <th scope="col" class="text wide">
              target
            </th>
          )}
          <th scope="col" class="text">
            outcome
          </th>
          <th scope="col" class="rate">
            rate
          </th>
          <th scope="col" class="far">
            p50
          </th>
          <th scope="col">p99</th>
          <th scope="col" class="far">
            errors
          </th>
          <th scope="col" class="far">
            length
          </th>
          {hasSparklines && (
            <th scope="col" class="far spark">
              rate over time
            </th>
          )}
          <th scope="col" class="far">
            when
          </th>
          <th scope="col" class="far">
            <span class="unseen">delete</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {grouped(sorted).flatMap(({ series, rows }) => [
          series !== null && <SeriesRow key={series} series={series} rows={rows} columns={columns} />,
          ...rows.map((row) => (
            <Row
              key={row.id}
              row={row}
              hasTargets={hasTargets}
              hasSparklines={hasSparklines}
              isExact={exact.has(row.started_unix_s)}
              isMember={series !== null}
            />
          )),
        ])}
      </tbody>
    </table>
  );
}

/** Rows with those of a series together, where the latest of them is; a row alone is no series. */
export function grouped(rows: RunRow[]): { series: string | null; rows: RunRow[] }[] {
  const groups: { series: string | null; rows: RunRow[] }[] = [];
  for (const row of rows) {
    const series = seriesOf(tagWords(row.tags));
    const known = series === null ? undefined : groups.find((group) => group.series === series);
    if (known === undefined) groups.push({ series, rows: [row] });
    else known.rows.push(row);
  }
  return groups.map((group) => (group.rows.length > 1 ? group : { ...group, series: null }));
}

/** A row for all runs of a series, above them. */
function SeriesRow({ series, rows, columns }: { series: string; rows: RunRow[]; columns: number }) {
  const [first] = rows;
  if (first === undefined) return null;
  const ids = rows.map(({ id }) => id);
  const areChosen = ids.every((id) => chosen.value.has(id));
  const choose = () => {
    const next = new Map(chosen.value);
    for (const row of rows) {
      if (areChosen) next.delete(row.id);
      else next.set(row.id, row);
    }
    chosen.value = next;
  };
  const name = nameOf(first);
  return (
    <tr class="series">
      <td class="pick">
        <input
          type="checkbox"
          checked={areChosen}
          onChange={choose}
          aria-label={`Choose all ${rows.length} runs of ${name}`}
        />
      </td>
      <th scope="row" class="text" colSpan={columns - 1}>
        <a href={link("series", series)}>
          {name}, {plural(rows.length, "run")}
        </a>{" "}
        <small>variation between the runs</small>
      </th>
    </tr>
  );
}

/** The title of a row, as its page has it; without a name that is the host of its target. */
const nameOf = ({ name, target, id }: RunRow) =>
  name ?? (target == null || target === "" ? id.slice(0, 8) : hostOf(target));

/** A target in a narrow column: its host and port stay together as long as the column has room for them. */
function TargetText({ target }: { target: string }) {
  const text = shortTarget(target);
  const host = hostOf(target);
  if (!text.startsWith(host)) return <>{text}</>;
  return (
    <>
      <span class="host">{host}</span>
      {text.slice(host.length)}
    </>
  );
}

function Row(props: {
  row: RunRow;
  hasTargets: boolean;
  hasSparklines: boolean;
  /** True if its second tells it from others. */
  isExact: boolean;
  /** True if it stands below the name of its series. */
  isMember: boolean;
}) {
  const { row, hasTargets, hasSparklines, isExact, isMember } = props;
  const { id } = row;
  const name = nameOf(row);
  const when = whenText(row.started_unix_s, new Date(), isExact);
  const isChosen = chosen.value.has(id);
  const choose = () => {
    const next = new Map(chosen.value);
    if (!next.delete(id)) next.set(id, row);
    chosen.value = next;
  };
  const time = (seconds: number | null, percentile: string) =>
    boundText(seconds, row.at_least?.includes(percentile), (seconds) => nanos(seconds * 1e9));
  return (
    <tr class={[isChosen && "chosen", isMember && "member"].filter(Boolean).join(" ")}>
      <td class="pick">
        {row.kind === "run" && (
          <input
            type="checkbox"
            checked={isChosen}
            onChange={choose}
            aria-label={`Choose ${name}, ${whenFull(row.started_unix_s)}`}
          />
        )}
      </td>
      <th scope="row" class="text">
        <a href={link("run", id)}>{name}</a>
        {row.kind !== "run" && (
          <>
            {" "}
            <Badge kind="plain">{row.kind}</Badge>
          </>
        )}
        <Tags tags={isMember ? tagWords(row.tags).filter((tag) => seriesOf([tag]) === null) : row.tags} />
        <small class="near">
          {when} · {secondsText(row.duration_s)}
          {row.answer !== null && ` · ${row.answer}`}
        </small>
      </th>
      {hasTargets && (
        <td class="text wide" title={row.target ?? ""}>
          {row.target != null && shortTarget(row.target) !== name && <TargetText target={row.target} />}
        </td>
      )}
      <td class="text">
        {row.unfinished ? <Badge kind="doubtful">unfinished</Badge> : <OutcomeBadge outcome={row.outcome} />}
        {row.valid === false && row.outcome !== "no_verdict" && <small class="invalid"> invalid</small>}
        {row.stopped_early && <small class="early"> stopped early</small>}
      </td>
      <td class={row.answer === null ? "rate" : "rate answer"}>{row.answer ?? rateText(row.rate_per_s)}</td>
      <td class="far">{time(row.p50_s, "50")}</td>
      <td>{time(row.p99_s, "99")}</td>
      <td class="far">{shareText(row.error_share)}</td>
      <td class="far">{secondsText(row.duration_s)}</td>
      {hasSparklines && <td class="far spark">{row.sparkline !== null && <Sparkline values={row.sparkline} />}</td>}
      <td class="far" title={whenFull(row.started_unix_s)}>
        {when}
      </td>
      <td class="far">
        <Button
          class="faint"
          label={`Delete ${name}, ${whenFull(row.started_unix_s)}`}
          onClick={() => void remove(row)}
        >
          ✕
        </Button>
      </td>
    </tr>
  );
}

export function Tags({ tags }: { tags: RunRow["tags"] | null }) {
  const words = tagWords(tags);
  if (words.length === 0) return null;
  return (
    <ul class="tags" aria-label="Tags">
      {words.map((word) => (
        <li>{word}</li>
      ))}
    </ul>
  );
}

/** Deletes a run after a confirmation. */
export async function remove(row: Pick<RunRow, "id" | "name" | "kind">): Promise<boolean> {
  const name = row.name ?? row.id;
  const sure = await ask({
    title: `Delete this ${row.kind}?`,
    text: <p>“{name}” and all of its figures go from the history. That cannot be undone.</p>,
    action: "Delete",
    danger: true,
  });
  if (!sure) return false;
  try {
    await api.deleteRun(row.id);
  } catch (error) {
    notifyError(error);
    return false;
  }
  const next = new Map(chosen.peek());
  if (next.delete(row.id)) chosen.value = next;
  savedVersion.value += 1;
  // The element with the focus is gone.
  document.querySelector("main")?.focus({ preventScroll: true });
  notify(`“${name}” is deleted.`);
  return true;
}
