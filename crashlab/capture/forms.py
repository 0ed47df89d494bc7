"""The environment plan in the words of a shell, Docker, Kubernetes and systemd, for people who cannot wrap."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

from crashlab.capture.plan import Plan, Setting


def shell(plan: Plan) -> str:
    """``export`` lines for sh, bash and zsh."""
    lines = [f"export {one.name}={shlex.quote(one.value)}" for one in plan.settings]
    return "\n".join([*_folders(plan), *lines]) + "\n"


def docker(plan: Plan) -> str:
    """Options of ``docker run``, one a line. The folder must be a volume, or it goes with the container."""
    lines = [f"  -e {shlex.quote(f'{one.name}={one.value}')} \\" for one in plan.settings]
    return "\n".join(lines) + "\n"


def kubernetes(plan: Plan) -> str:
    """The ``env`` list of a container. ``$(`` would be expanded by Kubernetes and is doubled."""
    lines = ["env:"]
    for one in plan.settings:
        value = json.dumps(one.value.replace("$(", "$$("))
        lines += [f"  - name: {one.name}", f"    value: {value}"]
    return "\n".join(lines) + "\n"


def systemd(plan: Plan) -> str:
    """Lines for the ``[Service]`` section. ``%`` starts a specifier there and is doubled."""
    return "\n".join(_systemd_line(one) for one in plan.settings) + "\n"


def _systemd_line(one: Setting) -> str:
    text = f"{one.name}={one.value}".replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'Environment="{text}"'


def _folders(plan: Plan) -> list[str]:
    """The driver makes no folders."""
    places = {p.rpartition("/")[0] for p in (plan.dump_pattern, plan.pipe_pattern) if p and "/" in p}
    return [f"mkdir -p {shlex.quote(place)}" for place in sorted(places)]


FORMS: dict[str, Callable[[Plan], str]] = {
    "shell": shell,
    "docker": docker,
    "kubernetes": kubernetes,
    "systemd": systemd,
}
