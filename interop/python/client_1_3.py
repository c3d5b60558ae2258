"""The Python `a2a-sdk` 1.3.0 client. Bindings: `jsonrpc`, `rest`, `grpc`; with `-0.3` its compatibility transports."""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
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
from harness import CHECK_SECONDS, expect, expect_error, main, read_all, skip


BINDINGS = {'jsonrpc': 'JSONRPC', 'rest': 'HTTP+JSON', 'grpc': 'GRPC'}


def state_name(state: int) -> str:
    return TaskState.Name(state)


def message(text: str, context_id: str = '', task_id: str = '') -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(
            message_id=str(uuid.uuid4()),
            context_id=context_id,
            task_id=task_id,
            role=Role.ROLE_USER,
            parts=[Part(text=text)],
        )
    )


class Agent:
    """One agent under test: its card, a client that streams, and one that does not."""

    def __init__(self, card: AgentCard, http: httpx.AsyncClient, binding: str, version: str) -> None:
        self.binding = binding
        self.version = version
        self.card = card
        self.plain = self._client(http, streaming=False)
        self.streaming = self._client(http, streaming=True)

    def _client(self, http: httpx.AsyncClient, streaming: bool) -> Client:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[self.binding],
        )
        # The SDK prefers 1.0; only a card without it makes it speak 0.3.
        card = AgentCard()
        card.CopyFrom(self.card)
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(
            i for i in self.card.supported_interfaces if i.protocol_version == self.version
        )
        return ClientFactory(config).create(card)

    async def send(self, request: SendMessageRequest) -> Task:
        replies = await read_all(self.plain.send_message(request))
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


def needs_list(agent: Agent) -> None:
    if agent.version == '0.3':
        skip('the SDK has no list operation in 0.3')


async def check_stream(stream: AsyncIterator[StreamResponse]) -> tuple[Task, list[StreamResponse]]:
    """Reads a stream to its end: a Task, then updates of that task, the last of them its completion."""
    events = await read_all(stream)
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


async def p02_discovers_card(agent: Agent) -> None:
    expect(agent.card.name != '', 'the card has no name')
    expect(len(agent.card.skills) > 0, 'the card has no skill')
    expect(agent.card.capabilities.streaming, 'the card does not offer streaming')
    offered = [(i.protocol_binding, i.protocol_version) for i in agent.card.supported_interfaces]
    wanted = (agent.binding, agent.version)
    expect(wanted in offered, f'{wanted} is not among the interfaces: {offered}')


async def p02_sends(agent: Agent) -> None:
    task = await agent.send(message('hello'))
    expect(task.id != '' and task.context_id != '', 'the task lacks an id or a context')
    expect(
        task.status.state == TaskState.TASK_STATE_COMPLETED,
        f'a blocking send ended in {state_name(task.status.state)}',
    )
    expect(task.status.HasField('timestamp'), 'the status has no timestamp')
    expect(len(task.artifacts) > 0 and len(task.artifacts[0].parts) > 0, 'the task has no artifact')


async def p02_streams(agent: Agent) -> None:
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


async def p02_maps_unknown_task_error(agent: Agent) -> None:
    await expect_error(
        agent.plain.get_task(GetTaskRequest(id=str(uuid.uuid4()))),
        lambda error: isinstance(error, TaskNotFoundError),
        'an unknown task was found',
    )


async def p02_maps_error_of_a_stream(agent: Agent) -> None:
    await expect_error(
        read_all(agent.streaming.send_message(message('nobody is there', task_id=str(uuid.uuid4())))),
        lambda error: isinstance(error, TaskNotFoundError),
        'an unknown task took a message',
    )


async def p02_lists_with_pages(agent: Agent) -> None:
    """Three tasks in one context and one outside it, read in pages of two."""
    needs_list(agent)
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
    needs_list(agent)
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


async def p02_maps_not_cancelable_error(agent: Agent) -> None:
    task = await agent.send(message('already done'))
    await expect_error(
        agent.plain.cancel_task(CancelTaskRequest(id=task.id)),
        lambda error: isinstance(error, TaskNotCancelableError),
        'a completed task was canceled',
    )


async def p02_subscribes(agent: Agent) -> None:
    started = await agent.start('tck-long-running')
    task, _ = await check_stream(agent.streaming.subscribe(SubscribeToTaskRequest(id=started.id)))
    expect(task.id == started.id, 'the stream shows another task')


async def p02_talks_until_done(agent: Agent) -> None:
    task = await agent.send(message('tck-multi-turn'))
    for text, state in (
        ('one more', TaskState.TASK_STATE_INPUT_REQUIRED),
        ('done', TaskState.TASK_STATE_COMPLETED),
    ):
        expect(
            task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED,
            f'before {text!r} the task is {state_name(task.status.state)}',
        )
        answered = await agent.send(message(text, task_id=task.id, context_id=task.context_id))
        expect(answered.id == task.id, 'the answer went to another task')
        expect(
            answered.status.state == state, f'after {text!r} the task is {state_name(answered.status.state)}'
        )
        task = answered
    said = [p.text for m in task.history for p in m.parts if m.role == Role.ROLE_USER]
    expect(said == ['tck-multi-turn', 'one more', 'done'], f'the history holds {said}')


async def p02_resumes_after_input_required(agent: Agent) -> None:
    """Asked on one stream, answered on another, with the task's id alone."""
    asked = await read_all(agent.streaming.send_message(message('tck-input-required')))
    expect(asked[0].HasField('task'), 'the first event is not the task')
    last = asked[-1].task.status if asked[-1].HasField('task') else asked[-1].status_update.status
    expect(
        last.state == TaskState.TASK_STATE_INPUT_REQUIRED, f'the stream ended in {state_name(last.state)}'
    )
    expect(len(last.message.parts) > 0, 'the question has no text')
    answer = message('an answer', task_id=asked[0].task.id)
    task, _ = await check_stream(agent.streaming.send_message(answer))
    expect(task.id == asked[0].task.id, 'the answer went to another task')


async def p02_gets_message_reply(agent: Agent) -> None:
    for client in (agent.plain, agent.streaming):
        replies = await read_all(client.send_message(message('tck-message-response')))
        expect(len(replies) == 1, f'{len(replies)} replies to one send')
        expect(replies[0].HasField('message'), f'the reply is {replies[0].WhichOneof("payload")}')
        expect(replies[0].message.role == Role.ROLE_AGENT, 'the reply is not by the agent')
        expect(len(replies[0].message.parts) > 0, 'the reply is empty')


@asynccontextmanager
async def connect(base_url: str, binding: str) -> AsyncIterator[Agent]:
    binding, _, version = binding.partition('-')
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        card = await A2ACardResolver(http, base_url).get_agent_card()
        yield Agent(card, http, BINDINGS[binding], version or '1.0')


main(
    connect,
    [
        p02_discovers_card,
        p02_sends,
        p02_streams,
        p04_streams_plain_text_in_order,
        p02_gets_task,
        p02_maps_unknown_task_error,
        p02_maps_error_of_a_stream,
        p02_lists_with_pages,
        p06_lists_by_context,
        p02_cancels,
        p02_maps_not_cancelable_error,
        p02_subscribes,
        p02_talks_until_done,
        p02_resumes_after_input_required,
        p02_gets_message_reply,
    ],
)
