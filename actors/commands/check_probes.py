"""What the check asks of each endpoint: for every role the call that a run makes first. Pure.

The agent's opening of a real question, the judge's and the editor's prompts about a made-up
attempt at it: so that what is measured (tokens, seconds, the form of the reply) is what a run
will meet, and so that the simulator, which knows nothing else, can answer too.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from typing import Literal

import msgspec
from PIL import Image

from actors.commands.check_data import Material
from actors.diagnoser.actor import TEMPLATES as JUDGE_TEMPLATES
from actors.diagnoser.judge import brief_of
from actors.evolver.prompt import EditorReply, Evidence, editor_prompt
from actors.rollout.budget import Budget
from actors.rollout.dialect import JsonDialect, NativeDialect
from actors.rollout.prompt import Material as AgentMaterial
from actors.rollout.prompt import opening_messages
from actors.rollout.tools import letters_of, offered_tools
from actors.system import TWIN
from actors.video.render import node_text, overview_text
from prompts.question import letter_of
from prompts.reply import reply_schema
from prompts.templates import load_templates
from protocol.dataset import Question
from protocol.diagnoser import Diagnose, Diagnosis
from protocol.evolver import Case
from protocol.llm import Chat, ChatMessage, ImagePart, Role, TextPart
from protocol.rollout import Step
from protocol.settings import Config, Endpoint

__all__ = ["FORM", "Probe", "probes_of", "roles_of"]

Kind = Literal["role", "form", "image", "pace"]
FORM = json.dumps(
    {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "legs": {"type": "integer"},
        },
        "required": ["colour", "legs"],
        "additionalProperties": False,
    }
)
"""A form that nobody fills in by chance: the question does not speak of JSON."""
_ASK_FORM = {
    "schema": "Which colour has a clear sky at noon, and how many legs has a spider?",
    "object": "Reply with a JSON object: which colour has a clear sky, how many legs has a spider?",
}
_HELLO = "Say hello in one short sentence."
_LOOK = "Which colour is this picture? Reply with one word: red or blue."
_SIDE_PX = 64
_COLOURS = {"red": (220, 20, 20), "blue": (20, 40, 220)}


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One call. kind: the role's own, the reply's form alone, a picture (colour: of it), or, for
    ``pace``, the agent's own once more: the first one also pays for the connection.

    real: the prompt is one of a run's; else the material could not be read, and it only says hello.
    """

    endpoint: Endpoint
    role: Role
    kind: Kind
    chat: Chat
    real: bool = True
    colour: str = ""


def roles_of(config: Config, endpoint: Endpoint) -> tuple[Role, ...]:
    """The roles that a run would ask it for."""
    wanted: tuple[Role, ...] = ("search", "judge", "evolve")
    if config.agent.vision == "describe":
        wanted = (*wanted, "vision")
    return tuple(role for role in wanted if role in endpoint.roles)


def probes_of(config: Config, endpoint: Endpoint, material: Material) -> tuple[Probe, ...]:
    """Every call to one endpoint, in the order in which they are made."""
    twin = endpoint.base_url == TWIN
    question = _question(material)
    probes = []
    for role in roles_of(config, endpoint):
        if role == "vision":
            continue
        chat = None if question is None else _chat(config, role, question, material)
        if chat is None and twin:
            continue  # it knows the prompts of a run and nothing else
        probes.append(
            Probe(
                endpoint=endpoint,
                role=role,
                kind="role",
                chat=chat or _plain(role, _HELLO),
                real=chat is not None,
            )
        )
        if role == "search" and chat is not None:
            again = msgspec.structs.replace(chat, cache_salt="check-pace")
            probes.append(Probe(endpoint=endpoint, role=role, kind="pace", chat=again))
    asked = _ASK_FORM.get(endpoint.json_output)
    if asked is not None and probes and not twin:
        first = probes[0].role
        chat = msgspec.structs.replace(_plain(first, asked), json_schema=FORM)
        probes.append(Probe(endpoint=endpoint, role=first, kind="form", chat=chat))
    seer: Role | None = {"inline": "search", "describe": "vision"}.get(config.agent.vision)  # type: ignore[assignment]  # both are roles
    if seer in endpoint.roles and not twin:
        assert seer is not None, "None is no role of an endpoint"
        probes.append(_picture(endpoint, seer))
    return tuple(probes)


def _question(material: Material) -> Question | None:
    """The question that everything is asked about: the one whose tree was kept."""
    if material.frozen is None or material.package is None or material.tree is None:
        return None
    return material.frozen.diag[0]


def _plain(role: Role, text: str) -> Chat:
    return Chat(role=role, messages=(ChatMessage(role="user", content=text),), cache_salt="check")


def _chat(config: Config, role: Role, question: Question, material: Material) -> Chat:
    assert material.package is not None, "asked only where there is a question"
    if role == "search":
        return _opening(config, question, material)
    skill = material.package.skill_for(question.task_type)
    steps = _attempt(question, material)
    if role == "judge":
        brief = brief_of(
            load_templates(JUDGE_TEMPLATES)["diagnose_answer"],
            Diagnose(run_key="check", question=question, skill=skill, letter=_wrong(question)),
            steps,
            max_trace_chars=config.diagnoser.max_trace_chars,
            max_calls=config.agent.max_steps,
        )
        return msgspec.structs.replace(_plain("judge", brief.prompt), json_schema=brief.schema)
    diagnosis = Diagnosis(
        question_id=question.question_id,
        error_type="search_failure",
        subtype=None,
        cause="defect",
        degraded=False,
        finding="The agent stopped at the first event and never looked for a second mention.",
    )
    prompt = editor_prompt(
        load_templates(("evolve_skill",))["evolve_skill"],
        skill,
        [Evidence(Case(run_key="check", question=question, diagnosis=diagnosis), "defect", steps)],
        (),
        edit_budget=1,
        growth_chars=500,
        max_trace_chars=config.evolver.max_trace_chars,
    )
    return msgspec.structs.replace(_plain("evolve", prompt), json_schema=reply_schema(EditorReply))


def _opening(config: Config, question: Question, material: Material) -> Chat:
    """The first request of a rollout."""
    package, tree = material.package, material.tree
    assert package is not None, "asked only where there is a question"
    assert tree is not None, "asked only where there is a question"
    skill = package.skill_for(question.task_type)
    native = config.agent.tool_calls == "native"
    agent = AgentMaterial(
        prompts=package.prompts,
        skill=skill,
        others=package.others(skill),
        tools=offered_tools(config.agent),
        manual=config.agent.skill_routing == "manual",
        native=native,
    )
    dialect = (NativeDialect if native else JsonDialect)(
        agent.tools, letters_of(question.options), agent.library.names
    )
    asked = dialect.request(last=False)
    overview = overview_text(tree.tree).text
    return Chat(
        role="search",
        messages=tuple(
            opening_messages(agent, question.public, overview, Budget(config.agent).opening())
        ),
        cache_salt="check",
        json_schema=asked.json_schema,
        tools=asked.tools,
    )


def _wrong(question: Question) -> str:
    """A letter that is not the gold one."""
    return next(
        letter
        for letter in map(letter_of, range(len(question.options)))
        if letter != question.answer
    )


def _attempt(question: Question, material: Material) -> tuple[Step, ...]:
    """An attempt that looked at one scene and gave a wrong answer: what the judge reads."""
    assert material.tree is not None, "asked only where there is a question"
    tree = material.tree.tree
    seen = node_text(tree, tree.nodes[tree.roots[0]])
    said = {"answer": _wrong(question), "confidence": 0.5, "evidence": "", "reasoning": ""}
    looked = _step(1, "view_node", {"node_id": tree.roots[0]}, seen.text, seen.node_ids)
    return looked, _step(2, "submit_answer", said, "", ())


def _step(
    index: int, tool: str, arguments: object, observation: str, node_ids: tuple[str, ...]
) -> Step:
    return Step(
        index=index,
        thought="",
        tool=tool,
        arguments=json.dumps(arguments),
        observation=observation,
        raw="",
        node_ids=node_ids,
        prompt_tokens=0,
        completion_tokens=0,
        seconds=0.0,
    )


def _picture(endpoint: Endpoint, role: Role) -> Probe:
    """A picture in one colour, which one by the endpoint's name."""
    colour = sorted(_COLOURS)[hashlib.sha256(endpoint.name.encode()).digest()[0] % 2]
    data = io.BytesIO()
    Image.new("RGB", (_SIDE_PX, _SIDE_PX), _COLOURS[colour]).save(data, format="PNG")
    url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    content = (TextPart(text=_LOOK), ImagePart(url=url))
    chat = Chat(
        role=role,
        messages=(ChatMessage(role="user", content=content),),
        cache_salt="check",
    )
    return Probe(endpoint=endpoint, role=role, kind="image", chat=chat, colour=colour)
