"""The client of `google-adk`: a `RemoteA2aAgent` in a runner, without a model. Bindings: `jsonrpc`, `rest`."""

import warnings

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from a2a.client import ClientConfig, ClientFactory
from google.adk.agents.remote_a2a_agent import AGENT_CARD_WELL_KNOWN_PATH, RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

import conversation

from conversation import Reply
from harness import CHECK_SECONDS, expect, main


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON'}


class Conversation:
    def __init__(self, runner: InMemoryRunner, session_id: str) -> None:
        self.runner = runner
        self.session_id = session_id

    async def say(self, text: str) -> Reply:
        reply = Reply()
        message = Content(role='user', parts=[Part(text=text)])
        events = self.runner.run_async(user_id='checks', session_id=self.session_id, new_message=message)
        async for event in events:
            expect(event.error_message is None, f'an error: {event.error_message}')
            reply.task_id = (event.custom_metadata or {}).get('a2a:task_id', reply.task_id)
            # A question arrives as a call of a long-running function, which stands for the user.
            reply.asks = bool(event.long_running_tool_ids)
            for part in event.content.parts if event.content else []:
                if part.text and not part.thought:
                    reply.pieces.append(part.text)
                if part.function_call:
                    reply.pieces.append(str(part.function_call.args))
        return reply


class Agent:
    keeps_task = True

    def __init__(self, base_url: str, factory: ClientFactory) -> None:
        card_url = base_url + AGENT_CARD_WELL_KNOWN_PATH
        self.remote = RemoteA2aAgent(name='remote', agent_card=card_url, a2a_client_factory=factory)
        self.runner = InMemoryRunner(agent=self.remote, app_name='checks')

    async def card_name(self) -> str:
        # The framework reads the card at the first message, and copies its description.
        await (await self.converse()).say('hello')
        return self.remote.description

    async def converse(self) -> Conversation:
        session = await self.runner.session_service.create_session(app_name='checks', user_id='checks')
        return Conversation(self.runner, session.id)


@asynccontextmanager
async def connect(base_url: str, binding: str) -> AsyncIterator[Agent]:
    warnings.simplefilter('ignore')
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[BINDINGS[binding]])
        yield Agent(base_url, ClientFactory(config))


main(connect, conversation.checks())
