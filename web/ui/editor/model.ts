import { isolateHistory, redo, undo } from "@codemirror/commands";
import type { EditorView } from "@codemirror/view";
import { computed, signal } from "@preact/signals";
import * as api from "../app/api.ts";
import { notifyError } from "../app/notify.tsx";
import type { Draft } from "./drafts.ts";
import { changesFor, type Edit, EditError, pathAfter } from "./edit.ts";
import { Latest } from "./latest.ts";
import { namesIn } from "./names.ts";
import { outlineOf } from "./outline.ts";
import { type Finding, located } from "./places.ts";
import { isWithin, type Path } from "./schema.ts";
import { nodeAt, pathAt, rangeOf, treeOf } from "./tree.ts";

/** Time from the last key until a text is checked. */
const CHECK_MS = 250;
const EXPLAIN_MS = 350;
/** Characters from which on a text is not read anew with each key. */
const LONG = 60_000;
const READ_MS = 250;

/** A plan that is open: its text, and the facts about it. */
export class PlanModel {
  readonly text = signal("");
  /** The text of the file, or null if there is none yet. */
  readonly saved = signal<string | null>(null);
  readonly etag = signal<string | null>(null);
  readonly cursor = signal(0);
  readonly findings = signal<Finding[]>([]);
  readonly checking = signal(false);
  /** The reason why the check failed. */
  readonly unchecked = signal<api.ApiError | null>(null);
  readonly explanation = signal<api.Explanation | null>(null);
  /** The faults of the text because of which the explanation is of an earlier one. */
  readonly unexplained = signal<api.Problem[] | api.ApiError | null>(null);
  readonly tried = signal<api.Tried | null>(null);
  /** The part that the forms show. */
  readonly chosen = signal<Path>(["run"]);

  /** The text that the tree is of: that of the editor, or with a long one what it was a moment ago. */
  private readonly read = signal("");
  readonly tree = computed(() => treeOf(this.read.value));
  readonly isYaml = computed(() => this.tree.value.errors.length === 0);
  readonly names = computed(() => namesIn(this.tree.value, this.read.value));
  /** A spec of a cluster is known by its nodes, which no plan has. */
  readonly kind = computed<api.DocumentKind>(() =>
    this.isPlan && nodeAt(this.tree.value, ["nodes"]) !== null ? "cluster" : "plan",
  );
  readonly outline = computed(() => outlineOf(this.tree.value, this.kind.value));
  readonly isChanged = computed(() => this.text.value !== this.saved.value);
  /** The text that a file which does not exist yet began with. */
  private begun: string | null = null;
  /** True if something else has changed the file, and the text here is another one. */
  readonly isBehind = signal(false);
  /** The path of the value at the cursor. */
  readonly cursorPath = computed(() => pathAt(this.tree.value, this.cursor.value).path);

  view: EditorView | null = null;
  /** True if lines of the file end as those of Windows do; in the editor none does. */
  private hasReturns = false;
  private readonly checks: Latest<string, api.Checked>;
  private readonly explains: Latest<string, api.Explained>;
  private wantsExplanation = false;
  private reading: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly path: string,
    readonly isPlan: boolean,
  ) {
    this.checks = new Latest(
      CHECK_MS,
      (text, signal) => api.check(path, text, this.kind.peek(), signal),
      ({ problems }, text) => {
        this.checking.value = false;
        this.unchecked.value = null;
        this.findings.value = located(text, problems);
      },
      (error) => {
        this.checking.value = false;
        this.unchecked.value = api.errorOf(error);
      },
    );
    this.explains = new Latest(
      EXPLAIN_MS,
      (text, signal) => api.explain(path, text, [], signal),
      (answer) => {
        if (answer.ok) this.explanation.value = answer.explanation;
        this.unexplained.value = answer.ok ? null : answer.problems;
      },
      (error) => (this.unexplained.value = api.errorOf(error)),
    );
  }

  /** Takes the text of the file, or of a draft that is no file yet. */
  load(text: string, etag: string | null): void {
    this.hasReturns = text.includes("\r\n");
    const plain = text.replaceAll("\r\n", "\n");
    this.begun = etag === null ? plain : null;
    this.isBehind.value = false;
    this.saved.value = etag === null ? null : plain;
    this.etag.value = etag;
    this.read.value = plain;
    // A spec has no settings of a run: its nodes come first.
    if (this.kind.peek() === "cluster" && this.chosen.peek()[0] === "run") this.chosen.value = ["nodes"];
    if (this.view !== null) {
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: plain } });
    }
    this.changed(plain);
  }

  /** Called with each text that the editor has. */
  changed(text: string): void {
    this.text.value = text;
    clearTimeout(this.reading);
    if (text.length < LONG) this.read.value = text;
    else this.reading = setTimeout(() => (this.read.value = text), READ_MS);
    if (!this.isPlan) return;
    this.checking.value = true;
    this.checks.later(text);
    if (this.wantsExplanation) this.explains.later(text);
  }

  /** Explains the plan as long as the explanation is visible. */
  explain(wanted: boolean): void {
    this.wantsExplanation = wanted && this.isPlan && this.kind.peek() === "plan";
    if (this.wantsExplanation) void this.explains.now(this.text.peek());
    else this.explains.end();
  }

  /** The text as it is kept until it is saved. */
  draft(): Draft {
    return { text: this.text.peek(), etag: this.etag.peek(), ...(this.begun !== null && { begun: this.begun }) };
  }

  /** The text as the file has it. */
  forFile(): string {
    const text = this.text.peek();
    return this.hasReturns ? text.replaceAll("\n", "\r\n") : text;
  }

  /** Writes the file in the place of the one that was read, or of one with another mark. */
  async save(etag = this.etag.peek()): Promise<void> {
    const text = this.text.peek();
    const answer = await api.saveFile(this.path, this.forFile(), etag);
    this.etag.value = answer.etag;
    this.saved.value = text;
    this.isBehind.value = false;
  }

  /**
   * Looks whether the file is still the one that was opened: without changes here its new text is taken. True if it
   * was.
   */
  async follow(): Promise<boolean> {
    if (this.etag.peek() === null) return false;
    const { text, etag } = await api.file(this.path);
    const known = this.etag.peek();
    if (known === null || known === etag) {
      this.isBehind.value = false;
      return false;
    }
    if (this.isChanged.peek()) {
      this.isBehind.value = true;
      return false;
    }
    this.load(text, etag);
    return true;
  }

  /** Carries out an edit of a form as one change of the text, which one "undo" takes back. */
  edit(edit: Edit): boolean {
    const view = this.view;
    if (view === null) return false;
    try {
      const changes = changesFor(view.state.doc.toString(), edit);
      if (changes.length > 0) {
        view.dispatch({ changes, userEvent: "input.form", annotations: isolateHistory.of("full") });
      }
      this.chosen.value = pathAfter(this.chosen.peek(), edit) ?? edit.path.slice(0, -1);
      return true;
    } catch (error) {
      if (!(error instanceof EditError)) throw error;
      notifyError(new api.ApiError(0, { error: error.message, hint: "fix the text, or edit it there" }));
      return false;
    }
  }

  /** Shows the form of a part, and its place in the text. */
  choose(path: Path): void {
    this.chosen.value = path;
    this.reveal(path, false);
  }

  undo(): void {
    if (this.view !== null) undo(this.view);
  }

  redo(): void {
    if (this.view !== null) redo(this.view);
  }

  /** Shows a place in the text and puts the cursor there. */
  reveal(path: Path, focus = true): void {
    for (let depth = path.length; depth > 0; depth -= 1) {
      const range = rangeOf(this.tree.peek(), path.slice(0, depth));
      if (range !== null) return this.select(range.from, range.from, focus);
    }
  }

  select(from: number, to: number, focus = true): void {
    const { view } = this;
    if (view === null) return;
    const end = view.state.doc.length;
    view.dispatch({
      selection: { anchor: Math.min(from, end), head: Math.min(to, end) },
      scrollIntoView: true,
    });
    if (focus) view.focus();
  }

  replace(from: number, to: number, insert: string): void {
    this.view?.dispatch({
      changes: { from, to, insert },
      userEvent: "input.mend",
      annotations: isolateHistory.of("full"),
    });
  }

  /** Findings about a place, or in it. */
  findingsAt(path: Path, within: boolean): Finding[] {
    return this.findings.value.filter(({ from }) => {
      if (from === null) return false;
      const at = pathAt(this.tree.value, from).path;
      return within ? isWithin(at, path) : at.length === path.length && isWithin(at, path);
    });
  }

  end(): void {
    clearTimeout(this.reading);
    this.checks.end();
    this.explains.end();
    this.view = null;
  }
}
