"""``python -m crashlab.demo``: the simulated server by itself."""

from __future__ import annotations

import sys

from crashlab.demo.options import parse
from crashlab.demo.server import serve

if __name__ == "__main__":
    raise SystemExit(serve(parse(sys.argv[1:])))
