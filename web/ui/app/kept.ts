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

/** Gives the form of this name its usual values the next time it is opened. */
export function forget(name: string): void {
  kept.delete(name);
}

/** Gives the values of a form to the one of another name, in the place of those that it had. */
export function move(from: string, to: string): void {
  const values = kept.get(from);
  if (values === undefined) kept.delete(to);
  else kept.set(to, values);
  kept.delete(from);
}
