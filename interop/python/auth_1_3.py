"""Credentials with the Python `a2a-sdk` 1.3.0. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its compatibility
transports."""

import re
import ssl
import uuid

from collections.abc import Callable
from typing import Any

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    AgentCard,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotFoundError
from auth import run
from channels import Channels
from harness import expect, read_all


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON', 'grpc': 'GRPC'}
GRPC_CODES = {401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED'}
COMPLETED = TaskState.TASK_STATE_COMPLETED


def message(text: str) -> SendMessageRequest:
    parts = [Part(text=text)]
    return SendMessageRequest(
        message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts)
    )


class Session:
    def __init__(self, plain: Client, streaming: Client, lists: bool) -> None:
        self.plain = plain
        self.streaming = streaming
        self.lists = lists

    async def send(self, text: str) -> str:
        replies = await read_all(self.plain.send_message(message(text)))
        expect(len(replies) == 1 and replies[0].HasField('task'), f'the replies are {replies}')
        expect(replies[0].task.status.state == COMPLETED, 'the task is not completed')
        return replies[0].task.id

    async def stream(self, text: str) -> str:
        events = await read_all(self.streaming.send_message(message(text)))
        expect(len(events) > 1, f'{len(events)} events')
        expect(events[-1].status_update.status.state == COMPLETED, 'the stream ended before the task')
        return events[0].task.id

    async def get(self, task_id: str) -> str:
        return (await self.plain.get_task(GetTaskRequest(id=task_id))).id

    async def list(self) -> list[str] | None:
        if not self.lists:
            return None
        page = await self.plain.list_tasks(ListTasksRequest(page_size=100))
        return [task.id for task in page.tasks]

    async def extended_card(self) -> str:
        return (await self.plain.get_extended_agent_card(GetExtendedAgentCardRequest())).description


class Sdk:
    interceptor = AuthInterceptor
    credential_service = CredentialService

    def __init__(self, binding: str) -> None:
        name, _, version = binding.partition('-')
        self.binding = BINDINGS[name]
        self.version = version or '1.0'
        self.is_grpc = self.binding == 'GRPC'

    async def card(self, http: httpx.AsyncClient, base_url: str) -> AgentCard:
        card = await A2ACardResolver(http, base_url).get_agent_card()
        # The SDK prefers 1.0; only a card without it makes it speak 0.3.
        kept = [i for i in card.supported_interfaces if i.protocol_version == self.version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        return card

    def scheme_kinds(self, card: AgentCard) -> dict[str, str]:
        def kind(scheme: Any) -> str:
            match scheme.WhichOneof('scheme'):
                case 'http_auth_security_scheme':
                    return scheme.http_auth_security_scheme.scheme
                case 'api_key_security_scheme':
                    return 'apiKey'
                case 'oauth2_security_scheme':
                    return 'oauth2'
                case 'mtls_security_scheme':
                    return 'mutualTLS'
                case other:
                    return str(other)

        return {name: kind(scheme) for name, scheme in card.security_schemes.items()}

    def token_url(self, card: AgentCard) -> str:
        schemes = card.security_schemes.values()
        oauth2 = next(s.oauth2_security_scheme for s in schemes if s.HasField('oauth2_security_scheme'))
        return oauth2.flows.client_credentials.token_url

    def session(
        self, card: AgentCard, http: httpx.AsyncClient, channels: Channels, interceptors: list[Any]
    ) -> Session:
        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=channels,
                supported_protocol_bindings=[self.binding],
            )
            return ClientFactory(config).create(card, interceptors)

        return Session(client(streaming=False), client(streaming=True), self.version == '1.0')

    def has_status(self, status: int) -> Callable[[Exception], bool]:
        if self.version == '0.3' and self.binding == 'HTTP+JSON':
            # This transport drops the status and keeps the text.
            text = {401: ('Authentication required', 'The credential was refused'), 403: ('lacks the scope',)}
            return lambda error: any(words in str(error) for words in text[status])
        # The client has no error of its own for it.
        told = re.compile(f'gRPC Error {GRPC_CODES[status]}' if self.is_grpc else f'HTTP Error:? {status}')
        return lambda error: isinstance(error, A2AClientError) and told.search(str(error)) is not None

    def is_not_found(self, error: Exception) -> bool:
        return isinstance(error, TaskNotFoundError)

    def is_network(self, error: Exception) -> bool:
        # An alert that comes after the handshake, as in TLS 1.3, is not wrapped on all of the client's ways.
        if isinstance(error, ssl.SSLError):
            return True
        told = 'gRPC Error UNAVAILABLE' if self.is_grpc else 'Network communication error'
        return isinstance(error, A2AClientError) and told in str(error)


run(Sdk)
