import type { Problem } from "../app/api.ts";

/** A finding with its place in the text; a finding about no place has none. */
export interface Finding extends Problem {
  from: number | null;
  to: number | null;
  /** A word that its hint offers in the place of the one that is wrong. */
  mend: string | null;
}

/** The offset of a line and column, which begin with one and count characters, as in findings. */
export function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = text.indexOf("\n", start);
    if (end === -1) return text.length;
    start = end + 1;
  }
  return forward(text, start, column - 1);
}

/** The line and column of an offset, as people count them. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

/** Findings with their places in the text that was checked. */
export function located(text: string, problems: readonly Problem[]): Finding[] {
  return problems.map((problem) => {
    const mend = mendOf(problem.hint);
    if (problem.line === null) return { ...problem, from: null, to: null, mend: null };
    const from = offsetOf(text, problem.line, problem.column ?? 1);
    const to = forward(text, from, Math.max(1, problem.length ?? 1));
    return { ...problem, from, to: Math.max(from, to), mend: to > from ? mend : null };
  });
}

/** The word of a hint such as "did you mean `duration`?". */
export function mendOf(hint: string | null): string | null {
  return /^did you mean `([^`]+)`\?/.exec(hint ?? "")?.[1] ?? null;
}

/** The offset so many characters further on, but not past the end of the line. */
function forward(text: string, start: number, count: number): number {
  let at = start;
  for (let left = count; left > 0 && at < text.length && text.charAt(at) !== "\n"; left -= 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}
