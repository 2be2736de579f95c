import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { completionsAt, hoverText } from "./complete.ts";
import type { PlanModel } from "./model.ts";
import type { SchemaTree } from "./schema.ts";
import { pathAt } from "./tree.ts";

/** The text of a plan, with findings at their places, descriptions of its keys, and completion. */
export function PlanText({
  model,
  schema,
  onSave,
}: {
  model: PlanModel;
  schema: SchemaTree | null;
  onSave: () => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const saves = useRef(onSave);
  saves.current = onSave;

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const extensions = [
      ...common(model),
      keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (saves.current(), true) }]),
      ...(model.isPlan ? [yaml(), lintGutter()] : []),
      ...(schema === null ? [] : [completion(schema), hover(model, schema)]),
    ];
    const state = EditorState.create({ doc: model.text.peek(), extensions });
    const view = new EditorView({ state, parent });
    model.view = view;
    return () => {
      model.view = null;
      view.destroy();
    };
  }, [model, schema]);

  const findings = model.findings.value;
  useEffect(() => {
    const { view } = model;
    if (view === null) return;
    const end = view.state.doc.length;
    const diagnostics = findings.flatMap(({ from, to, severity, message, hint, mend }): Diagnostic[] => {
      if (from === null || to === null || from > end) return [];
      const text = hint === null || hint === "" ? message : `${message}\n${hint}`;
      const actions =
        mend === null
          ? []
          : [
              {
                name: `Change to ${mend}`,
                apply: (_: EditorView, from: number, to: number) => model.replace(from, to, mend),
              },
            ];
      return [
        {
          from,
          to: Math.min(to, end),
          severity: severity === "error" ? "error" : "info",
          message: text,
          actions,
        },
      ];
    });
    view.dispatch(setDiagnostics(view.state, diagnostics));
  }, [model, findings]);

  return <div class="plan-text" ref={place} />;
}

function common(model: PlanModel): Extension[] {
  const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";
  return [
    ...(nonce === "" ? [] : [EditorView.cspNonce.of(nonce)]),
    lineNumbers(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    syntaxHighlighting(classHighlighter),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({
      "aria-label": `Text of ${model.path}`,
      tabindex: "0",
      spellcheck: "false",
    }),
    typedOver,
    // Tab goes to the next control, as everywhere on the page; Ctrl-] and Ctrl-[ indent.
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) model.changed(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) model.cursor.value = update.state.selection.main.head;
    }),
  ];
}

/**
 * Typing over a selection. Left to the browser, it would put the style of the old text into the page, which
 * the policy of the page refuses each time.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { main } = view.state.selection;
    const { data } = event;
    if (event.inputType !== "insertText" || data === null || main.empty || view.composing) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, main.from, main.to, data, insert))) view.dispatch(insert());
    return true;
  },
});

function completion(schema: SchemaTree): Extension {
  const source = (context: CompletionContext): CompletionResult | null => {
    const found = completionsAt(context.state.doc.toString(), context.pos, schema);
    if (found === null) return null;
    const isWord = found.from < context.pos;
    // Unasked only while a word is typed: an empty line is left in peace.
    if (!context.explicit && !isWord && !wasChosen) return null;
    wasChosen = false;
    return {
      from: found.from,
      to: found.to,
      validFor: /^[\w./-]*$/,
      options: found.options.map(({ label, info, insert, kind, goesOn }, index): Completion => ({
        label,
        type: kind,
        boost: -index,
        ...(info !== "" && { info }),
        apply: (view, _completion, from, to) => {
          view.dispatch({
            changes: { from, to, insert },
            selection: { anchor: from + insert.length },
            userEvent: "input.complete",
            scrollIntoView: true,
          });
          if (!goesOn) return;
          wasChosen = true;
          startCompletion(view);
        },
      })),
    };
  };
  return autocompletion({ override: [source], icons: false, closeOnBlur: true });
}

/** True if the last completion asks for another one at an empty place. */
let wasChosen = false;

function hover(model: PlanModel, schema: SchemaTree): Extension {
  return hoverTooltip((_view, offset): Tooltip | null => {
    const { path, onKey } = pathAt(model.tree.peek(), offset);
    const words = hoverText(path, schema);
    if (words === null) return null;
    const [from, to] = onKey === null ? [offset, offset] : [onKey.from, onKey.to];
    return {
      pos: from,
      end: to,
      above: true,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "plan-hover";
        const title = document.createElement("strong");
        title.textContent = words.title;
        const text = document.createElement("p");
        text.textContent = words.text;
        dom.append(title, text);
        if (words.values.length > 0) {
          const values = document.createElement("p");
          values.className = "hint";
          values.textContent = `One of ${words.values.join(", ")}`;
          dom.append(values);
        }
        return { dom };
      },
    };
  });
}
