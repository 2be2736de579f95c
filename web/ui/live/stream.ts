/** The events of a run that goes on, held in bounded memory. */

import { effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import type { LiveStat } from "../app/api.ts";
import { listen } from "../app/events.ts";
import type { Result } from "../app/result.ts";
import { go, link } from "../app/router.ts";
import { liveRuns } from "../app/state.ts";
import type { Capacity, Sweep } from "./capacity.ts";
import type { Repeated, Suite } from "./series.tsx";

/** Messages that are kept; of more, the first ones go. */
export const MOST_MESSAGES = 500;

/** The end of a run. */
export interface End {
  exit_code: number | null;
  /** Identity of the saved run. */
  run: string | null;
  /** A terminal knows the exit code of what was started there. */
  from?: "terminal" | "page";
  /** The result of a search or of a sweep. */
  capacity?: Capacity | Sweep | null;
  /** The result of a series of runs. */
  suite?: Suite;
  /** The result of several runs of one plan. */
  repeated?: Repeated;
}

/** Everything that is known of a run: the latest figures only, whose own intervals are bounded. */
export interface Heard {
  stat: LiveStat | null;
  result: Result | null;
  messages: string[];
  /** The runs of a series; null if it is none. */
  entries: api.Entries | null;
  end: End | null;
  connected: boolean;
  error: api.ApiError | null;
}

export const NOTHING_HEARD: Heard = {
  stat: null,
  result: null,
  messages: [],
  entries: null,
  end: null,
  connected: true,
  error: null,
};

/** Everything that is known after another event. */
export function heardAfter(heard: Heard, name: string, data: unknown): Heard {
  switch (name) {
    case "result": {
      const { stat, result, kept = 0 } = data as { stat?: LiveStat; result?: Result; kept?: number };
      return { ...heard, stat: stat ?? heard.stat, result: joined(heard.result, result ?? null, kept) };
    }
    case "message": {
      const { text = "" } = data as { text?: string };
      return { ...heard, messages: [...heard.messages, text].slice(-MOST_MESSAGES) };
    }
    case "entries":
      return { ...heard, entries: data as api.Entries };
    case "end":
      return { ...heard, end: data as End };
    default:
      return heard;
  }
}

/** The result with all of its intervals: so many of those before are not told again. */
function joined(before: Result | null, result: Result | null, kept: number): Result | null {
  if (result === null || before === null || kept === 0) return result ?? before;
  return { ...result, intervals: [...before.intervals.slice(0, kept), ...result.intervals] };
}

/** Listens to a run for as long as the calling part of the page exists. */
export function useStream(id: string): Heard {
  const [heard, setHeard] = useState<Heard>(NOTHING_HEARD);
  useEffect(() => {
    setHeard(NOTHING_HEARD);
    const on = (name: string) => (data: unknown) => {
      setHeard((before) => heardAfter(before, name, data));
      // The program has nothing more to say, and would be asked again and again.
      if (name === "end") close();
    };
    const close = listen(`/api/live/${encodeURIComponent(id)}/events`, {
      on: { result: on("result"), message: on("message"), entries: on("entries"), end: on("end") },
      connected: (connected) => {
        // All messages come again.
        if (connected) setHeard((before) => ({ ...before, messages: [], connected, error: null }));
        else setHeard((before) => ({ ...before, connected }));
        if (!connected) void explain();
      },
    });
    let over = false;
    // The identity in the history is all that the next start of the program knows of a run of this one.
    let savedId: string | null = null;
    const forget = effect(() => {
      savedId = liveRuns.value.find((run) => run.id === id)?.run ?? savedId;
    });
    const explain = async () => {
      try {
        const { runs } = await api.live();
        const found = runs.find((run) => run.id === id);
        if (over || found !== undefined) return;
        const known = savedId ?? id;
        if (runs.some((run) => run.id === known)) {
          go(link("live", known), { replace: true });
          return;
        }
        close();
        // It has ended meanwhile, and is in the history.
        const isThere = (asked: Promise<unknown>) =>
          asked.then(
            () => true,
            () => false,
          );
        // Several runs are saved as a series of the same name.
        const isSeries = await isThere(api.series(id));
        const isSaved = !isSeries && (await isThere(api.saved(known)));
        if (over) return;
        if (isSeries || isSaved) {
          go(isSeries ? link("series", id) : link("run", known), { replace: true });
          return;
        }
        const error = { error: "this page knows no such run", hint: "it may be in the list of saved runs" };
        setHeard((before) => ({ ...before, error: new api.ApiError(404, error) }));
      } catch {
        // The request is tried again.
      }
    };
    return () => {
      over = true;
      forget();
      close();
    };
  }, [id]);
  return heard;
}
