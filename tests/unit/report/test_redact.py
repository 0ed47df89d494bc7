"""Planted canaries: whatever is private goes, whatever explains the crash stays."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report.redact import Redactor, leftovers
from tests.support import hostile

SECRETS = [
    ("HF_TOKEN=hf_CANARYabcdefghijklmnop", "CANARY"),
    ("export OPENAI_API_KEY='CANARYsecret'", "CANARY"),
    ('{"api_key": "CANARY1234"}', "CANARY"),
    ("vllm serve m --api-key CANARYkey --port 8000", "CANARY"),
    ("args: api_key=['CANARYkey'], port=8000", "CANARY"),
    ("--token=CANARYtok first, then password: CANARYpw", "CANARY"),
    ("password=<CANARY>", "CANARY"),
    ("Authorization: Bearer CANARY.abc-def", "CANARY"),
    ("authorization: token CANARYabcdef", "CANARY"),
    ("Cookie: session=CANARY; other=CANARY", "CANARY"),
    ("sk-CANARYabcdefghijklmnop in a sentence", "CANARY"),
    ("ghp_CANARYabcdefghijklmnopq", "CANARY"),
    ("AKIACANARY0123456789", "CANARY"),
    ("nvapi-CANARYabcdefghijklmnop", "CANARY"),
    ("eyJhbGciCANARY.eyJzdWIiOiIx.sig", "CANARY"),
    ("https://bob:CANARY@git.example.org/x", "CANARY"),
    ("https://CANARYtoken@git.example.org/x", "CANARY"),
    ("https://s3.example.org/x?X-Amz-Signature=CANARY&a=1", "CANARY"),
    ("-----BEGIN RSA PRIVATE KEY-----\nCANARY\n-----END RSA PRIVATE KEY-----", "CANARY"),
    ("-----BEGIN PRIVATE KEY-----\nCANARY cut short", "CANARY"),
    ("mail canary.person@example.org now", "canary.person"),
    ("/home/canaryuser/models/x", "canaryuser"),
    ("/Users/canaryuser/x", "canaryuser"),
    ("C:\\Users\\canaryuser\\x", "canaryuser"),
    ("canaryuser@canarybox:~$ nvidia-smi", "canary"),
    ("connect to 203.0.113.77 port 80", "203.0.113.77"),
    ("cuda-node 10.9.8.7 and host_ip=10.9.8.7", "10.9.8.7"),
    ("distributed_init_method=tcp://192.168.7.7:46669", "192.168.7.7"),
    ("inet6 fe80::1ff:fe23:4567:890a", "fe80"),
    ("ether 00:1a:2b:3c:4d:5e", "00:1a:2b:3c:4d:5e"),
    ("GPU 0: (UUID: GPU-12345678-1234-1234-1234-123456789abc)", "123456789abc"),
    ("Serial Number : 1320CANARY", "CANARY"),
    ("http://canarybox:8000/v1 and tcp://canarybox:29500", "canarybox"),
    ("node7.canary.internal is down", "canary.internal"),
    ("hostname: canarybox", "canarybox"),
    ("Nov 29 16:30:10 canarybox kernel: NVRM: Xid", "canarybox"),
    ("2026-11-29T16:30:10+0100 canarybox kernel: NVRM: Xid", "canarybox"),
    ("cores/canarybox.1461.1764433810.nvcudmp", "canarybox"),
    ("core_1764433810_canarybox_1461.nvcudmp", "canarybox"),
    ("Received request cmpl-1: prompt: 'CANARY it\\'s \"secret\"', params: SamplingParams(n=1)", "CANARY"),
    ("prompt: <|im_start|>CANARY, params: x", "CANARY"),
    ("prompt: 3 CANARY words", "CANARY"),
    ("prompt_token_ids: [101, 31337, 102], lora", "31337"),
    ("messages=[{'role': 'user', 'content': 'CANARY [x] \"]'}]", "CANARY"),
    ('{"messages": [{"role": "user", "content": "CANARY"}]}', "CANARY"),
    ('{"choices": [{"delta": {"content": "CANARY"}}]}', "CANARY"),
    ('{"level": "info", "note": "prompt: \'CANARY\'"}', "CANARY"),
]

KEPT = [
    "torch 2.11.0+cu130, cuDNN 9.19.0.56, nvidia-cudnn-cu13==9.19.0.56, driver 580.159",
    "Warp Out-of-range Address in epilogue_store<128> at STS.128 [R0+0xe910], R92",
    "void at::native::vectorized_elementwise_kernel<4, std::plus<float>>(int, float*)",
    "(EngineCore pid=794) INFO 11-29 17:14:26 [core.py:612] Using FlashInfer autotune",
    "max_tokens=256, num_tokens: 12, tokenizer='x', prompt_tokens_total 5 eos_token_id=2",
    "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 2 reqs",
    "NVRM: Xid (PCI:0000:01:00): 31, pid=1461, name=vllm, Ch 00000008",
    "0x7fe5d37a0d30 127.0.0.1 0.0.0.0 localhost http://localhost:8000 https://github.com/vllm-project/vllm",
    "st.local.v4.u32 [%rd1], {%r1}; memcpy@GLIBC_2.14; 00000000-0000",
    "max_num_batched_tokens: 8192; prompt: 512 tokens; answer: 5%",
]


def cleaned(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return "\n".join(redactor.log(text.split("\n")))


@pytest.mark.parametrize(("text", "canary"), SECRETS, ids=range(len(SECRETS)))
def test_private_things_go_from_text_and_stay_gone(text: str, canary: str) -> None:
    once = cleaned(text)
    assert canary not in once
    assert "<" in once or once == ""
    again = Redactor()
    assert again.names_and_secrets(once) == once
    assert not leftovers(once)


@pytest.mark.parametrize("text", KEPT)
def test_what_explains_a_crash_stays(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(("text", "canary"), SECRETS, ids=range(len(SECRETS)))
def test_private_things_go_from_every_string_of_a_report(text: str, canary: str) -> None:
    redactor = Redactor()
    report = hostile.report(text)
    redactor.learn_report(report)
    clean = redactor.report(report)
    assert canary not in repr(clean)
    assert clean.verdict.pc == report.verdict.pc
    assert clean.verdict.kernel is not None
    assert clean.verdict.kernel.launch == report.verdict.kernel.launch  # type: ignore[union-attr]


def test_a_name_betrayed_in_one_input_goes_from_all_others() -> None:
    redactor = Redactor()
    redactor.learn("/home/canaryuser/x on hostname: canarybox")
    assert redactor.text("canaryuser said hello to canarybox.") == "<user> said hello to <host-1>."
    assert redactor.text("canaryusers are many") == "canaryusers are many"


def test_names_of_this_machine_are_known_from_the_start() -> None:
    redactor = Redactor(users=("canaryuser",), hosts=("canarybox.example.org",))
    shown = redactor.text("canaryuser at canarybox.example.org alias canarybox")
    assert "canary" not in shown


def test_equal_values_get_equal_numbers() -> None:
    assert Redactor().text("203.0.113.1 203.0.113.2 203.0.113.1") == "<ip-1> <ip-2> <ip-1>"


def test_the_value_after_a_secret_flag_goes_from_an_argument_list() -> None:
    run = facts.Run(("vllm", "serve", "--api-key", "CANARY", "--hf-token", "CANARY", "--port", "8000"))
    report = hostile.report("x")._replace(run=run)
    clean = Redactor().report(report)
    assert clean.run is not None
    assert clean.run.argv == (
        "vllm",
        "serve",
        "--api-key",
        "<secret>",
        "--hf-token",
        "<secret>",
        "--port",
        "8000",
    )


def test_environment_values_are_judged_with_their_names() -> None:
    environment = {
        "cudnn": facts.EnvFact("9.19.0.56", "log"),
        "host_ip": facts.EnvFact("10.1.1.1", "log"),
        "HF_TOKEN": facts.EnvFact("CANARY", "log"),
    }
    clean = Redactor().report(hostile.report("x")._replace(environment=environment)).environment
    assert clean is not None
    assert {k: v.value for k, v in clean.items()} == {
        "cudnn": "9.19.0.56",
        "host_ip": "<ip-1>",
        "HF_TOKEN": "<secret>",
    }


def test_keys_that_span_lines_of_a_log_go_as_a_whole() -> None:
    lines = [
        "a",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "CANARY",
        "CANARY",
        "-----END OPENSSH PRIVATE KEY-----",
        "b",
    ]
    assert list(Redactor().log(lines)) == ["a", "<private key>", "b"]


def test_binaries_keep_their_length_and_everything_that_is_not_private() -> None:
    redactor = Redactor(users=("canaryuser",))
    data = b"\x00\x01/home/canaryuser/src/k.cu\x00STS.128\x00canaryuser\x00bob@example.org\x00x@y\xff" * 3
    clean = redactor.binary(data)
    assert len(clean) == len(data)
    assert b"canary" not in clean
    assert b"/home/xxxxxxxxxx/src/k.cu\x00STS.128\x00" in clean
    assert b"bob@" not in clean
    assert b"x@y\xff" in clean
    assert redactor.binary(b"nothing here") == b"nothing here"


def test_json_lines_stay_json() -> None:
    line = json.dumps({"api_key": "CANARY", "prompt": "CANARY", "n": 3, "deep": [{"text": ["CANARY"]}]})
    clean = json.loads(next(iter(Redactor().log([line]))))
    assert "CANARY" not in json.dumps(clean)
    assert clean["n"] == 3


@pytest.mark.parametrize(
    "evil",
    ["a@" * 100_000, "1." * 200_000, ":" * 200_000, "token=" * 60_000, "/home/" * 60_000, "x://" * 60_000,
     "prompt: '" * 40_000, "[" * 300_000, "eyJ" * 100_000, "A" * 500_000, "-----BEGIN PRIVATE KEY-----" * 10_000,
     "a.b-" * 100_000, "host=" * 60_000, "_api_key" * 40_000, "api_" * 100_000, "--a-" * 100_000, "serial " * 50_000],
    ids=lambda v: v[:8],
)  # fmt: skip
def test_hostile_text_costs_linear_time(evil: str) -> None:
    started = time.perf_counter()
    redactor = Redactor()
    redactor.learn(evil)
    redactor.text(evil)
    assert time.perf_counter() - started < 8


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=300))
def test_redaction_is_stable(text: str) -> None:
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_binary_redaction_keeps_the_length(data: bytes) -> None:
    assert len(Redactor(users=("abcd",)).binary(data)) == len(data)
