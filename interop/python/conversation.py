"""Checks for frameworks, which hide A2A behind an agent object: text in, texts out, and at most a session."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from harness import Check, cannot, expect, skip


@dataclass
class Reply:
    """What a framework showed of one exchange."""

    pieces: list[str] = field(default_factory=list)
    """Texts of the agent in the order of arrival: chunks, messages, questions."""
    task_id: str | None = None
    asks: bool = False
    """Whether the agent waits for more input."""

    @property
    def text(self) -> str:
        return ''.join(self.pieces)


class Conversation(Protocol):
    """One conversation with the agent under test."""

    async def say(self, text: str) -> Reply: ...


class Agent(Protocol):
    """The agent under test, as a framework sees it."""

    keeps_task: bool
    """Whether a conversation continues a task that asks a question."""

    async def card_name(self) -> str: ...

    async def converse(self) -> Conversation: ...


async def p02_discovers_card(agent: Agent) -> None:
    expect(await agent.card_name() != '', 'the card has no name')


async def p02_sends(agent: Agent) -> None:
    reply = await (await agent.converse()).say('hello')
    expect(reply.text == 'hello', f'the echo is {reply.text!r}')
    expect(not reply.asks, 'the agent waits for input')


async def p02_streams(agent: Agent) -> None:
    reply = await (await agent.converse()).say('tck-stream-chunked')
    expect(len(reply.pieces) > 1, f'the story came in one piece: {reply.pieces}')


async def p04_streams_plain_text_in_order(agent: Agent) -> None:
    """The story begins and ends like that of the demo agent."""
    reply = await (await agent.converse()).say('tck-stream-chunked')
    story = reply.text
    first, last = story.find('The runner took the baton.'), story.find('And the baton never touched the ground.')
    expect(0 <= first < last, f'the story is {reply.pieces}')


async def p02_talks_until_done(agent: Agent) -> None:
    if not agent.keeps_task:
        skip('the framework starts a new task with each text')
    conversation = await agent.converse()
    replies = [await conversation.say(text) for text in ('tck-multi-turn', 'one more', 'done')]
    expect([reply.asks for reply in replies] == [True, True, False], f'asked: {[reply.asks for reply in replies]}')
    expect(len({reply.task_id for reply in replies}) == 1, 'the conversation changed its task')


async def p02_resumes_after_input_required(agent: Agent) -> None:
    conversation = await agent.converse()
    question = await conversation.say('tck-input-required')
    expect(question.asks, f'the agent did not ask: {question}')
    expect(question.text != '', 'the question has no text')
    if not agent.keeps_task:
        skip('the question arrives; the framework starts a new task with each text, so it cannot be answered')
    answered = await conversation.say('an answer')
    expect(not answered.asks and answered.task_id == question.task_id, f'the answer led to {answered}')
    expect('an answer' in answered.text, f'the answer led to {answered.text!r}')


async def p02_gets_message_reply(agent: Agent) -> None:
    reply = await (await agent.converse()).say('tck-message-response')
    expect(reply.text != '', 'the reply is empty')
    expect(reply.task_id is None, 'the reply belongs to a task')


_CHECKS: list[Check | str] = [
    p02_discovers_card,
    p02_sends,
    p02_streams,
    p04_streams_plain_text_in_order,
    'p02_gets_task',
    'p02_maps_unknown_task_error',
    'p02_maps_error_of_a_stream',
    'p02_lists_with_pages',
    'p06_lists_by_context',
    'p02_cancels',
    'p02_maps_not_cancelable_error',
    'p02_subscribes',
    p02_talks_until_done,
    p02_resumes_after_input_required,
    p02_gets_message_reply,
]


def checks(*own: Callable[[Agent], Awaitable[None]]) -> list[Check]:
    """The checks above; those of `own` replace others of the same name; the remaining ones are skipped."""
    mine = {check.__name__: check for check in own}

    def pick(check: Check | str) -> Check:
        name = check if isinstance(check, str) else check.__name__
        if name in mine:
            return mine[name]
        return cannot(name, 'the client has no such call') if isinstance(check, str) else check

    return [pick(check) for check in _CHECKS]
