import { useLayoutEffect, useState } from "preact/hooks";
import { parseDocument } from "yaml";
import { type FieldOf, orderOf, Row } from "./fields.tsx";
import { nodeAt } from "./tree.ts";

/** A value of any shape, as text: a body in JSON, claims, rows. */
export function RawField(props: FieldOf) {
  const { model, schema, path } = props;
  const node = nodeAt(model.tree.value, path);
  const value =
    node?.range == null
      ? ""
      : outdented(
          model.text.value.slice(node.range[0], node.range[1]),
          node.range[0],
          model.text.value,
        ).trimEnd();
  const [draft, setDraft] = useState(value);
  const [error, setError] = useState<string | null>(null);
  // Before the next event: what is typed at once is not written over.
  useLayoutEffect(() => {
    setDraft(value);
    setError(null);
  }, [value]);
  const take = (text: string) => {
    if (text.trimEnd() === value.trimEnd()) return;
    if (text.trim() === "") {
      if (node !== null) model.edit({ kind: "remove", path });
      return;
    }
    const tree = parseDocument(text, { logLevel: "error" });
    const [wrong] = tree.errors;
    setError(wrong === undefined ? null : (wrong.message.split("\n")[0] ?? wrong.message));
    if (wrong !== undefined) return;
    const order = orderOf(schema, path.slice(0, -1));
    model.edit({ kind: "set", path, value: tree.toJS() as unknown, order, source: text });
  };
  return (
    <Row {...props} hint="As YAML or JSON.">
      {(control) => (
        <>
          <textarea
            {...control}
            rows={Math.min(14, value.split("\n").length + 1)}
            spellcheck={false}
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onChange={(event) => take(event.currentTarget.value)}
          />
          {error !== null && (
            <p class="field-error" role="alert">
              {error}
            </p>
          )}
        </>
      )}
    </Row>
  );
}

/** Lines of a value without the indentation that they have in the plan. */
function outdented(text: string, from: number, whole: string): string {
  const column = from - (whole.lastIndexOf("\n", from - 1) + 1);
  return text
    .split("\n")
    .map((line, index) => (index === 0 ? line : line.replace(new RegExp(`^ {0,${column}}`), "")))
    .join("\n");
}
