"""A copy of a sweep's result that may leave the house."""

from __future__ import annotations

from collections.abc import Mapping

from crashlab.report.redact import Redactor
from crashlab.sweep.facts import Arm, ArmRun, Effective, Setting, SweepResult
from crashlab.sweep.verdict import judged


def redacted(result: SweepResult, redactor: Redactor) -> SweepResult:
    """Secrets, people and machines out of every string; a setting is judged with its lever's name before it.

    Machines become ``machine-1``, ``machine-2``, …: their names are names of hosts. Findings are made anew
    from the clean runs, so that no sentence keeps what was taken out.
    """
    findings = result.findings
    hosts = dict.fromkeys(
        (*(m.name for m in result.machines), *(r.machine for r in result.runs if r.machine))
    )
    names = {host: f"machine-{number}" for number, host in enumerate(hosts, 1)}
    clean = result._replace(
        arms=tuple(_arm(arm, redactor) for arm in result.arms),
        runs=tuple(_run(run, names, redactor) for run in result.runs),
        machines=tuple(machine._replace(name=names[machine.name]) for machine in result.machines),
        findings=None,
    )
    clean = redactor.copy(clean)
    return clean if findings is None else judged(clean, level=findings.level)


def _arm(arm: Arm, redactor: Redactor) -> Arm:
    return arm._replace(levers=tuple(_setting(item, redactor) for item in arm.levers))


def _run(run: ArmRun, names: Mapping[str, str], redactor: Redactor) -> ArmRun:
    return run._replace(
        machine=names[run.machine] if run.machine else None,
        requested=tuple(_setting(item, redactor) for item in run.requested),
        effective=tuple(_effective(item, redactor) for item in run.effective),
    )


def _setting(item: Setting, redactor: Redactor) -> Setting:
    return item._replace(value=_value(item.lever, item.value, redactor))


def _effective(item: Effective, redactor: Redactor) -> Effective:
    return item._replace(value=_value(item.lever, item.value, redactor))


def _value(lever: str, value: str | None, redactor: Redactor) -> str | None:
    if value is None:
        return None
    lead = f"{lever}="
    whole = redactor.text(lead + value)
    return whole[len(lead) :] if whole.startswith(lead) else redactor.text(value)
