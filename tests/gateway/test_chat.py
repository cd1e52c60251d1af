"""gpu-cli ask and chat, through a gateway."""

import os
import subprocess

from gateway_parts import ROOT


def cli(gateway, *words, text=""):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPU_SCHEDULER_")}
    return subprocess.run([ROOT / "bin" / "gpu-cli", *words, "--gateway", gateway.url], input=text, text=True,
                          capture_output=True, timeout=120, env=environment | {"HOME": str(gateway.directory)})


def test_ask_prints_the_answer_and_nothing_else(gateway, mock):
    done = cli(gateway, "ask", "m", "hello", "--system", "be brief", "--max-tokens", "5")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().startswith("0")
    sent = mock.state()["last"]["text"]
    assert '"role":"system","content":"be brief"' in sent and '"max_tokens":5' in sent


def test_a_refusal_is_told_as_the_gateway_says_it(gateway):
    done = cli(gateway, "ask", "nothing", "hello")
    assert done.returncode != 0 and done.stdout == ""
    assert "there is no model 'nothing'" in done.stderr


def test_ask_says_what_it_waits_for_and_that_it_was_too_long(gateway):
    done = cli(gateway, "ask", "cold", "hello")
    assert done.returncode != 0
    assert "waiting: model cold" in done.stderr


def test_chat_sends_what_was_said_before(gateway, mock):
    done = cli(gateway, "chat", "m", text="one\n\ntwo\n")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    sent = mock.state()["last"]["text"]
    assert sent.index('"content":"one"') < sent.index('"role":"assistant"') < sent.index('"content":"two"')
