/** Values of forms, which last as long as the page: a form that is left and opened again has its input. */

import { type Signal, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

const kept = new Map<string, Signal<unknown>>();

/** Gives the form of this name its values. */
export function keep<T>(name: string, value: T): void {
  const known = kept.get(name);
  if (known === undefined) kept.set(name, signal<unknown>(value));
  else known.value = value;
}

/** The values of the form of this name; `usual` at first. They are in memory only: some are secrets. */
export function useKept<T>(name: string, usual: T): Signal<T> {
  return useMemo(() => {
    const known = kept.get(name) ?? signal<unknown>(usual);
    kept.set(name, known);
    return known as Signal<T>;
  }, [name]);
}
