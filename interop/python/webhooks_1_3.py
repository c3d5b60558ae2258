"""Webhooks with the Python `a2a-sdk` 1.3.0. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its compatibility
transports."""

from collections.abc import Iterable
from typing import Any

import grpc
import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.compat.v0_3 import conversions, types as types_0_3
from a2a.types.a2a_pb2 import (
    AgentCard,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError
from google.protobuf.json_format import Parse
from harness import expect, read_all
from receiver import Hook
from webhooks import Config, Event, fresh_id, read_whole, run


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON', 'grpc': 'GRPC'}


def state_of(status: Any) -> str:
    return TaskState.Name(status.state).removeprefix('TASK_STATE_').lower().replace('_', '-')


def config_of(hook: Hook, **names: str) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(url=hook.url, token=hook.token, **names)
    if hook.credentials:
        config.authentication.CopyFrom(AuthenticationInfo(scheme='Bearer', credentials=hook.credentials))
    return config


def shown(config: TaskPushNotificationConfig) -> Config:
    return Config(config.id, config.url, config.token, config.authentication.credentials)


def tasks_after(events: Iterable[StreamResponse]) -> list[Task]:
    """The task after each change of its status and each whole artifact: what webhooks of 0.3 are called for."""
    task, found = Task(), []
    for event in events:
        if event.HasField('task'):
            task.CopyFrom(event.task)
            continue
        if event.HasField('status_update'):
            task.status.CopyFrom(event.status_update.status)
        else:
            add_piece(task, event)
            if not event.artifact_update.last_chunk:
                continue
        whole = Task()
        whole.CopyFrom(task)
        found.append(whole)
    return found


def add_piece(task: Task, event: StreamResponse) -> None:
    update = event.artifact_update
    there = [artifact for artifact in task.artifacts if artifact.artifact_id == update.artifact.artifact_id]
    if update.append and there:
        there[0].parts.extend(update.artifact.parts)
    elif there:
        there[0].CopyFrom(update.artifact)
    else:
        task.artifacts.append(update.artifact)


class Session:
    def __init__(self, plain: Client, streaming: Client, binding: str, protocol: str) -> None:
        self.plain = plain
        self.streaming = streaming
        self.protocol = protocol
        self.lists_and_deletes = (binding, protocol) != ('HTTP+JSON', '0.3')
        self.has_old_messages = protocol == '0.3' and binding != 'JSONRPC'

    def _message(self, text: str, hook: Hook | None, task_id: str, waits: bool = True) -> SendMessageRequest:
        configuration = SendMessageConfiguration(return_immediately=not waits)
        if hook is not None:
            configuration.task_push_notification_config.CopyFrom(config_of(hook))
        parts = [Part(text=text)]
        message = Message(message_id=fresh_id(), role=Role.ROLE_USER, parts=parts, task_id=task_id)
        return SendMessageRequest(message=message, configuration=configuration)

    async def _task(self, request: SendMessageRequest) -> Task:
        replies = await read_all(self.plain.send_message(request))
        expect(len(replies) == 1 and replies[0].HasField('task'), f'the replies are {replies}')
        return replies[0].task

    async def send(self, text: str, hook: Hook | None = None, task_id: str = '') -> Task:
        return await self._task(self._message(text, hook, task_id))

    async def start(self, text: str) -> str:
        return (await self._task(self._message(text, None, '', waits=False))).id

    async def stream(self, text: str, hook: Hook | None = None, task_id: str = '') -> tuple[str, list[Any]]:
        events = await read_all(self.streaming.send_message(self._message(text, hook, task_id)))
        expect(events[0].HasField('task'), f'the stream begins with {events[0]}')
        shown = events if self.protocol == '1.0' else [self._seen(task) for task in tasks_after(events)]
        return events[0].task.id, shown

    async def cancel(self, task_id: str) -> None:
        await self.plain.cancel_task(CancelTaskRequest(id=task_id))

    async def create(self, task_id: str, config_id: str, hook: Hook) -> Config:
        config = config_of(hook, id=config_id, task_id=task_id)
        return shown(await self.plain.create_task_push_notification_config(config))

    async def read(self, task_id: str, config_id: str) -> Config:
        request = GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        return shown(await self.plain.get_task_push_notification_config(request))

    async def list(self, task_id: str) -> list[Config]:
        request = ListTaskPushNotificationConfigsRequest(task_id=task_id)
        return [shown(config) for config in (await self.plain.list_task_push_notification_configs(request)).configs]

    async def delete(self, task_id: str, config_id: str) -> None:
        request = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self.plain.delete_task_push_notification_config(request)

    def event(self, body: bytes) -> Event:
        if self.protocol == '0.3':
            task = conversions.to_core_task(read_whole(types_0_3.Task, body))
            return Event(task.id, state_of(task.status), self._seen(task))
        # Refuses members that the type does not have.
        event = Parse(body, StreamResponse(), ignore_unknown_fields=False)
        kind = event.WhichOneof('payload')
        expect(kind in ('task', 'status_update', 'artifact_update'), f'the body is a {kind}')
        told = getattr(event, kind)
        expect(told.context_id != '', 'the context is missing')
        return Event(
            told.id if kind == 'task' else told.task_id,
            '' if kind == 'artifact_update' else state_of(told.status),
            event,
        )

    def is_as_in(self, shown: Any, task: Task) -> bool:
        return shown == self._seen(task) if self.protocol == '0.3' else shown.status_update.status == task.status

    def _seen(self, task: Task) -> Task:
        """What the SDK's client knows of a task by a stream."""
        seen = Task(id=task.id, status=task.status, artifacts=task.artifacts)
        if self.has_old_messages:
            # The SDK expects bytes to be encoded twice there, and has none left.
            for part in (part for artifact in seen.artifacts for part in artifact.parts if part.HasField('raw')):
                part.raw = b''
        return seen

    def is_bad_url(self, error: Exception) -> bool:
        return isinstance(error, InvalidParamsError)

    def is_not_supported(self, error: Exception) -> bool:
        return isinstance(error, PushNotificationNotSupportedError)


class Sdk:
    def __init__(self, binding: str) -> None:
        name, _, version = binding.partition('-')
        self.binding = BINDINGS[name]
        self.version = version or '1.0'

    async def session(self, http: httpx.AsyncClient, base_url: str) -> Session:
        whole = await A2ACardResolver(http, base_url).get_agent_card()
        # The SDK prefers 1.0; only a card without it makes it speak 0.3.
        card = AgentCard()
        card.CopyFrom(whole)
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(i for i in whole.supported_interfaces if i.protocol_version == self.version)

        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[self.binding],
            )
            return ClientFactory(config).create(card)

        return Session(client(False), client(True), self.binding, self.version)


run(Sdk)
