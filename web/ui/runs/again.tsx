/** The same load once more, where the page knows what it was. */

import { useEffect, useState } from "preact/hooks";
import * as api from "../app/api.ts";
import { Button, ButtonLink } from "../app/controls.tsx";
import { notifyError } from "../app/notify.tsx";
import type { Result } from "../app/result.ts";
import { go, link } from "../app/router.ts";

/** Flags that say where results go rather than what the load is, with the number of values that follow. */
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
  "--color": 1,
};

/** The flags of a command line that say what the load is: those to give once more. */
export function loadFlags(args: string[], plan: string | null): string[] {
  const flags: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? "";
    const [name = ""] = argument.split("=", 1);
    const values = OUTPUTS[name] ?? -1;
    if (values >= 0) {
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

export function RunAgain({ result, plan }: { result: Result; plan: string | null }) {
  const [path, setPath] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const { args } = result.run;
  useEffect(() => {
    let over = false;
    api.files().then(
      ({ files }) =>
        over ||
        setPath(
          planPath(
            args,
            files.map(({ path }) => path),
          ),
        ),
      // Without the list there is no plan to open: nothing that would have to be said.
      () => {},
    );
    return () => void (over = true);
  }, [args]);
  if (path === null && plan === null) return null;
  const again = async () => {
    setBusy(true);
    try {
      const argument = args.find((one) => one.replace(/^\.\//, "") === path) ?? null;
      const flags = args.slice(1).filter((one, at) => !(at === 0 && one === "run"));
      const { id } = await api.start({
        path,
        text: path === null ? plan : null,
        command: "run",
        flags: loadFlags(flags, argument),
        name: result.run.name ?? null,
      });
      go(link("live", id));
    } catch (error) {
      notifyError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button kind="primary" busy={busy} onClick={() => void again()}>
        Run again
      </Button>
      {path !== null && <ButtonLink href={link("plan", path)}>Open plan</ButtonLink>}
    </>
  );
}
