import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import * as api from "../app/api.ts";
import { Badge, Button, Dialog, ErrorBox, Loading, Problems, TextField } from "../app/controls.tsx";
import { notify, notifyError } from "../app/notify.tsx";
import { bytes, seconds } from "../../src/figure.ts";
import { isVariable, jsonIn, pointerOf, stepCalled, variableFor } from "./jsonpaths.ts";
import type { PlanModel } from "./model.ts";
import { Typed } from "./scalar.ts";
import { type Path, pathText, type SchemaTree } from "./schema.ts";
import { orderOf } from "./fields.tsx";

/** Values of a body that are shown one by one; more would be too slow to look at. */
const MOST_VALUES = 400;
/** Characters of a body that are shown. */
const MOST_CHARACTERS = 100_000;

/** A value of a response that is to be taken into a variable. */
interface Taken {
  step: Path;
  /** The extraction as it is written. */
  extraction: Record<string, Typed>;
  words: string;
  suggested: string;
}

/** One iteration, with each exchange in full. */
export function TryTab({ model, schema }: { model: PlanModel; schema: SchemaTree }) {
  const busy = useSignal(false);
  const failed = useSignal<api.ApiError | null>(null);
  const taken = useSignal<Taken | null>(null);
  const tryIt = async () => {
    busy.value = true;
    failed.value = null;
    try {
      model.tried.value = await api.tryOnce(model.path, model.text.peek());
    } catch (error) {
      failed.value = api.errorOf(error);
    } finally {
      busy.value = false;
    }
  };
  const take = (exchange: api.Exchange, path: Path, extraction: Record<string, Typed>, words: string) => {
    const step = stepCalled(model.tree.peek(), exchange.scenario, exchange.step);
    if (step === null) {
      notifyError(
        new api.ApiError(0, {
          error: `the text has no step ${exchange.step} any more`,
          hint: "try the plan again, as it is now",
        }),
      );
      return;
    }
    taken.value = { step, extraction, words, suggested: variableFor(path, model.names.peek().variables) };
  };
  const tried = model.tried.value;
  return (
    <>
      <p>
        Sends the requests of one iteration, once, and shows all of it. A value of a response can be taken
        into a variable from here.
      </p>
      <Button kind="primary" onClick={() => void tryIt()} busy={busy.value}>
        Try once
      </Button>
      {busy.value && <Loading what="Trying" />}
      {failed.value !== null && <ErrorBox error={failed.value} />}
      {tried !== null && !busy.value && (
        <div class="plan-tried">
          {tried.message !== null && <p class="notice preserved">{tried.message}</p>}
          {(tried.problems ?? []).length > 0 && <Problems problems={tried.problems ?? []} />}
          {tried.ok && tried.exchanges.length === 0 && <p class="empty">No request was sent.</p>}
          {tried.exchanges.map((exchange, index) => (
            <ExchangeView
              key={index}
              exchange={exchange}
              number={index + 1}
              take={(path, extraction, words) => take(exchange, path, extraction, words)}
            />
          ))}
        </div>
      )}
      {taken.value !== null && (
        <TakeDialog taken={taken.value} model={model} schema={schema} close={() => (taken.value = null)} />
      )}
    </>
  );
}

type Take = (path: Path, extraction: Record<string, Typed>, words: string) => void;

function ExchangeView({ exchange, number, take }: { exchange: api.Exchange; number: number; take: Take }) {
  const { scenario, step, request, response, service_time_s, error, checks, extracted } = exchange;
  const isGood = error === null && checks.every(({ passed }) => passed);
  // Names that begin with a colon are of the program: what an `as_path` is resolved against.
  const values = extracted.filter(({ name }) => !name.startsWith(":"));
  return (
    <div class="plan-exchange" role="group" aria-label={`Exchange ${number}: ${step}`}>
      <h3>
        {number}. {step} <small>{scenario}</small>
      </h3>
      <p>
        <Badge kind={isGood ? "good" : "bad"}>
          {response === null ? "no response" : String(response.status)}
        </Badge>{" "}
        {service_time_s !== null && <span>in {seconds(service_time_s)}</span>}
      </p>
      {error !== null && (
        <p class="field-error preserved">
          {error.class}: {error.message}
        </p>
      )}
      <Cut message={request} of="request" />
      {response !== null && <Cut message={response} of="response" />}
      <details>
        <summary>
          Request: {request.method} {request.url}
        </summary>
        <pre class="plan-pre" tabIndex={0} aria-label={`Head of request ${number}`}>
          {request.head}
        </pre>
        <Body text={request.body} label={`Body of request ${number}`} />
      </details>
      {response !== null && (
        <details open>
          <summary>Response: {response.status}</summary>
          <Head text={response.head} take={take} />
          <Body text={response.body} label={`Body of response ${number}`} take={take} />
        </details>
      )}
      {checks.length > 0 && (
        <ul class="plan-checks" aria-label="Checks">
          {checks.map(({ check, passed, message }) => (
            <li>
              <Badge kind={passed ? "good" : "bad"}>{passed ? "passed" : "failed"}</Badge>{" "}
              <span class="preserved">{check}</span>
              {message !== "" && <p class="hint preserved">{message}</p>}
            </li>
          ))}
        </ul>
      )}
      {values.length > 0 && (
        <dl class="plan-totals" aria-label="Extracted values">
          {values.map(({ name, value }) => (
            <div>
              <dt>{name}</dt>
              <dd>{value ?? "nothing"}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

/** Said of a message of which the program has kept a part only. */
function Cut({ message, of }: { message: object; of: string }) {
  const cut = "cut_bytes" in message ? Number(message.cut_bytes) : 0;
  return cut > 0 ? (
    <p class="hint">
      {bytes(cut)} of the {of} are left out.
    </p>
  ) : null;
}

/** The head of a response, whose fields can be taken. */
function Head({ text, take }: { text: string; take: Take }) {
  const [first = "", ...rest] = text.replace(/\r/g, "").trimEnd().split("\n");
  const isField = /^[!#$%&'*+.^_`|~\w-]+:/.test(first);
  const lines = isField ? [first, ...rest] : rest;
  return (
    <div class="plan-pre plan-tree">
      {!isField && <div>{first}</div>}
      {lines.map((line) => {
        const at = line.indexOf(":", 1);
        if (at === -1) return <div>{line}</div>;
        const name = line.slice(0, at).toLowerCase();
        const extraction = {
          header: new Typed(name),
          ...(name === "location" && { as_path: new Typed("true") }),
        };
        return (
          <div>
            {line.slice(0, at)}:{" "}
            <button
              type="button"
              class="plan-value"
              aria-label={`Use the value of ${name}: ${line.slice(at + 1).trim()}`}
              onClick={() => take([name], extraction, `the header ${name}`)}
            >
              {line.slice(at + 1).trim()}
            </button>
          </div>
        );
      })}
    </div>
  );
}

/** A body: JSON as a tree, whose values can be taken, else as it is. */
function Body({ text, label, take }: { text: string; label: string; take?: Take }) {
  if (text === "") return <p class="hint">no body</p>;
  const json = jsonIn(text);
  if (json !== null) {
    return (
      <div class="plan-pre plan-tree" role="group" aria-label={label}>
        <JsonValue
          value={json.value}
          path={[]}
          left={{ count: MOST_VALUES }}
          {...(take !== undefined && { take })}
        />
      </div>
    );
  }
  const shown = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
  return (
    <pre class="plan-pre" tabIndex={0} aria-label={label}>
      {shown}
    </pre>
  );
}

function JsonValue(props: { value: unknown; path: Path; left: { count: number }; take?: Take }) {
  const { value, path, left, take } = props;
  left.count -= 1;
  if (left.count < 0) return left.count === -1 ? <span>…</span> : null;
  if (typeof value !== "object" || value === null) {
    const text = JSON.stringify(value);
    if (take === undefined) return <span>{text}</span>;
    return (
      <button
        type="button"
        class="plan-value"
        aria-label={`Use the value at ${pointerOf(path) || "the root"}: ${text}`}
        onClick={() => take(path, { json: new Typed(pointerOf(path)) }, pointerOf(path))}
      >
        {text}
      </button>
    );
  }
  const isList = Array.isArray(value);
  const entries: [string | number, unknown][] = isList
    ? value.map((one, index) => [index, one])
    : Object.entries(value);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <span>{open + close}</span>;
  return (
    <>
      {open}
      <div class="plan-inner">
        {entries.map(([key, one], index) => (
          <div>
            {!isList && `${JSON.stringify(key)}: `}
            <JsonValue value={one} path={[...path, key]} left={left} {...(take !== undefined && { take })} />
            {index + 1 < entries.length && ","}
          </div>
        ))}
      </div>
      {close}
    </>
  );
}

/** Asks for the name of the variable that a value goes into. */
function TakeDialog(props: { taken: Taken; model: PlanModel; schema: SchemaTree; close: () => void }) {
  const { taken, model, schema, close } = props;
  const name = useSignal(taken.suggested);
  const input = useRef<HTMLInputElement>(null);
  const error = isVariable(name.value) ? null : "letters, digits and _; no digit at the beginning";
  const write = () => {
    if (error !== null) return input.current?.focus();
    const path = [...taken.step, "extract", name.value];
    if (!model.edit({ kind: "set", path, value: taken.extraction, order: orderOf(schema, taken.step) }))
      return;
    model.reveal(path, false);
    notify(`Later steps can have it as \${${name.value}}.`);
    close();
  };
  return (
    <Dialog
      title="Use this value"
      open
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" onClick={write}>
            Write extraction
          </Button>
        </>
      }
    >
      <p>
        Takes <code>{taken.words}</code> from each response of this step, <code>{pathText(taken.step)}</code>.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          write();
        }}
      >
        <TextField
          label="Name of the variable"
          value={name.value}
          onInput={(value) => (name.value = value)}
          error={error}
          inputRef={input}
        />
      </form>
    </Dialog>
  );
}
