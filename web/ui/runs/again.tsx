/** The same load once more, if the page knows its command. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ButtonLink } from "../app/controls.tsx";
import { keep } from "../app/kept.ts";
import { notify, notifyError } from "../app/notify.tsx";
import type { Result } from "../app/result.ts";
import { go, link } from "../app/router.ts";
import { about } from "../app/state.ts";
import { planOfReport } from "./chart-data.ts";
import { isPlanName, keepAsNew, runInput } from "../editor/drafts.ts";
import { fieldsOf } from "../editor/flags.ts";
import type { Circumstances } from "../live/capacity.ts";
import { FLEET_FLAGS, fleetIn } from "../fleet/broker.ts";

/** Runs from which on the variation between them is known well enough. */
export const ENOUGH = 5;

/** Flags for results rather than for the load, with the number of their values. */
const OUTPUTS: Record<string, number> = {
  // The plan, from the page.
  "-": 0,
  "--save": 0,
  "--no-tui": 0,
  "--no-keys": 0,
  "--quiet": 0,
  "--long": 0,
  "--store": 1,
  "--name": 1,
  "--json": 1,
  "--report": 1,
  "--out": 1,
  "-o": 1,
  "--output": 1,
  "--csv": 1,
  "--log": 1,
  "--control": 1,
  "--control-token": 1,
  // Once more is one run.
  "--repeat": 1,
  "--pause": 1,
  "--color": 1,
  // The fleet is told apart.
  ...Object.fromEntries(FLEET_FLAGS.map((flag) => [flag, 1])),
};

/** The flags of a command line that determine the load: those to repeat. */
export function loadFlags(args: string[], plan: string | null): string[] {
  const flags: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? "";
    const [name = ""] = argument.split("=", 1);
    const values = OUTPUTS[name] ?? -1;
    // Once more is another series.
    if (/^--tag=series=/.test(argument)) continue;
    if (argument === "--tag" && /^series=/.test(args[at + 1] ?? "")) at += 1;
    else if (values >= 0) {
      if (!argument.includes("=")) at += values;
    } else if (argument !== plan) flags.push(argument);
  }
  return flags;
}

/** The plan of a command line, of the files that there are; null if it has none of them. */
export function planPath(args: string[], files: string[]): string | null {
  const known = new Set(files);
  const found = args
    .slice(1)
    .find((argument) => /\.(ya?ml|json)$/.test(argument) && known.has(argument.replace(/^\.\//, "")));
  return found?.replace(/^\.\//, "") ?? null;
}

/** Files of the length of a plan that are read to find it. */
const MOST_READ = 8;

/** The file that a run was started from by the page, which passes on no name: one with the same text. */
async function fileOf(name: string | null, plan: string | null, files: api.FileEntry[]): Promise<string | null> {
  if (plan === null) return null;
  const length = new TextEncoder().encode(plan).length;
  const isCalledSo = ({ path }: api.FileEntry) => path === name || path === `${name}.yaml`;
  const alike = files.filter(({ path, bytes }) => bytes === length && isPlanName(path));
  const first = alike.filter(isCalledSo);
  for (const { path } of [...first, ...alike.filter((file) => !first.includes(file))].slice(0, MOST_READ)) {
    if ((await api.file(path)).text === plan) return path;
  }
  return null;
}

/** The file of a run's plan, if there still is one. */
async function pathOf(result: Result, plan: string | null): Promise<string | null> {
  const { files } = await api.files();
  const named = planPath(
    result.run.args,
    files.map(({ path }) => path),
  );
  return named ?? (await fileOf(result.run.name ?? null, plan, files));
}

/** The flags of a run over its plan: what it is called and how it is tagged is no load. */
function overridesOf(flags: readonly string[]): string[] {
  return flags.filter((flag, at) => !/^--tag(=|$)/.test(flag) && flags[at - 1] !== "--tag");
}

/** The start of the same load as that of a run; null if its plan is not there any more. */
function startOf(result: Result, plan: string | null, path: string | null): api.Start | null {
  const { args } = result.run;
  const isCluster = args[1] === "cluster";
  // The plan of a cluster's load is nothing without its nodes.
  if (path === null && (plan === null || isCluster)) return null;
  const argument = args.find((one) => one.replace(/^\.\//, "") === path) ?? null;
  const flags = args.slice(isCluster ? 3 : args[1] === "run" ? 2 : 1);
  return {
    path,
    text: path === null ? plan : null,
    command: isCluster ? "cluster" : "run",
    flags: loadFlags(flags, argument),
    name: result.run.name ?? null,
    ...fleetIn(flags, about.peek()?.folder ?? ""),
  };
}

/** The start of the same load as that of a saved run; null if its plan is not there any more. */
export async function sameLoad(id: string): Promise<api.Start | null> {
  const [result, html] = await Promise.all([api.run(id), api.exported(id, "html")]);
  const plan = planOfReport(html);
  return startOf(result, plan, await pathOf(result, plan));
}

export function RunAgain({ result, plan }: { result: Result; plan: string | null }) {
  const [path, setPath] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const name = result.run.name ?? null;
  useEffect(() => {
    let over = false;
    const look = async () => {
      const found = await pathOf(result, plan);
      if (!over) setPath(found);
    };
    // Without the list there is no plan to open, which needs no message.
    look().catch(() => {});
    return () => void (over = true);
  }, [result, plan]);
  const start = startOf(result, plan, path);
  if (start === null) return null;
  const attempt = async (what: () => Promise<void>) => {
    setBusy(true);
    try {
      await what();
    } catch (error) {
      notifyError(error);
    } finally {
      setBusy(false);
    }
  };
  const again = (...more: string[]) =>
    attempt(async () => {
      const { id } = await api.start({ ...start, flags: [...start.flags, ...more] });
      go(link("live", id));
    });
  // Runs of a fleet and of clusters are made one by one.
  const mayRepeat = start.command === "run" && start.fleet == null;
  const overrides = start.command === "run" ? overridesOf(start.flags) : [];
  const open = () =>
    attempt(async () => {
      const called = `${name?.replace(/[^\w.-]+/g, "-") ?? "plan"}.yaml`;
      // The file may not have been found yet.
      const found = path ?? (await pathOf(result, plan));
      const opened = found ?? (await keepAsNew(called, plan ?? ""));
      if (overrides.length > 0) {
        const [values, more] = fieldsOf(overrides);
        keep(runInput(opened, "values"), values);
        keep(runInput(opened, "more"), more);
        notify(`This run had ${overrides.join(" ")} over its plan: they are in the form of Run.`);
      }
      go(link("plan", opened, overrides.length > 0 ? { tool: "run" } : {}));
    });
  return (
    <>
      <Button kind="primary" busy={busy} onClick={() => void again()}>
        Run again
      </Button>
      {mayRepeat && (
        <Button busy={busy} onClick={() => void again("--repeat", String(ENOUGH))}>
          Run {ENOUGH} times
        </Button>
      )}
      {path !== null && overrides.length === 0 ? (
        <ButtonLink href={link("plan", path)}>Open plan</ButtonLink>
      ) : (
        <Button busy={busy} onClick={() => void open()}>
          Open plan
        </Button>
      )}
    </>
  );
}

const isAddress = (text: string) => /^https?:\/\//.test(text);

/** The plan, or else the address, of a search or a sweep, and the flags to repeat; null if neither is there. */
export function searchOf(
  { args, name }: Pick<Circumstances, "args" | "name">,
  files: string[],
): { path: string | null; url: string | null; flags: string[] } | null {
  const given = args.slice(2);
  const path = planPath(args.slice(1), files) ?? files.find((path) => path === name) ?? null;
  const url = path !== null ? null : (given.find(isAddress) ?? (isAddress(name ?? "") ? (name ?? null) : null));
  if (path === null && url === null) return null;
  const argument = given.find((one) => one === url || one.replace(/^\.\//, "") === path) ?? null;
  return { path, url, flags: loadFlags(given, argument) };
}

/** The same search or sweep once more, if its plan or its address is known. */
export function SearchAgain({ of }: { of: Circumstances }) {
  const [search, setSearch] = useState<ReturnType<typeof searchOf>>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    let over = false;
    api.files().then(
      ({ files }) => over || setSearch(searchOf(of, files.map(({ path }) => path))),
      // Without the list there is no plan, which needs no message.
      () => {},
    );
    return () => void (over = true);
  }, [of]);
  if (search === null) return null;
  const again = async () => {
    setBusy(true);
    try {
      const { path, url, flags } = search;
      const text = url === null ? null : (await api.planOf("run", { urls: [url] })).text;
      const { id } = await api.start({ path, text, command: "find", flags, name: of.name ?? null });
      go(link("live", id));
    } catch (error) {
      notifyError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button kind="primary" busy={busy} onClick={() => void again()}>
      Run again
    </Button>
  );
}
