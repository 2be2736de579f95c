/** Server-sent events that end with the part of the page that listens. */

import { ApiError, about, hearAnswer } from "./api.ts";

/** Time until the page asks anew for events that were refused. */
const AGAIN_MS = 2_000;

export interface Heard {
  /** By the name of an event: the handler of its data. */
  on: Record<string, (data: unknown) => void>;
  /** Told as the connection comes and goes. */
  connected?: (is: boolean) => void;
}

/**
 * Listens to events until the returned function is called. A page in the background does not listen: browsers
 * allow few connections to one server, and a page that returns gets everything again.
 */
export function listen(path: string, { on, connected }: Heard): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const open = () => {
    if (over || source !== null || document.visibilityState === "hidden") return;
    const made = new EventSource(path);
    source = made;
    made.onopen = () => {
      hearAnswer();
      connected?.(true);
    };
    made.onerror = () => {
      connected?.(false);
      // The browser tries again by itself, unless it was refused.
      if (made.readyState !== EventSource.CLOSED) return;
      close();
      clearTimeout(timer);
      timer = setTimeout(async () => {
        try {
          await about();
        } catch (error) {
          if (error instanceof ApiError && error.status === 401) return;
        }
        open();
      }, AGAIN_MS);
    };
    for (const [name, heard] of Object.entries(on)) {
      made.addEventListener(name, (event) => {
        if (over || !(event instanceof MessageEvent)) return;
        heard(parsed(String(event.data)));
      });
    }
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const seen = () => (document.visibilityState === "hidden" ? close() : open());

  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    over = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}

function parsed(text: string): unknown {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch {
    return {};
  }
}
