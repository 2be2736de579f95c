import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import * as api from "../app/api.ts";
import { Badge, Button, ButtonLink, ErrorBox, Loading, Table, TextField } from "../app/controls.tsx";
import { useShortcuts } from "../app/keys.tsx";
import { ask } from "../app/notify.tsx";
import { go, link } from "../app/router.ts";
import { bytes } from "../../src/figure.ts";
import { whenFull, whenText } from "../runs/words.ts";
import {
  discardDraft,
  draftOf,
  draftPaths,
  draftsVersion,
  EMPTY_PLAN,
  forgetRun,
  isPlanName,
  keepDraft,
  nameProblem,
} from "./drafts.ts";
import { AddFiles, deleteFile, NameFile, type Naming, NAMINGS } from "./files.tsx";

/** Files that are listed at once; a search finds the others. */
const MOST = 200;

/** Plans and their files, below the folder that is open. */
export function PlansPage() {
  const files = useSignal<api.FileEntry[] | null>(null);
  const failed = useSignal<api.ApiError | null>(null);
  const search = useSignal("");
  const onlyPlans = useSignal(true);
  const naming = useSignal<Naming | null>(null);
  const box = useRef<HTMLInputElement>(null);
  const load = async () => {
    failed.value = null;
    try {
      files.value = (await api.files()).files;
    } catch (error) {
      failed.value = api.errorOf(error);
    }
  };
  const drop = async (path: string) => {
    if (await deleteFile(path)) await load();
  };
  useEffect(() => void load(), []);
  useShortcuts([{ keys: "/", about: "Search", act: () => box.current?.focus() }]);
  if (failed.value !== null) return <ErrorBox error={failed.value} again={() => void load()} />;
  if (files.value === null) return <Loading what="Looking for plans" />;
  const found = matching(files.value, search.value, onlyPlans.value);
  const hidden = matching(files.value, search.value, false).length - found.length;
  return (
    <>
      <h1>Plans</h1>
      <NewPlan taken={files.value.map(({ path }) => path)} />
      <NotSaved />
      <NameFile
        naming={naming.value}
        taken={files.value.map(({ path }) => path)}
        close={() => (naming.value = null)}
        done={() => void load()}
      />
      <section aria-label="Files">
        <div class="plan-search">
          <TextField
            label="Search"
            type="search"
            value={search.value}
            onInput={(value) => (search.value = value)}
            placeholder="a part of a name"
            inputRef={box}
          />
          <label class="plan-check">
            <input
              type="checkbox"
              checked={onlyPlans.value}
              onChange={(event) => (onlyPlans.value = event.currentTarget.checked)}
            />{" "}
            Only plans
          </label>
          <AddFiles
            label="Add files"
            added={() => {
              // What was added is to be seen.
              onlyPlans.value = false;
              void load();
            }}
          />
        </div>
        <p class="hint" role="status">
          {found.length === 1 ? "1 file" : `${found.length} files`}
          {found.length > MOST && `, of which ${MOST} are listed`}
          {hidden > 0 && `; ${hidden} more ${hidden === 1 ? "is no plan" : "are no plans"}`}
        </p>
        <Table
          label="Files"
          empty={
            files.value.length === 0
              ? "There is no plan in this folder yet."
              : hidden > 0
                ? "No plan is among these files: without “Only plans” they are listed."
                : "No file has such a name."
          }
          columns={[
            {
              key: "path",
              title: "file",
              heads: true,
              text: true,
              cell: ({ path }) => <a href={link("plan", path)}>{path}</a>,
            },
            {
              key: "changed",
              title: "changed",
              cell: ({ modified_unix_s }) => (
                <span title={whenFull(modified_unix_s)}>{whenText(modified_unix_s)}</span>
              ),
            },
            { key: "size", title: "size", cell: (file) => bytes(file.bytes) },
            {
              key: "actions",
              title: "actions",
              cell: ({ path }) => (
                <div class="plan-file-actions">
                  {(["rename", "copy"] as const).map((kind) => (
                    <Button
                      class="faint"
                      key={kind}
                      onClick={() => (naming.value = { path, kind })}
                      label={`${NAMINGS[kind]} ${path}`}
                    >
                      {NAMINGS[kind]}
                    </Button>
                  ))}
                  <Button
                    class="faint"
                    onClick={() => void drop(path)}
                    label={`Delete ${path}`}
                  >
                    Delete
                  </Button>
                </div>
              ),
            },
          ]}
          rows={found.slice(0, MOST)}
          rowKey={({ path }) => path}
        />
      </section>
    </>
  );
}

/** Files whose paths have each word that is searched for. */
export function matching(
  files: readonly api.FileEntry[],
  search: string,
  onlyPlans: boolean,
): api.FileEntry[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return files.filter(({ path }) => {
    const name = path.toLowerCase();
    return (!onlyPlans || isPlanName(name)) && words.every((word) => name.includes(word));
  });
}

/** The texts of this tab that are in no file, or are another one there. */
function NotSaved() {
  draftsVersion.value;
  const paths = draftPaths();
  if (paths.length === 0) return null;
  const discard = async (path: string) => {
    const isSure = await ask({
      title: `Discard ${path}?`,
      text: <p>Its text is in this tab alone, and is lost. A file of that name stays as it is.</p>,
      action: "Discard",
      danger: true,
    });
    if (isSure) discardDraft(path);
  };
  return (
    <section aria-labelledby="not-saved">
      <h2 id="not-saved">Not saved</h2>
      <p class="hint">Texts of this tab. They are gone when it is closed.</p>
      <Table
        label="Texts that are not saved"
        columns={[
          {
            key: "path",
            title: "file",
            heads: true,
            text: true,
            cell: (path) => <a href={link("plan", path)}>{path}</a>,
          },
          {
            key: "state",
            title: "state",
            text: true,
            cell: (path) => (
              <Badge kind="doubtful">{draftOf(path)?.etag == null ? "new, not saved" : "not saved"}</Badge>
            ),
          },
          {
            key: "discard",
            title: "action",
            cell: (path) => (
              <Button onClick={() => void discard(path)} label={`Discard ${path}`}>
                Discard
              </Button>
            ),
          },
        ]}
        rows={paths}
        rowKey={(path) => path}
      />
    </section>
  );
}

function NewPlan({ taken }: { taken: string[] }) {
  const name = useSignal("");
  const wasTried = useSignal(false);
  const typed = name.value.trim();
  const path = typed === "" || /\.[a-z]+$/i.test(typed) ? typed : `${typed}.yaml`;
  draftsVersion.value;
  const problem = taken.includes(path)
    ? "there is such a file"
    : draftOf(path) !== null
      ? "there is a text of this name that is not saved: open it below, or discard it"
      : nameProblem(path);
  const create = () => {
    wasTried.value = true;
    if (problem !== null) return;
    forgetRun(path);
    keepDraft(path, { text: isPlanName(path) ? EMPTY_PLAN : "", etag: null });
    go(link("plan", path));
  };
  return (
    <section aria-label="New plan">
      <form
        class="plan-new"
        onSubmit={(event) => {
          event.preventDefault();
          create();
        }}
      >
        <TextField
          label="New plan"
          value={name.value}
          onInput={(value) => (name.value = value)}
          placeholder="checkout.yaml"
          error={(wasTried.value || typed !== "") && problem !== null ? problem : undefined}
        />
        <Button submit kind="primary">
          Create
        </Button>
        <ButtonLink href={link("new")}>From an example or a form</ButtonLink>
        <ButtonLink href={link("import")}>Import</ButtonLink>
      </form>
    </section>
  );
}
