"""An agent on `a2a-sdk` 1.3.0, as its documentation shows one: JSON-RPC and REST, both of 1.0 and, through the SDK's
compatibility layer, of 0.3; with `--grpc` also gRPC, on a port of its own that the card names.

    python python_1_3.py PORT [--grpc]

It knows the `tck-` phrases of the conformance tests. All that the SDK has is on: streams, webhooks, the extended card,
and users. Two of them are known, by the bearer tokens below; the card is for everybody, and the second user's extended
card shows less than the first one's.
"""

import asyncio
import sys

from collections.abc import Awaitable, Callable

import grpc
import httpx
import uvicorn

from a2a.auth.user import User
from a2a.compat.v0_3.a2a_v0_3_pb2_grpc import add_A2AServiceServicer_to_server as add_0_3
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
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
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server as add_1_0
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


def user_of(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(' ')
    return TOKENS.get(token) if scheme.lower() == 'bearer' else None


class Tokens(AuthenticationBackend):
    """Everybody may read the card; everything else needs a user."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        if conn.url.path.startswith('/.well-known/'):
            return None
        name = user_of(conn.headers.get('Authorization', ''))
        if name is None:
            raise AuthenticationError('a bearer token is needed')
        return AuthCredentials(['authenticated']), SimpleUser(name)


def refuse(_: HTTPConnection, reason: Exception) -> JSONResponse:
    return JSONResponse({'error': str(reason)}, status_code=401, headers={'WWW-Authenticate': 'Bearer'})


class TokensOfCalls(grpc.aio.ServerInterceptor):
    """The same for gRPC."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        if user_of(dict(details.invocation_metadata).get('authorization', '')) is not None:
            return await continuation(details)

        async def refuse(_: bytes, context: grpc.aio.ServicerContext) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, 'a bearer token is needed')

        return grpc.unary_unary_rpc_method_handler(refuse)


class Caller(User):
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self.name


class Callers(DefaultGrpcServerCallContextBuilder):
    """For the SDK: the user of a call."""

    def build_user(self, context: grpc.aio.ServicerContext) -> User:
        return Caller(user_of(dict(context.invocation_metadata())['authorization']) or '')


async def lesser(extended: AgentCard, context: ServerCallContext) -> AgentCard:
    """The extended card for a user."""
    if context.user.user_name == 'first':
        return extended
    seen = AgentCard()
    seen.CopyFrom(extended)
    del seen.skills[1:]
    return seen


def card(url: str, grpc_port: int | None, name: str) -> AgentCard:
    def skill(id: str, example: str) -> AgentSkill:
        return AgentSkill(id=id, name=id, description='A skill for tests.', tags=['test'], examples=[example])

    places = [(f'{url}/rpc', 'JSONRPC'), (f'{url}/rest', 'HTTP+JSON')]
    if grpc_port:
        places.append((f'127.0.0.1:{grpc_port}', 'GRPC'))
    return AgentCard(
        name=name,
        description='Does what conformance tests ask for.',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(url=place, protocol_binding=binding, protocol_version=version)
            for version in ('1.0', '0.3')
            for place, binding in places
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=['text/plain', 'application/json'],
        default_output_modes=['text/plain', 'application/json'],
        skills=[skill('phrases', 'tck-complete-task'), skill('echo', 'hello')],
        security_schemes={'bearer': SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme='bearer'))},
        security_requirements=[SecurityRequirement(schemes={'bearer': StringList()})],
    )


async def serve(port: int, with_grpc: bool) -> None:
    url = f'http://127.0.0.1:{port}'
    calls = grpc.aio.server(interceptors=[TokensOfCalls()])
    grpc_port = calls.add_insecure_port('127.0.0.1:0') if with_grpc else None
    public = card(url, grpc_port, 'a2a-sdk 1.3.0')
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Phrases(),
        task_store=InMemoryTaskStore(),
        agent_card=public,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
        extended_agent_card=card(url, grpc_port, 'a2a-sdk 1.3.0, for users'),
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
    if with_grpc:
        add_1_0(GrpcHandler(handler, Callers()), calls)
        add_0_3(CompatGrpcHandler(handler, Callers()), calls)
        await calls.start()
    await uvicorn.Server(uvicorn.Config(app, host='127.0.0.1', port=port, log_level='warning')).serve()


if __name__ == '__main__':
    asyncio.run(serve(int(sys.argv[1]), with_grpc='--grpc' in sys.argv[2:]))
