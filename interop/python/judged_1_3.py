"""The Python `a2a-sdk` 1.3.0 client, as a command that `baton test --as-server` can judge.

    baton test --as-server -- python judged_1_3.py

It does what A2A_DO says to the agent at A2A_URL, in the binding A2A_BINDING and the version A2A_GENERATION, and prints
the texts that it gets. The exit code is 0 when it got what it asked for, and 1 when the SDK reported an error; nothing
here mends what the SDK does.
"""

import asyncio
import os
import sys
import uuid

from contextlib import suppress

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON'}
DONE = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
    TaskState.TASK_STATE_INPUT_REQUIRED,
    TaskState.TASK_STATE_AUTH_REQUIRED,
)


class Given(CredentialService):
    """The one credential of the test, whatever the card calls its scheme."""

    async def get_credentials(self, security_scheme_name: str, context: object) -> str | None:
        return os.environ.get('A2A_BEARER_TOKEN') or os.environ.get('A2A_API_KEY')


def message(text: str, task: Task | None = None) -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(
            message_id=str(uuid.uuid4()),
            context_id=task.context_id if task else '',
            task_id=task.id if task else '',
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
        )
    )


class Reader:
    """Prints texts as they arrive, and keeps the task and its last state."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.state: int | None = None
        self.replied = False

    def print_parts(self, parts: list[Part]) -> None:
        for part in parts:
            if part.HasField('text'):
                print(part.text[:2000], end='')

    def take(self, event: StreamResponse) -> None:
        match event.WhichOneof('payload'):
            case 'message':
                self.replied = True
                self.print_parts(event.message.parts)
            case 'task':
                self.task = event.task
                self.state = event.task.status.state
                for artifact in event.task.artifacts:
                    self.print_parts(artifact.parts)
            case 'status_update':
                self.state = event.status_update.status.state
            case 'artifact_update':
                self.print_parts(event.artifact_update.artifact.parts)

    def is_over(self) -> bool:
        return self.replied or self.state in DONE


async def send(client: Client, text: str, task: Task | None = None) -> Reader:
    reader = Reader()
    async for event in client.send_message(message(text, task)):
        reader.take(event)
    if not reader.is_over():
        raise RuntimeError(f'the reply is not the end of it: state {reader.state}')
    return reader


async def follow(client: Client) -> None:
    reader = Reader()
    try:
        async for event in client.send_message(message('hello')):
            reader.take(event)
    except Exception as error:  # noqa: BLE001 - whatever the SDK says, the task may be there
        print(f'the stream broke: {error!r}', file=sys.stderr)
    if not reader.is_over():
        async for event in client.subscribe(SubscribeToTaskRequest(id=reader.task.id)):
            reader.take(event)
    if not reader.is_over():
        raise RuntimeError(f'the task did not end: state {reader.state}')


async def tour(client: Client, version: str) -> None:
    task = (await send(client, 'hello')).task
    await client.get_task(GetTaskRequest(id=task.id, history_length=3))
    if version != '0.3':
        page = await client.list_tasks(ListTasksRequest(page_size=1))
        await client.list_tasks(ListTasksRequest(page_size=1, page_token=page.next_page_token))
    config = TaskPushNotificationConfig(task_id=task.id, url='https://example.com/hook')
    made = await client.create_task_push_notification_config(config)
    named = {'task_id': task.id, 'id': made.id}
    await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named))
    # Over HTTP+JSON of 0.3 the SDK supports neither.
    with suppress(NotImplementedError):
        await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task.id))
    with suppress(NotImplementedError):
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
    await client.cancel_task(CancelTaskRequest(id=task.id))


async def run() -> None:
    do, version = os.environ['A2A_DO'], os.environ['A2A_GENERATION']
    streaming = do in ('stream', 'follow')
    async with httpx.AsyncClient(timeout=20) as http:
        card = await A2ACardResolver(http, os.environ['A2A_URL']).get_agent_card()
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=[BINDINGS[os.environ['A2A_BINDING']]],
        )
        client = ClientFactory(config).create(card, interceptors=[AuthInterceptor(Given())])
        match do:
            case 'send' | 'stream':
                await send(client, 'hello')
            case 'follow':
                await follow(client)
            case 'talk':
                asked = await send(client, 'hello')
                await send(client, 'the second', asked.task)
            case 'get':
                task = (await send(client, 'hello')).task
                await client.get_task(GetTaskRequest(id=task.id))
            case 'tour':
                await tour(client, version)
            case 'extended-card':
                extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
                print(extended.description, end='')
        print()


try:
    asyncio.run(run())
except Exception as error:  # noqa: BLE001 - what went wrong is the result
    print(f'{type(error).__module__}.{type(error).__name__}: {error}', file=sys.stderr)
    sys.exit(1)
