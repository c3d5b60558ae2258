"""The Python `a2a-sdk` 0.2.16 client, the last before 0.3. Binding: `jsonrpc`."""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from a2a.client import A2ACardResolver, A2AClient
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    JSONRPCErrorResponse,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    Role,
    SendMessageRequest,
    SendStreamingMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)
from harness import CHECK_SECONDS, cannot, expect, main


TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002

Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


def text_of(parts: list[Part]) -> str:
    return ''.join(part.root.text for part in parts if isinstance(part.root, TextPart))


def params(
    text: str, context_id: str | None = None, task_id: str | None = None, blocking: bool = True
) -> MessageSendParams:
    return MessageSendParams(
        message=Message(
            message_id=str(uuid.uuid4()),
            context_id=context_id,
            task_id=task_id,
            role=Role.user,
            parts=[Part(root=TextPart(text=text))],
        ),
        configuration=MessageSendConfiguration(accepted_output_modes=['text/plain'], blocking=blocking),
    )


def result(response):
    """The content of a response; in this SDK, errors are values."""
    expect(not isinstance(response.root, JSONRPCErrorResponse), f'an error: {response.root}')
    return response.root.result


def expect_code(response, code: int, otherwise: str) -> None:
    expect(isinstance(response.root, JSONRPCErrorResponse), otherwise)
    expect(response.root.error.code == code, f'the error is {response.root.error!r}')


class Agent:
    def __init__(self, card: AgentCard, http: httpx.AsyncClient) -> None:
        self.card = card
        self.client = A2AClient(http, card)

    async def send(self, request: MessageSendParams) -> Task:
        reply = result(await self.client.send_message(SendMessageRequest(id=str(uuid.uuid4()), params=request)))
        expect(isinstance(reply, Task), f'no task in the reply: {reply}')
        return reply

    async def start(self, text: str) -> Task:
        """Sends without waiting for the end."""
        task = await self.send(params(text, blocking=False))
        expect(
            task.status.state in (TaskState.submitted, TaskState.working),
            f'an immediate reply is {task.status.state.value}',
        )
        return task

    async def get(self, task_id: str):
        return await self.client.get_task(GetTaskRequest(id='get', params=TaskQueryParams(id=task_id)))

    async def cancel(self, task_id: str):
        return await self.client.cancel_task(CancelTaskRequest(id='cancel', params=TaskIdParams(id=task_id)))

    async def stream(self, request: MessageSendParams) -> list[Task | Message | Update]:
        stream = self.client.send_message_streaming(SendStreamingMessageRequest(id='stream', params=request))
        return [result(event) async for event in stream]


async def check_stream(agent: Agent, request: MessageSendParams) -> tuple[Task, list[Update]]:
    """Reads a stream to its end: a Task, then updates of that task, the last of them final and its completion."""
    events = await agent.stream(request)
    expect(len(events) > 0, 'the stream ended without an event')
    expect(isinstance(events[0], Task), f'the first event is {type(events[0]).__name__}, not the task')
    task, updates = events[0], events[1:]
    expect(len(updates) > 0, 'no update followed the task')
    for update in updates:
        expect(isinstance(update, Update), f'an update is a {type(update).__name__}')
        expect(update.task_id == task.id, f'a {update.kind} names another task')
        expect(update.context_id == task.context_id, f'a {update.kind} names another context')
    finals = [isinstance(update, TaskStatusUpdateEvent) and update.final for update in updates]
    expect(finals == [False] * (len(finals) - 1) + [True], f'`final` of the updates: {finals}')
    expect(updates[-1].status.state == TaskState.completed, f'the stream ended in {updates[-1].status.state.value}')
    return task, updates


async def p02_discovers_card(agent: Agent) -> None:
    """From /.well-known/agent.json, the only place where this SDK looks."""
    expect(agent.card.name != '', 'the card has no name')
    expect(len(agent.card.skills) > 0, 'the card has no skill')
    expect(bool(agent.card.capabilities.streaming), 'the card does not offer streaming')
    expect(agent.card.url != '', 'the card has no url')


async def p02_sends(agent: Agent) -> None:
    task = await agent.send(params('hello'))
    expect(task.id != '' and task.context_id != '', 'the task lacks an id or a context')
    expect(task.status.state == TaskState.completed, f'a blocking send ended in {task.status.state.value}')
    expect(bool(task.status.timestamp), 'the status has no timestamp')
    expect(bool(task.artifacts) and text_of(task.artifacts[0].parts) == 'hello', 'the task has no echo')


async def p02_streams(agent: Agent) -> None:
    _, updates = await check_stream(agent, params('tck-stream-basic hi'))
    states = [u.status.state for u in updates if isinstance(u, TaskStatusUpdateEvent)]
    expect(TaskState.working in states, f'never seen working: {[s.value for s in states]}')
    expect(any(isinstance(u, TaskArtifactUpdateEvent) for u in updates), 'no artifact update')


async def p04_streams_plain_text_in_order(agent: Agent) -> None:
    task, updates = await check_stream(agent, params('tck-stream-chunked'))
    chunks = [u for u in updates if isinstance(u, TaskArtifactUpdateEvent)]
    expect(len(chunks) > 1, f'{len(chunks)} chunks')
    expect([bool(c.append) for c in chunks] == [False] + [True] * (len(chunks) - 1), 'the first chunk must not append')
    expect([bool(c.last_chunk) for c in chunks].index(True) == len(chunks) - 1, 'the last chunk is not marked')
    stored = result(await agent.get(task.id))
    streamed = ''.join(text_of(chunk.artifact.parts) for chunk in chunks)
    expect(text_of(stored.artifacts[0].parts) == streamed, 'the stored artifact differs from the streamed one')


async def p02_gets_task(agent: Agent) -> None:
    sent = await agent.send(params('to be read again'))
    got = result(await agent.get(sent.id))
    expect(got.id == sent.id and got.context_id == sent.context_id, 'another task came back')
    expect(got.status == sent.status, 'the status differs from the one the send returned')
    expect(got.artifacts == sent.artifacts, 'the artifacts differ from those the send returned')
    said = [text_of(m.parts) for m in got.history or []]
    expect('to be read again' in said, f'the message is not in the history: {said}')


async def p02_maps_unknown_task_error(agent: Agent) -> None:
    expect_code(await agent.get(str(uuid.uuid4())), TASK_NOT_FOUND, 'an unknown task was found')


async def p02_maps_error_of_a_stream(agent: Agent) -> None:
    request = SendStreamingMessageRequest(id='stream', params=params('nobody is there', task_id=str(uuid.uuid4())))
    events = [event async for event in agent.client.send_message_streaming(request)]
    expect(len(events) == 1, f'{len(events)} events')
    expect_code(events[0], TASK_NOT_FOUND, 'an unknown task took a message')


async def p02_cancels(agent: Agent) -> None:
    task = await agent.start('tck-cancel')
    canceled = result(await agent.cancel(task.id))
    expect(canceled.id == task.id, 'another task came back')
    expect(canceled.status.state == TaskState.canceled, f'the cancel ended in {canceled.status.state.value}')


async def p02_maps_not_cancelable_error(agent: Agent) -> None:
    task = await agent.send(params('already done'))
    expect_code(await agent.cancel(task.id), TASK_NOT_CANCELABLE, 'a completed task was canceled')


async def p02_talks_until_done(agent: Agent) -> None:
    task = await agent.send(params('tck-multi-turn'))
    for text, state in (('one more', TaskState.input_required), ('done', TaskState.completed)):
        expect(
            task.status.state == TaskState.input_required, f'before {text!r} the task is {task.status.state.value}'
        )
        answered = await agent.send(params(text, task_id=task.id, context_id=task.context_id))
        expect(answered.id == task.id, 'the answer went to another task')
        expect(answered.status.state == state, f'after {text!r} the task is {answered.status.state.value}')
        task = answered
    said = [text_of(m.parts) for m in task.history or [] if m.role == Role.user]
    expect(said == ['tck-multi-turn', 'one more', 'done'], f'the history holds {said}')


async def p02_resumes_after_input_required(agent: Agent) -> None:
    """Asked on one stream, answered on another, with the task's id alone."""
    asked = await agent.stream(params('tck-input-required'))
    task, last = asked[0], asked[-1]
    expect(last.status.state == TaskState.input_required, f'the stream ended in {last.status.state.value}')
    expect(isinstance(last, Task) or last.final, 'the last update is not final')
    expect(last.status.message is not None, 'the question has no text')
    answered, _ = await check_stream(agent, params('an answer', task_id=task.id))
    expect(answered.id == task.id, 'the answer went to another task')


async def p02_gets_message_reply(agent: Agent) -> None:
    request = params('tck-message-response')
    reply = result(await agent.client.send_message(SendMessageRequest(id='reply', params=request)))
    for replies in ([reply], await agent.stream(params('tck-message-response'))):
        expect(len(replies) == 1, f'{len(replies)} replies to one send')
        expect(isinstance(replies[0], Message), f'the reply is {replies[0]}')
        expect(replies[0].role == Role.agent, 'the reply is not by the agent')
        expect(text_of(replies[0].parts) != '', 'the reply is empty')


@asynccontextmanager
async def connect(base_url: str, _: str) -> AsyncIterator[Agent]:
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        yield Agent(await A2ACardResolver(http, base_url).get_agent_card(), http)


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
        cannot('p02_subscribes', 'the SDK has no resubscribe operation'),
        p02_talks_until_done,
        p02_resumes_after_input_required,
        p02_gets_message_reply,
    ],
)
