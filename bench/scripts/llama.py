#!/usr/bin/env python3
"""`plimsoll llm` against llama.cpp's own server, with a model of 600 KB whose weights are random.

The server comes from PyPI as a wheel (`xllamacpp`), and the model is written with `gguf`: no weights are
downloaded. Each run has to take all tokens that the server says it made, over chat and plain completions, and
the median time between tokens stands beside the server's own figure (`timings.predicted_per_token_ms`).

    python3 bench/scripts/llama.py --plimsoll target/release/plimsoll

Nothing but the standard library is needed beside what it installs. The table goes to the standard output.
"""

import argparse
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import urllib.request
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGES = ["xllamacpp==2026.10.11549", "gguf==0.19.0"]
REQUESTS, TOKENS = 100, 30

# Writes the model. A vocabulary of bytes and some words is enough: random weights choose among them.
MODEL = """
import sys
import gguf, numpy
WIDTH, HEADS, LAYERS, HIDDEN, WORDS = 64, 4, 2, 128, 256
draw = numpy.random.default_rng(1)
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
scores = [0.0] * len(tokens) + [-float(word) for word in range(WORDS)]
tokens += [f"\\u2581w{word}" for word in range(WORDS)]
kinds += [gguf.TokenType.NORMAL] * WORDS
file = gguf.GGUFWriter(sys.argv[1], "llama")
file.add_name("random")
file.add_context_length(2048)
file.add_embedding_length(WIDTH)
file.add_block_count(LAYERS)
file.add_feed_forward_length(HIDDEN)
file.add_head_count(HEADS)
file.add_head_count_kv(HEADS)
file.add_layer_norm_rms_eps(1e-5)
file.add_rope_dimension_count(WIDTH // HEADS)
file.add_vocab_size(len(tokens))
file.add_tokenizer_model("llama")
file.add_token_list(tokens)
file.add_token_scores(scores)
file.add_token_types(kinds)
file.add_bos_token_id(1)
file.add_eos_token_id(2)
file.add_unk_token_id(0)
file.add_chat_template("{% for message in messages %}{{ message['content'] }}\\n{% endfor %}")
weights = lambda *shape: (draw.standard_normal(shape) * 0.05).astype(numpy.float32)
ones = numpy.ones(WIDTH, numpy.float32)
file.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
file.add_tensor("output_norm.weight", ones)
file.add_tensor("output.weight", weights(len(tokens), WIDTH))
for layer in range(LAYERS):
    for part in ["attn_q", "attn_k", "attn_v", "attn_output"]:
        file.add_tensor(f"blk.{layer}.{part}.weight", weights(WIDTH, WIDTH))
    file.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(HIDDEN, WIDTH))
    file.add_tensor(f"blk.{layer}.ffn_up.weight", weights(HIDDEN, WIDTH))
    file.add_tensor(f"blk.{layer}.ffn_down.weight", weights(WIDTH, HIDDEN))
    file.add_tensor(f"blk.{layer}.attn_norm.weight", ones)
    file.add_tensor(f"blk.{layer}.ffn_norm.weight", ones)
file.write_header_to_file()
file.write_kv_data_to_file()
file.write_tensors_to_file()
file.close()
"""

# Serves it until the standard input ends.
SERVER = """
import sys
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path = sys.argv[1]
settings.port = int(sys.argv[2])
settings.n_parallel, settings.n_ctx = 4, 8192
settings.cpuparams.n_threads = 1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def one_answer(url):
    """What the server says of an answer of its own: milliseconds for a token."""
    body = {"model": "random", "max_tokens": TOKENS, "stream": False, "ignore_eos": True}
    body["messages"] = [{"role": "user", "content": "w1 w2"}]
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["timings"]["predicted_per_token_ms"]


def load(options, url, api):
    command = [options.plimsoll, "llm", url, "--model", "random", "--api", api, "--input-tokens", "20"]
    command += ["--output-tokens", str(TOKENS), "--ignore-eos", "-n", str(REQUESTS), "-c", "1"]
    # The server closes a connection after each stream, and does not say so in its answer.
    command += ["--disable-keepalive", "-o", "json", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode not in (0, 3):
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default=str(ROOT / "target/dist/plimsoll"))
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv.create(folder / "venv", with_pip=True)
        python = str(folder / "venv/bin/python")
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PACKAGES]
        subprocess.run(install, check=True)
        model = str(folder / "random.gguf")
        subprocess.run([python, "-c", MODEL, model], check=True)
        log = (folder / "server.log").open("w")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        server = subprocess.Popen([python, "-c", SERVER, model, port], text=True, **pipes)
        try:
            url = server.stdout.readline().strip()
            if not url:
                sys.exit((folder / "server.log").read_text())
            own = sorted(one_answer(url) for _ in range(5))[2]
            print("| api | answers | tokens | TTFT p50 | ITL p50 | the server's own time per token |")
            print("|---|---:|---:|---:|---:|---:|")
            for api in ["chat", "completions"]:
                result = load(options, url, api)
                streams, ok = result["event_streams"], result["accounting"]["ok"]
                tokens = streams["tokens"]
                ttft, itl = (streams[name]["p"]["50"] / 1e6 for name in ("ttft", "itl"))
                print(f"| {api} | {ok} of {REQUESTS} | {tokens} | {ttft:.2f} ms | {itl:.3f} ms | {own:.3f} ms |")
                if (ok, tokens) != (REQUESTS, REQUESTS * TOKENS):
                    wrong.append(api)
        finally:
            server.stdin.close()
            server.wait()
    if wrong:
        sys.exit(f"not all tokens of {', '.join(wrong)} were taken")


if __name__ == "__main__":
    main()
