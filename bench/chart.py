"""Chart: rows as bars in an SVG of its own, readable in light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Row

_STYLE = (
    "text{fill:#222}.bar{fill:#4878a8}.missed{fill:#b03030}.one,.bound{stroke:#888}.one{stroke-dasharray:3 3}"
    "@media (prefers-color-scheme:dark){text{fill:#ddd}}"
)
_LEFT, _WIDTH, _LINE = 380, 420, 24


def chart(title: str, rows: Sequence[Row]) -> str:
    """Draw one bar a row, as long as its ratio; the mark is its bound, and a bar that misses it is red."""
    most = max([*(row.ratio for row in rows), *(row.limit or 0 for row in rows), 1.0])
    height = _LINE * len(rows) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 90} {height}" font-family="sans-serif" font-size="12">',
        f"<style>{_STYLE}</style>",
        f'<text x="8" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    one = _LEFT + _WIDTH / most
    parts.append(f'<line class="one" x1="{one:.1f}" y1="32" x2="{one:.1f}" y2="{height - 10}"/>')
    for number, row in enumerate(rows):
        y = 36 + number * _LINE
        length = max(1.0, row.ratio / most * _WIDTH)
        kind = "bar" if row.met else "missed"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(row.what)}</text>')
        parts.append(f'<rect class="{kind}" x="{_LEFT}" y="{y + 2}" width="{length:.1f}" height="14"/>')
        parts.append(f'<text x="{_LEFT + length + 6:.1f}" y="{y + 13}">{row.ratio:.2f}</text>')
        if row.limit is not None:
            x = _LEFT + row.limit / most * _WIDTH
            parts.append(
                f'<line class="bound" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 18}" stroke-width="2"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"
