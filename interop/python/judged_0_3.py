"""The Python `a2a-sdk` 0.3.26 client, as a command that `baton test --as-server` can judge.

    baton test --as-server --generation 0.3 -- python judged_0_3.py

It does what A2A_DO says to the agent at A2A_URL, in the binding A2A_BINDING, and prints the texts that it gets. The exit
code is 0 when it got what it asked for, and 1 when the SDK reported an error; nothing here mends what the SDK does.
"""

import asyncio
import os
import sys
import uuid

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)


BINDINGS = {'jsonrpc': TransportProtocol.jsonrpc, 'rest': TransportProtocol.http_json}
DONE = (
    TaskState.completed,
    TaskState.failed,
    TaskState.canceled,
    TaskState.rejected,
    TaskState.input_required,
    TaskState.auth_required,
)


class Given(CredentialService):
    """The one credential of the test, whatever the card calls its scheme."""

    async def get_credentials(self, security_scheme_name: str, context: object) -> str | None:
        return os.environ.get('A2A_BEARER_TOKEN') or os.environ.get('A2A_API_KEY')


def message(text: str, task: Task | None = None) -> Message:
    return Message(
        message_id=str(uuid.uuid4()),
        context_id=task.context_id if task else None,
        task_id=task.id if task else None,
        role=Role.user,
        parts=[Part(root=TextPart(text=text))],
    )


def print_parts(parts: list[Part]) -> None:
    for part in parts:
        if isinstance(part.root, TextPart):
            print(part.root.text[:2000], end='')


class Reader:
    """Prints texts as they arrive, and keeps the task, to which the SDK applies the updates."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.replied = False

    def take(self, event: object) -> None:
        if isinstance(event, Message):
            self.replied = True
            print_parts(event.parts)
            return
        self.task, update = event
        if isinstance(update, TaskArtifactUpdateEvent):
            print_parts(update.artifact.parts)
        elif update is None:
            for artifact in self.task.artifacts or []:
                print_parts(artifact.parts)

    def is_over(self) -> bool:
        return self.replied or (self.task is not None and self.task.status.state in DONE)


async def send(client: Client, text: str, task: Task | None = None) -> Reader:
    reader = Reader()
    async for event in client.send_message(message(text, task)):
        reader.take(event)
    if not reader.is_over():
        raise RuntimeError(f'the reply is not the end of it: {reader.task and reader.task.status.state}')
    return reader


async def follow(client: Client) -> None:
    reader = Reader()
    try:
        async for event in client.send_message(message('hello')):
            reader.take(event)
    except Exception as error:  # noqa: BLE001 - whatever the SDK says, the task may be there
        print(f'the stream broke: {error!r}', file=sys.stderr)
    if not reader.is_over():
        async for event in client.resubscribe(TaskIdParams(id=reader.task.id)):
            reader.take(event)
    if not reader.is_over():
        raise RuntimeError(f'the task did not end: {reader.task.status.state}')


async def tour(client: Client) -> None:
    """The SDK has no list of tasks, and no list or deletion of configs."""
    task = (await send(client, 'hello')).task
    await client.get_task(TaskQueryParams(id=task.id, history_length=3))
    hook = PushNotificationConfig(url='https://example.com/hook')
    made = await client.set_task_callback(TaskPushNotificationConfig(task_id=task.id, push_notification_config=hook))
    named = GetTaskPushNotificationConfigParams(
        id=task.id, push_notification_config_id=made.push_notification_config.id
    )
    await client.get_task_callback(named)
    await client.cancel_task(TaskIdParams(id=task.id))


async def run() -> None:
    do = os.environ['A2A_DO']
    streaming = do in ('stream', 'follow')
    async with httpx.AsyncClient(timeout=20) as http:
        card = await A2ACardResolver(http, os.environ['A2A_URL']).get_agent_card()
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_transports=[BINDINGS[os.environ['A2A_BINDING']]],
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
                await client.get_task(TaskQueryParams(id=task.id))
            case 'tour':
                await tour(client)
            case 'extended-card':
                print((await client.get_card()).description, end='')
        print()


try:
    asyncio.run(run())
except Exception as error:  # noqa: BLE001 - what went wrong is the result
    print(f'{type(error).__module__}.{type(error).__name__}: {error}', file=sys.stderr)
    sys.exit(1)
