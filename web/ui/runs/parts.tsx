/** The parts of the page of a run, saved or going on: everything that its result says. */

import type { ComponentChildren } from "preact";
import { count, nanos, perSecond, seconds, share } from "../../src/figure.ts";
import type { Outcome } from "../app/api.ts";
import { Badge, type BadgeKind, OUTCOMES, Table, type TableColumn } from "../app/controls.tsx";
import type { Finding, Phase, Result, Step, Summary } from "../app/result.ts";
import {
  badShare,
  boundText,
  bytesText,
  besideAccounts,
  changeText,
  countsIterations,
  endedEarly,
  exampleSaid,
  figureOf,
  intervalOf,
  leftOut,
  listed,
  paceOf,
  plural,
  rateText,
  secondsText,
  shareText,
  spaced,
  steadyText,
  steeredBy,
  thresholdHeading,
  thresholdSeen,
  thresholdWord,
  unreached,
  limitWords,
  validityLine,
  whenFull,
} from "./words.ts";

/** A card of the page. */
export function Part(props: { id: string; title: string; children: ComponentChildren; quiet?: boolean }) {
  return (
    <section id={props.id} aria-labelledby={`${props.id}-title`}>
      <h2 id={`${props.id}-title`} class={props.quiet === true ? "unseen" : ""}>
        {props.title}
      </h2>
      {props.children}
    </section>
  );
}

const LOOKS: Partial<Record<BadgeKind, string>> = { good: "✓", bad: "✗", done: "•" };

/** The outcome with its evidence: validity, the limit of the run, figures, thresholds, warnings; `children` is
 * the picture beside it. */
/** States of a run that goes on. */
export type Going = "running" | "paused" | "stopping";

/** The word above a result. One that goes on is not done, and nothing else can be said where nothing is judged. */
export function headOf(outcome: Outcome, soFar?: Going): { word: string; kind: BadgeKind } {
  if (soFar !== undefined && outcome === "done") return { word: soFar.toUpperCase(), kind: "done" };
  return OUTCOMES[outcome] ?? { word: spaced(outcome).toUpperCase(), kind: "plain" };
}

export function VerdictPart(props: { result: Result; soFar?: Going; children?: ComponentChildren }) {
  const { result, soFar, children } = props;
  const { verdict } = result;
  const { word, kind } = headOf(verdict.outcome, soFar);
  const early = soFar !== undefined ? null : endedEarly(result);
  return (
    <Part id="outcome" title="Outcome" quiet>
      <div class="outcome">
        <div>
          <div class={`verdict ${kind}`}>
            <span class={`sign ${kind}`} aria-hidden="true">
              {LOOKS[kind] ?? "!"}
            </span>
            <div>
              <p class="word">
                {word}
                {soFar !== undefined && <small> so far</small>}
                {early !== null && <small> stopped early</small>}
              </p>
              <p class="summary">{verdict.summary}</p>
              <p class={verdict.valid ? "validity" : "validity bad"}>{validityLine(verdict)}</p>
            </div>
          </div>
          {early !== null && <p class="notice">{early}</p>}
          <Tiles result={result} soFar={soFar} />
          <LimitedBy result={result} />
        </div>
        <div class="picture">{children}</div>
      </div>
      {verdict.evidence.length > 0 && (
        <>
          <h3>Why it is invalid</h3>
          <Findings kind="bad" findings={verdict.evidence} />
        </>
      )}
      <Thresholds result={result} />
      <Warnings warnings={verdict.warnings} />
      {result.notes.length > 0 && (
        <ul class="notes">
          {result.notes.map(({ text }) => (
            <li>{text}</li>
          ))}
        </ul>
      )}
    </Part>
  );
}

function Findings({ kind, findings }: { kind: BadgeKind; findings: Finding[] }) {
  return (
    <ul class={`findings ${kind}`}>
      {findings.map(({ code, evidence, hint }) => (
        <li>
          <span class={`sign ${kind}`} aria-hidden="true">
            {LOOKS[kind] ?? "!"}
          </span>
          <div>
            <strong>{spaced(code)}</strong>: {evidence}
            {hint !== "" && <p class="hint">Hint: {hint}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

/** The warnings in one line, which opens. */
function Warnings({ warnings }: { warnings: Finding[] }) {
  if (warnings.length === 0) return null;
  const names = [...new Set(warnings.map(({ code }) => spaced(code)))];
  return (
    <details class="warnings">
      <summary>
        <span class="sign doubtful" aria-hidden="true">
          !
        </span>{" "}
        <strong>{warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}</strong>: {names.join(", ")}
      </summary>
      <Findings kind="doubtful" findings={warnings} />
    </details>
  );
}

function LimitedBy({ result }: { result: Result }) {
  const { limited_by, evidence, warnings } = result.verdict;
  // Evidence that a finding gives in full is not repeated.
  const findings = [...evidence, ...warnings];
  const isSaid = findings.some((finding) => finding.evidence === limited_by.evidence);
  const isHinted = findings.some((finding) => finding.hint === limited_by.hint);
  return (
    <div class="limited">
      <p>
        <strong class="sentence">{limitWords(limited_by.what)}</strong>
        {!isSaid && limited_by.evidence !== "" && <> – {limited_by.evidence}</>}
      </p>
      {!isHinted && limited_by.hint !== "" && <p class="hint">Hint: {limited_by.hint}</p>}
    </div>
  );
}

export function Tile({ label, value, below }: { label: string; value: string; below: string }) {
  return (
    <div class="tile">
      <span class="label">{label}</span>
      <span class="value">{value}</span>
      <span class="below">{below}</span>
    </div>
  );
}

/** Responses per second in the last whole interval of the load; null before there is one. */
export function presentRate({ intervals }: Pick<Result, "intervals">): number | null {
  return intervals.findLast(({ drain, warmup }) => !drain && !warmup)?.achieved_per_s ?? null;
}

function Tiles({ result, soFar }: { result: Result; soFar: Going | undefined }) {
  const pace = paceOf(result);
  const asked = pace.asked === null ? [] : [`of ${perSecond(pace.asked)} asked for`];
  const { achieved_per_s } = result.rate;
  const requests =
    pace.unit === "iterations" && achieved_per_s !== null ? [`${perSecond(achieved_per_s)} requests`] : [];
  const [name, summary] = mainSummary(result);
  const { bad, all, share: badOf } = badShare(result, soFar !== undefined);
  // Averages over the run so far stand beside the rate of the last interval, which is one of requests.
  const now = soFar === undefined ? null : presentRate(result);
  const unit = pace.unit === "iterations" ? " requests" : "";
  const rates = [...(now === null ? [] : [`now ${perSecond(now)}${unit}`]), ...asked, ...requests];
  const soFarWords = soFar === undefined ? "" : " so far";
  const interval = (p: string) => {
    // Failed requests are in service times of the closed model as little as in response times.
    const left = leftOut(result, p);
    if (left !== null) return `of the good answers alone: ${left}`;
    const text = intervalOf(summary, p);
    return text === "" ? (summary.p_missing?.[p] ?? "") : `95 % interval ${text}`;
  };
  return (
    <div class="tiles">
      <Tile label={`${pace.label}${soFarWords}`} value={rateText(pace.achieved)} below={rates.join(" · ")} />
      {["50", "99"].map((p) => (
        <Tile label={`${name} p${p}${soFarWords}`} value={figureOf(summary, p)} below={interval(p)} />
      ))}
      <Tile
        label={`failed or timed out${soFarWords}`}
        value={badOf === null ? "-" : share(badOf)}
        below={`${count(bad)} of ${count(all)} requests`}
      />
    </div>
  );
}

/** The time that the model is about. */
export function mainSummary(result: Result): [string, Summary] {
  return result.model.kind === "open"
    ? ["response time", result.response_time]
    : ["service time", result.service_time];
}

function Thresholds({ result }: { result: Result }) {
  if (result.thresholds.length === 0) return null;
  return (
    <>
      <Table
        caption="Thresholds"
        rows={result.thresholds}
        rowKey={(_, index) => String(index)}
        columns={[
          {
            key: "word",
            // The word first, so that it is in sight on a narrow screen.
            title: <span class="unseen">result</span>,
            cell: (threshold) => {
              const { word, kind } = thresholdWord(threshold);
              return <Badge kind={kind}>{word}</Badge>;
            },
            text: true,
          },
          {
            key: "text",
            title: "threshold",
            cell: thresholdHeading,
            heads: true,
            text: true,
            class: "breaks",
          },
          { key: "seen", title: "observed", cell: thresholdSeen, text: true, class: "breaks" },
        ]}
      />
      {!result.verdict.valid && result.thresholds.some(({ proven }) => !proven) && (
        <p class="hint">An invalid measurement proves nothing about thresholds that are not judged.</p>
      )}
    </>
  );
}

/** Percentiles of the times of requests, with their intervals. */
export function TimesTables({ result }: { result: Result }) {
  const open = result.model.kind === "open";
  const first: [string, Summary] = open
    ? ["response time", result.response_time]
    : ["service time", result.service_time];
  const second: [string, Summary] = open
    ? ["service time", result.service_time]
    : ["response time", result.response_time];
  const rows = ["50", "75", "90", "95", "99", "99.9", "99.99", "max", "mean", "stdev", "min"];
  const columns: TableColumn<string>[] = [
    {
      key: "p",
      title: <span class="unseen">figure</span>,
      cell: (name) => (/^\d/.test(name) ? `p${name}` : name),
      heads: true,
    },
    { key: "first", title: first[0], cell: (name) => figureOf(first[1], name) },
    {
      key: "first-interval",
      title: "95 % interval",
      cell: (name) => <span class="interval">{intervalOf(first[1], name)}</span>,
    },
    { key: "second", title: second[0], cell: (name) => figureOf(second[1], name) },
    { key: "lag", title: "start lag", cell: (name) => figureOf(result.start_lag, name) },
  ];
  const others: [string, Summary][] = [
    ["first byte", result.first_byte_time],
    ["connect", result.connect_time],
    ["TLS", result.tls_time],
    ["failed", result.failed_response_time],
  ];
  const known = others.filter(([, summary]) => summary.count > 0);
  const missing = Object.entries(first[1].p_missing ?? {});
  const beyond = unreached(
    result,
    rows.filter((name) => /^\d/.test(name)),
  );
  return (
    <>
      <div class="columns">
        <Table caption="Percentiles" columns={columns} rows={rows} rowKey={(name) => name} />
        {known.length > 0 && (
          <Table
            caption="Other times"
            rows={known}
            rowKey={([name]) => name}
            columns={[
              { key: "name", title: <span class="unseen">time</span>, cell: ([name]) => name, heads: true },
              { key: "count", title: "count", cell: ([, summary]) => count(summary.count) },
              ...["50", "90", "99", "max"].map((p) => ({
                key: p,
                title: p === "max" ? p : `p${p}`,
                cell: ([, summary]: [string, Summary]) => figureOf(summary, p),
              })),
            ]}
          />
        )}
      </div>
      <ul class="notes">
        {beyond !== null && <li>{beyond}</li>}
        {first[1].count > 0 && missing.length > 0 && (
          <li>not shown: {missing.map(([name, reason]) => `p${name} ${reason}`).join("; ")}</li>
        )}
        {!open && (
          <li>
            closed model: nothing was due, so response time and start lag say nothing about a user's wait
          </li>
        )}
        {result.response_time.censored > 0 && (
          <li>
            ≥ marks lower bounds: {count(result.response_time.censored)} timed-out requests count as at least
            as long as they were waited for
          </li>
        )}
      </ul>
    </>
  );
}

/** Facts about the course: model, lengths, steadiness. */
export function PaceFacts({ result }: { result: Result }) {
  return (
    <Facts
      facts={[
        [
          "model",
          result.model.kind === "open"
            ? "open: requests were scheduled, independent of the target"
            : "closed: each user waited for its response before its next request",
        ],
        ["measured", seconds(result.duration_s)],
        ["warm-up", result.warmup_s > 0 ? seconds(result.warmup_s) : "none"],
        ["drain", result.drain_s > 0 ? seconds(result.drain_s) : "none"],
        ["steady", steadyText(result)],
      ]}
    />
  );
}

/** Facts in columns; those without a value are omitted. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value != null && value !== "")
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function PhasesTable({ result }: { result: Result }) {
  const phases = result.phases ?? [];
  if (phases.length === 0) return null;
  const iterations = countsIterations(result);
  return (
    <Table
      caption="Phases, with the response time of requests that ended in each"
      rows={phases}
      rowKey={({ name }) => name}
      columns={[
        {
          key: "name",
          title: "phase",
          cell: ({ name, measured }) => (measured ? name : `${name} (not measured)`),
          heads: true,
        },
        { key: "from", title: "from", cell: ({ at_s }) => seconds(at_s) },
        { key: "length", title: "length", cell: ({ duration_s }) => seconds(duration_s) },
        { key: "asked", title: "asked for", cell: ({ target_per_s }) => rateText(target_per_s) },
        {
          key: "achieved",
          title: iterations ? "iterations started" : "achieved",
          cell: (phase) => rateText(iterations ? phase.iterations_started_per_s : phase.achieved_per_s),
        },
        { key: "ok", title: "ok", cell: ({ ok }) => count(ok) },
        { key: "failed", title: "failed", cell: ({ failed }) => count(failed) },
        { key: "timed", title: "timed out", cell: ({ timed_out }) => count(timed_out) },
        ...["50", "99"].map((p) => ({
          key: `p${p}`,
          title: `p${p}`,
          cell: ({ response_time: { p: values, at_least } }: Phase) =>
            boundText(values[p], at_least?.includes(p), nanos),
        })),
      ]}
    />
  );
}

/** The trail of changes of the rate. */
export function ChangesTable({ result }: { result: Result }) {
  const { changes } = result.rate;
  if (changes.length === 0) return null;
  return (
    <Table
      caption="Changes of the rate while the run went on"
      rows={changes}
      rowKey={(_, index) => String(index)}
      columns={[
        { key: "at", title: "at", cell: ({ at_s }) => seconds(at_s), heads: true },
        { key: "what", title: "what", cell: changeText, text: true },
        { key: "by", title: "by", cell: ({ by }) => steeredBy(by), text: true },
      ]}
    />
  );
}

/** The accounts of arrivals and requests. */
export function Accounts({ result }: { result: Result }) {
  const { accounting, iterations } = result;
  type Count = [string, number, BadgeKind];
  const scheduled: Count[] = [
    ["started", accounting.started, "plain"],
    ["dropped", accounting.dropped, "doubtful"],
    ["never started", accounting.never_started, "doubtful"],
    ["unknown", accounting.unknown ?? 0, "bad"],
  ];
  const started: Count[] = [
    ["ok", accounting.ok, "good"],
    ["failed", accounting.failed, "bad"],
    ["timed out", accounting.timed_out, "bad"],
    ["aborted", accounting.aborted, "doubtful"],
    ["in flight at stop", accounting.in_flight_at_stop, "doubtful"],
  ];
  return (
    <>
      <Identity
        whole={["scheduled", accounting.scheduled]}
        parts={scheduled.filter(([name, value]) => name !== "unknown" || value > 0)}
      />
      <Identity
        whole={["started", accounting.started]}
        parts={started.filter(([name, value]) => name !== "aborted" || value > 0)}
      />
      <Facts
        facts={[
          ...besideAccounts(result),
          ["bytes sent", bytesText(result.bytes.sent)],
          ["bytes received", bytesText(result.bytes.received)],
          [
            "iterations",
            countsIterations(result) &&
              result.rate.iterations_started_per_s !== null &&
              `${count(iterations.started)} started, ${count(iterations.completed)} completed, ` +
                `${count(iterations.failed)} failed, ${count(iterations.unfinished)} unfinished`,
          ],
        ].filter((fact): fact is [string, string] => fact[1] !== false)}
      />
    </>
  );
}

function Identity({ whole, parts }: { whole: [string, number]; parts: [string, number, BadgeKind][] }) {
  const counted = (name: string, value: number, kind: BadgeKind) => (
    <span class={`counted ${value > 0 ? kind : ""}`}>
      {count(value)}
      <small>{name}</small>
    </span>
  );
  return (
    <p class="identity">
      {counted(whole[0], whole[1], "plain")}
      {parts.map(([name, value, kind], index) => (
        <>
          <span class="sign">{index === 0 ? "=" : "+"}</span>
          {counted(name, value, kind)}
        </>
      ))}
    </p>
  );
}

/** Statuses, errors with an example each, protocols, connections. */
export function Answers({ result, soFar = false }: { result: Result; soFar?: boolean }) {
  const { accounting, connections } = result;
  const ended = Math.max(1, accounting.ok + accounting.failed + accounting.timed_out + accounting.aborted);
  const counted = (title: string, name: string, counts: Record<string, number>) => (
    <Table
      caption={title}
      rows={Object.entries(counts)}
      rowKey={([key]) => key}
      columns={[
        { key: "name", title: name, cell: ([key]) => key, heads: true },
        { key: "count", title: "responses", cell: ([, number]) => count(number) },
        { key: "share", title: "of ended requests", cell: ([, number]) => share(number / ended) },
      ]}
    />
  );
  const protocols = Object.keys(result.protocols).some((name) => name !== "http/1.1");
  const failures = Object.entries(connections.failed);
  return (
    <>
      <div class="columns">
        {Object.keys(result.statuses).length === 0 ? (
          <p class="empty">
            {soFar && accounting.ok + accounting.failed > 0
              ? "Statuses, and an example of each error, are known at the end of the run."
              : "Not one response came."}
          </p>
        ) : (
          counted("Responses by status", "status", result.statuses)
        )}
        <ErrorsTable result={result} ended={ended} />
        {protocols && counted("Responses by protocol", "protocol", result.protocols)}
      </div>
      <Facts
        facts={[
          [
            "connections",
            `${count(connections.opened)} opened, at most ${count(connections.peak_open)} of ` +
              `${count(connections.limit)} at once, ` +
              `${count(connections.closed_idle)} closed by the target while idle`,
          ],
          ["connections that failed", failures.length > 0 ? listed(connections.failed) : null],
          [
            "arrivals waited for one",
            connections.blocked_s > 0 ? `${seconds(connections.blocked_s)}, over all workers` : null,
          ],
        ]}
      />
    </>
  );
}

/** Failed requests by class, with the first message of each. */
export function ErrorsTable({ result, ended }: { result: Result; ended: number }) {
  const errors = Object.entries(result.errors).sort(([, a], [, b]) => b - a);
  return (
    <Table
      caption="Failed requests by class"
      rows={errors}
      rowKey={([name]) => name}
      empty={
        result.accounting.timed_out === 0
          ? "No request failed."
          : `No errors beside timeouts: ${plural(result.accounting.timed_out, "request")} timed out.`
      }
      columns={[
        { key: "class", title: "error", cell: ([name]) => <span class="bad">{name}</span>, heads: true },
        { key: "count", title: "requests", cell: ([, number]) => count(number) },
        { key: "share", title: "of ended requests", cell: ([, number]) => share(number / ended) },
        {
          key: "example",
          title: "example",
          cell: ([name]) => result.error_examples[name] ?? "",
          text: true,
          class: "breaks",
        },
      ]}
    />
  );
}

/** Steps, each with its time, its statuses, and the first failure of each class. */
export function Steps({ result }: { result: Result }) {
  const open = result.model.kind === "open";
  const time = (step: Step) => (open ? step.response_time : step.service_time);
  const name = open ? "response" : "service";
  const several = new Set(result.by_step.map(({ scenario }) => scenario)).size > 1;
  const figures = ["50", "90", "99", "max"].map((p) => ({
    key: p,
    // The caption says of what.
    title: p === "max" ? p : `p${p}`,
    cell: (step: Step) => figureOf(time(step), p),
  }));
  const said = ({ error_examples = {} }: Step) =>
    Object.entries(error_examples)
      .map(([name, example]) => `${name}: ${exampleSaid(example)}`)
      .join(", ");
  // An empty column only takes room.
  const texts: TableColumn<Step>[] = [
    {
      key: "statuses",
      title: "statuses",
      cell: ({ statuses }) => listed(statuses),
      text: true,
      class: "breaks short",
    },
    {
      key: "errors",
      title: "errors",
      cell: ({ errors }) => listed(errors),
      text: true,
      class: "breaks short",
    },
    { key: "said", title: "the first said", cell: said, text: true, class: "breaks" },
  ];
  return (
    <Table
      label="Steps"
      caption={`Steps, with their ${name} time`}
      rows={result.by_step}
      rowKey={({ scenario, step }, index) => `${scenario} ${step} ${index}`}
      columns={[
        {
          key: "step",
          title: "step",
          cell: ({ scenario, step }) => (several && scenario !== "default" ? `${scenario}: ${step}` : step),
          heads: true,
          class: "breaks",
        },
        { key: "ok", title: "ok", cell: ({ ok }) => count(ok) },
        { key: "failed", title: "failed", cell: ({ failed }) => count(failed) },
        { key: "timed", title: "timed out", cell: ({ timed_out }) => count(timed_out) },
        ...figures,
        ...texts.filter(({ cell }) => result.by_step.some((step, index) => cell(step, index) !== "")),
      ]}
    />
  );
}

/** The servers under load. */
export function Targets({ result }: { result: Result }) {
  const { targets } = result.run;
  const columns: TableColumn<(typeof targets)[number]>[] = [
    { key: "authority", title: "target", cell: ({ authority }) => authority, heads: true },
    { key: "protocol", title: "protocol", cell: ({ protocol }) => protocol || "-", text: true },
    {
      key: "tls",
      title: "TLS",
      cell: ({ tls_version, tls_cipher }) =>
        tls_version === null ? "none" : `${tls_version} ${tls_cipher ?? ""}`,
      text: true,
    },
    {
      key: "addresses",
      title: "addresses",
      cell: ({ addresses }) => addresses.join(", "),
      text: true,
      class: "breaks",
    },
  ];
  return <Table caption="Targets" columns={columns} rows={targets} rowKey={({ authority }) => authority} />;
}

/** The cost of the generator, and its shortcomings. */
export function GeneratorFacts({ result }: { result: Result }) {
  const { generator } = result;
  const cpu = generator.cpu_user_s + generator.cpu_sys_s;
  const perResponse = generator.cpu_us_per_request;
  const stalls = generator.workers.flatMap(({ stalls }) => stalls);
  const longest = Math.max(0, ...stalls.map(({ length_ns }) => length_ns));
  const delay = generator.workers.reduce((sum, { run_delay_s }) => sum + (run_delay_s ?? 0), 0);
  return (
    <Facts
      facts={[
        ["worker threads", [count(generator.threads), generator.backend].filter(Boolean).join(", ")],
        [
          "CPU time",
          perResponse === null ? seconds(cpu) : `${seconds(cpu)}, ${perResponse.toFixed(1)} µs per response`,
        ],
        [
          "busiest worker",
          shareText(
            generator.workers.reduce<number | null>(
              (most, { cpu_share }) => (cpu_share === null ? most : Math.max(most ?? 0, cpu_share)),
              null,
            ),
          ),
        ],
        ["start lag p99", figureOf(result.start_lag, "99")],
        ["stalls", stalls.length === 0 ? "none" : `${count(stalls.length)}, the longest ${nanos(longest)}`],
        ["ready without a CPU", secondsText(delay)],
        ["memory at most", generator.rss_peak_bytes === null ? null : bytesText(generator.rss_peak_bytes)],
        ["machine", `${result.run.host.cpu_model}, ${result.run.host.cpus} CPUs`],
      ]}
    />
  );
}

/** Everything that another run needs to be the same. */
export function Origin({ result, plan }: { result: Result; plan: string | null }) {
  const { run, model } = result;
  return (
    <>
      <h3>Load</h3>
      <ul class="notes">
        {model.description.map((text) => (
          <li>{text}</li>
        ))}
      </ul>
      <Targets result={result} />
      <Facts
        facts={[
          ["run", run.id],
          ["started", whenFull(run.started_at_unix_ns / 1e9)],
          ["seed", String(run.seed)],
          ["plan hash", run.plan_hash],
          ["load checksum", run.load_checksum],
          ["host", `${run.host.hostname}, ${run.host.kernel}`],
          ["program", `${result.tool.name} ${result.tool.version}`],
        ]}
      />
      <h3>Command</h3>
      <pre tabIndex={0}>{run.args.map(quoted).join(" ")}</pre>
      {plan !== null && (
        <details>
          <summary>The plan as it was written</summary>
          <pre tabIndex={0}>{plan}</pre>
        </details>
      )}
    </>
  );
}

/** An argument as a shell takes it. */
export function quoted(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
