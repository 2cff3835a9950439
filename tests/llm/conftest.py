"""Fixtures of the chat client's tests."""

from __future__ import annotations

import pytest

from actors.llm import http1
from actors.llm.poller import Poller


@pytest.fixture(params=["together", "alone"])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which the transport waits for sockets: with epoll, and where there is none."""
    shared = request.param == "together"
    monkeypatch.setattr(http1, "Poller", lambda: Poller(shared=shared))
