"""Ratios, measured side by side in one run: `python -m bench [NAME…]`.

Absolute times on a shared machine mean nothing, so every figure is the median of one thing divided by the
median of another, with the two taken in turn. Results and where the time goes are in bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bench import (
    checking,
    ending,
    flooding,
    launching,
    listing,
    peers,
    seatbelt,
    serving,
    starting,
    talking,
    tooling,
)
from bench.chart import chart
from bench.measure import Row, table

BENCHES = {
    "launch": launching.rows,
    "memory": launching.memory_rows,
    "start": starting.rows,
    "peers": peers.rows,
    "at-once": peers.at_once_rows,
    "ending": ending.rows,
    "flood": flooding.rows,
    "list": listing.rows,
    "seatbelt": seatbelt.rows,
    "check": checking.rows,
    "tools": tooling.rows,
    "mcp": serving.rows,
    "talk": talking.rows,
}


def main() -> int:
    """Run the benches that were named, all without a name; exit 1 when a bound is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHES)}")
    parser.add_argument("--rounds", type=int, default=200, help="times each thing is measured")
    parser.add_argument(
        "--charts", type=Path, default=Path(__file__).parent / "charts", help="folder for an SVG of each"
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHES]
    if unknown:
        parser.error(f"no bench {unknown[0]}: there are {', '.join(BENCHES)}")
    rows: list[Row] = []
    arguments.charts.mkdir(exist_ok=True)
    for name in arguments.names or BENCHES:
        print(f"measuring {name} …", file=sys.stderr)
        found = BENCHES[name](arguments.rounds)
        title = f"{name}: {', '.join(dict.fromkeys(row.base for row in found))} = 1"
        (arguments.charts / f"{name}.svg").write_text(chart(title, found), encoding="utf-8")
        rows += found
    load = os.getloadavg()[0]
    print(
        f"{len(os.sched_getaffinity(0))} cores, load {load:.1f}, Python {sys.version.split()[0]}, {Path(sys.executable).name}\n"
    )
    print(table(rows))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
