"""An agent on `a2a-sdk` 1.3.0, as its documentation shows one: JSON-RPC and REST, both of 1.0 and, through the SDK's
compatibility layer, of 0.3.

    python python_1_3.py PORT

It knows the `tck-` phrases of the conformance tests. All that the SDK has is on: streams, webhooks, the extended card,
and users. Two of them are known, by the bearer tokens below; the card is for everybody, and the second user's extended
card shows less than the first one's.
"""

import asyncio
import sys

import httpx
import uvicorn

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
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
    HTTPAuthSecurityScheme,
    Message,
    Part,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from google.protobuf.struct_pb2 import Struct, Value
from starlette.applications import Starlette
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    BaseUser,
    SimpleUser,
)
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse


TOKENS = {'first-token': 'first', 'second-token': 'second'}

STORY = ['One runner, ', 'one baton, ', 'one lap.']


class Phrases(AgentExecutor):
    """Does what the first text of a task asks for; a text it does not know is echoed."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        first = first_text(task.history[0]) if task and task.history else first_text(context.message)
        if first.startswith('tck-message-response'):
            await event_queue.enqueue_event(new_text_message('Just a message.', context_id=context.context_id))
            return
        is_follow_up = task is not None
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await self.work(first, first_text(context.message), is_follow_up, updater)

    async def work(self, first: str, text: str, is_follow_up: bool, updater: TaskUpdater) -> None:
        def says(words: str) -> Message:
            return updater.new_agent_message([Part(text=words)])

        match phrase(first):
            case 'tck-reject-task':
                await updater.reject(says('Refused, as asked.'))
            case 'tck-task-failure':
                await updater.failed(says('Failed, as asked.'))
            case 'tck-input-required' if not is_follow_up:
                await updater.requires_input(says('What is your name?'))
            case 'tck-auth-required' if not is_follow_up:
                await updater.requires_auth(says('Sign in, then send a message.'))
            case 'tck-multi-turn' if not (is_follow_up and text == 'done'):
                await updater.requires_input(says('Go on, or say done.'))
            case 'tck-cancel':
                await updater.start_work(says('Waiting to be canceled.'))
                await asyncio.sleep(60)
                await updater.failed(says('Nobody canceled.'))
            case 'tck-long-running':
                await updater.start_work(says('This takes a while.'))
                await asyncio.sleep(5)
                await updater.add_artifact([Part(text='Here it is.')], name='result')
                await updater.complete()
            case 'tck-stream-basic':
                await updater.start_work(says('Working.'))
                await asyncio.sleep(0.6)
                await updater.add_artifact([Part(text='The result.')], name='result')
                await asyncio.sleep(0.6)
                await updater.complete()
            case 'tck-stream-chunked':
                await updater.start_work()
                for place, chunk in enumerate(STORY):
                    await asyncio.sleep(0.2)
                    await updater.add_artifact(
                        [Part(text=chunk)],
                        artifact_id='story',
                        append=place > 0,
                        last_chunk=place + 1 == len(STORY),
                    )
                await updater.complete()
            case known:
                await updater.add_artifact([result(known, text)], name='result')
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel(updater.new_agent_message([Part(text='Canceled.')]))


def first_text(message: Message) -> str:
    return next((part.text for part in message.parts if part.HasField('text')), '')


def phrase(text: str) -> str:
    return text.split()[0] if text.startswith('tck-') else ''


def result(known: str, text: str) -> Part:
    match known:
        case 'tck-artifact-file':
            return Part(raw=b'A file.\n', filename='file.txt', media_type='text/plain')
        case 'tck-artifact-file-url':
            return Part(url='https://example.com/file.txt', filename='file.txt', media_type='text/plain')
        case 'tck-artifact-data':
            data = Struct()
            data.update({'laps': 4, 'dropped': False})
            return Part(data=Value(struct_value=data), media_type='application/json')
        case _:
            return Part(text=f'You said: {text}')


class Tokens(AuthenticationBackend):
    """Everybody may read the card; everything else needs a user."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        if conn.url.path.startswith('/.well-known/'):
            return None
        scheme, _, token = conn.headers.get('Authorization', '').partition(' ')
        if scheme.lower() != 'bearer' or token not in TOKENS:
            raise AuthenticationError('a bearer token is needed')
        return AuthCredentials(['authenticated']), SimpleUser(TOKENS[token])


def refuse(_: HTTPConnection, reason: Exception) -> JSONResponse:
    return JSONResponse({'error': str(reason)}, status_code=401, headers={'WWW-Authenticate': 'Bearer'})


async def lesser(extended: AgentCard, context: ServerCallContext) -> AgentCard:
    """The extended card for a user."""
    if context.user.user_name == 'first':
        return extended
    seen = AgentCard()
    seen.CopyFrom(extended)
    del seen.skills[1:]
    return seen


def card(url: str, name: str) -> AgentCard:
    def skill(id: str, example: str) -> AgentSkill:
        return AgentSkill(id=id, name=id, description='A skill for tests.', tags=['test'], examples=[example])

    return AgentCard(
        name=name,
        description='Does what conformance tests ask for.',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(url=f'{url}{path}', protocol_binding=binding, protocol_version=version)
            for version in ('1.0', '0.3')
            for path, binding in (('/rpc', 'JSONRPC'), ('/rest', 'HTTP+JSON'))
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=['text/plain', 'application/json'],
        default_output_modes=['text/plain', 'application/json'],
        skills=[skill('phrases', 'tck-complete-task'), skill('echo', 'hello')],
        security_schemes={'bearer': SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme='bearer'))},
        security_requirements=[SecurityRequirement(schemes={'bearer': StringList()})],
    )


def main() -> None:
    port = int(sys.argv[1])
    url = f'http://127.0.0.1:{port}'
    public = card(url, 'a2a-sdk 1.3.0')
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Phrases(),
        task_store=InMemoryTaskStore(),
        agent_card=public,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
        extended_agent_card=card(url, 'a2a-sdk 1.3.0, for users'),
        extended_card_modifier=lesser,
        validate_input_modes=True,
    )
    app = Starlette(
        routes=[
            *create_agent_card_routes(public, cache_control='public, max-age=60'),
            *create_jsonrpc_routes(handler, '/rpc', enable_v0_3_compat=True),
            *create_rest_routes(handler, path_prefix='/rest', enable_v0_3_compat=True),
        ],
        middleware=[Middleware(AuthenticationMiddleware, backend=Tokens(), on_error=refuse)],
    )
    uvicorn.run(app, host='127.0.0.1', port=port, log_level='warning')


if __name__ == '__main__':
    main()
