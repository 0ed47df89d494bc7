"""Targets of sweep and quality: plans, journals, the user's questions, results of lm-eval."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

from crashlab.errors import CrashlabError
from tests.support.fuzz import blindly, shapes
from tests.support.fuzz.target import Target

_PLAN = b"""schema = "crashlab.sweep-plan/1"
name = "capture"
kind = "one-factor"
command = ["vllm", "serve", "m", "--port", "8000"]
target = "fault"
mode = "soak"
seed = 7
[baseline]
kv-cache-dtype = "fp8"
[levers]
cudagraph-mode = ["NONE", "PIECEWISE"]
moe-backend = ["marlin"]
[load]
shape = "mixed"
concurrency = 16
[budget]
unit = "steps"
level = 0.05
baseline-faults = 5
run-for = "90m"
total-for = "12h"
fold = 8.0
[environment]
VLLM_LOGGING_LEVEL = "INFO"
[remote]
gpus = 1
memory-gb = 64
"""
_PLANS = (
    _PLAN,
    _PLAN.replace(b"one-factor", b"matrix"),
    _PLAN.replace(b"one-factor", b"list") + b'[[arm]]\nname = "a"\nset = { moe-backend = "marlin" }\n',
    _PLAN.replace(b"one-factor", b"bisect")
    + b'[bisect]\nlever = "moe-backend"\nvalues = ["marlin", "triton"]\n',
)
_VALUES = (
    b"0x" + b"f" * 4000, b"9" * 5000, b"nan", b"inf", b"-1", b"1e400", b"[]", b"{}", b"''", b"true", b'"unset"',
    b"2026-11-30", b'["a", "b", "c", "d", "e", "f", "g", "h"]', b'"99999999999999h"', b'"1e9d"', b'"\\u0000"',
    b"[[1]]", b'"-p"', b'"$(x)"',
)  # fmt: skip


def _toml(rng: random.Random, pool: tuple[bytes, ...]) -> bytes:
    text = rng.choice(pool)
    for _ in range(rng.choice((1, 1, 2, 4))):
        lines = text.split(b"\n")
        at = rng.randrange(len(lines))
        key, equals, _ = lines[at].partition(b"=")
        if equals and rng.random() < 0.6:
            lines[at] = key + b"= " + rng.choice(_VALUES)
            text = b"\n".join(lines)
        else:
            text = blindly.damage_text(text, rng, pool, 64 << 10)
    return text


def _plan(rng: random.Random) -> bytes:
    return _toml(rng, _PLANS)


def _read_plan(case: bytes, _place: Path) -> None:
    from crashlab.sweep.plan import read_plan

    with suppress(CrashlabError):
        found = read_plan(case.decode("utf-8", "replace"), "plan.toml")
        assert found.arms[0].is_baseline
        assert len(found.arms) < 10_000


_JOURNAL = (
    b'{"event":"run-started","run":1,"arm":"baseline","number":0,"token":"t","rundir":"runs/1","exposure":100.0}',
    b'{"event":"run-ended","run":1,"arm":"baseline","number":0,"outcome":"fault","key":"k","at_startup":false,"rundir":"runs/1",'
    b'"exposure":{"steps":100,"hours":0.5,"requests":9,"tokens":900},"time_to_event_hours":0.5,"requested":[{"lever":"a","value":"b"}],'
    b'"effective":[{"lever":"a","value":"b","source":"log","took":true}]}',
    b'{"event":"run-lost","run":2,"why":"gone"}',
)  # fmt: skip


def _journal(rng: random.Random) -> bytes:
    lines = [rng.choice(_JOURNAL) for _ in range(rng.choice((1, 3, 20)))]
    return shapes.change_json_lines(b"\n".join(lines), rng, _JOURNAL)


def _read_journal(case: bytes, place: Path) -> None:
    from crashlab.sweep import journal

    (place / "journal.jsonl").write_bytes(case)
    found = journal.read(str(place))
    assert found.next_run > 0 or found.started
    for run in found.runs:
        json.dumps(journal.to_fields(run), allow_nan=False)


_TASKS = (
    b'{"id":"a","prompt":"What is 2 + 2?","number":"4","level":"easy"}\n'
    b'{"prompt":"Name a colour.","regex":"(red|blue)"}\n{"prompt":"Say yes","exact":"yes"}\n',
    b'{"question":"A has 3 apples.","answer":"3 + 1 = 4\\n#### 4"}\n' * 12,
    b'stop = ["\\n"]\nmax_tokens = 64\n[[task]]\nid = "a"\nprompt = "What is 2 + 2?"\nnumber = 4\n'
    b'[[task]]\nprompt = "Say yes"\nexact = "yes"\n[[task]]\nprompt = "x"\nregex = "a{1,3}b"\n',
)  # fmt: skip


def _questions(rng: random.Random) -> bytes:
    """The first letter says which form it has."""
    if rng.random() < 0.4:
        return b"t" + _toml(rng, _TASKS[2:])
    return b"j" + shapes.change_json_lines(rng.choice(_TASKS[:2]), rng, _TASKS)


def _load_questions(case: bytes, place: Path) -> None:
    from crashlab.quality.usertasks import load_tasks

    path = place / ("tasks.toml" if case[:1] == b"t" else "tasks.jsonl")
    path.write_bytes(case[1:])
    with suppress(CrashlabError):
        assert load_tasks(str(path), 1, None).tasks
    with suppress(CrashlabError):
        load_tasks(str(path), 1, 3, shots=1)


_ANSWER = b'{"doc_id":0,"filter":"%s","resps":[["The answer is #### 4"]],"filtered_resps":["4"],"exact_match":1.0}\n'
_SAMPLES = (
    _ANSWER % b"strict-match"
    + _ANSWER % b"flexible-extract"
    + b'{"doc_id":1,"filter":"flexible-extract","resps":[[""]],"filtered_resps":["[invalid]"],"exact_match":0.0}\n'
)
_RESULTS = b'{"results":{"gsm8k":{"alias":"gsm8k","exact_match,none":0.5,"exact_match_stderr,none":0.1}}}'


def _evaluation(rng: random.Random) -> bytes:
    return shapes.join_files(
        {
            "m/samples_gsm8k_2026.jsonl": shapes.change_json_lines(_SAMPLES, rng, [_SAMPLES]),
            "m/results_2026.json": shapes.change_json(_RESULTS, rng),
        }
    )


def _read_evaluation(case: bytes, place: Path) -> None:
    import shutil

    from crashlab.quality.lmeval import read_folder, read_results

    folder = place / "lmeval"
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in shapes.split_files(case).items():
        with suppress(OSError):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    with suppress(CrashlabError):
        read_folder(str(folder))
    json.dumps(read_results(str(folder)), allow_nan=False)


TARGETS = (
    Target("plan", "plans of a sweep", _plan, _read_plan),
    Target("journal", "the record of a sweep", _journal, _read_journal),
    Target("tasks", "the user's questions for quality", _questions, _load_questions),
    Target("lm-eval", "result folders of lm-eval", _evaluation, _read_evaluation),
)
