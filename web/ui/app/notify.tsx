/** Short messages at the edge of the page, and questions before something that cannot be undone. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { errorOf } from "./api.ts";
import { Button, Dialog } from "./controls.tsx";

interface Notice {
  id: number;
  text: string;
  hint: string | null;
  kind: "done" | "bad";
}

/** Time for which a message without an error stays. */
const STAYS_MS = 6_000;
/** More would cover the page. */
const MOST = 4;

const notices = signal<Notice[]>([]);
let last = 0;

/** Shows that something is done. */
export function notify(text: string): void {
  add(text, null, "done");
}

/** Shows an error, with advice. */
export function notifyError(thrown: unknown): void {
  const error = errorOf(thrown);
  // Without a session the whole page says so.
  if (error.status !== 401) add(error.message, error.hint, "bad");
}

function add(text: string, hint: string | null, kind: Notice["kind"]): void {
  last += 1;
  const id = last;
  notices.value = [...notices.value.filter((one) => one.text !== text), { id, text, hint, kind }].slice(
    -MOST,
  );
  if (kind === "done") setTimeout(() => drop(id), STAYS_MS);
}

function drop(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, hint, kind }) => (
        <div class={`note ${kind}`} key={id}>
          <div>
            <p class="preserved">
              <span aria-hidden="true">{kind === "bad" ? "✗ " : "✓ "}</span>
              {text}
            </p>
            {hint !== null && <p class="hint preserved">{hint}</p>}
          </div>
          <Button onClick={() => drop(id)} label={`Dismiss: ${text}`}>
            ✕
          </Button>
        </div>
      ))}
    </div>
  );
}

interface Question {
  title: string;
  text: ComponentChildren;
  /** The word of the button that does it. */
  action: string;
  danger?: boolean;
}

const asked = signal<(Question & { answer: (is: boolean) => void }) | null>(null);

/** Asks before something is done. */
export function ask(question: Question): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (is) => {
        asked.value = null;
        resolve(is);
      },
    };
  });
}

export function Questions() {
  const now = asked.value;
  useEffect(() => {
    // Back is "no", too.
    const onBack = () => asked.peek()?.answer(false);
    addEventListener("popstate", onBack);
    return () => removeEventListener("popstate", onBack);
  }, []);
  return (
    <Dialog
      title={now?.title ?? ""}
      open={now !== null}
      onClose={() => now?.answer(false)}
      actions={
        <>
          <Button first={now?.danger === true} onClick={() => now?.answer(false)}>
            Cancel
          </Button>
          <Button
            kind={now?.danger === true ? "danger" : "primary"}
            first={now?.danger !== true}
            onClick={() => now?.answer(true)}
          >
            {now?.action}
          </Button>
        </>
      }
    >
      {now?.text}
    </Dialog>
  );
}
