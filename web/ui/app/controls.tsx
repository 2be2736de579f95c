/** Controls that all parts of the page share. */

import { type ComponentChildren, type JSX, type Ref } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError, LiveRun, Outcome, Problem } from "./api.ts";

type Kind = "plain" | "primary" | "danger";

export interface ButtonProps {
  children: ComponentChildren;
  onClick?: (event: MouseEvent) => void;
  kind?: Kind;
  disabled?: boolean;
  /** While it works: it takes no clicks, and says so. */
  busy?: boolean;
  /** The key that does the same, shown beside it. */
  shortcut?: string;
  /** For buttons whose text alone does not describe their action. */
  label?: string;
  pressed?: boolean;
  submit?: boolean;
  /** Has the focus when its window opens. */
  first?: boolean;
  class?: string;
  buttonRef?: Ref<HTMLButtonElement>;
}

export function Button(props: ButtonProps) {
  const { children, onClick, kind = "plain", disabled = false, busy = false, shortcut, label } = props;
  return (
    <button
      ref={props.buttonRef ?? null}
      type={props.submit === true ? "submit" : "button"}
      class={`button ${kind} ${props.class ?? ""}`}
      disabled={disabled || busy}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={props.pressed}
      aria-keyshortcuts={shortcut}
      data-first={props.first === true ? "" : undefined}
      onClick={onClick}
    >
      {children}
      {shortcut !== undefined && <kbd aria-hidden="true">{shortcut}</kbd>}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink(props: {
  href: string;
  children: ComponentChildren;
  kind?: Kind;
  download?: boolean;
}) {
  return (
    <a class={`button ${props.kind ?? "plain"}`} href={props.href} download={props.download}>
      {props.children}
    </a>
  );
}

export type BadgeKind = "good" | "bad" | "doubtful" | "done" | "live" | "plain";

const SIGNS: Record<BadgeKind, string> = {
  good: "✓",
  bad: "✗",
  doubtful: "!",
  done: "•",
  live: "▶",
  plain: "",
};

/** A word with a sign and a colour: never the colour alone. */
export function Badge({
  kind,
  children,
  title,
}: {
  kind: BadgeKind;
  children: ComponentChildren;
  title?: string;
}) {
  return (
    <span class={`badge ${kind}`} title={title}>
      {SIGNS[kind] !== "" && (
        <span class="badge-sign" aria-hidden="true">
          {SIGNS[kind]}
        </span>
      )}
      {children}
    </span>
  );
}

/** The words for an outcome, and its look. */
export const OUTCOMES: Record<Outcome, { word: string; kind: BadgeKind }> = {
  pass: { word: "PASS", kind: "good" },
  fail: { word: "FAIL", kind: "bad" },
  done: { word: "DONE", kind: "done" },
  no_verdict: { word: "NO VERDICT", kind: "doubtful" },
};

export function OutcomeBadge({ outcome }: { outcome: Outcome | null }) {
  if (outcome === null) return <Badge kind="plain">no outcome</Badge>;
  // An outcome of a later version is shown by its own word.
  const { word, kind } = OUTCOMES[outcome] ?? { word: String(outcome).toUpperCase(), kind: "plain" };
  return <Badge kind={kind}>{word}</Badge>;
}

/** The state of a run that goes on. */
export function StateBadge({ run }: { run: Pick<LiveRun, "state" | "paused"> }) {
  return run.paused === true ? <Badge kind="doubtful">paused</Badge> : <Badge kind="live">{run.state}</Badge>;
}

export interface FieldProps {
  label: string;
  /** Below the control. */
  hint?: ComponentChildren;
  error?: ComponentChildren;
  /** Called with the attributes that tie the control to its label and its hint. */
  children: (control: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean;
  }) => JSX.Element;
  class?: string;
}

/** A control with its label, a hint, and the problem with its value. */
export function Field({ label, hint, error, children, class: name = "" }: FieldProps) {
  const id = useId();
  const said = [error != null && `${id}-error`, hint != null && `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class={`field ${name}`}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": said === "" ? undefined : said, "aria-invalid": error != null })}
      {error != null && (
        <p id={`${id}-error`} class="field-error">
          {error}
        </p>
      )}
      {hint != null && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

/** A field of one line. */
export function TextField(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  error?: ComponentChildren;
  placeholder?: string;
  type?: "text" | "search" | "url";
  inputRef?: Ref<HTMLInputElement>;
  class?: string;
  /** Suggested values. */
  list?: string[];
  required?: boolean;
}) {
  const list = useId();
  const { label, hint, error } = props;
  return (
    <Field label={label} hint={hint} error={error} {...(props.class !== undefined && { class: props.class })}>
      {(control) => (
        <>
          <input
            {...control}
            ref={props.inputRef ?? null}
            type={props.type ?? "text"}
            value={props.value}
            placeholder={props.placeholder}
            required={props.required}
            autocomplete="off"
            spellcheck={false}
            list={props.list === undefined ? undefined : list}
            onInput={(event) => props.onInput(event.currentTarget.value)}
          />
          {props.list !== undefined && (
            <datalist id={list}>
              {props.list.map((value) => (
                <option value={value} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

/** A field whose value is one of several. */
export function SelectField<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
  hint?: ComponentChildren;
  error?: ComponentChildren;
  class?: string;
}) {
  const { label, hint, error } = props;
  return (
    <Field label={label} hint={hint} error={error} {...(props.class !== undefined && { class: props.class })}>
      {(control) => (
        <select
          {...control}
          value={props.value}
          onChange={(event) => props.onChange(event.currentTarget.value as T)}
        >
          {props.options.map(({ value, label }) => (
            <option value={value}>{label}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

export interface TableColumn<T> {
  key: string;
  title: ComponentChildren;
  cell: (row: T, index: number) => ComponentChildren;
  /** The cell that names its row. */
  heads?: boolean;
  /** Text rather than a figure: it stands on the left. */
  text?: boolean;
  class?: string;
}

/** A table that is scrolled sideways where it is wider than the page. */
export function Table<T>(props: {
  columns: TableColumn<T>[];
  rows: T[];
  rowKey: (row: T, index: number) => string;
  caption?: ComponentChildren;
  /** Text in the place of no rows. */
  empty?: ComponentChildren;
  /** Its name, where it has no caption. */
  label?: string;
  rowClass?: (row: T) => string;
}) {
  const { columns, rows, rowKey, caption, empty, label } = props;
  const box = useScrollable();
  if (rows.length === 0 && empty !== undefined) return <p class="empty">{empty}</p>;
  const look = (column: TableColumn<T>) => [column.text ? "text" : "", column.class ?? ""].join(" ").trim();
  return (
    <div
      class="table"
      ref={box}
      role="group"
      aria-label={label ?? (typeof caption === "string" ? caption : "Table")}
    >
      <table>
        {caption !== undefined && <caption>{caption}</caption>}
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" class={look(column)} key={column.key}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={rowKey(row, index)} class={props.rowClass?.(row)}>
              {columns.map((column) =>
                column.heads === true ? (
                  <th scope="row" class={look(column)} key={column.key}>
                    {column.cell(row, index)}
                  </th>
                ) : (
                  <td class={look(column)} key={column.key}>
                    {column.cell(row, index)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Lets the keyboard reach elements that scroll, and no others. */
export function useScrollable(): Ref<HTMLDivElement> {
  const box = useRef<HTMLDivElement>(null);
  // Before the page is painted: the observer tells only after that.
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = () => {
      if (element.scrollWidth > element.clientWidth + 1) element.tabIndex = 0;
      else element.removeAttribute("tabindex");
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    if (element.firstElementChild !== null) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  });
  return box;
}

export interface Tab {
  id: string;
  label: ComponentChildren;
  panel: () => ComponentChildren;
}

/** Parts of which one is seen at a time; arrow keys, Home and End choose. */
export function Tabs(props: {
  label: string;
  tabs: Tab[];
  /** The chosen one; without it, the control remembers it by itself. */
  chosen?: string;
  onChoose?: (id: string) => void;
}) {
  const { label, tabs } = props;
  const base = useId();
  const [own, setOwn] = useState(tabs[0]?.id ?? "");
  const wanted = props.chosen ?? own;
  const current = tabs.find(({ id }) => id === wanted) ?? tabs[0];
  const list = useRef<HTMLDivElement>(null);
  const choose = (id: string) => {
    setOwn(id);
    props.onChoose?.(id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ id }) => id === current?.id);
    const moves: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: tabs.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const number = (to + tabs.length) % tabs.length;
    const tab = tabs[number];
    if (tab === undefined) return;
    choose(tab.id);
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[number]?.focus();
  };
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ id, label }) => (
          <button
            type="button"
            role="tab"
            key={id}
            id={`${base}-${id}`}
            aria-selected={id === current?.id}
            aria-controls={`${base}-panel`}
            tabIndex={id === current?.id ? 0 : -1}
            onClick={() => choose(id)}
          >
            {label}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${current?.id}`}>
        {current?.panel()}
      </div>
    </div>
  );
}

/** A window over the page: Escape closes it, and the focus goes back to where it was. */
export function Dialog(props: {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at its end. */
  actions?: ComponentChildren;
  wide?: boolean;
}) {
  const { title, open, onClose, children, actions } = props;
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  // At every render and before the next event: the browser closes the element by itself, and a key that
  // follows at once may have opened the window again.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (open && !element.open) {
      element.showModal();
      element.querySelector<HTMLElement>("[data-first]")?.focus();
    }
    if (!open && element.open) element.close();
  });
  return (
    <dialog
      ref={dialog}
      class={props.wide === true ? "wide" : ""}
      aria-labelledby={id}
      onCancel={onClose}
      onClose={(event) => open && !event.currentTarget.open && onClose()}
      onClick={(event) => event.target === event.currentTarget && onClose()}
    >
      {open && (
        <div class="dialog-body">
          <header>
            <h2 id={id}>{title}</h2>
            <Button onClick={onClose} label="Close">
              ✕
            </Button>
          </header>
          {children}
          {actions !== undefined && <footer class="actions">{actions}</footer>}
        </div>
      )}
    </dialog>
  );
}

/** A list that a button opens; Escape and a click elsewhere close it. Its children are items of a list. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const place = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const element = place.current;
      if (element === null || !element.open) return;
      if (event instanceof KeyboardEvent) {
        if (event.key !== "Escape") return;
        element.querySelector("summary")?.focus();
      } else if (event.target instanceof Node && element.contains(event.target)) return;
      element.open = false;
    };
    addEventListener("keydown", close);
    addEventListener("click", close);
    return () => {
      removeEventListener("keydown", close);
      removeEventListener("click", close);
    };
  }, []);
  return (
    <details class="menu" ref={place}>
      <summary class="button plain">{label}</summary>
      <ul>{children}</ul>
    </details>
  );
}

/** An error, and what to do about it. */
export function ErrorBox({ error, again }: { error: ApiError; again?: () => void }) {
  // The first of several problems is the message, too, and is said once.
  const isListed = error.problems.some(({ message }) => message === error.message);
  return (
    <div class="error-box" role="alert">
      {!isListed && (
        <>
          <p>
            <span class="sign bad" aria-hidden="true">
              ✗
            </span>{" "}
            <span class="preserved">{error.message}</span>
          </p>
          {error.hint !== null && <p class="hint preserved">{error.hint}</p>}
        </>
      )}
      {error.problems.length > 0 && <Problems problems={error.problems} />}
      {again !== undefined && <Button onClick={again}>Try again</Button>}
    </div>
  );
}

/** Findings in a plan as a list. */
export function Problems({ problems }: { problems: Problem[] }) {
  return (
    <ul class="problems">
      {problems.map(({ severity, message, hint, line, column }) => (
        <li>
          <Badge kind={severity === "error" ? "bad" : "doubtful"}>{severity}</Badge>
          {line !== null && (
            <>
              {" "}
              line {line}
              {column !== null && `, column ${column}`}
            </>
          )}
          <p class="preserved">{message}</p>
          {hint !== null && hint !== "" && <p class="hint preserved">{hint}</p>}
        </li>
      ))}
    </ul>
  );
}

/** The text while something is fetched. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      {what}…
    </p>
  );
}

/** Headings of a page, with its actions. */
export function PageHead(props: {
  title: ComponentChildren;
  children?: ComponentChildren;
  below?: ComponentChildren;
}) {
  return (
    <div class="page-head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.below}
      </div>
      {props.children !== undefined && <div class="actions">{props.children}</div>}
    </div>
  );
}
