"""The echo agent on a2a-sdk, as published: working, one text artifact, completed. `python echo.py PORT`.

With GRPC=1 it is served over gRPC. The store comes from STORE: in memory without it, else a URL that SQLAlchemy understands.
"""

import asyncio
import os
import sys
import threading
import uuid

import uvicorn
import uvloop
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus
from starlette.applications import Starlette

CHUNKS = 1000


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            # The SDK requires a task as the first event.
            task = Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text == 'hold':
            await asyncio.Event().wait()
        elif text == 'burst':
            for chunk in range(CHUNKS):
                await updater.add_artifact(
                    [Part(text='chunk of text ')],
                    artifact_id='burst',
                    name='burst',
                    append=chunk > 0,
                    last_chunk=chunk + 1 == CHUNKS,
                )
        else:
            await updater.add_artifact([Part(text=text)], artifact_id=str(uuid.uuid4()), name='echo', last_chunk=True)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def store():
    url = os.environ.get('STORE')
    if not url:
        return InMemoryTaskStore()
    from a2a.server.tasks import DatabaseTaskStore
    from sqlalchemy import event
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url)

    # As durable as the others in that row: every commit is on the disk.
    @event.listens_for(engine.sync_engine, 'connect')
    def durable(connection, _record):
        cursor = connection.cursor()
        cursor.execute('PRAGMA journal_mode=WAL')
        cursor.execute('PRAGMA synchronous=FULL')
        cursor.close()

    return DatabaseTaskStore(engine)


def end_with_the_run():
    sys.stdin.read()
    os._exit(0)


async def serve_grpc(handler, port):
    import grpc
    from a2a.server.request_handlers import GrpcHandler
    from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server

    server = grpc.aio.server()
    add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    server.add_insecure_port(f'127.0.0.1:{port}')
    await server.start()
    await server.wait_for_termination()


def main():
    port = int(sys.argv[1])
    if os.environ.get('CONTROLLED'):
        threading.Thread(target=end_with_the_run, daemon=True).start()
    card = AgentCard(
        name='echo',
        description='Says what it was told',
        version='1.0.0',
        supported_interfaces=[
            AgentInterface(url=f'http://127.0.0.1:{port}/', protocol_binding='JSONRPC', protocol_version='1.0')
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='echo', name='echo', description='echo', tags=['echo'])],
    )
    handler = DefaultRequestHandler(agent_executor=Echo(), task_store=store(), agent_card=card)
    if os.environ.get('GRPC'):
        uvloop.run(serve_grpc(handler, port))
        return
    app = Starlette(routes=create_jsonrpc_routes(handler, '/'))
    uvicorn.run(app, host='127.0.0.1', port=port, log_level='error', access_log=False)


if __name__ == '__main__':
    main()
