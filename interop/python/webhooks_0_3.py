"""Webhooks with the Python `a2a-sdk` 0.3.26. Bindings: `jsonrpc`, `rest`, `grpc`."""

from typing import Any

import grpc
import httpx

from a2a.client import A2ACardResolver, A2AClientHTTPError, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    AgentCard,
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TextPart,
    TransportProtocol,
)
from harness import expect, read_all
from receiver import Hook
from webhooks import Config, Event, fresh_id, read_whole, run


BINDINGS = {
    'jsonrpc': TransportProtocol.jsonrpc,
    'rest': TransportProtocol.http_json,
    'grpc': TransportProtocol.grpc,
}

# JSON-RPC codes, their HTTP statuses, and those of gRPC. The client reads only the status.
INVALID_PARAMS = (-32602, {400}, grpc.StatusCode.INVALID_ARGUMENT)
PUSH_NOT_SUPPORTED = (-32003, {501, 400}, grpc.StatusCode.UNIMPLEMENTED)


def config_of(hook: Hook, config_id: str | None = None) -> PushNotificationConfig:
    authentication = PushNotificationAuthenticationInfo(schemes=['Bearer'], credentials=hook.credentials)
    return PushNotificationConfig(
        id=config_id,
        url=hook.url,
        token=hook.token or None,
        authentication=authentication if hook.credentials else None,
    )


def shown(made: TaskPushNotificationConfig) -> Config:
    config = made.push_notification_config
    credentials = config.authentication.credentials if config.authentication else None
    return Config(config.id or '', config.url, config.token or '', credentials or '')


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: without_empty(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member not in (None, '', {}, [])}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


class Session:
    protocol = '0.3'
    lists_and_deletes = False

    def __init__(self, card: AgentCard, http: httpx.AsyncClient, binding: TransportProtocol) -> None:
        self.card = card
        self.http = http
        self.binding = binding
        self.plain = self._client(None, streaming=False)

    def _client(self, hook: Hook | None, streaming: bool) -> Client:
        """With a webhook for every message that it sends."""
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_transports=[self.binding],
            push_notification_configs=[config_of(hook)] if hook else [],
        )
        return ClientFactory(config).create(self.card)

    async def _task(self, client: Client, message: Message, waits: bool) -> Task:
        configuration = MessageSendConfiguration(blocking=waits)
        replies = await read_all(client.send_message(message, configuration=configuration))
        expect(len(replies) == 1 and isinstance(replies[0], tuple), f'the replies are {replies}')
        return replies[0][0]

    async def send(self, text: str, hook: Hook | None = None, task_id: str = '') -> Task:
        return await self._task(self._client(hook, streaming=False), message(text, task_id), waits=True)

    async def start(self, text: str) -> str:
        return (await self._task(self.plain, message(text), waits=False)).id

    async def stream(self, text: str, hook: Hook | None = None, task_id: str = '') -> tuple[str, list[Any]]:
        found, task = [], None
        async for event in self._client(hook, streaming=True).send_message(message(text, task_id)):
            expect(isinstance(event, tuple), f'the stream brought {event}')
            # The SDK folds updates into the task.
            task, update = event
            is_piece = isinstance(update, TaskArtifactUpdateEvent) and not update.last_chunk
            if update is not None and not is_piece:
                found.append(self._seen(task))
        expect(task is not None, 'the stream ended without an event')
        return task.id, found

    async def cancel(self, task_id: str) -> None:
        await self.plain.cancel_task(TaskIdParams(id=task_id))

    async def create(self, task_id: str, config_id: str, hook: Hook) -> Config:
        config = TaskPushNotificationConfig(task_id=task_id, push_notification_config=config_of(hook, config_id))
        return shown(await self.plain.set_task_callback(config))

    async def read(self, task_id: str, config_id: str) -> Config:
        request = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=config_id)
        return shown(await self.plain.get_task_callback(request))

    def event(self, body: bytes) -> Event:
        task = read_whole(Task, body)
        return Event(task.id, task.status.state.value, self._seen(task))

    def is_as_in(self, shown: Any, task: Task) -> bool:
        return shown == self._seen(task)

    def _seen(self, task: Task) -> Any:
        """What the SDK's client knows of a task by a stream."""
        seen = Task(id=task.id, context_id=task.context_id, status=task.status, artifacts=task.artifacts or [])
        if self.binding == TransportProtocol.jsonrpc:
            return seen.model_copy(deep=True)
        # In the proto's form the SDK drops times, takes bytes for base64 text, and has empty values for missing ones.
        seen = seen.model_dump()
        seen['status']['timestamp'] = None
        if not (seen['status']['message'] or {}).get('message_id'):
            seen['status']['message'] = None
        for part in (part for artifact in seen['artifacts'] for part in artifact['parts']):
            part.get('file', {}).pop('bytes', None)
        return without_empty(seen)

    def is_bad_url(self, error: Exception) -> bool:
        return self._is(error, INVALID_PARAMS)

    def is_not_supported(self, error: Exception) -> bool:
        return self._is(error, PUSH_NOT_SUPPORTED)

    def _is(self, error: Exception, wanted: tuple[int, set[int], grpc.StatusCode]) -> bool:
        code, statuses, grpc_code = wanted
        if self.binding == TransportProtocol.grpc:
            return isinstance(error, grpc.aio.AioRpcError) and error.code() == grpc_code
        if self.binding == TransportProtocol.jsonrpc:
            return isinstance(error, A2AClientJSONRPCError) and error.error.code == code
        return isinstance(error, A2AClientHTTPError) and error.status_code in statuses


def message(text: str, task_id: str = '') -> Message:
    parts = [Part(root=TextPart(text=text))]
    return Message(message_id=fresh_id(), role=Role.user, parts=parts, task_id=task_id or None)


class Sdk:
    def __init__(self, binding: str) -> None:
        self.binding = BINDINGS[binding]

    async def session(self, http: httpx.AsyncClient, base_url: str) -> Session:
        return Session(await A2ACardResolver(http, base_url).get_agent_card(), http, self.binding)


run(Sdk)
