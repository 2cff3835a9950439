"""The figure of ``gate_training`` as SVG: a row per rule, a panel per question.

Drawn by hand: three panels of bars need no plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

__all__ = ["Bar", "Panel", "figure"]

_LABEL_W, _PANEL_W, _GAP, _ROW_H, _TOP, _BOTTOM = 170, 230, 46, 24, 64, 30
_INK, _FAINT = "#24292f", "#d0d7de"


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's value in a panel: parts that add up, in the order drawn, and a standard error."""

    parts: tuple[float, ...]
    error: float

    @property
    def value(self) -> float:
        """Where the bar ends."""
        return sum(self.parts)


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One question to all rules. colours: of the parts; legend: what they are, may be empty."""

    title: str
    bars: tuple[Bar, ...]
    colours: tuple[str, ...]
    legend: tuple[str, ...] = ()
    digits: int = 0


def figure(labels: Sequence[str], panels: Sequence[Panel], caption: str) -> str:
    """The whole picture. Raises ValueError if a panel has not one bar per label."""
    width = _LABEL_W + len(panels) * (_PANEL_W + _GAP)
    height = _TOP + len(labels) * _ROW_H + _BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(caption)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, label in enumerate(labels):
        lines.append(_text(_LABEL_W - 8, _middle(row) + 4, label, anchor="end"))
    for number, panel in enumerate(panels):
        if len(panel.bars) != len(labels):
            raise ValueError(f"{panel.title}: {len(panel.bars)} bars for {len(labels)} rules")
        lines += _panel(panel, _LABEL_W + number * (_PANEL_W + _GAP), len(labels))
    lines.append(_text(8, height - 10, caption, size=11))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(panel: Panel, left: float, n_rows: int) -> list[str]:
    low = min(0.0, *(bar.value - 2 * bar.error for bar in panel.bars))
    high = max(bar.value + 2 * bar.error for bar in panel.bars) or 1.0
    scale = (_PANEL_W - 44) / (high - low)
    zero = left - low * scale
    lines = [_text(left, 20, panel.title, weight="bold")]
    at = left
    for name, colour in zip(panel.legend, panel.colours, strict=False):
        lines.append(f'<rect x="{at:.1f}" y="32" width="10" height="10" fill="{colour}"/>')
        lines.append(_text(at + 14, 41, name, size=11))
        at += 26 + 6.2 * len(name)
    bottom = _TOP + n_rows * _ROW_H
    lines.append(
        f'<line x1="{zero:.1f}" y1="{_TOP - 4}" x2="{zero:.1f}" y2="{bottom}" stroke="{_FAINT}"/>'
    )
    for row, bar in enumerate(panel.bars):
        lines += _bar(bar, panel, zero, scale, _middle(row))
    return lines


def _bar(bar: Bar, panel: Panel, zero: float, scale: float, middle: float) -> list[str]:
    lines, at = [], zero
    for part, colour in zip(bar.parts, panel.colours, strict=True):
        length = part * scale
        lines.append(
            f'<rect x="{min(at, at + length):.1f}" y="{middle - 7:.1f}" '
            f'width="{abs(length):.1f}" height="14" fill="{colour}"/>'
        )
        at += length
    reach = 2 * bar.error * scale
    if reach > 0:
        lines.append(
            f'<line x1="{at - reach:.1f}" y1="{middle:.1f}" x2="{at + reach:.1f}" '
            f'y2="{middle:.1f}" stroke="{_INK}"/>'
        )
    text = f"{bar.value:.{panel.digits}f}"
    lines.append(_text(max(at + reach, zero) + 4, middle + 4, text, size=11))
    return lines


def _middle(row: int) -> float:
    return _TOP + (row + 0.5) * _ROW_H


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{_INK}">{escape(text)}</text>'
    )
