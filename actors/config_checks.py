"""What no single key of a configuration can know: keys that contradict each other. Pure."""

from __future__ import annotations

from actors.factorial_config import factorial_problems
from protocol.settings import Config

__all__ = ["cross_checks"]


def cross_checks(config: Config) -> list[str]:
    """What no single field can know."""
    problems = []
    names = [endpoint.name for endpoint in config.llm.endpoints]
    if len(set(names)) != len(names):
        problems.append("llm.endpoints: two endpoints have the same name; names tell them apart")
    problems += [
        f"llm.endpoints: no endpoint has the role {role!r}; add it to one"
        for role in ("search", "judge", "evolve")
        if not any(role in endpoint.roles for endpoint in config.llm.endpoints)
    ]
    twin = config.twin
    shares = twin.helpful + twin.useless + twin.harmful + twin.malformed
    if abs(shares - 1.0) > 1e-9:
        problems.append(f"twin: helpful + useless + harmful + malformed is {shares:g}, must be 1")
    problems += [
        f"llm.endpoints: {e.name}: credentials in base_url would be stored; use api_key_env"
        for e in config.llm.endpoints
        if "@" in e.base_url.partition("://")[2].partition("/")[0]
    ]
    problems += _endpoint_checks(config)
    problems += _embedding_checks(config)
    problems += _vision_checks(config)
    problems += factorial_problems(config)
    if config.llm.attempt_s > config.llm.total_s:
        problems.append("llm.attempt_s: longer than llm.total_s, so that no try could be repeated")
    if config.evolver.edit_budget_end > config.evolver.edit_budget_start:
        problems.append("evolver.edit_budget_end: larger than edit_budget_start; it decays")
    return problems


_OURS = frozenset(
    {"messages", "model", "stream", "stream_options", "seed", "temperature", "top_p", "max_tokens"}
    | {"response_format", "tools", "tool_choice", "n"}
)
"""Fields of a request that the client writes itself."""


def _endpoint_checks(config: Config) -> list[str]:
    """extra_body may add to a request, never change what the client relies on."""
    llm = config.llm
    bodies = [(f"llm.endpoints: {e.name}", e.extra_body) for e in llm.endpoints]
    roles = {"search": llm.search, "judge": llm.judge, "evolve": llm.evolve, "vision": llm.vision}
    bodies += [(f"llm.{name}", role.extra_body) for name, role in roles.items()]
    problems = [
        f"{where}: extra_body may not hold {key!r}, which the client writes itself"
        for where, body in bodies
        for key in sorted(_OURS & body.keys())
    ]
    problems += [
        f"llm.endpoints: {e.name}: {key!r} stands in its extra_body and in that of llm.{role}"
        for e in llm.endpoints
        for role in e.roles
        for key in sorted(e.extra_body.keys() & roles[role].extra_body.keys())
    ]
    if config.limits.max_usd is not None:
        problems += [
            f"limits.max_usd: {e.name} has no usd_per_m_prompt and usd_per_m_completion, "
            "so what it costs would not be counted; 0 is a price"
            for e in llm.endpoints
            if e.usd_per_m_prompt is None or e.usd_per_m_completion is None
        ]
    return problems


def _embedding_checks(config: Config) -> list[str]:
    """Searching by meaning needs somebody who knows what words mean."""
    embedding = config.embedding
    problems = []
    if config.data.search != "bm25":
        problems += [
            f"embedding.{key}: is null, but data.search is {config.data.search}; name it, or "
            "search by bm25"
            for key in ("base_url", "model")
            if not getattr(embedding, key)
        ]
    if embedding.base_url is not None:
        scheme, _, rest = embedding.base_url.partition("://")
        if embedding.base_url != "local" and (scheme not in ("http", "https") or not rest):
            problems.append(
                f"embedding.base_url: {embedding.base_url!r} is neither local nor a URL such as "
                "http://127.0.0.1:8000/v1"
            )
        if "@" in rest.partition("/")[0]:
            problems.append(
                "embedding.base_url: credentials would be stored; use embedding.api_key_env"
            )
    return problems


def _vision_checks(config: Config) -> list[str]:
    """Pictures need somebody who can see them."""
    vision = config.agent.vision
    if vision == "none":
        return []
    role = "search" if vision == "inline" else "vision"
    seers = [e for e in config.llm.endpoints if role in e.roles]
    if not seers:
        return [f"agent.vision: {vision} needs an endpoint with the role {role!r}"]
    return [
        f"agent.vision: {vision}, but {e.name} is the simulator, which reads text only"
        for e in seers
        if e.base_url == "twin"
    ]
