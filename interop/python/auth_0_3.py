"""Credentials with the Python `a2a-sdk` 0.3.26. Bindings: `jsonrpc`, `rest`."""

import ssl
import uuid

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx

from a2a.client import A2ACardResolver, A2AClientHTTPError, Client, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    AgentCard,
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)
from auth import run
from harness import expect, read_all


BINDINGS = {'jsonrpc': TransportProtocol.jsonrpc, 'rest': TransportProtocol.http_json}
TASK_NOT_FOUND = -32001


def message(text: str) -> Message:
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))])


async def apply(card: AgentCard, interceptors: list[Any], request: httpx.Request) -> None:
    """Asks the SDK's interceptors for headers where its transport does not."""
    for interceptor in interceptors:
        _, added = await interceptor.intercept('', {}, {'headers': {}}, card, None)
        request.headers.update(added['headers'])


class Session:
    def __init__(self, plain: Client, streaming: Client) -> None:
        self.plain = plain
        self.streaming = streaming

    async def send(self, text: str) -> str:
        configuration = MessageSendConfiguration(blocking=True)
        replies = await read_all(self.plain.send_message(message(text), configuration=configuration))
        expect(len(replies) == 1 and isinstance(replies[0], tuple), f'the replies are {replies}')
        task = replies[0][0]
        expect(task.status.state == TaskState.completed, 'the task is not completed')
        return task.id

    async def stream(self, text: str) -> str:
        events = await read_all(self.streaming.send_message(message(text)))
        expect(len(events) > 1, f'{len(events)} events')
        task = events[-1][0]
        expect(task.status.state == TaskState.completed, 'the stream ended before the task')
        return task.id

    async def get(self, task_id: str) -> str:
        return (await self.plain.get_task(TaskQueryParams(id=task_id))).id

    async def list(self) -> None:
        return None

    async def extended_card(self) -> str:
        return (await self.plain.get_card()).description


class Sdk:
    interceptor = AuthInterceptor
    credential_service = CredentialService

    def __init__(self, binding: str) -> None:
        self.binding = BINDINGS[binding]

    async def card(self, http: httpx.AsyncClient, base_url: str) -> AgentCard:
        return await A2ACardResolver(http, base_url).get_agent_card()

    def scheme_kinds(self, card: AgentCard) -> dict[str, str]:
        def kind(scheme: Any) -> str:
            return scheme.scheme if scheme.type == 'http' else scheme.type

        return {name: kind(scheme.root) for name, scheme in card.security_schemes.items()}

    def token_url(self, card: AgentCard) -> str:
        schemes = [scheme.root for scheme in card.security_schemes.values()]
        return next(s.flows.client_credentials.token_url for s in schemes if s.type == 'oauth2')

    def session(self, card: AgentCard, http: httpx.AsyncClient, interceptors: list[Any]) -> Session:
        if self.binding == TransportProtocol.http_json:
            # "TODO: Implement interceptors for other transports", says the SDK.
            http.event_hooks['request'] = [partial(apply, card, interceptors)]

        def client(streaming: bool) -> Client:
            config = ClientConfig(streaming=streaming, httpx_client=http, supported_transports=[self.binding])
            return ClientFactory(config).create(card, interceptors=interceptors)

        return Session(client(streaming=False), client(streaming=True))

    def has_status(self, status: int) -> Callable[[Exception], bool]:
        return lambda error: isinstance(error, A2AClientHTTPError) and error.status_code == status

    def is_not_found(self, error: Exception) -> bool:
        if self.binding == TransportProtocol.jsonrpc:
            return isinstance(error, A2AClientJSONRPCError) and error.error.code == TASK_NOT_FOUND
        return self.has_status(404)(error)

    def is_network(self, error: Exception) -> bool:
        # The client reports a failed connection as 503; an alert that comes after the handshake is not wrapped.
        if isinstance(error, ssl.SSLError):
            return True
        return self.has_status(503)(error) and 'Network communication error' in str(error)


run(Sdk)
