"""Credentials with the Python `a2a-sdk` 0.3.26. Bindings: `jsonrpc`, `rest`, `grpc`."""

import ssl
import uuid

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
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
from channels import Channels
from harness import expect, read_all


BINDINGS = {
    'jsonrpc': TransportProtocol.jsonrpc,
    'rest': TransportProtocol.http_json,
    'grpc': TransportProtocol.grpc,
}
GRPC_CODES = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED}
TASK_NOT_FOUND = -32001


def message(text: str) -> Message:
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))])


async def headers(card: AgentCard, interceptors: list[Any]) -> dict[str, str]:
    """Asks the SDK's interceptors where its transport does not."""
    found = {}
    for interceptor in interceptors:
        _, added = await interceptor.intercept('', {}, {'headers': {}}, card, None)
        found |= added['headers']
    return found


async def apply(asked: Callable[[], Awaitable[dict[str, str]]], request: httpx.Request) -> None:
    request.headers.update(await asked())


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


def has_code(code: grpc.StatusCode) -> Callable[[Exception], bool]:
    """The SDK lets the library's error through."""
    return lambda error: isinstance(error, grpc.aio.AioRpcError) and error.code() == code


class Sdk:
    interceptor = AuthInterceptor
    credential_service = CredentialService

    def __init__(self, binding: str) -> None:
        self.binding = BINDINGS[binding]
        self.is_grpc = self.binding == TransportProtocol.grpc

    async def card(self, http: httpx.AsyncClient, base_url: str) -> AgentCard:
        return await A2ACardResolver(http, base_url).get_agent_card()

    def scheme_kinds(self, card: AgentCard) -> dict[str, str]:
        def kind(scheme: Any) -> str:
            return scheme.scheme if scheme.type == 'http' else scheme.type

        return {name: kind(scheme.root) for name, scheme in card.security_schemes.items()}

    def token_url(self, card: AgentCard) -> str:
        schemes = [scheme.root for scheme in card.security_schemes.values()]
        return next(s.flows.client_credentials.token_url for s in schemes if s.type == 'oauth2')

    def session(
        self, card: AgentCard, http: httpx.AsyncClient, channels: Channels, interceptors: list[Any]
    ) -> Session:
        # "TODO: Implement interceptors for other transports", says the SDK.
        if self.binding == TransportProtocol.http_json:
            http.event_hooks['request'] = [partial(apply, partial(headers, card, interceptors))]
        channels.asked = partial(headers, card, interceptors)

        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=channels,
                supported_transports=[self.binding],
            )
            return ClientFactory(config).create(card, interceptors=interceptors)

        return Session(client(streaming=False), client(streaming=True))

    def has_status(self, status: int) -> Callable[[Exception], bool]:
        if self.is_grpc:
            return has_code(GRPC_CODES[status])
        return lambda error: isinstance(error, A2AClientHTTPError) and error.status_code == status

    def is_not_found(self, error: Exception) -> bool:
        if self.is_grpc:
            return has_code(grpc.StatusCode.NOT_FOUND)(error)
        if self.binding == TransportProtocol.jsonrpc:
            return isinstance(error, A2AClientJSONRPCError) and error.error.code == TASK_NOT_FOUND
        return self.has_status(404)(error)

    def is_network(self, error: Exception) -> bool:
        if self.is_grpc:
            return has_code(grpc.StatusCode.UNAVAILABLE)(error)
        # The client reports a failed connection as 503; an alert that comes after the handshake is not wrapped.
        if isinstance(error, ssl.SSLError):
            return True
        return self.has_status(503)(error) and 'Network communication error' in str(error)


run(Sdk)
