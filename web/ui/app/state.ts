/** The state of the whole page: the session, the program, and the runs that go on. */

import { signal } from "@preact/signals";
import {
  type About,
  about as fetchAbout,
  errorOf,
  type LiveRun,
  onRefused,
  session as exchange,
} from "./api.ts";
import { listen } from "./events.ts";
import { notifyError } from "./notify.tsx";
import { go, link, route, tokenOf } from "./router.ts";

export type Session = "unknown" | "open" | "none" | "unreachable";

export const session = signal<Session>("unknown");
/** True if the address had a token, and the program did not take it. */
export const isTokenWrong = signal(false);
/** The program, as it describes itself. */
export const about = signal<About | null>(null);
export const liveRuns = signal<LiveRun[]>([]);
/** Counts the changes of the list of saved runs, so that its views can follow. */
export const savedVersion = signal(0);
/** True as long as the program tells the page of events. */
export const connected = signal(true);

let close: (() => void) | null = null;

/** Opens the session: by the token of the address, or by the cookie that the browser has. */
export async function openSession(): Promise<void> {
  onRefused(() => {
    session.value = "none";
    close?.();
    close = null;
  });
  const token = tokenOf(location.hash);
  try {
    if (token !== null) {
      // The token must not stay in the history or in the address bar.
      // In a page that was open, back to its place.
      const { name, of, query } = route.peek();
      const here = name === "unknown" ? link("runs") : link(name, of, Object.fromEntries(query));
      go(here, { replace: true });
      await exchange(token);
    }
    isTokenWrong.value = false;
    about.value = await fetchAbout();
    session.value = "open";
  } catch (error) {
    const { status } = errorOf(error);
    isTokenWrong.value = token !== null && status !== 0;
    session.value = status === 0 ? "unreachable" : "none";
    return;
  }
  close?.();
  close = listen("/api/events", {
    on: {
      runs: () => (savedVersion.value += 1),
      live: (data) => (liveRuns.value = (data as { runs?: LiveRun[] }).runs ?? []),
    },
    connected: (is) => (connected.value = is),
  });
}

/** Fetches the program's description of itself anew, for instance once its server for examples runs. */
export async function refreshAbout(): Promise<void> {
  try {
    about.value = await fetchAbout();
  } catch (error) {
    notifyError(error);
  }
}
