/** Documents that forms make: plans of scenarios and specs of clusters. */

import { stringify } from "yaml";

/** The lines of a field that have something in them. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** A scenario as its form has it: every field is a text as it was typed. */
export interface ScenarioForm {
  server: string;
  /** One request a line: `GET /items`, or a path alone. */
  steps: string;
  /** JSON of the requests that have a body. */
  body: string;
  /** Iterations per second; empty: users. */
  rate: string;
  users: string;
  duration: string;
  think: string;
  /** One a line. */
  thresholds: string;
}

export const USUAL_SCENARIO: ScenarioForm = {
  server: "http://127.0.0.1:8080",
  steps: "GET /",
  body: "",
  rate: "100/s",
  users: "",
  duration: "10s",
  think: "",
  thresholds: "p99<250ms\nerror_rate<1%",
};

/** Methods whose requests have a body. */
const WITH_BODY = new Set(["post", "put", "patch"]);
const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"];

/** The method and the path of a line. */
export function stepOf(line: string): { method: string; path: string } {
  const [, method, path] = /^([A-Za-z]+)\s+(.+)$/.exec(line) ?? [];
  const isMethod = method !== undefined && METHODS.includes(method.toLowerCase());
  const plain = isMethod ? (path ?? "").trim() : line;
  const absolute = plain.startsWith("/") ? plain : `/${plain}`;
  return { method: isMethod ? method.toLowerCase() : "get", path: absolute };
}

/** The word of a line in the place of a method that is none; null if there is no such word. */
function unknownMethod(line: string): string | null {
  const [, word = ""] = /^([A-Za-z]+)\s+(?:\/|https?:)/.exec(line) ?? /^([A-Z]+)\s/.exec(line) ?? [];
  return word === "" || METHODS.includes(word.toLowerCase()) ? null : word;
}

/** Everything that a scenario's form lacks, by field. */
export function scenarioProblems(form: ScenarioForm): Partial<Record<keyof ScenarioForm, string>> {
  const problems: Partial<Record<keyof ScenarioForm, string>> = {};
  if (form.server.trim() === "") problems.server = "name the server, such as http://127.0.0.1:8080";
  if (linesOf(form.steps).length === 0) problems.steps = "write a request a line, such as GET /items";
  const [word] = linesOf(form.steps).map(unknownMethod).filter((word) => word !== null);
  if (word !== undefined) problems.steps = `${word} is no method: ${METHODS.join(", ").toUpperCase()}`;
  if (form.rate.trim() !== "" && form.users.trim() !== "")
    problems.users = "a rate and users exclude each other: leave one of them empty";
  if (form.body.trim() !== "") {
    try {
      JSON.parse(form.body);
    } catch (error) {
      problems.body = `no JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return problems;
}

/** The plan of a scenario, as YAML. */
export function scenarioPlan(form: ScenarioForm): string {
  const set = (text: string) => (text.trim() === "" ? undefined : text.trim());
  const think = set(form.think);
  const body = set(form.body);
  const steps = linesOf(form.steps).map((line) => {
    const { method, path } = stepOf(line);
    const json = body !== undefined && WITH_BODY.has(method) ? (JSON.parse(body) as unknown) : undefined;
    return { [method]: path, json, think };
  });
  const thresholds = linesOf(form.thresholds);
  return written({
    run: { rate: set(form.rate), users: set(form.users), duration: set(form.duration) },
    targets: { api: form.server.trim() },
    scenarios: [{ name: "visit", steps }],
    thresholds: thresholds.length === 0 ? undefined : thresholds,
  });
}

/** A fault as its form has it. */
export interface FaultForm {
  fault: string;
  target: string;
  at: string;
  for: string;
}

/** Faults that need a link between the nodes. */
export const OF_LINKS = ["isolate", "delay", "loss", "reset", "bandwidth", "half_open"];
export const FAULTS = ["kill", "stop", "restart", ...OF_LINKS];
/** The amount of a fault that needs one. */
const AMOUNTS: Record<string, string> = { delay: "50ms", loss: "5%", bandwidth: "1MiB" };
/** Faults that are over at once. */
const AT_ONCE = new Set(["restart", "half_open"]);

/** A cluster as its form has it. */
export interface ClusterForm {
  name: string;
  nodes: string;
  /** Empty: the reference cluster of the program itself. */
  command: string;
  /** One a line. */
  arguments: string;
  /** Arguments that come once for each other node, one a line. */
  perPeer: string;
  /** Path that a node answers when it is ready. */
  ready: string;
  /** Path and pointer of the leader's id; an empty path: nobody leads. */
  leaderPath: string;
  leaderPointer: string;
  /** Folder path of a plan; empty: creates, reads, updates and deletes. */
  plan: string;
  resource: string;
  concurrency: string;
  duration: string;
  faults: FaultForm[];
  checks: string[];
}

export const CHECKS = ["acknowledged", "convergence", "persistence"];

export const USUAL_CLUSTER: ClusterForm = {
  name: "shop",
  nodes: "3",
  command: "",
  arguments: '--id\n${id}\n--listen\n${address.http}\n--data\n${data}',
  perPeer: "--peer=${peer.id}=${peer.http}",
  ready: "/status",
  leaderPath: "/raft/leader",
  leaderPointer: "/leader_id",
  plan: "",
  resource: "/api/products",
  concurrency: "16",
  duration: "10s",
  faults: [{ fault: "kill", target: "leader", at: "3s", for: "2s" }],
  checks: ["acknowledged", "convergence"],
};

/** Everything that a cluster's form lacks, by field. */
export function clusterProblems(form: ClusterForm): Partial<Record<keyof ClusterForm, string>> {
  const problems: Partial<Record<keyof ClusterForm, string>> = {};
  if (!/^[\w.-]+$/.test(form.name.trim())) problems.name = "letters, digits, - and _";
  if (!/^[1-9]\d?$/.test(form.nodes.trim())) problems.nodes = "a number from 1 to 99";
  if (form.plan === "" && !form.resource.startsWith("/")) problems.resource = "a path, such as /api/products";
  return problems;
}

/** The spec of a cluster, as YAML. */
export function clusterSpec(form: ClusterForm): string {
  const count = Number(form.nodes);
  const isOwn = form.command.trim() !== "";
  const needsLinks = form.faults.some(({ fault }) => OF_LINKS.includes(fault));
  const leads = isOwn ? form.leaderPath.trim() !== "" : true;
  const nodes = isOwn
    ? {
        count,
        command: form.command.trim(),
        arguments: linesOf(form.arguments),
        per_peer: linesOf(form.perPeer).length === 0 ? undefined : linesOf(form.perPeer),
        ports: needsLinks ? { http: 0, peer: 0 } : { http: 0 },
        ready: form.ready.trim() === "" ? undefined : { http: form.ready.trim() },
      }
    : {
        count,
        command: "${plimsoll}",
        arguments: [
          ..."target crud-node --id ${id} --listen ${address.http} --raft ${address.raft}".split(" "),
          ..."--data ${data}".split(" "),
        ],
        per_peer: ["--peer", "${peer.id}=${peer.http}/${peer.raft}"],
        ports: { http: 0, raft: 0 },
        ready: { http: "/status" },
      };
  const leader = isOwn
    ? { path: form.leaderPath.trim(), pointer: form.leaderPointer.trim() || undefined }
    : { path: "/raft/leader", pointer: "/leader_id" };
  const faults = form.faults.map(({ fault, target, at, for: length }) => ({
    fault,
    target,
    at: at.trim(),
    for: AT_ONCE.has(fault) || length.trim() === "" ? undefined : length.trim(),
    amount: AMOUNTS[fault],
  }));
  const isUsual = form.resource === "/api/products";
  const checks = form.checks.map((check) =>
    isUsual ? check : { check, list: form.resource, count: `${form.resource}/count` },
  );
  return written({
    name: form.name.trim(),
    nodes,
    leader: leads ? leader : undefined,
    links: needsLinks ? [isOwn ? "peer" : "raft"] : undefined,
    workload: form.plan === "" ? crudPlan(form, count) : form.plan,
    faults: faults.length === 0 ? undefined : faults,
    checks: checks.length === 0 ? undefined : checks,
  });
}

/** Creates, reads, updates and deletes of a resource at all nodes of a cluster. */
function crudPlan({ resource, concurrency, duration }: ClusterForm, count: number): unknown {
  const others = Array.from({ length: count - 1 }, (_, index) => `localhost:\${node.${index + 1}.http.port}`);
  const first = "http://localhost:${node.0.http.port}";
  // A node that does not lead names the leader; one that is gone gives its share to the others.
  const pool = { url: first, share: others, fail_over: true, fail_back: true };
  const item = { name: "item_${uuid}", price: 19.99, category: "Toys" };
  const taken = (step: unknown, ...then: unknown[]) => [
    { take: "items" },
    { if: "exists id", then: [step, ...then], else: [{ think: "1ms" }] },
  ];
  return {
    run: {
      ipv4: true,
      connections: Number(concurrency) || concurrency,
      duration: duration.trim(),
      follow_redirects: 3,
      timeout: "5s",
    },
    targets: { api: others.length === 0 ? first : pool },
    scenarios: [
      {
        name: "create",
        weight: 50,
        steps: [
          {
            name: "create",
            post: resource,
            json: item,
            expect: { status: 201 },
            extract: { id: { json: "/id" } },
          },
          { keep: { items: "id" } },
        ],
      },
      { name: "read", weight: 30, steps: [{ name: "read", get: `${resource}/count` }] },
      {
        name: "update",
        weight: 15,
        steps: taken(
          { name: "update", patch: `${resource}/\${id}`, json: { price: 29.99 }, expect: { status: 200 } },
          { keep: { items: "id" } },
        ),
      },
      {
        name: "delete",
        weight: 5,
        steps: taken({ name: "delete", delete: `${resource}/\${id}`, expect: { status: [200, 204] } }),
      },
    ],
  };
}

/** A document as YAML: without what is undefined, and with short lists on one line. */
function written(document: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(document));
  return stringify(plain, { lineWidth: 110, flowCollectionPadding: false });
}
