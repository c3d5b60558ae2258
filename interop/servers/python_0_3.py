"""An agent on `a2a-sdk` 0.3.26, as its documentation shows one: JSON-RPC and REST of 0.3, with streams, webhooks and the
extended card; with `--grpc` also gRPC, on a port of its own that the card names.

    python python_0_3.py PORT [--grpc]

It knows the `tck-` phrases of the conformance tests, and it is open to everybody.
"""

import asyncio
import base64
import sys

import grpc
import httpx
import uvicorn

from a2a.grpc.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AFastAPIApplication, A2ARESTFastAPIApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Message,
    Part,
    TextPart,
    TransportProtocol,
)
from a2a.utils import new_agent_text_message, new_task


STORY = ['One runner, ', 'one baton, ', 'one lap.']


class Phrases(AgentExecutor):
    """Does what the first text of a task asks for; a text it does not know is echoed."""

    def __init__(self) -> None:
        self.running: dict[str, asyncio.Event] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        first = first_text(task.history[0]) if task and task.history else first_text(context.message)
        if first.startswith('tck-message-response'):
            await event_queue.enqueue_event(new_agent_text_message('Just a message.', context.context_id))
            return
        is_follow_up = task is not None and len(task.history or []) > 1
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self.work(first, first_text(context.message), is_follow_up, updater)

    async def work(self, first: str, text: str, is_follow_up: bool, updater: TaskUpdater) -> None:
        def says(words: str) -> Message:
            return updater.new_agent_message([Part(root=TextPart(text=words))])

        def texts(words: str) -> list[Part]:
            return [Part(root=TextPart(text=words))]

        match phrase(first):
            case 'tck-reject-task':
                await updater.reject(says('Refused, as asked.'))
            case 'tck-task-failure':
                await updater.failed(says('Failed, as asked.'))
            case 'tck-input-required' if not is_follow_up:
                await updater.requires_input(says('What is your name?'), final=True)
            case 'tck-auth-required' if not is_follow_up:
                await updater.requires_auth(says('Sign in, then send a message.'), final=True)
            case 'tck-multi-turn' if not (is_follow_up and text == 'done'):
                await updater.requires_input(says('Go on, or say done.'), final=True)
            case 'tck-cancel':
                await updater.start_work(says('Waiting to be canceled.'))
                canceled = self.running.setdefault(updater.task_id, asyncio.Event())
                try:
                    await asyncio.wait_for(canceled.wait(), 60)
                finally:
                    self.running.pop(updater.task_id, None)
            case 'tck-long-running':
                await updater.start_work(says('This takes a while.'))
                await asyncio.sleep(5)
                await updater.add_artifact(texts('Here it is.'), name='result')
                await updater.complete()
            case 'tck-stream-basic':
                await updater.start_work(says('Working.'))
                await asyncio.sleep(0.6)
                await updater.add_artifact(texts('The result.'), name='result')
                await asyncio.sleep(0.6)
                await updater.complete()
            case 'tck-stream-chunked':
                await updater.start_work()
                for place, chunk in enumerate(STORY):
                    await asyncio.sleep(0.2)
                    await updater.add_artifact(
                        texts(chunk),
                        artifact_id='story',
                        append=place > 0,
                        last_chunk=place + 1 == len(STORY),
                    )
                await updater.complete()
            case known:
                await updater.add_artifact([result(known, text)], name='result')
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.task_id in self.running:
            self.running[context.task_id].set()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel(updater.new_agent_message([Part(root=TextPart(text='Canceled.'))]))


def first_text(message: Message) -> str:
    return next((part.root.text for part in message.parts if isinstance(part.root, TextPart)), '')


def phrase(text: str) -> str:
    return text.split()[0] if text.startswith('tck-') else ''


def result(known: str, text: str) -> Part:
    match known:
        case 'tck-artifact-file':
            content = base64.b64encode(b'A file.\n').decode()
            return Part(root=FilePart(file=FileWithBytes(bytes=content, name='file.txt', mime_type='text/plain')))
        case 'tck-artifact-file-url':
            uri = 'https://example.com/file.txt'
            return Part(root=FilePart(file=FileWithUri(uri=uri, name='file.txt', mime_type='text/plain')))
        case 'tck-artifact-data':
            return Part(root=DataPart(data={'laps': 4, 'dropped': False}))
        case _:
            return Part(root=TextPart(text=f'You said: {text}'))


def card(url: str, grpc_port: int | None) -> AgentCard:
    def skill(id: str, example: str) -> AgentSkill:
        return AgentSkill(id=id, name=id, description='A skill for tests.', tags=['test'], examples=[example])

    over_grpc = [AgentInterface(url=f'127.0.0.1:{grpc_port}', transport=TransportProtocol.grpc)] if grpc_port else []
    return AgentCard(
        name='a2a-sdk 0.3.26',
        description='Does what conformance tests ask for.',
        version='1.0.0',
        url=f'{url}/',
        preferred_transport=TransportProtocol.jsonrpc,
        additional_interfaces=[
            AgentInterface(url=f'{url}/', transport=TransportProtocol.jsonrpc),
            AgentInterface(url=f'{url}/rest', transport=TransportProtocol.http_json),
            *over_grpc,
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=['text/plain', 'application/json'],
        default_output_modes=['text/plain', 'application/json'],
        skills=[skill('phrases', 'tck-complete-task'), skill('echo', 'hello')],
    )


async def serve(port: int, with_grpc: bool) -> None:
    calls = grpc.aio.server()
    grpc_port = calls.add_insecure_port('127.0.0.1:0') if with_grpc else None
    public = card(f'http://127.0.0.1:{port}', grpc_port)
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Phrases(),
        task_store=InMemoryTaskStore(),
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    app = A2AFastAPIApplication(public, handler).build()
    app.mount('/rest', A2ARESTFastAPIApplication(public, handler).build())
    if with_grpc:
        add_A2AServiceServicer_to_server(GrpcHandler(public, handler), calls)
        await calls.start()
    await uvicorn.Server(uvicorn.Config(app, host='127.0.0.1', port=port, log_level='warning')).serve()


if __name__ == '__main__':
    asyncio.run(serve(int(sys.argv[1]), with_grpc='--grpc' in sys.argv[2:]))
