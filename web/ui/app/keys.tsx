/** Keys that do something anywhere on the page, and the window that lists them. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "./controls.tsx";
import { go, link } from "./router.ts";

export interface Shortcut {
  /** As `KeyboardEvent.key` has it; of two, the one after the other: `g r`. */
  keys: string;
  about: string;
  act: () => void;
}

const places: Shortcut[] = [
  { keys: "g r", about: "Runs", act: () => go(link("runs")) },
  { keys: "g p", about: "Plans", act: () => go(link("plans")) },
  { keys: "g n", about: "New plan", act: () => go(link("new")) },
  { keys: "g i", about: "Import", act: () => go(link("import")) },
  { keys: "g f", about: "Find", act: () => go(link("find")) },
  { keys: "g l", about: "Fleet", act: () => go(link("fleet")) },
  { keys: "?", about: "These keys", act: () => (helpOpen.value = true) },
];
const general = signal<Shortcut[]>(places);
/** Keys of the part that is seen. */
const own = signal<Shortcut[]>([]);

export const helpOpen = signal(false);

/** Keys of a part of the page, as long as it is there. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useEffect(() => {
    own.value = [...own.peek(), ...shortcuts];
    return () => {
      own.value = own.peek().filter((one) => !shortcuts.includes(one));
    };
  });
}

/** True if single letters do something: users who speak, or whose hand slips, may turn them off. */
const KEY = "plimsoll-keys";
const lettersOn = signal(remembered());

function remembered(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

function setLetters(are: boolean): void {
  lettersOn.value = are;
  try {
    localStorage.setItem(KEY, are ? "on" : "off");
  } catch {
    // Then the choice is not remembered.
  }
}

/** Longest time between two keys of a pair. */
const PAIR_MS = 1_500;

/** Starts to listen to keys. */
export function followKeys(): void {
  let first = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target))
      return;
    // A window over the page has its own keys.
    if (document.querySelector("dialog[open]") !== null) return;
    if (!lettersOn.peek() && event.key !== "?") return;
    const all = [...own.peek(), ...general.peek()];
    const pair = `${first} ${event.key}`;
    const found = all.find(({ keys }) => keys === pair) ?? all.find(({ keys }) => keys === event.key);
    clearTimeout(timer);
    first = "";
    if (found !== undefined) {
      event.preventDefault();
      found.act();
    } else if (all.some(({ keys }) => keys.startsWith(`${event.key} `))) {
      first = event.key;
      timer = setTimeout(() => (first = ""), PAIR_MS);
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select")
  );
}

export function KeysDialog() {
  const licences = document.querySelector<HTMLTemplateElement>("#licences")?.content.textContent ?? "";
  return (
    <Dialog title="Keys" open={helpOpen.value} onClose={() => (helpOpen.value = false)}>
      <KeyList title="On this screen" shortcuts={own.value} />
      <KeyList title="Anywhere" shortcuts={general.value} />
      <p class="hint">
        In a chart the arrow keys move the cursor, <kbd>+</kbd>, <kbd>-</kbd> and <kbd>0</kbd> zoom.{" "}
        <kbd>Tab</kbd> goes to the next control, <kbd>Escape</kbd> closes a window.
      </p>
      <label class="choice">
        <input
          type="checkbox"
          checked={lettersOn.value}
          onChange={(event) => setLetters(event.currentTarget.checked)}
        />
        Letter shortcuts
      </label>
      <details class="licences">
        <summary>Licences of the parts of this page</summary>
        <pre tabIndex={0}>{licences}</pre>
      </details>
    </Dialog>
  );
}

function KeyList({ title, shortcuts }: { title: string; shortcuts: Shortcut[] }) {
  if (shortcuts.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <dl class="keys">
        {shortcuts.map(({ keys, about }) => (
          <div>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
