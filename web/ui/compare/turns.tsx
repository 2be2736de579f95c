/** More runs of both sides, in turns: what a comparison lacks that is undecided. */

import { effect, signal } from "@preact/signals";
import * as api from "../app/api.ts";
import { Button } from "../app/controls.tsx";
import { notify, notifyError } from "../app/notify.tsx";
import { go, link, route } from "../app/router.ts";
import { liveRuns } from "../app/state.ts";
import { sameLoad } from "../runs/again.tsx";

/** Runs of each side: from five on the differences between runs are known well enough. */
export const ENOUGH = 5;

/** The turns that go on, in words; they go on on other pages of this tab, too. */
const goingOn = signal<string | null>(null);
/** True as soon as no further run is to begin. */
let isStopped = false;

/** Waits for the end of a run that the page has started: its identity in the history. */
function ended(id: string): Promise<string | null> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      const run = liveRuns.value.find((run) => run.id === id);
      if (run?.state !== "ended") return;
      resolve(run.run);
      queueMicrotask(() => stop());
    });
  });
}

/** Carries out runs of both sides in turns, and shows their comparison. */
async function takeTurns(sides: [api.Start, api.Start]): Promise<void> {
  const made: [string[], string[]] = [[], []];
  const from = location.hash;
  isStopped = false;
  try {
    for (let round = 1; round <= ENOUGH; round += 1) {
      for (const side of [0, 1] as const) {
        if (isStopped) return;
        goingOn.value = `Run ${round} of ${ENOUGH} of ${side === 0 ? "A" : "B"} goes on.`;
        const { id } = await api.start(sides[side]);
        const saved = await ended(id);
        if (saved === null) throw new Error("a run has ended without a result: there are no further turns");
        made[side].push(saved);
      }
    }
  } catch (error) {
    notifyError(error);
    return;
  } finally {
    goingOn.value = null;
  }
  const comparison = link("compare", "", { a: made[0].join(","), b: made[1].join(",") });
  if (location.hash === from && route.peek().name === "compare") go(comparison);
  else notify(`${ENOUGH} runs each, in turns, have been made: choose them in the list of runs to compare them.`);
}

/** The next step after a comparison that is undecided. */
export function Turns({ a, b }: { a: string; b: string }) {
  const begin = async () => {
    goingOn.value = "Looking for the plans.";
    try {
      const [one, other] = await Promise.all([sameLoad(a), sameLoad(b)]);
      goingOn.value = null;
      if (one === null || other === null) {
        throw new Error("the plan of a run is not there any more: make the runs by `plimsoll run --repeat 5`");
      }
      const load = ({ name: _, ...rest }: api.Start) => JSON.stringify(rest);
      if (load(one) === load(other)) {
        throw new Error(
          "A and B are one load on one address, so that turns would run the same twice: make the runs of each " +
            "server when it is up, by `plimsoll run --repeat 5`",
        );
      }
      await takeTurns([one, other]);
    } catch (error) {
      goingOn.value = null;
      notifyError(error);
    }
  };
  return (
    <div class="turns">
      <Button kind="primary" onClick={() => void begin()} disabled={goingOn.value !== null}>
        Make {ENOUGH} runs each, in turns
      </Button>
      {goingOn.value !== null && (
        <>
          <span role="status">{goingOn.value}</span>
          <Button onClick={() => (isStopped = true)}>Stop after this run</Button>
        </>
      )}
      {goingOn.value === null && (
        <span class="hint">A few runs do not tell a difference from chance. Leave this tab open meanwhile.</span>
      )}
    </div>
  );
}
