"""The client of `beeai-framework`: an `A2AAgent`, without a model. Binding: `jsonrpc`, which the card prefers."""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from a2a.types import Message
from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.agents import AgentError
from beeai_framework.memory import UnconstrainedMemory

import conversation

from conversation import Reply
from harness import expect, expect_error, main


TASK_NOT_FOUND = -32001


class Conversation:
    def __init__(self, base_url: str) -> None:
        self.remote = A2AAgent(url=base_url, memory=UnconstrainedMemory())

    async def say(self, text: str) -> Reply:
        output = await self.remote.run(text)
        reply = Reply(pieces=[message.text for message in output.output])
        if not isinstance(output.event, Message):
            task, _ = output.event
            reply.task_id = task.id
            reply.asks = task.status.state.value == 'input-required'
        return reply


class Agent:
    keeps_task = True

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def card_name(self) -> str:
        remote = Conversation(self.base_url).remote
        await remote.check_agent_exists()
        return remote.name

    async def converse(self) -> Conversation:
        return Conversation(self.base_url)


async def p09_streams(agent: Agent) -> None:
    states = []

    def seen(data, _) -> None:
        states.append(data.value[0].status.state.value)

    await Conversation(agent.base_url).remote.run('tck-stream-basic').on('update', seen)
    expect('working' in states, f'never seen working: {states}')
    expect(states[-1] == 'completed', f'the stream ended in {states[-1]}')


async def p09_maps_error_of_a_stream(agent: Agent) -> None:
    await expect_error(
        Conversation(agent.base_url).remote.run('hello', task_id=str(uuid.uuid4())),
        lambda error: isinstance(error, AgentError) and f'code={TASK_NOT_FOUND}' in error.message,
        'an unknown task took a message',
    )


@asynccontextmanager
async def connect(base_url: str, _: str) -> AsyncIterator[Agent]:
    yield Agent(base_url)


main(connect, conversation.checks(p09_streams, p09_maps_error_of_a_stream))
