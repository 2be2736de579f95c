/** Short messages at the edge of the page, and questions before something that cannot be undone. */

import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { errorOf, onAnswer } from "./api.ts";
import { Button, Dialog } from "./controls.tsx";
import { link, type Route, route } from "./router.ts";

interface Notice {
  id: number;
  text: string;
  hint: string | null;
  kind: "done" | "bad";
  /** The place that an error is about: it goes with that. */
  place: string | null;
  /** True if it says that the program does not answer, which is over with its next answer. */
  isSilence: boolean;
}

/** Time for which a message without an error stays. */
const STAYS_MS = 6_000;
/** More would cover the page. */
const MOST = 4;

const notices = signal<Notice[]>([]);
let last = 0;

/** Shows that something is done. */
export function notify(text: string): void {
  add({ text, hint: null, kind: "done", place: null, isSilence: false });
}

/** Shows an error, with advice. */
export function notifyError(thrown: unknown): void {
  const error = errorOf(thrown);
  // Without a session the whole page says so.
  if (error.status === 401) return;
  const { message: text, hint, isSilence } = error;
  add({ text, hint, kind: "bad", place: placeOf(route.peek()), isSilence });
}

function add(notice: Omit<Notice, "id">): void {
  last += 1;
  const id = last;
  const others = notices.peek().filter((one) => one.text !== notice.text);
  notices.value = [...others, { ...notice, id }].slice(-MOST);
  if (notice.kind === "done") setTimeout(() => drop(id), STAYS_MS);
}

const placeOf = ({ name, of }: Route) => link(name, of);

/** Keeps the messages that are true still. */
function keep(isTrue: (notice: Notice) => boolean): void {
  const kept = notices.peek().filter(isTrue);
  if (kept.length < notices.peek().length) notices.value = kept;
}

// What went wrong on a page is of no other, and what the program did not answer is over once it does.
effect(() => {
  const here = placeOf(route.value);
  keep(({ place }) => place === null || place === here);
});
onAnswer(() => keep(({ isSilence }) => !isSilence));

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

/** Takes a question back, which counts as "no". */
export function withdraw(): void {
  asked.peek()?.answer(false);
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
