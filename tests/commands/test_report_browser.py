"""The report in a real browser: it renders, its links work, its console stays empty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.commands.browser import Browser, find_chromium, open_browser
from tests.commands.factorial_house import make_factorial
from tests.commands.house import Trm, make_history
from tests.commands.pages import HOSTILE, make_hostile

pytestmark = pytest.mark.skipif(
    find_chromium() is None and not os.environ.get("REPORT_BROWSER"),
    reason="there is no chromium on PATH (apt-get install chromium)",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests here."""
    program = find_chromium()
    assert program is not None, "REPORT_BROWSER asks for chromium, and there is none"
    with open_browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def url(trm: Trm, tmp_path: Path) -> str:
    """A page of a run whose texts are hostile, from disk."""
    made = make_history(tmp_path, note=HOSTILE[1])
    make_hostile(made.path)
    trm("report", made.path)
    return (made.path / "report.html").as_uri()


def test_it_renders_and_its_links_work(browser: Browser, url: str) -> None:
    """Desktop and 390 pixels, questions and transcripts, filters, keyboard; nothing is loaded."""
    browser.said.clear()
    browser.requested.clear()
    for width in (1200, 390):
        browser.size(width, 900)
        browser.load(url)
        assert browser.js("document.documentElement.scrollWidth") == width
        assert browser.js("document.querySelectorAll('svg.chart').length") >= 3
        assert browser.js("document.querySelector('h1').getBoundingClientRect().height") > 20
    # every link leads to a place in the page
    assert browser.js(
        "[...document.querySelectorAll('a')].every(a => document.querySelector("
        "'#' + CSS.escape(a.hash.slice(1))))"
    )
    _opens_a_transcript(browser)
    _filters(browser)
    assert browser.js("window.pwned === undefined")
    assert browser.said == []
    assert set(browser.requested) == {url}


def test_a_number_stays_on_its_line(browser: Browser, url: str) -> None:
    """The longest gain that there is, in every place of a number: on one line, none runs over."""
    for width in (1200, 390):
        browser.size(width, 900)
        browser.load(url)
        browser.js(
            "document.querySelectorAll('.class .number').forEach(e => e.textContent = '−100.0')"
        )
        assert browser.js("document.querySelectorAll('.class .number').length") >= 2
        assert browser.js(
            "[...document.querySelectorAll('.number, td.n')].every(e => {"
            "const r = document.createRange(); r.selectNodeContents(e);"
            "const tops = new Set([...r.getClientRects()].map(b => Math.round(b.bottom)));"
            "return tops.size <= 1 && e.scrollWidth <= e.clientWidth + 1; })"
        )


def test_the_factorial_gate_renders(browser: Browser, trm: Trm, tmp_path: Path) -> None:
    """A picture per edit and per sentinel, within the window at both widths; links work."""
    made = make_factorial(tmp_path)
    trm("report", made.path)
    url = (made.path / "report.html").as_uri()
    browser.said.clear()
    browser.requested.clear()
    for width in (1200, 390):
        browser.size(width, 900)
        browser.load(url)
        browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert browser.js("document.documentElement.scrollWidth") == width
        assert (
            browser.js(
                "[...document.querySelectorAll('svg.balance')].map(s => s.getBoundingClientRect())"
                f".filter(b => b.height > 40 && b.left >= 0 && b.right <= {width}).length"
            )
            == 5
        )
        # an edit at a glance is one line beside its picture, or three below each other
        heights = "[...document.querySelectorAll('.glance .detail')].map(e => e.clientHeight)"
        assert browser.js(f"Math.max(...{heights}) < 30")
        # a table that is wider than the window scrolls by itself, and an edge says so
        assert browser.js(
            "[...document.querySelectorAll('.scroll')].every(e => "
            "getComputedStyle(e).backgroundImage.split('gradient').length === 5)"
        )
        # why nothing was proposed does not widen a column of numbers
        assert browser.js("document.querySelectorAll('td.why').length") == 2
    browser.js("document.querySelector('.glance a').click()")
    assert browser.js("location.hash") == "#c-e1-counting-problem-1"
    assert browser.said == []
    assert set(browser.requested) == {url}


def _opens_a_transcript(browser: Browser) -> None:
    """From the evidence of an edit to the steps that the editor read; shut by a key."""
    browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.js(
        "[...document.querySelectorAll('tr a[data-q]')]"
        ".find(a => a.textContent === '001-2').click()"
    )
    browser.until("document.querySelectorAll('#r-steps .step').length === 2")
    assert browser.js("document.getElementById('reader').open")
    shown = browser.js("document.getElementById('r-steps').textContent")
    for line in HOSTILE[:5]:
        assert line in shown
    made = "document.querySelectorAll('#reader img, #reader iframe, #reader svg').length"
    assert browser.js(made) == 0
    hash_ = browser.js("location.hash")
    assert hash_.startswith("#q-")
    for kind in ("keyDown", "keyUp"):
        browser.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Escape",
            code="Escape",
            windowsVirtualKeyCode=27,
        )
    browser.until("!document.getElementById('reader').open")
    browser.until("location.hash === ''")  # the dialog tells of its closing a moment later
    # the address that was shown opens the same again
    browser.js(f"location.hash = {msgspec.json.encode(hash_).decode()}")
    browser.until("document.querySelectorAll('#r-steps .step').length === 2")
    browser.js("document.getElementById('r-close').click()")


def _filters(browser: Browser) -> None:
    """By pool and by words; the number shown is told."""
    whole = browser.js("document.querySelectorAll('tr[data-pool]').length")
    browser.js(
        "(() => { const f = document.getElementById('f-text'); f.value = 'who waves';"
        "f.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert browser.js("document.getElementById('f-count').textContent") == f"1 of {whole}"
    browser.js(
        "(() => { const f = document.getElementById('f-pool'); f.value = 'test';"
        "f.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    assert browser.js("document.getElementById('f-count').textContent") == f"0 of {whole}"


def test_on_paper_every_card_is_open(browser: Browser, url: str) -> None:
    """Printing opens the cards, and leaves the list of questions out."""
    browser.size(1200, 900)
    browser.load(url)
    browser.js("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.js("document.querySelectorAll('details.card:not([open])').length") == 0
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.js("getComputedStyle(document.querySelector('.pool')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
