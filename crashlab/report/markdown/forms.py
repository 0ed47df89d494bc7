"""The issue forms, field by field in the order they ask, as the projects' repositories have them.

Read from each project's ``.github/ISSUE_TEMPLATE`` in November 2026. Where a field has an ``id`` in
the form, an address can fill it; vLLM's, SGLang's and PyTorch's text fields have none.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.report.markdown import blocks
from crashlab.report.markdown.blocks import Builder


class Field(NamedTuple):
    """One question of a form: what it is called, which blocks answer it, ``id`` for a prefilled address.

    ``note`` stands first in the answer: text of ours for what only a person can add.
    """

    label: str
    builders: tuple[tuple[str, Builder], ...]
    id: str | None = None
    note: str | None = None


class Form(NamedTuple):
    """``url`` opens the empty form; ``title_prefix`` is what the project puts before titles."""

    name: str
    title_prefix: str
    url: str
    fields: tuple[Field, ...]


_STORY: tuple[tuple[str, Builder], ...] = (
    ("", blocks.what),
    ("The dumps", blocks.dumps),
    ("Instructions around the fault", blocks.window),
    ("The address", blocks.address),
    ("Where every warp stood", blocks.hang),
    ("What was blamed instead", blocks.blamed),
    ("Known failures it is consistent with", blocks.known),
    ("What this does not mean", blocks.caveats),
)
_DETAIL: tuple[tuple[str, Builder], ...] = (
    ("Where sources disagree", blocks.disagreements),
    ("Other faults in the dump", blocks.others),
    ("Kernel log", blocks.kernel_log),
    ("How to check", blocks.by_hand),
    ("Who read the dump", blocks.readers),
    ("What was inferred", blocks.inferred),
)
_COMMAND: tuple[tuple[str, Builder], ...] = (("", blocks.command),)
_ENVIRONMENT: tuple[tuple[str, Builder], ...] = (("", blocks.environment),)
_COLLECT = "To be added by a person: the output of"
_NO_SCRIPT = "The fault was caught in a whole run; there is no script yet."
_SEARCHED = "To be ticked by a person: existing issues were searched."

FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form(
            "vllm",
            "[Bug]: ",
            "https://github.com/vllm-project/vllm/issues/new?template=400-bug-report.yml",
            (
                Field("Your current environment", _ENVIRONMENT, note=f"{_COLLECT} `python collect_env.py`."),
                Field("🐛 Describe the bug", (*_STORY, ("Command", blocks.command), *_DETAIL)),
                Field("Before submitting a new issue...", (), note=_SEARCHED),
            ),
        ),
        Form(
            "flashinfer",
            "",
            "https://github.com/flashinfer-ai/flashinfer/issues/new?template=bug_report.yml",
            (
                Field("Before submitting", (), note=_SEARCHED),
                Field("Environment", _ENVIRONMENT, "environment", f"{_COLLECT} `python -m flashinfer.collect_env`."),
                Field("Bug description", _STORY, "description"),
                Field("Minimal reproduction", _COMMAND, "reproduce", _NO_SCRIPT),
                Field("Additional context", _DETAIL, "extra"),
            ),
        ),
        Form(
            "pytorch",
            "",
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml",
            (
                Field("🐛 Describe the bug", (*_STORY, ("Command", blocks.command), *_DETAIL)),
                Field("Versions", _ENVIRONMENT, note=f"{_COLLECT} `python collect_env.py`."),
            ),
        ),
        Form(
            "sglang",
            "[Bug] ",
            "https://github.com/sgl-project/sglang/issues/new?template=1-bug-report.yml",
            (
                Field("Checklist", (), note=_SEARCHED),
                Field("Describe the bug", (*_STORY, *_DETAIL)),
                Field("Reproduction", _COMMAND),
                Field("Environment", _ENVIRONMENT, note=f"{_COLLECT} `python3 -m sglang.check_env`."),
            ),
        ),
        Form(
            "llama.cpp",
            "Eval bug: ",
            "https://github.com/ggml-org/llama.cpp/issues/new?template=011-bug-results.yml",
            (
                Field("Name and Version", (), "version", f"{_COLLECT} `llama-cli --version`."),
                Field("Operating systems", (), "operating-system", "Linux"),
                Field("GGML backends", (), "backends", "CUDA"),
                Field("Hardware", (("", blocks.hardware),), "hardware"),
                Field("Models", (), "model", "To be added by a person: model and quantization."),
                Field("Problem description & steps to reproduce", (*_STORY, ("Command", blocks.command)), "info"),
                Field("First Bad Commit", (), "first_bad_commit", "Not known."),
                Field("Relevant log output", (("Environment", blocks.environment), *_DETAIL), "logs"),
            ),
        ),
        Form(
            "nvidia",
            "",
            "https://forums.developer.nvidia.com/new-topic",
            (
                Field("Summary", _STORY),
                Field("System", (("", blocks.hardware), *_ENVIRONMENT)),
                Field("How it was run", _COMMAND),
                Field("Details", _DETAIL),
            ),
        ),
    )
}  # fmt: skip

PLAIN = Form(
    "plain",
    "",
    "",
    (
        Field("What failed", _STORY),
        Field("Environment", _ENVIRONMENT),
        Field("Command", _COMMAND),
        Field("Details", _DETAIL),
    ),
)
"""For no form in particular."""
