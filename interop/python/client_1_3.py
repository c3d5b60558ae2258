"""Talks to an A2A agent with the unmodified Python `a2a-sdk` 1.3.0 client, over JSON-RPC.

    python client_1_3.py http://127.0.0.1:3000

Prints `ok <name>` or `FAIL <name>: <reason>` for each check, then `N passed, N failed`; the exit code is 1
when a check failed. The agent has to obey the `tck-…` behaviours that Baton's demo agent obeys, and echo
any other text. Names carry ids of docs/mission-ledger.tsv, from which docs/mission.md is generated.
"""

import asyncio
import sys
import uuid

from collections.abc import AsyncIterator

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError


# A check that takes longer than this hangs; the slowest behaviour (`tck-long-running`) works for about 5 s.
CHECK_SECONDS = 40


def expect(condition: bool, otherwise: str) -> None:
    """`assert` would be dropped under `python -O`."""
    if not condition:
        raise AssertionError(otherwise)


def state_name(state: int) -> str:
    return TaskState.Name(state)


def message(text: str, context_id: str = '') -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(
            message_id=str(uuid.uuid4()),
            context_id=context_id,
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
        )
    )


class Agent:
    """One agent under test: its card, and a client that streams beside one that does not."""

    def __init__(self, card: AgentCard, http: httpx.AsyncClient) -> None:
        self.card = card
        self.plain = self._client(http, streaming=False)
        self.streaming = self._client(http, streaming=True)

    def _client(self, http: httpx.AsyncClient, streaming: bool) -> Client:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=['JSONRPC'],
        )
        return ClientFactory(config).create(self.card)

    async def send(self, request: SendMessageRequest) -> Task:
        replies = [reply async for reply in self.plain.send_message(request)]
        expect(len(replies) == 1, f'{len(replies)} replies to one send')
        expect(replies[0].HasField('task'), f'no task in the reply: {replies[0]}')
        return replies[0].task

    async def start(self, text: str) -> Task:
        """Sends without waiting for the end."""
        request = message(text)
        request.configuration.CopyFrom(SendMessageConfiguration(return_immediately=True))
        task = await self.send(request)
        expect(
            task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING),
            f'an immediate reply is {state_name(task.status.state)}',
        )
        return task


async def check_stream(stream: AsyncIterator[StreamResponse]) -> tuple[Task, list[StreamResponse]]:
    """Reads a stream to its end: a Task, then updates of that task, the last of them its completion."""
    events = [event async for event in stream]
    expect(len(events) > 0, 'the stream ended without an event')
    expect(events[0].HasField('task'), f'the first event is {events[0].WhichOneof("payload")}, not the task')
    task, updates = events[0].task, events[1:]
    expect(len(updates) > 0, 'no update followed the task')
    for update in updates:
        kind = update.WhichOneof('payload')
        expect(kind in ('status_update', 'artifact_update'), f'an update is a {kind}')
        expect(getattr(update, kind).task_id == task.id, f'a {kind} names another task')
        expect(getattr(update, kind).context_id == task.context_id, f'a {kind} names another context')
    last = updates[-1]
    expect(last.HasField('status_update'), 'the last event is not a status update')
    expect(
        last.status_update.status.state == TaskState.TASK_STATE_COMPLETED,
        f'the stream ended in {state_name(last.status_update.status.state)}',
    )
    return task, updates


async def p09_discovers_card(agent: Agent) -> None:
    expect(agent.card.name != '', 'the card has no name')
    expect(len(agent.card.skills) > 0, 'the card has no skill')
    expect(agent.card.capabilities.streaming, 'the card does not offer streaming')
    bindings = [(i.protocol_binding, i.protocol_version) for i in agent.card.supported_interfaces]
    expect(('JSONRPC', '1.0') in bindings, f'JSON-RPC 1.0 is not among the interfaces: {bindings}')


async def p09_sends(agent: Agent) -> None:
    task = await agent.send(message('hello'))
    expect(task.id != '' and task.context_id != '', 'the task lacks an id or a context')
    expect(
        task.status.state == TaskState.TASK_STATE_COMPLETED,
        f'a blocking send ended in {state_name(task.status.state)}',
    )
    expect(task.status.HasField('timestamp'), 'the status has no timestamp')
    expect(len(task.artifacts) > 0 and len(task.artifacts[0].parts) > 0, 'the task has no artifact')


async def p09_streams(agent: Agent) -> None:
    _, updates = await check_stream(agent.streaming.send_message(message('tck-stream-basic hi')))
    states = [u.status_update.status.state for u in updates if u.HasField('status_update')]
    expect(TaskState.TASK_STATE_WORKING in states, f'never seen working: {[state_name(s) for s in states]}')
    expect(any(u.HasField('artifact_update') for u in updates), 'no artifact update')


async def p04_streams_plain_text_in_order(agent: Agent) -> None:
    task, updates = await check_stream(agent.streaming.send_message(message('plain text')))
    expect(any(u.HasField('artifact_update') for u in updates), 'no artifact update')
    stored = await agent.plain.get_task(GetTaskRequest(id=task.id))
    expect(len(stored.artifacts) > 0, 'the artifact seen on the stream was not stored')


async def p02_gets_task(agent: Agent) -> None:
    sent = await agent.send(message('to be read again'))
    got = await agent.plain.get_task(GetTaskRequest(id=sent.id))
    expect(got.id == sent.id and got.context_id == sent.context_id, 'another task came back')
    expect(got.status == sent.status, 'the status differs from the one the send returned')
    expect(list(got.artifacts) == list(sent.artifacts), 'the artifacts differ from those the send returned')
    expect(
        any('to be read again' in p.text for m in got.history for p in m.parts),
        'the message is not in the history',
    )


async def p09_maps_unknown_task_error(agent: Agent) -> None:
    try:
        await agent.plain.get_task(GetTaskRequest(id=str(uuid.uuid4())))
    except TaskNotFoundError:
        return
    raise AssertionError('an unknown task was found')


async def p09_lists_with_pages(agent: Agent) -> None:
    """Three tasks in one context and one outside it, read by two's."""
    first = await agent.send(message('page 1'))
    await agent.send(message('elsewhere'))
    context = first.context_id
    others = [await agent.send(message(f'page {n}', context_id=context)) for n in (2, 3)]
    mine = {first.id, *(task.id for task in others)}

    request = ListTasksRequest(context_id=context, page_size=2)
    page = await agent.plain.list_tasks(request)
    expect(len(page.tasks) == 2, f'a page of two holds {len(page.tasks)}')
    expect(page.total_size == 3, f'the total is {page.total_size}, not 3')
    expect(page.next_page_token != '', 'the first of two pages has no token')

    request.page_token = page.next_page_token
    rest = await agent.plain.list_tasks(request)
    expect(len(rest.tasks) == 1, f'the second page holds {len(rest.tasks)}, not 1')
    expect(rest.next_page_token == '', 'the last page has a token')
    listed = [task.id for task in (*page.tasks, *rest.tasks)]
    expect(len(listed) == len(set(listed)), 'a task was listed twice')
    expect(set(listed) == mine, 'the pages do not hold the tasks of the context')


async def p06_lists_by_context(agent: Agent) -> None:
    mine = await agent.send(message('in a context of its own'))
    listed = await agent.plain.list_tasks(ListTasksRequest(context_id=mine.context_id, page_size=10))
    expect([task.id for task in listed.tasks] == [mine.id], 'the context filter lets other tasks through')
    none = await agent.plain.list_tasks(ListTasksRequest(context_id=str(uuid.uuid4()), page_size=10))
    expect(len(none.tasks) == 0, 'an unknown context has tasks')


async def p02_cancels(agent: Agent) -> None:
    task = await agent.start('tck-cancel')
    canceled = await agent.plain.cancel_task(CancelTaskRequest(id=task.id))
    expect(canceled.id == task.id, 'another task came back')
    expect(
        canceled.status.state == TaskState.TASK_STATE_CANCELED,
        f'the cancel ended in {state_name(canceled.status.state)}',
    )


async def p09_maps_not_cancelable_error(agent: Agent) -> None:
    task = await agent.send(message('already done'))
    try:
        await agent.plain.cancel_task(CancelTaskRequest(id=task.id))
    except TaskNotCancelableError:
        return
    raise AssertionError('a completed task was canceled')


async def p02_subscribes(agent: Agent) -> None:
    started = await agent.start('tck-long-running')
    task, _ = await check_stream(agent.streaming.subscribe(SubscribeToTaskRequest(id=started.id)))
    expect(task.id == started.id, 'the stream shows another task')


CHECKS = [
    p09_discovers_card,
    p09_sends,
    p09_streams,
    p04_streams_plain_text_in_order,
    p02_gets_task,
    p09_maps_unknown_task_error,
    p09_lists_with_pages,
    p06_lists_by_context,
    p02_cancels,
    p09_maps_not_cancelable_error,
    p02_subscribes,
]


async def run(base_url: str) -> int:
    failed = 0

    def report(name: str, reason: str | None) -> None:
        nonlocal failed
        if reason is None:
            print(f'ok {name}', flush=True)
        else:
            failed += 1
            print(f'FAIL {name}: {" ".join(reason.split())}', flush=True)

    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        try:
            agent = Agent(await A2ACardResolver(http, base_url).get_agent_card(), http)
        except Exception as error:  # noqa: BLE001 - without a card no other check means anything
            report(CHECKS[0].__name__, repr(error))
            for check in CHECKS[1:]:
                report(check.__name__, 'no card')
        else:
            for check in CHECKS:
                try:
                    async with asyncio.timeout(CHECK_SECONDS):
                        await check(agent)
                    report(check.__name__, None)
                except Exception as error:  # noqa: BLE001 - one failure must not hide the others
                    report(check.__name__, str(error) if isinstance(error, AssertionError) else repr(error))
    print(f'{len(CHECKS) - failed} passed, {failed} failed', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit('usage: client_1_3.py BASE_URL')
    sys.exit(asyncio.run(run(sys.argv[1])))
