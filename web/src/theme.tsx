import { useEffect, useState } from "preact/hooks";

type Choice = "auto" | "light" | "dark";

const CHOICES: { choice: Choice; label: string }[] = [
  { choice: "auto", label: "Auto" },
  { choice: "light", label: "Light" },
  { choice: "dark", label: "Dark" },
];
/** The key of the remembered choice, if the browser stores it for files. */
const KEY = "plimsoll-theme";

const listeners = new Set<() => void>();

function tell(): void {
  listeners.forEach((listener) => listener());
}

/** Starts to follow the system's scheme, and the printer's, for which everything is light. */
export function followTheme(): void {
  apply(remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset["printing"] = "";
    tell();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset["printing"];
    tell();
  });
}

/** A number that changes with the scheme, so that charts are drawn anew. */
export function useTheme(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const listener = () => setVersion((version) => version + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return version;
}

/** A colour of the style sheet. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Three buttons: as the system has it, light, dark. */
export function ThemeChoice() {
  const [choice, setChoice] = useState(remembered);
  const choose = (choice: Choice) => {
    setChoice(choice);
    apply(choice);
    remember(choice);
    tell();
  };
  return (
    <div class="buttons" role="group" aria-label="Colours of this page">
      {CHOICES.map(({ choice: one, label }) => (
        <button type="button" aria-pressed={one === choice} onClick={() => choose(one)}>
          {label}
        </button>
      ))}
    </div>
  );
}

function apply(choice: Choice): void {
  if (choice === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice;
}

function remembered(): Choice {
  try {
    const found = localStorage.getItem(KEY);
    return CHOICES.some(({ choice }) => choice === found) ? (found as Choice) : "auto";
  } catch {
    // Files have no storage in some browsers.
    return "auto";
  }
}

function remember(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Then the choice is not remembered.
  }
}
