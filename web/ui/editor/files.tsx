/** What is done with files of the folder that is open: added, copied, renamed, deleted. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, Dialog, TextField } from "../app/controls.tsx";
import { ask, notify, notifyError } from "../app/notify.tsx";
import { draftOf, dropDraft, forgetRun, freeName, keepDraft, moveRun, nameProblem } from "./drafts.ts";

/** Largest file that the program takes, in bytes. */
const LARGEST = 4 << 20;

/** Writes a file that was chosen; one that is there is replaced after a question only. True if it was written. */
export async function add(path: string, file: Blob): Promise<boolean> {
  const problem = nameProblem(path);
  if (problem !== null) throw new Error(`${path} cannot be added: ${problem}`);
  if (file.size > LARGEST) throw new Error(`${path} is larger than ${LARGEST >> 20} MiB: copy it into the folder`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${path} is not text in UTF-8: copy it into the folder`);
  }
  try {
    await api.saveFile(path, text, null);
  } catch (thrown) {
    const { status, body } = api.errorOf(thrown);
    const etag = body["etag"];
    if (status !== 409 || typeof etag !== "string") throw thrown;
    const isSure = await ask({
      title: `Replace ${path}?`,
      text: <p>The folder has such a file. What it has now is lost.</p>,
      action: "Replace",
      danger: true,
    });
    if (!isSure) return false;
    await api.saveFile(path, text, etag);
  }
  notify(`${path} is in the folder.`);
  return true;
}

/** A button that puts chosen files into the folder, below this path or as it. */
export function AddFiles(props: { label: string; as?: string; added: () => void }) {
  const { label, as, added } = props;
  const chooser = useRef<HTMLInputElement>(null);
  const take = async (files: File[]) => {
    try {
      for (const file of files) if (await add(as ?? file.name, file)) added();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <>
      <input
        ref={chooser}
        type="file"
        class="unseen"
        tabIndex={-1}
        multiple={as === undefined}
        aria-label={`File for: ${label}`}
        onChange={(event) => {
          const { currentTarget } = event;
          void take([...(currentTarget.files ?? [])]);
          currentTarget.value = "";
        }}
      />
      <Button onClick={() => chooser.current?.click()}>{label}</Button>
    </>
  );
}

/** Deletes a file after a question. */
export async function deleteFile(path: string): Promise<boolean> {
  const isSure = await ask({
    title: `Delete ${path}?`,
    text: <p>The file goes from the folder. That cannot be undone.</p>,
    action: "Delete",
    danger: true,
  });
  if (!isSure) return false;
  try {
    await api.deleteFile(path);
  } catch (error) {
    notifyError(error);
    return false;
  }
  dropDraft(path);
  forgetRun(path);
  notify(`${path} is deleted.`);
  return true;
}

/** What a file gets another name for. */
export interface Naming {
  path: string;
  kind: "rename" | "copy";
}

/** The words for it. */
export const NAMINGS: Record<Naming["kind"], string> = { rename: "Rename", copy: "Copy" };

/** Asks for the name of a copy, or for another one of a file, and makes it. */
export function NameFile(props: { naming: Naming | null; taken: string[]; close: () => void; done: () => void }) {
  const { naming, taken, close, done } = props;
  const name = useSignal("");
  const wrong = useSignal<string | null>(null);
  const busy = useSignal(false);
  // Before the next event: what is typed at once is not written over.
  useLayoutEffect(() => {
    wrong.value = null;
    if (naming !== null) name.value = naming.kind === "copy" ? freeName(naming.path, new Set(taken)) : naming.path;
  }, [naming]);
  const make = async () => {
    if (naming === null) return;
    const to = name.peek().trim();
    if (naming.kind === "rename" && to === naming.path) return close();
    wrong.value = taken.includes(to) || draftOf(to) !== null ? "there is such a file" : nameProblem(to);
    if (wrong.peek() !== null) return;
    busy.value = true;
    try {
      await (naming.kind === "copy" ? copy(naming.path, to) : rename(naming.path, to));
      close();
      done();
    } catch (thrown) {
      const error = api.errorOf(thrown);
      wrong.value = error.status === 409 ? "there is such a file" : error.message;
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={naming === null ? "" : `${NAMINGS[naming.kind]} ${naming.path}`}
      open={naming !== null}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" onClick={() => void make()} busy={busy.value}>
            {NAMINGS[naming?.kind ?? "rename"]}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <TextField
          label="Name of the file"
          value={name.value}
          onInput={(value) => (name.value = value)}
          error={wrong.value ?? undefined}
          hint="From the folder on, such as plans/peak.yaml"
        />
      </form>
    </Dialog>
  );
}

async function copy(path: string, to: string): Promise<void> {
  const { text } = await api.file(path);
  await api.saveFile(to, text, null);
  forgetRun(to);
  notify(`${to} is a copy of ${path}.`);
}

async function rename(path: string, to: string): Promise<void> {
  await api.renameFile(path, to);
  moveRun(path, to);
  // A text that is not saved goes with its file.
  const draft = draftOf(path);
  if (draft !== null) {
    keepDraft(to, draft);
    dropDraft(path);
  }
  notify(`${path} is ${to} now.`);
}
