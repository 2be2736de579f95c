/** A run that goes on: the same page as that of a saved run, growing, with its controls on top. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { perSecond, seconds } from "../../src/figure.ts";
import * as api from "../app/api.ts";
import {
  Badge,
  Button,
  ButtonLink,
  ErrorBox,
  Loading,
  OutcomeBadge,
  PageHead,
  TextField,
} from "../app/controls.tsx";
import { useShortcuts } from "../app/keys.tsx";
import { ask, notify, notifyError, withdraw } from "../app/notify.tsx";
import { link, type Route } from "../app/router.ts";
import { liveRuns } from "../app/state.ts";
import { ResultParts } from "../runs/page.tsx";
import { seriesOfArgs } from "../runs/series.tsx";
import { titleOf } from "../runs/words.ts";
import { flightText, paceUnit, requestsText } from "./pace.ts";
import { isSweep, latestTrying, trialOf, tryingOf } from "./capacity.ts";
import { SearchParts } from "./search.tsx";
import { SeriesParts } from "./series.tsx";
import { type End, type Heard, useStream } from "./stream.ts";

export function LivePage({ route }: { route: Route }) {
  const id = route.of;
  const heard = useStream(id);
  const known = liveRuns.value.find((run) => run.id === id);
  const { result, end, error, entries } = heard;
  const isOfPlan = known?.command === "repeat" || end?.repeated !== undefined;
  const isSeries = entries !== null || isOfPlan || end?.suite !== undefined;
  const isSearch = (known !== undefined && api.isSearching(known)) || end?.capacity != null;
  const isSweeping = known?.command === "sweep" || (end?.capacity != null && isSweep(end.capacity));
  const own = result === null ? (known?.target ?? known?.command ?? "Run") : titleOf(result);
  const name = known?.name ?? own;
  const state =
    end !== null ? "ended" : heard.stat?.paused ? "paused" : heard.stat?.stopping ? "stopping" : "running";

  useEffect(() => {
    // Also in a tab that is not seen.
    const word =
      end !== null && result !== null && !isSeries ? result.verdict.outcome.replace("_", " ").toUpperCase() : state;
    document.title = `${word}: ${name} – Plimsoll`;
    return () => void (document.title = "Plimsoll");
  }, [name, state, end, result, isSeries]);

  if (error !== null) {
    return (
      <>
        <PageHead title={name}>
          <ButtonLink href={link("runs")}>To the runs</ButtonLink>
        </PageHead>
        <ErrorBox error={error} />
      </>
    );
  }
  return (
    <>
      <PageHead
        title={name}
        below={
          <p class="target">
            {result !== null
              ? result.model.description.join(" · ")
              : isSearch
                ? isSweeping
                  ? "a sweep over the levels of a setting"
                  : "a search for the capacity"
                : ""}
          </p>
        }
      />
      {end !== null ? (
        <Ended heard={heard} />
      ) : (known !== undefined && known.from !== "ui") || heard.stat?.read_only === true ? (
        <Watched id={id} heard={heard} from={known?.from ?? "terminal"} />
      ) : (
        <Steering id={id} heard={heard} state={state} isSearch={isSearch} isOfPlan={isOfPlan} />
      )}
      {isSearch ? (
        <SearchParts heard={heard} />
      ) : isSeries ? (
        <SeriesParts heard={heard} entries={entries} isOfPlan={isOfPlan} />
      ) : result !== null ? (
        <ResultParts result={result} report={null} plan={null} {...(state !== "ended" && { soFar: state })} />
      ) : (
        end === null && (
          <Loading what={heard.stat?.sent ? "No answer has come yet" : "Waiting for the first figures"} />
        )
      )}
      {/* The trials of a search are in its table. */}
      <Messages messages={isSearch ? heard.messages.filter((one) => !isOfTrial(one)) : heard.messages} />
    </>
  );
}

const isOfTrial = (message: string) => trialOf(message) !== null || tryingOf(message) !== null;

const STATES = { running: "live", paused: "doubtful", stopping: "doubtful", ended: "done" } as const;

/** Controls that steer a run, and its progress. */
function Steering(props: {
  id: string;
  heard: Heard;
  state: keyof typeof STATES;
  isSearch: boolean;
  isOfPlan: boolean;
}) {
  const { id, heard, state, isSearch, isOfPlan } = props;
  // Neither a search nor runs that are to be alike can be held or changed.
  const isFixed = isSearch || isOfPlan;
  const { stat, result } = heard;
  const [rate, setRate] = useState("");
  const unit = paceUnit(result);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  // Before the first answer there is no result, and the rate that is asked for says it.
  const isOpen = result === null ? stat?.target_per_s != null : result.model.kind === "open";
  const paused = stat?.paused === true;

  const tell = async (what: string, how: () => Promise<{ told: string }>) => {
    setBusy(what);
    setError(null);
    try {
      notify((await how()).told);
      if (what === "rate") setRate("");
    } catch (thrown) {
      const { message, hint } = api.errorOf(thrown);
      if (what === "rate") setError(hint === null ? message : `${message}: ${hint}`);
      else notifyError(thrown);
    } finally {
      setBusy(null);
    }
  };
  const change = () => {
    if (rate.trim() === "") {
      setError("write a rate, such as 500, 5k/s or 300/m");
      field.current?.focus();
    } else void tell("rate", () => api.setRate(id, rate.trim()));
  };
  const hold = () => void tell("pause", () => (paused ? api.resume(id) : api.pause(id)));
  // The second time nothing is waited for any more, as with ^C.
  const [isStopped, setStopped] = useState(false);
  const isDraining = isStopped || state === "stopping" || (stat?.drain_left_s ?? null) !== null;
  const stop = () =>
    void tell("stop", async () => {
      const told = await api.stop(id, isDraining);
      setStopped(true);
      return told;
    });
  // A letter is typed by mistake more easily than a button is pressed.
  const isAsking = useRef(false);
  // A run that has ended needs no answer any more.
  useEffect(
    () => () => {
      if (isAsking.current) withdraw();
    },
    [],
  );
  const askToStop = async () => {
    const what = isSearch ? "search" : isOfPlan ? "series" : heard.entries !== null ? "series" : "run";
    const text = isDraining ? (
      <p>Requests in flight are counted as such, and what was measured is kept.</p>
    ) : (
      <p>What is in flight is waited for, and what was measured is kept.</p>
    );
    isAsking.current = true;
    const title = isDraining ? "Give up what is in flight?" : `Stop this ${what}?`;
    const isSure = await ask({ title, text, action: isDraining ? "Give up" : "Stop" });
    isAsking.current = false;
    if (isSure) stop();
  };
  useShortcuts(
    isFixed
      ? [{ keys: "s", about: isSearch ? "Stop the search" : "Stop the series", act: () => void askToStop() }]
      : [
          { keys: "r", about: "To the field of the rate", act: () => field.current?.focus() },
          { keys: "p", about: "Pause and resume", act: hold },
          { keys: "s", about: "Stop the run", act: () => void askToStop() },
        ],
  );

  return (
    <section aria-label="Steering" class="steering-card">
      <div class="steering">
        <Badge kind={STATES[state]}>{state}</Badge>
        {isSearch ? <SearchProgress heard={heard} /> : <Progress heard={heard} isSearch={isFixed} />}
        {!isFixed && isOpen && (
          <form
            class="actions"
            onSubmit={(event) => {
              event.preventDefault();
              change();
            }}
          >
            <TextField
              label={result === null ? "Rate (per second)" : `Rate (${unit.name}/s)`}
              value={rate}
              onInput={setRate}
              error={error}
              hint={requestsText(rate, unit.requests)}
              placeholder={stat?.target_per_s == null ? "5k/s" : perSecond(stat.target_per_s)}
              inputRef={field}
              class="inline"
            />
            <Button submit busy={busy === "rate"}>
              Change
            </Button>
          </form>
        )}
        <div class="actions">
          {!isFixed && (
            <Button onClick={hold} busy={busy === "pause"} disabled={isDraining} shortcut="p">
              {paused ? "Resume" : "Pause"}
            </Button>
          )}
          <Button kind="danger" onClick={stop} busy={busy === "stop"} shortcut="s">
            {isDraining ? "Give up" : "Stop"}
          </Button>
        </div>
      </div>
      <Silence heard={heard} />
    </section>
  );
}

/** A notice as long as nothing is heard of the run. */
function Silence({ heard }: { heard: Heard }) {
  if (heard.connected) return null;
  return (
    <p class="notice" role="status">
      The program does not answer at the moment. The run goes on by itself.
    </p>
  );
}

/** Progress of a run that this start of the page has not made: one of a terminal is steered there, and one of
 * another start can be stopped. */
function Watched({ id, heard, from }: { id: string; heard: Heard; from: api.LiveRun["from"] }) {
  const [busy, setBusy] = useState(false);
  const [isStopping, setStopping] = useState(false);
  const stop = async () => {
    setBusy(true);
    try {
      notify((await api.stop(id, isStopping)).told);
      setStopping(true);
    } catch (thrown) {
      notifyError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section aria-label="Progress" class="steering-card">
      <div class="steering">
        <Badge kind={isStopping ? "doubtful" : "live"}>{isStopping ? "stopping" : "running"}</Badge>
        <Progress heard={heard} isSearch={false} />
        <span class="hint">
          {from === "page"
            ? "Started by another plimsoll ui, or before this one was started again: it can be stopped here."
            : "Started in a terminal, and steered there."}
        </span>
        {from === "page" && (
          <div class="actions">
            <Button kind="danger" onClick={() => void stop()} busy={busy}>
              {isStopping ? "Give up" : "Stop"}
            </Button>
          </div>
        )}
      </div>
      <Silence heard={heard} />
    </section>
  );
}

function Progress({ heard, isSearch }: { heard: Heard; isSearch: boolean }) {
  const { stat } = heard;
  const elapsed = stat?.elapsed_s ?? 0;
  const end = stat?.end_s ?? null;
  const text = end === null ? seconds(elapsed) : `${seconds(elapsed)} of ${seconds(end)}`;
  // A series tells its runs, and nothing between them.
  const waiting = isSearch ? "" : "starting";
  return (
    <div class="progress">
      <span>{stat === null ? waiting : text}</span>
      {stat !== null && flightText(stat) !== null && <span class="flight">{flightText(stat)}</span>}
      {end !== null && (
        <progress aria-label="Part of the run that is over" max={end} value={Math.min(elapsed, end)} />
      )}
    </div>
  );
}

/** A time that is renewed each second: without parts of one. */
const wholeSeconds = (value: number) => (value < 99.5 ? `${Math.round(value)} s` : seconds(value));

/** What a search tries, and the time that it has left at most. */
function SearchProgress({ heard }: { heard: Heard }) {
  const trying = latestTrying(heard.messages);
  // The message has the time of the search, whose clock need not be that of the browser.
  const began = useMemo(() => Date.now(), [trying?.at_s]);
  const [now, setNow] = useState(began);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  if (trying === null) return <div class="progress">starting</div>;
  const elapsed = Math.min(trying.most_s, trying.at_s + Math.max(0, now - began) / 1_000);
  return (
    <div class="progress">
      <span>
        trying {perSecond(trying.rate_per_s)} · {wholeSeconds(elapsed)}, at most{" "}
        {wholeSeconds(trying.most_s - elapsed)} left
      </span>
      <progress aria-label="Part of the longest search that is over" max={trying.most_s} value={elapsed} />
    </div>
  );
}

/** The end of a run, and the place where it is kept. */
function Ended({ heard }: { heard: Heard }) {
  const { end, result } = heard;
  if (end === null) return null;
  const isSeries = heard.entries !== null || end.suite !== undefined || end.repeated !== undefined;
  const series = seriesOfArgs(end.repeated?.runs[0]?.run.args ?? []);
  return (
    <section aria-label="End" role="status">
      <div class="steering">
        <Badge kind="done">ended</Badge>
        {result !== null && !isSeries && <OutcomeBadge outcome={result.verdict.outcome} />}
        <span>{exitText(end)}</span>
        <div class="actions">
          {series !== null && (
            <ButtonLink kind="primary" href={link("series", series)}>
              Open the saved runs
            </ButtonLink>
          )}
          {end.run !== null && !isSeries && (
            <ButtonLink kind="primary" href={link("run", end.run)}>
              Open the saved {end.capacity == null ? "run" : isSweep(end.capacity) ? "sweep" : "search"}
            </ButtonLink>
          )}
          <ButtonLink href={link("runs")}>To the runs</ButtonLink>
        </div>
      </div>
    </section>
  );
}

function exitText({ exit_code, from }: End): string {
  if (exit_code !== null) return `exit code ${exit_code}`;
  if (from === "page") return "its exit code is not known";
  return from === "terminal" ? "its terminal has the exit code" : "ended by a signal";
}

/** The messages of the run. */
function Messages({ messages }: { messages: string[] }) {
  const place = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const element = place.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [messages]);
  if (messages.length === 0) return null;
  return (
    <section aria-labelledby="messages-title">
      <h2 id="messages-title">Messages of the run</h2>
      <pre
        class="messages"
        tabIndex={0}
        aria-labelledby="messages-title"
        ref={place}
        onScroll={({ currentTarget: it }) =>
          (follows.current = it.scrollTop + it.clientHeight >= it.scrollHeight - 8)
        }
      >
        {messages.join("\n")}
      </pre>
    </section>
  );
}
