/** Several lines that are pasted into a field of one: a row for each. */

/** The rows that pasted lines make of a field, whose selection they replace; null of a single line. */
export function pastedLines(value: string, pasted: string, from: number, to: number): string[] | null {
  if (!/[\r\n]/.test(pasted.trim())) return null;
  const lines = `${value.slice(0, from)}${pasted}${value.slice(to)}`.split(/\r\n|\r|\n/);
  return lines.map((line) => line.trim()).filter((line) => line !== "");
}

/** A header field or another pair, as it is written on a line; null without a colon or a name. */
export function pairOf(line: string): { name: string; value: string } | null {
  // Names of HTTP/2, such as `:authority`, begin with a colon.
  const [, name, value] = /^(:?[^:]+):(.*)$/.exec(line) ?? [];
  return name === undefined ? null : { name: name.trim(), value: (value ?? "").trim() };
}

/** Takes pasted lines as rows; a single line stays with the field. */
export const takesLines = (take: (lines: string[]) => void) => (event: ClipboardEvent) => {
  const field = event.currentTarget;
  if (!(field instanceof HTMLInputElement)) return;
  const pasted = event.clipboardData?.getData("text/plain") ?? "";
  const end = field.value.length;
  const lines = pastedLines(field.value, pasted, field.selectionStart ?? end, field.selectionEnd ?? end);
  if (lines === null) return;
  event.preventDefault();
  take(lines);
};
