/** More runs of both sides, in turns: what a comparison lacks that is undecided. */

import { useEffect, useState } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import * as api from "../app/api.ts";
import { Button } from "../app/controls.tsx";
import { notify, notifyError } from "../app/notify.tsx";
import { go, link, route } from "../app/router.ts";
import { liveRuns } from "../app/state.ts";
import { ENOUGH, sameLoad } from "../runs/again.tsx";

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

type Side = 0 | 1;
const LETTERS = ["A", "B"] as const;

/** Carries out runs in this order, and shows the comparison of what was there before and of them. */
async function carryOut(turns: [Side, api.Start][], before: [string[], string[]]): Promise<void> {
  const made: [string[], string[]] = [[...before[0]], [...before[1]]];
  const from = location.hash;
  isStopped = false;
  try {
    for (const [number, [side, start]] of turns.entries()) {
      if (isStopped) return;
      goingOn.value = `Run ${number + 1} of ${turns.length} goes on, of ${LETTERS[side]}.`;
      const { id } = await api.start(start);
      const saved = await ended(id);
      if (saved === null) throw new Error("a run has ended without a result: no further ones are made");
      made[side].push(saved);
    }
  } catch (error) {
    notifyError(error);
    return;
  } finally {
    goingOn.value = null;
  }
  const comparison = link("compare", "", { a: made[0].join(","), b: made[1].join(",") });
  if (location.hash === from && route.peek().name === "compare") go(comparison);
  else notify(`${turns.length} runs have been made: choose them in the list of runs to compare them.`);
}

/** The loads of both sides; null as long as they are not known, and of each whose plan is not there any more. */
function useLoads(a: string, b: string): [api.Start | null, api.Start | null] | null {
  const [loads, setLoads] = useState<[api.Start | null, api.Start | null] | null>(null);
  useEffect(() => {
    let over = false;
    setLoads(null);
    const known = (id: string) => sameLoad(id).catch(() => null);
    void Promise.all([known(a), known(b)]).then((found) => over || setLoads(found));
    return () => void (over = true);
  }, [a, b]);
  return loads;
}

const load = ({ name: _, ...rest }: api.Start) => JSON.stringify(rest);

/** The next step after a comparison that is undecided: runs that this page can make. */
export function Turns({ a, b }: { a: string[]; b: string[] }) {
  const loads = useLoads(a[0] ?? "", b[0] ?? "");
  if (goingOn.value !== null) {
    return (
      <div class="turns">
        <span role="status">{goingOn.value}</span>
        <Button onClick={() => (isStopped = true)}>Stop after this run</Button>
      </div>
    );
  }
  if (loads === null) return null;
  const [one, other] = loads;
  const few = <span class="hint">A few runs do not tell a difference from chance. Leave this tab open meanwhile.</span>;
  if (one !== null && other !== null && load(one) !== load(other)) {
    const turns = Array.from({ length: ENOUGH }, (): [Side, api.Start][] => [
      [0, one],
      [1, other],
    ]).flat();
    return (
      <div class="turns">
        <Button kind="primary" onClick={() => void carryOut(turns, [[], []])}>
          Make {ENOUGH} runs each, in turns
        </Button>
        {few}
      </div>
    );
  }
  // One load on one address is of the server that is up now, which only its owner can change.
  const lacking = [
    { side: 0 as const, ids: a, start: one },
    { side: 1 as const, ids: b, start: other },
  ].flatMap(({ side, ids, start }) =>
    start === null || ids.length >= ENOUGH ? [] : [{ side, more: ENOUGH - ids.length, start }],
  );
  if (lacking.length === 0) {
    return (
      <p class="hint">
        The page has no plan of these runs: they were started with a URL in place of a plan, or their plans are
        not there any more. Run a plan with <em>Runs</em> {ENOUGH} for each side, and compare those;{" "}
        <code>plimsoll URL --print-plan</code> prints the plan of a URL.
      </p>
    );
  }
  return (
    <div class="turns">
      {lacking.map(({ side, more, start }) => (
        <Button
          kind={side === 1 ? "primary" : "plain"}
          key={side}
          onClick={() => void carryOut(Array.from({ length: more }, () => [side, start]), [a, b])}
        >
          {more === 1 ? "Make 1 more run" : `Make ${more} more runs`} of {LETTERS[side]}
        </Button>
      ))}
      <span class="hint">
        {one !== null && other !== null
          ? "Both are one load on one address: start the server of that side first. "
          : `The page has no plan of ${one === null ? "A" : "B"}. `}
        A few runs do not tell a difference from chance. Leave this tab open meanwhile.
      </span>
    </div>
  );
}
