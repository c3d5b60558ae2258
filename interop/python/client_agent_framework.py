"""The client of `agent-framework-a2a`: an `A2AAgent`, without a model. Bindings: `jsonrpc`, `rest`."""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils.errors import TaskNotFoundError
from agent_framework import AgentSession
from agent_framework_a2a import A2AAgent

import conversation

from conversation import Reply
from harness import CHECK_SECONDS, expect, expect_error, main


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON'}


class Conversation:
    def __init__(self, remote: A2AAgent) -> None:
        self.remote = remote
        self.session = AgentSession()

    async def say(self, text: str) -> Reply:
        reply = Reply()
        async for update in self.remote.run(text, stream=True, session=self.session):
            reply.asks = bool(update.user_input_requests)
            reply.pieces.extend(content.text for content in update.contents if content.text)
        state = self.session.service_session_id
        reply.task_id = state.get('task_id') if isinstance(state, dict) else None
        return reply


class Agent:
    keeps_task = True

    def __init__(self, card: AgentCard, remote: A2AAgent) -> None:
        self.card = card
        self.remote = remote

    async def card_name(self) -> str:
        expect(self.remote.name == self.card.name, f'the framework calls it {self.remote.name!r}')
        return self.card.name

    async def converse(self) -> Conversation:
        return Conversation(self.remote)

    async def start(self, text: str):
        """Sends without waiting for the end; the continuation token identifies the task."""
        response = await self.remote.run(text, background=True)
        expect(response.continuation_token is not None, 'there is nothing to wait for')
        return response.continuation_token


async def p02_gets_task(agent: Agent) -> None:
    token = await agent.start('tck-long-running')
    polled = await agent.remote.poll_task(token)
    expect(polled.continuation_token is not None, f'the task is over at once: {polled.text!r}')
    expect(polled.continuation_token['task_id'] == token['task_id'], 'another task came back')


async def p02_maps_unknown_task_error(agent: Agent) -> None:
    await expect_error(
        agent.remote.poll_task({'task_id': str(uuid.uuid4()), 'context_id': ''}),
        lambda error: isinstance(error, TaskNotFoundError),
        'an unknown task was found',
    )


async def p02_subscribes(agent: Agent) -> None:
    token = await agent.start('tck-long-running')
    response = await agent.remote.run(continuation_token=token)
    expect(response.continuation_token is None, 'the stream ended before the task')
    expect(response.text != '', 'the result did not arrive')


async def p02_sends(agent: Agent) -> None:
    """Also checked without a stream, in addition to the common checks."""
    response = await agent.remote.run('hello')
    expect(response.text == 'hello', f'the echo is {response.text!r}')
    await conversation.p02_sends(agent)


@asynccontextmanager
async def connect(base_url: str, binding: str) -> AsyncIterator[Agent]:
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        card = await A2ACardResolver(http, base_url).get_agent_card()
        bindings = [BINDINGS[binding]]
        async with A2AAgent(agent_card=card, http_client=http, supported_protocol_bindings=bindings) as remote:
            yield Agent(card, remote)


main(connect, conversation.checks(p02_sends, p02_gets_task, p02_maps_unknown_task_error, p02_subscribes))
