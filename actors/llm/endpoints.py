"""The endpoints of the configuration, with the keys that the environment holds for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from protocol.llm import Role, Usage
from protocol.settings import Endpoint

__all__ = ["ResolvedEndpoint", "resolve_endpoints"]

_MILLION = 1_000_000


@dataclass(frozen=True)
class ResolvedEndpoint:
    """An endpoint with its key; the key is never shown.

    url: of chat completions. concurrency: most requests in flight. extra_body: a JSON object.
    """

    name: str
    url: str
    model: str
    roles: tuple[Role, ...]
    concurrency: int = 1
    json_output: Literal["schema", "object", "none"] = "schema"
    extra_body: bytes = b"{}"
    usd_per_m_prompt: float | None = None
    usd_per_m_completion: float | None = None
    api_key: str | None = field(default=None, repr=False)

    def usd(self, usage: Usage) -> float | None:
        """What the tokens cost; None: no price is configured."""
        if self.usd_per_m_prompt is None or self.usd_per_m_completion is None:
            return None
        paid = usage.prompt_tokens * self.usd_per_m_prompt
        paid += usage.completion_tokens * self.usd_per_m_completion
        return paid / _MILLION


def resolve_endpoints(
    endpoints: Sequence[Endpoint], environ: Mapping[str, str], concurrency: int
) -> tuple[ResolvedEndpoint, ...]:
    """The endpoints with their keys. concurrency: of those that name none.

    Raises ValueError naming variable and endpoint where a key is missing or empty.
    """
    return tuple(
        ResolvedEndpoint(
            name=endpoint.name,
            url=endpoint.base_url.rstrip("/") + "/chat/completions",
            model=endpoint.model,
            roles=endpoint.roles,
            concurrency=endpoint.concurrency or concurrency,
            json_output=endpoint.json_output,
            extra_body=msgspec.json.encode(endpoint.extra_body),
            usd_per_m_prompt=endpoint.usd_per_m_prompt,
            usd_per_m_completion=endpoint.usd_per_m_completion,
            api_key=_api_key(endpoint, environ),
        )
        for endpoint in endpoints
    )


def _api_key(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    if endpoint.api_key_env is None:
        return None
    api_key = environ.get(endpoint.api_key_env, "").strip()
    if not api_key:
        raise ValueError(
            f"environment variable {endpoint.api_key_env} is not set; "
            f"endpoint {endpoint.name!r} takes its key from it"
        )
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ValueError(
            f"environment variable {endpoint.api_key_env} holds characters that no key "
            f"has (a line break or blank?); endpoint {endpoint.name!r} needs it"
        )
    return api_key
