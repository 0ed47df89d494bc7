"""Reports and logs full of what attackers and accidents put into names: markup, escape codes, giants."""

from __future__ import annotations

from crashlab import facts

MARK = "Zq7"
"""Stands in every hostile string, so that a test can see that the text itself is still shown."""

TEXTS = (
    f"<script>alert('{MARK}')</script><img src=x onerror=alert(1)>",
    f'"><svg onload=alert(1)>{MARK}',
    f"{{{{ 7*7 }}}}{{% raw %}}{MARK}",
    f"`{MARK}` ```\n# heading\n```` | a | b |\n- [x](javascript:alert(1)) ![i](http://evil.example/x.png)",
    f"@torvalds fixes #1 closes vllm-project/vllm#2 GH-3 https://github.com/vllm-project/vllm/issues/4 {MARK}",
    f"\x1b[31m\x1b]0;owned\x07{MARK}\x9b2J\r\x08\x00",
    f"\u202e{MARK}\u2066\u2069\u200b\ufeff\u2028\u2029\U000e0041",
    f"{MARK}\ud800\udfff",
    f"]]>{MARK}--><!-- &amp; &lt; </style></script></textarea>",
    f"'; DROP TABLE x; -- $(reboot) {MARK} `reboot` \\",
    MARK + "A" * 1_000_000,
    f"{MARK} :heart: ~~x~~ **y** _z_ $x^2$ 0123456789abcdef0123456789abcdef01234567 www.evil.example a@b.example",
)


def report(text: str) -> facts.Report:
    """A report of every section in which every string is ``text``."""
    hexes = facts.Hex(0x7F0000001230)
    where = facts.Where(0, text, text, (1, 2), facts.Dim3(0, 0, 0), 3, (facts.Dim3(1, 0, 0),))
    kernel = facts.Kernel(
        text, text, facts.Launch(facts.Dim3(1, 1, 1), facts.Dim3(32, 1, 1), None, 1024, 16, 5), text
    )
    function = facts.Function(text, text, 0x30)
    source = facts.Source(text, 7, (facts.InlineFrame(text, 8, text),))
    instruction = facts.Instruction(
        text, text, text, text, "shared", 4,
        (facts.WindowLine(hexes, text, False, text, 1), facts.WindowLine(hexes, text, True, text, 2)), text,
    )  # fmt: skip
    lanes = tuple(
        facts.LaneAddress(
            i, facts.Dim3(i, 0, 0), facts.Hex(1000 + 4 * i), bool(i % 2), i == 4, text, facts.Dim3(0, 0, 0), 1, 3
        )
        for i in range(32)
    )  # fmt: skip
    address = facts.Address("recovered", hexes, lanes, "shared", text, text, text, 1024, 4)
    exception = facts.GpuException(14, text, text, text)
    module = facts.Module(1, text, 10, text, text)
    group = facts.HangGroup(text, text, hexes, 4, 2, (1,), text, source, text, text)
    verdict = facts.Verdict(
        "gpu-fault", text, exception, kernel, function, hexes, text, instruction, source,
        facts.Library(text, text, (text,), text, {text: text}), module, where, address,
        facts.Confidence(text, (text,)), (text,), facts.Hang((group,), (text,), 1, 2),
    )  # fmt: skip
    fault = facts.Fault(exception, hexes, text, kernel, function, source, module, where, instruction, 2)
    hypothesis = facts.Hypothesis(text, (text,), (text,), (text,))
    gpu = facts.Gpu(
        0, text, text, 8, (text,), (facts.SmState(1, 1, 2, (0,), text), facts.SmState(3, 1, 1, (9,))),
        (facts.WarpState(1, 3, facts.Dim3(0, 0, 0), facts.Hex(0xFFFFFFFF), facts.Hex(0xFF), facts.Hex(0xF)),),
        (facts.Landmark(text, hexes, 64),),
    )  # fmt: skip
    return facts.Report(
        "crashlab.report/1",
        facts.Tool(text, text),
        text,
        (facts.Input(text, text, 5, False),),
        verdict,
        facts.Host(facts.HostReported(text, text, text), text),
        (facts.Bystander(text, text),),
        (fault, fault),
        (facts.SignatureMatch(text, text, 0.5, text, (hypothesis,), (text,), (text,), (text,)),),
        (facts.Inconsistency(text, {text: text, "b": None}, text),),
        {text: facts.ReaderStatus(text, 1.0, text, (text, text), 1, text, text)},
        (facts.XidEvent(31, text, text, 5, True, text, hexes, text),),
        {text: facts.EnvFact(text, text)},
        facts.Run((text, text), text, text, {text: 1.5}, text, 1, text),
        facts.SignatureKey(text, text),
        (text,),
        (text,),
        (facts.Case(text, "origin", "gpu-fault", text, text, text, hexes),),
        (gpu,),
    )
