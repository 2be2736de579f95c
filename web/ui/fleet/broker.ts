/** The broker of a fleet, as it was typed. */

import type { Broker, FleetChoice, OnLoss } from "../app/api.ts";

/** That of `plimsoll fleet up`. */
export const USUAL_BROKER = "nats://127.0.0.1:4222";

export interface Typed {
  nats: string;
  creds: string;
  ca: string;
}

const KEY = "plimsoll-broker";

/** The broker that was looked at last. Of keys only the names of their files are kept. */
export function lastBroker(): Typed {
  const usual = { nats: USUAL_BROKER, creds: "", ca: "" };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Typed>;
    return { ...usual, ...kept };
  } catch {
    return usual;
  }
}

export function keepBroker(typed: Typed): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(typed));
  } catch {
    // Without room for it, it is typed again.
  }
}

/** The broker of what was typed: the usual one if nothing was. */
export function brokerOf({ nats, creds, ca }: Typed): Broker {
  const set = (text: string) => (text.trim() === "" ? null : text.trim());
  return { nats: set(nats) ?? USUAL_BROKER, creds: set(creds), ca: set(ca) };
}

/** The machines that carry out a run, as they were typed. */
export interface Machines extends Typed {
  on: "here" | "fleet";
  /** A number, or names with commas between; empty: all that are free. */
  agents: string;
  onLoss: OnLoss;
}

/** What happens if an agent is lost. */
export const ON_LOSS: readonly { value: OnLoss; label: string }[] = [
  { value: "abort", label: "the others stop" },
  { value: "continue", label: "the others go on" },
  { value: "takeover", label: "another takes its shards over" },
];

/** The needs of a choice, in words. */
export const needsOf = (onLoss: OnLoss): string | undefined =>
  onLoss === "takeover"
    ? "For a load with a rate, without data and scripts. Another agent has the shards some 15 to 20 s after the loss; what is due until then is unknown."
    : undefined;

/** This machine, and the broker that was looked at last in case that it is a fleet. */
export const thisMachine = (): Machines => ({ ...lastBroker(), on: "here", agents: "", onLoss: "abort" });

/** The fleet to start a run with; nothing for this machine. */
export function fleetOf(machines: Machines): { fleet?: FleetChoice } {
  if (machines.on === "here") return {};
  const { nats, creds, ca, agents, onLoss } = machines;
  keepBroker({ nats, creds, ca });
  const chosen = agents.replace(/\s*,\s*/g, ",").trim();
  return {
    fleet: {
      broker: brokerOf(machines),
      agents: chosen === "" ? null : chosen,
      on_loss: onLoss,
    },
  };
}

/** Flags of a fleet, each with a value. */
export const FLEET_FLAGS = ["--fleet", "--fleet-creds", "--fleet-ca", "--agents", "--on-loss"] as const;

/** The fleet of a command line, whose files were named from `folder` on or by whole paths in it. */
export function fleetIn(args: string[], folder: string): { fleet?: FleetChoice } {
  const given = (flag: string) => {
    const joined = args.find((arg) => arg.startsWith(`${flag}=`));
    if (joined !== undefined) return joined.slice(flag.length + 1);
    const place = args.indexOf(flag);
    return place < 0 ? null : (args[place + 1] ?? null);
  };
  const nats = given("--fleet");
  if (nats === null) return {};
  const file = (path: string | null) =>
    path !== null && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
  return {
    fleet: {
      broker: { nats, creds: file(given("--fleet-creds")), ca: file(given("--fleet-ca")) },
      agents: given("--agents"),
      on_loss: ON_LOSS.find(({ value }) => value === given("--on-loss"))?.value ?? "abort",
    },
  };
}
