"""The Python `a2a-sdk` 0.3.26 client. Bindings: `jsonrpc`, `rest`, `grpc`."""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import httpx

from a2a.client import A2ACardResolver, A2AClientHTTPError, Client, ClientConfig, ClientFactory
from a2a.client.client import ClientEvent, UpdateEvent
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import (
    AgentCard,
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
    TransportProtocol,
)
from harness import CHECK_SECONDS, cannot, expect, expect_error, main, read_all


BINDINGS = {
    'jsonrpc': TransportProtocol.jsonrpc,
    'rest': TransportProtocol.http_json,
    'grpc': TransportProtocol.grpc,
}

# JSON-RPC codes, their HTTP statuses, and those of gRPC: 0.3 defines none for the latter two. Of the HTTP statuses the first
# is what SDK servers of 0.3 send, the second that of 1.0. The client reads only the status.
TASK_NOT_FOUND = (-32001, {404}, grpc.StatusCode.NOT_FOUND)
TASK_NOT_CANCELABLE = (-32002, {409, 400}, grpc.StatusCode.UNIMPLEMENTED)


def text_of(parts: list[Part]) -> str:
    return ''.join(part.root.text for part in parts if isinstance(part.root, TextPart))


def message(text: str, context_id: str | None = None, task_id: str | None = None) -> Message:
    return Message(
        message_id=str(uuid.uuid4()),
        context_id=context_id,
        task_id=task_id,
        role=Role.user,
        parts=[Part(root=TextPart(text=text))],
    )


class Agent:
    """One agent under test: its card, a client that streams, and one that does not."""

    def __init__(self, card: AgentCard, http: httpx.AsyncClient, binding: TransportProtocol) -> None:
        self.binding = binding
        self.card = card
        self.plain = self._client(http, streaming=False)
        self.streaming = self._client(http, streaming=True)

    def _client(self, http: httpx.AsyncClient, streaming: bool) -> Client:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_transports=[self.binding],
        )
        return ClientFactory(config).create(self.card)

    def is_error(self, wanted: tuple[int, set[int], grpc.StatusCode]):
        code, statuses, grpc_code = wanted
        if self.binding == TransportProtocol.grpc:
            # The SDK lets the library's error through.
            return lambda error: isinstance(error, grpc.aio.AioRpcError) and error.code() == grpc_code
        if self.binding == TransportProtocol.jsonrpc:
            return lambda error: isinstance(error, A2AClientJSONRPCError) and error.error.code == code
        return lambda error: isinstance(error, A2AClientHTTPError) and error.status_code in statuses

    async def send(self, request: Message, blocking: bool = True) -> Task:
        configuration = MessageSendConfiguration(blocking=blocking)
        replies = await read_all(self.plain.send_message(request, configuration=configuration))
        expect(len(replies) == 1, f'{len(replies)} replies to one send')
        expect(isinstance(replies[0], tuple), f'no task in the reply: {replies[0]}')
        return replies[0][0]

    async def start(self, text: str) -> Task:
        """Sends without waiting for the end."""
        task = await self.send(message(text), blocking=False)
        expect(
            task.status.state in (TaskState.submitted, TaskState.working),
            f'an immediate reply is {task.status.state.value}',
        )
        return task


async def check_stream(stream: AsyncIterator[ClientEvent | Message]) -> tuple[Task, list[UpdateEvent]]:
    """Reads a stream to its end: a Task, then updates of that task, the last of them final and its completion."""
    events = await read_all(stream)
    expect(len(events) > 0, 'the stream ended without an event')
    expect(isinstance(events[0], tuple), f'the first event is {events[0]}')
    expect(events[0][1] is None, f'the first event is {type(events[0][1]).__name__}, not the task')
    # The SDK folds updates into the task it hands out, so the last one is the whole task.
    task, updates = events[-1][0], [update for _, update in events[1:]]
    expect(len(updates) > 0, 'no update followed the task')
    for update in updates:
        expect(update is not None, 'a second task on one stream')
        expect(update.task_id == task.id, f'a {update.kind} names another task')
        expect(update.context_id == task.context_id, f'a {update.kind} names another context')
    finals = [isinstance(update, TaskStatusUpdateEvent) and update.final for update in updates]
    expect(finals == [False] * (len(finals) - 1) + [True], f'`final` of the updates: {finals}')
    expect(updates[-1].status.state == TaskState.completed, f'the stream ended in {updates[-1].status.state.value}')
    return task, updates


async def p02_discovers_card(agent: Agent) -> None:
    card = agent.card
    expect(card.name != '', 'the card has no name')
    expect(len(card.skills) > 0, 'the card has no skill')
    expect(bool(card.capabilities.streaming), 'the card does not offer streaming')
    expect(card.protocol_version.startswith('0.3'), f'the card speaks {card.protocol_version}')
    expect(card.preferred_transport == 'JSONRPC', f'the card prefers {card.preferred_transport}')
    offered = [card.preferred_transport] + [i.transport for i in card.additional_interfaces or []]
    expect(agent.binding.value in offered, f'{agent.binding.value} is not among {offered}')


async def p02_sends(agent: Agent) -> None:
    task = await agent.send(message('hello'))
    expect(task.id != '' and task.context_id != '', 'the task lacks an id or a context')
    expect(task.status.state == TaskState.completed, f'a blocking send ended in {task.status.state.value}')
    if agent.binding == TransportProtocol.jsonrpc:
        # The SDK drops timestamps of HTTP+JSON answers.
        expect(bool(task.status.timestamp), 'the status has no timestamp')
    expect(bool(task.artifacts) and text_of(task.artifacts[0].parts) == 'hello', 'the task has no echo')


async def p02_streams(agent: Agent) -> None:
    _, updates = await check_stream(agent.streaming.send_message(message('tck-stream-basic hi')))
    states = [u.status.state for u in updates if isinstance(u, TaskStatusUpdateEvent)]
    expect(TaskState.working in states, f'never seen working: {[s.value for s in states]}')
    expect(any(u.kind == 'artifact-update' for u in updates), 'no artifact update')


async def p04_streams_plain_text_in_order(agent: Agent) -> None:
    """The story comes in chunks, which the SDK joins in the order of arrival."""
    task, updates = await check_stream(agent.streaming.send_message(message('tck-stream-chunked')))
    chunks = [u for u in updates if u.kind == 'artifact-update']
    expect(len(chunks) > 1, f'{len(chunks)} chunks')
    expect([bool(c.append) for c in chunks] == [False] + [True] * (len(chunks) - 1), 'the first chunk must not append')
    expect([bool(c.last_chunk) for c in chunks].index(True) == len(chunks) - 1, 'the last chunk is not marked')
    stored = await agent.plain.get_task(TaskQueryParams(id=task.id))
    expect(
        text_of(stored.artifacts[0].parts) == text_of(task.artifacts[0].parts),
        'the stored artifact differs from the streamed one',
    )


async def p02_gets_task(agent: Agent) -> None:
    sent = await agent.send(message('to be read again'))
    got = await agent.plain.get_task(TaskQueryParams(id=sent.id))
    expect(got.id == sent.id and got.context_id == sent.context_id, 'another task came back')
    expect(got.status == sent.status, 'the status differs from the one the send returned')
    expect(got.artifacts == sent.artifacts, 'the artifacts differ from those the send returned')
    said = [text_of(m.parts) for m in got.history or []]
    expect('to be read again' in said, f'the message is not in the history: {said}')


async def p02_maps_unknown_task_error(agent: Agent) -> None:
    await expect_error(
        agent.plain.get_task(TaskQueryParams(id=str(uuid.uuid4()))),
        agent.is_error(TASK_NOT_FOUND),
        'an unknown task was found',
    )


async def p02_maps_error_of_a_stream(agent: Agent) -> None:
    await expect_error(
        read_all(agent.streaming.send_message(message('nobody is there', task_id=str(uuid.uuid4())))),
        agent.is_error(TASK_NOT_FOUND),
        'an unknown task took a message',
    )


async def p02_cancels(agent: Agent) -> None:
    task = await agent.start('tck-cancel')
    canceled = await agent.plain.cancel_task(TaskIdParams(id=task.id))
    expect(canceled.id == task.id, 'another task came back')
    expect(canceled.status.state == TaskState.canceled, f'the cancel ended in {canceled.status.state.value}')


async def p02_maps_not_cancelable_error(agent: Agent) -> None:
    task = await agent.send(message('already done'))
    await expect_error(
        agent.plain.cancel_task(TaskIdParams(id=task.id)),
        agent.is_error(TASK_NOT_CANCELABLE),
        'a completed task was canceled',
    )


async def p02_subscribes(agent: Agent) -> None:
    started = await agent.start('tck-long-running')
    events = await read_all(agent.streaming.resubscribe(TaskIdParams(id=started.id)))
    expect(len(events) > 0, 'the stream ended without an event')
    expect(all(task.id == started.id for task, _ in events), 'the stream shows another task')
    last = events[-1][0].status.state
    expect(last == TaskState.completed, f'the stream ended in {last.value}')


async def p02_talks_until_done(agent: Agent) -> None:
    task = await agent.send(message('tck-multi-turn'))
    for text, state in (('one more', TaskState.input_required), ('done', TaskState.completed)):
        expect(
            task.status.state == TaskState.input_required, f'before {text!r} the task is {task.status.state.value}'
        )
        answered = await agent.send(message(text, task_id=task.id, context_id=task.context_id))
        expect(answered.id == task.id, 'the answer went to another task')
        expect(answered.status.state == state, f'after {text!r} the task is {answered.status.state.value}')
        task = answered
    said = [text_of(m.parts) for m in task.history or [] if m.role == Role.user]
    expect(said == ['tck-multi-turn', 'one more', 'done'], f'the history holds {said}')


async def p02_resumes_after_input_required(agent: Agent) -> None:
    """Asked on one stream, answered on another, with the task's id alone."""
    asked = await read_all(agent.streaming.send_message(message('tck-input-required')))
    task, update = asked[-1]
    expect(task.status.state == TaskState.input_required, f'the stream ended in {task.status.state.value}')
    expect(update is None or update.final, 'the last update is not final')
    expect(task.status.message is not None, 'the question has no text')
    answered, _ = await check_stream(agent.streaming.send_message(message('an answer', task_id=task.id)))
    expect(answered.id == task.id, 'the answer went to another task')


async def p02_gets_message_reply(agent: Agent) -> None:
    for client in (agent.plain, agent.streaming):
        replies = await read_all(client.send_message(message('tck-message-response')))
        expect(len(replies) == 1, f'{len(replies)} replies to one send')
        expect(isinstance(replies[0], Message), f'the reply is {replies[0]}')
        expect(replies[0].role == Role.agent, 'the reply is not by the agent')
        expect(text_of(replies[0].parts) != '', 'the reply is empty')


@asynccontextmanager
async def connect(base_url: str, binding: str) -> AsyncIterator[Agent]:
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        card = await A2ACardResolver(http, base_url).get_agent_card()
        yield Agent(card, http, BINDINGS[binding])


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
        cannot('p02_lists_with_pages', 'the SDK has no list operation'),
        cannot('p06_lists_by_context', 'the SDK has no list operation'),
        p02_cancels,
        p02_maps_not_cancelable_error,
        p02_subscribes,
        p02_talks_until_done,
        p02_resumes_after_input_required,
        p02_gets_message_reply,
    ],
)
