"""The logger's own header in front of a message: level, time and call site.

vLLM ``ERROR 11-29 17:12:45 [core.py:1233] ``, glog as torch prints it ``[W1129 17:11:10.785976559
socket.cpp:207] ``, SGLang ``[2026-11-29 17:11:17 TP0] ``, Python logging ``2026-11-29 17:11:17,641 -
INFO - file.py:651 - name: ``, llama.cpp ``0.10.929.937 I `` (minutes.seconds.ms.us since its start),
uvicorn ``INFO:     ``.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.logs.lazy import Lazy

_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL"
_VLLM = Lazy(
    rf"({_LEVELS}) ((?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?) "
    r"(?:\[([^\]\s]{1,200})\]|([\w./-]{1,200}:\d{1,9})\]) ?"
)
_GLOG = Lazy(r"\[([DIWEF])(\d{3,8}) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) ([\w./+-]{1,200}:\d{1,9})\] ?")
_SGLANG = Lazy(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)((?: [A-Z]{2,4}\d{1,5}){0,8})\] ?")
_PYTHON = Lazy(
    rf"(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?) - ({_LEVELS}) - "
    r"(?:([\w./-]{1,200}:\d{1,9}) - )?"
)
_LLAMA = Lazy(r"(\d{1,6}\.\d\d\.\d{3}\.\d{3}) ([DIWEF]) ")
_UVICORN = Lazy(rf"({_LEVELS}): {{1,9}}")
_GLOG_LEVELS = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_RANK = Lazy(r"TP(\d{1,5})")


class Header(NamedTuple):
    """``time`` is the text as printed; ``rank`` the tensor-parallel rank where SGLang prints one."""

    text: str
    level: str | None = None
    time: str | None = None
    site: str | None = None
    rank: int | None = None


def split_header(text: str) -> Header:
    """Take a logger's header off ``text``; without one, everything but ``text`` is None."""
    first = text[:1]
    if first == "[":
        if found := _GLOG.match(text):
            level, date, clock, site = found.groups()
            time = f"{date[-4:-2]}-{date[-2:]} {clock}" if len(date) >= 4 else clock
            return Header(text[found.end() :], _GLOG_LEVELS[level], time, site)
        if found := _SGLANG.match(text):
            rank = _RANK.search(found.group(2))
            return Header(
                text[found.end() :], None, found.group(1), None, int(rank.group(1)) if rank else None
            )
    elif first.isdigit():
        if found := _PYTHON.match(text):
            return Header(text[found.end() :], found.group(2), found.group(1), found.group(3))
        if found := _LLAMA.match(text):
            return Header(text[found.end() :], _GLOG_LEVELS[found.group(2)], found.group(1))
    elif first.isupper():
        if found := _VLLM.match(text):
            level, time, site, old = found.groups()
            return Header(text[found.end() :], level, time, site or old)
        if found := _UVICORN.match(text):
            return Header(text[found.end() :], found.group(1))
    return Header(text)
