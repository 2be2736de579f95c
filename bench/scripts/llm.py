#!/usr/bin/env python3
"""Errors of load generators for language models, against the truth log of `plimsoll target llm`.

The target sends a token when a law says, and logs when each one was handed to the kernel. Each generator asks
it for the same number of answers with the same number of streams at a time; its own p50 and p99 of TTFT and of
the time between tokens are compared with those of the log. Peers come from PyPI, each into an environment of
its own; one that cannot be installed or run is listed with the reason.

    python3 bench/scripts/llm.py --plimsoll target/dist/plimsoll            # the whole table: about 8 minutes
    python3 bench/scripts/llm.py --streams 1,100 --peers aiperf             # a part of it
    python3 bench/scripts/llm.py --apis responses,anthropic,ollama          # Plimsoll alone, by other APIs

Nothing but the standard library is needed. The table goes to the standard output, progress to the standard error.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The versions that the published table names, each with the oldest Python that it takes.
PEERS = {"aiperf": ("0.13.0", (3, 10)), "guidellm": ("0.8.1", (3, 10)), "inference-perf": ("0.7.0", (3, 12))}
# Bytes of a prompt do not matter to the target; words of the tokenizer below.
PROMPT_TOKENS = 32
# Tokens from which CPU time per token is stated.
ENOUGH_TOKENS = 40_000
# A tool that has not ended after this time is given up, in seconds.
LIMIT = 180


def say(text):
    print(text, file=sys.stderr, flush=True)


def quantile(values, share):
    """The value of a rank, as reports have it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


class Target:
    """The target with its truth log; a new one for each run, so that its log has that run alone."""

    def __init__(self, options, folder):
        self.log = folder / "truth.csv"
        command = [options.plimsoll, "target", "llm", "--listen", "127.0.0.1:0", "--truth-log", str(self.log)]
        command += ["--ttft", options.ttft, "--gap", options.gap, "--tokens", str(options.tokens)]
        command += ["--self-signed"] if options.tls else []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "listening on " in line:
                self.url = line.split("listening on ")[1].strip().split("/v1")[0].rstrip("/")
                return
        raise RuntimeError("the target did not start")

    def stop(self):
        """The rows of the log, and what the target said of its own lateness."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.stderr.read()
        self.process.wait()
        rows = []
        for line in self.log.read_text().splitlines()[1:]:
            columns = line.split(",")
            content = [int(at) for at in columns[7].split()]
            if columns[4] == "whole" and content:
                rows.append({"number": int(columns[1]), "recv": int(columns[2]), "content": content})
        late = [line.split(": ", 1)[-1] for line in said.splitlines() if "after they were due" in line]
        return rows, late[0] if late else ""


def truth_of(rows):
    ttft = [row["content"][0] - row["recv"] for row in rows]
    gaps = [b - a for row in rows for a, b in zip(row["content"], row["content"][1:])]
    return {
        "ttft p50": quantile(ttft, 0.5), "ttft p99": quantile(ttft, 0.99),
        "itl p50": quantile(gaps, 0.5), "itl p99": quantile(gaps, 0.99),
        "tokens": len(gaps) + len(ttft),
    }


def run(command, folder, environment=None):
    """Runs a tool: its exit code and the CPU time of it and its children, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(folder / "out.txt", "w") as out:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = f"gave up after {LIMIT} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return code, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plimsoll(options, url, streams, requests, folder):
    command = [options.plimsoll, "llm", url, "--model", "plimsoll", "-c", str(streams), "-n", str(requests)]
    command += ["--output-tokens", str(options.tokens), "--input-tokens", str(PROMPT_TOKENS), "--quiet"]
    command += ["-o", "json", "--stream-log", str(folder / "streams.jsonl")]
    command += ["-k"] if options.tls else []
    command += ["--api", options.api]
    code, cpu = run(command, folder)
    result = json.loads((folder / "out.txt").read_text())
    events = result["event_streams"]
    figures = {}
    for name, key in (("ttft", "ttft_from_sent"), ("itl", "itl")):
        values = events[key]["p"]
        figures[name] = {"p50": values["50"], "p99": values["99"]}
    streams_seen = {}
    for line in (folder / "streams.jsonl").read_text().splitlines():
        line = json.loads(line)
        streams_seen[int(line["id"].rsplit("-", 1)[-1] or -1)] = line
    # A percentile that needs more samples is absent from the result; the others report it all the same.
    logged = [line["content_ns"][0] - line["sent_ns"] for line in streams_seen.values() if line["content_ns"]]
    for percentile, share in (("p50", 0.5), ("p99", 0.99)):
        if figures["ttft"][percentile] is None and logged:
            figures["ttft"][percentile] = quantile(logged, share)
    verdict = result["verdict"]
    note = "valid" if verdict["valid"] else "invalid: " + ", ".join(verdict["invalid_reasons"])
    limit = verdict["limited_by"]["what"]
    return figures, cpu, f"{note}; limited by {limit}", streams_seen


def errors_of_gaps(rows, seen):
    """Gap by gap, joined by the name of the completion: errors of TTFT and of gaps."""
    ttft, gaps = [], []
    for row in rows:
        line = seen.get(row["number"])
        if line is None or len(line["content_ns"]) != len(row["content"]):
            continue
        ttft.append(abs((line["content_ns"][0] - line["sent_ns"]) - (row["content"][0] - row["recv"])))
        mine = line["content_ns"]
        for at in range(1, len(mine)):
            gaps.append(abs((mine[at] - mine[at - 1]) - (row["content"][at] - row["content"][at - 1])))
    return ttft, gaps


def aiperf(options, url, streams, requests, folder):
    command = [str(options.venvs / "aiperf/bin/aiperf"), "profile", "-m", "plimsoll", "--url", url]
    command += ["--endpoint-type", "chat", "--streaming", "--tokenizer", str(options.tokenizer)]
    command += ["--concurrency", str(streams), "--request-count", str(requests), "--use-server-token-count"]
    command += ["--synthetic-input-tokens-mean", str(PROMPT_TOKENS), "--synthetic-input-tokens-stddev", "0"]
    command += ["--output-tokens-mean", str(options.tokens), "--output-tokens-stddev", "0"]
    command += ["--artifact-dir", str(folder / "artifacts"), "--ui-type", "none"]
    command += ["--no-gpu-telemetry", "--no-server-metrics"]
    code, cpu = run(command, folder)
    result = json.loads((folder / "artifacts/profile_export_aiperf.json").read_text())
    figures = {}
    # Its inter_token_latency is a mean of each request; the gaps are its inter_chunk_latency.
    for name, key in (("ttft", "time_to_first_token"), ("itl", "inter_chunk_latency")):
        figures[name] = {p: result[key][p] * 1e6 for p in ("p50", "p99")}
    return figures, cpu, "", None


def guidellm(options, url, streams, requests, folder):
    data = f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={options.tokens}"
    command = [str(options.venvs / "guidellm/bin/guidellm"), "run", "--disable-console-interactive"]
    command += ["--backend", f"kind=openai_http,target={url},model=plimsoll,request_format=/v1/chat/completions"]
    command += ["--profile", f"kind=concurrent,streams={streams}", "--data", data]
    command += ["--constraint", f"kind=max_requests,count={requests}"]
    command += ["--tokenizer", f"kind=huggingface_auto,model={options.tokenizer}"]
    command += ["--output", f"kind=json,path={folder / 'guidellm.json'}"]
    code, cpu = run(command, folder)
    found = sorted(folder.glob("*.json"))
    if not found:
        raise RuntimeError(f"no result (exit code {code}): {tail(folder)}")
    metrics = json.loads(found[-1].read_text())["benchmarks"][0]["metrics"]
    figures = {}
    # A mean of each request, too: it keeps no gaps.
    for name, key in (("ttft", "time_to_first_token_ms"), ("itl", "inter_token_latency_ms")):
        values = metrics[key]["successful"]["percentiles"]
        figures[name] = {p: values[p] * 1e6 for p in ("p50", "p99")}
    return figures, cpu, "ITL as means of requests", None


def inference_perf(options, url, streams, requests, folder):
    config = {
        # Its prompts of random lengths are for completions only.
        "api": {"type": "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": fixed(PROMPT_TOKENS, requests),
            "output_distribution": fixed(options.tokens, requests),
        },
        "load": {
            "type": "concurrent",
            "stages": [{"num_requests": requests, "concurrency_level": streams}],
            "num_workers": 1,
            "worker_max_concurrency": streams,
        },
        "server": {"type": "vllm", "model_name": "plimsoll", "base_url": url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(options.tokenizer)},
        "report": {"request_lifecycle": {"summary": True, "per_stage": False, "per_request": False,
                                         "percentiles": [50, 99]}},
        "storage": {"local_storage": {"path": str(folder / "reports")}},
    }
    # JSON is YAML.
    (folder / "config.yml").write_text(json.dumps(config))
    command = [str(options.venvs / "inference-perf/bin/inference-perf"), "--config_file", "config.yml"]
    code, cpu = run(command, folder)
    found = list(folder.glob("reports*/**/summary_lifecycle_metrics.json"))
    if not found:
        raise RuntimeError(f"no result (exit code {code}): {tail(folder)}")
    latency = json.loads(found[0].read_text())["successes"]["latency"]
    figures = {}
    for name, key in (("ttft", "time_to_first_token"), ("itl", "inter_token_latency")):
        values = latency[key]
        figures[name] = {"p50": values.get("median", values.get("p50")) * 1e9, "p99": values["p99"] * 1e9}
    return figures, cpu, "", None


def fixed(tokens, count):
    return {"min": tokens, "max": tokens, "mean": tokens, "std_dev": 0, "total_count": count}


def tail(folder):
    lines = [line for line in (folder / "out.txt").read_text(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:])[:300]


TOOLS = {"plimsoll": plimsoll, "aiperf": aiperf, "guidellm": guidellm, "inference-perf": inference_perf}


def python_from(oldest):
    """A Python that is new enough: this one, one by name, or one of pyenv's; `None` if there is none."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, "python3.12", "python3.13", *sorted(map(str, versions.glob("3.*/bin/python3")))]
    code = f"import sys; sys.exit(sys.version_info < {oldest})"
    for candidate in candidates:
        if shutil.which(candidate) and subprocess.run([candidate, "-c", code], capture_output=True).returncode == 0:
            return candidate
    return None


def install(options, name):
    """Why the peer cannot be had; an empty text if it is there."""
    version, oldest = PEERS[name]
    venv = options.venvs / name
    if (venv / "bin" / name).exists():
        return ""
    python = python_from(oldest)
    if python is None:
        return f"needs Python {'.'.join(map(str, oldest))} or newer, and there is none"
    say(f"installing {name} {version} for {python}")
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    package = f"{name}=={version}"
    done = subprocess.run([str(venv / "bin/pip"), "install", "-q", package], capture_output=True, text=True)
    if done.returncode != 0 or not (venv / "bin" / name).exists():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"cannot be installed: {' '.join(lines)[:200]}"
    return ""


def make_tokenizer(folder):
    """A tokenizer without a model, for which no network is needed: a word is a token."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["<unk>", "<s>", "</s>"] + [f"word{number}" for number in range(2000)]
    special = [
        {"id": at, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for at, word in enumerate(words[:3])
    ]
    vocabulary = {word: at for at, word in enumerate(words)}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>",
                "eos_token": "</s>", "model_max_length": 131072, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": len(words)}))
    return folder


def measure(options, name, streams):
    """One cell of the table, as a dictionary."""
    requests = max(streams, options.least) * options.waves
    with tempfile.TemporaryDirectory(prefix="llm-") as folder:
        folder = pathlib.Path(folder)
        target = Target(options, folder)
        started = time.monotonic()
        try:
            figures, cpu, note, seen = TOOLS[name](options, target.url, streams, requests, folder)
            failure = None
        except Exception as error:  # A peer that fails is a row of the table.
            failure = f"{type(error).__name__}: {error}"
            if options.keep:
                shutil.copytree(folder, options.keep / f"{name}-{streams}", dirs_exist_ok=True)
        took = time.monotonic() - started
        rows, late = target.stop()
    tool = name if options.api == "chat" else f"{name}, {options.api}"
    say(f"{tool}, {streams} streams: {took:.0f} s{', ' + failure if failure else ''}")
    cell = {"tool": tool, "api": options.api, "streams": streams, "took_s": took, "answers": len(rows), "target_late": late}
    if failure or not rows:
        return {**cell, "failure": failure or "the target gave no whole answer"}
    truth = truth_of(rows)
    errors = {
        f"{what} {p}": None if figures[what][p] is None else figures[what][p] - truth[f"{what} {p}"]
        for what in ("ttft", "itl")
        for p in ("p50", "p99")
    }
    cell.update(truth=truth, errors=errors, cpu_s=cpu, note=note)
    if seen is not None:
        ttft, gaps = errors_of_gaps(rows, seen)
        cell["joined"] = {
            "gaps": len(gaps),
            **{f"gap {n}": quantile(gaps, s) for n, s in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)) if gaps},
            **{f"ttft {n}": quantile(ttft, s) for n, s in (("p50", 0.5), ("p99", 0.99)) if ttft},
        }
    return cell


def shown(ns):
    if ns is None:
        return "–"
    sign, ns = "-" if ns < 0 else "+", abs(ns)
    return f"{sign}{ns / 1e3:.0f} µs" if ns < 1e6 else f"{sign}{ns / 1e6:.2f} ms"


def table(cells):
    lines = [
        "| tool | streams | TTFT p50 | TTFT p99 | ITL p50 | ITL p99 | CPU µs/token | note |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    start = {}
    for cell in cells:
        head = f"| {cell['tool']} | {cell['streams']:,} "
        if "failure" in cell:
            lines.append(head + f"| | | | | | {cell['failure']} |")
            continue
        errors, tokens = cell["errors"], cell["truth"]["tokens"]
        # The first row is mostly the start of the tool, which varies by more than few tokens take.
        first = start.setdefault(cell["tool"], cell)
        spent, more = cell["cpu_s"] - first["cpu_s"], tokens - first["truth"]["tokens"]
        cpu = f"{spent / more * 1e6:.1f}" if more >= ENOUGH_TOKENS else f"({cell['cpu_s']:.1f} s in all)"
        figures = [shown(errors[key]) for key in ("ttft p50", "ttft p99", "itl p50", "itl p99")]
        lines.append(head + f"| {' | '.join(figures)} | {cpu} | {cell['note']} |")
    return "\n".join(lines)


def joined_table(cells):
    lines = [
        "| API | streams | gaps | gap error p50 | p99 | max | TTFT error p50 | p99 | the target itself |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for cell in cells:
        joined = cell.get("joined")
        if joined and joined["gaps"]:
            keys = ("gap p50", "gap p99", "gap max", "ttft p50", "ttft p99")
            figures = " | ".join(shown(joined[key]).lstrip("+") for key in keys)
            late = cell["target_late"]
            lines.append(f"| {cell['api']} | {cell['streams']:,} | {joined['gaps']:,} | {figures} | {late} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default=str(ROOT / "target/dist/plimsoll"), help="the binary to measure")
    parser.add_argument("--streams", default="1,100,500,1000,2000", help="streams at a time")
    parser.add_argument("--peers", default=",".join(PEERS), help="peers to measure; empty for none")
    parser.add_argument("--tokens", type=int, default=100, help="tokens of an answer")
    parser.add_argument("--waves", type=int, default=1, help="answers that each stream has, one after the other")
    parser.add_argument("--least", type=int, default=4, help="answers in all, at least")
    parser.add_argument("--ttft", default="constant:50ms", help="law of the target")
    parser.add_argument("--gap", default="constant:20ms", help="law of the target")
    parser.add_argument("--apis", default="chat", help="APIs to ask by; others than chat for plimsoll alone")
    parser.add_argument("--tls", action="store_true", help="over TLS; for plimsoll alone")
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "plimsoll-bench"
    parser.add_argument("--venvs", type=pathlib.Path, default=default, help="where peers are installed")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the files of runs that fail in this folder")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    options = parser.parse_args()
    options.venvs = options.venvs.resolve()
    options.tokenizer = make_tokenizer(options.venvs / "tokenizer")
    apis = options.apis.split(",")
    peers = [] if options.tls or apis != ["chat"] else [peer for peer in options.peers.split(",") if peer]
    tools, missing = ["plimsoll"], []
    for peer in peers:
        why = install(options, peer)
        tools.append(peer) if not why else missing.append(f"{peer} {PEERS[peer][0]} {why}")
    levels = [int(level) for level in options.streams.split(",")]
    cells = []
    for tool in tools:
        for options.api in apis:
            cells += [measure(options, tool, level) for level in levels]
    print(f"{options.tokens} tokens in each answer, TTFT {options.ttft}, gap {options.gap}"
          f"{', TLS' if options.tls else ''}. Errors against the truth log: reported minus true.\n")
    print(table(cells))
    print("\nPlimsoll gap by gap, joined with the log by the name of each completion:\n")
    print(joined_table(cells))
    for line in missing:
        print(f"\nNot in the table: {line}.")
    if options.json:
        options.json.write_text(json.dumps(cells, indent=1))


if __name__ == "__main__":
    main()
