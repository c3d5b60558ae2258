"""The client of `strands-agents`: an `A2AAgent`, without a model. Bindings: `jsonrpc`, `rest`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from a2a.client import ClientConfig
from a2a.types import Message, TaskArtifactUpdateEvent, TransportProtocol
from strands.agent.a2a_agent import A2AAgent

import conversation

from conversation import Reply
from harness import CHECK_SECONDS, expect, main


BINDINGS = {'jsonrpc': TransportProtocol.jsonrpc, 'rest': TransportProtocol.http_json}


class Agent:
    """Agent and conversation in one: there is no session to keep."""

    keeps_task = False

    def __init__(self, remote: A2AAgent) -> None:
        self.remote = remote

    async def card_name(self) -> str:
        return (await self.remote.get_agent_card()).name

    async def converse(self) -> 'Agent':
        return self

    async def say(self, text: str) -> Reply:
        reply = Reply()
        async for event in self.remote.stream_async(text):
            if event.get('type') == 'a2a_stream' and not isinstance(event['event'], Message):
                task, update = event['event']
                reply.task_id = task.id
                if isinstance(update, TaskArtifactUpdateEvent):
                    reply.pieces.extend(part.root.text for part in update.artifact.parts)
            if 'result' in event:
                result = event['result']
                reply.asks = result.stop_reason == 'interrupt'
                if not reply.pieces:
                    reply.pieces = [content['text'] for content in result.message['content']]
        return reply


async def p02_streams(agent: Agent) -> None:
    states = []
    async for event in agent.remote.stream_async('tck-stream-basic'):
        if event.get('type') == 'a2a_stream':
            states.append(event['event'][0].status.state.value)
    expect('working' in states, f'never seen working: {states}')
    expect(states[-1] == 'completed', f'the stream ended in {states[-1]}')


@asynccontextmanager
async def connect(base_url: str, binding: str) -> AsyncIterator[Agent]:
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        config = ClientConfig(httpx_client=http, supported_transports=[BINDINGS[binding]])
        yield Agent(A2AAgent(endpoint=base_url, client_config=config))


main(connect, conversation.checks(p02_streams))
