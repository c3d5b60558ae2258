"""The programs of examples/exec behind `baton serve --exec`, asked by the Python `a2a-sdk` 1.3.0 client.

    SERVER_PID=1234 python exec_agents.py http://127.0.0.1:3000 greet

The second argument says which program is behind the URL: `greet`, `count` or `ask`. `count` looks at the server's
processes, and kills the server at the end: what it had started must not outlive it.
"""

import asyncio
import os
import signal
import sys
import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    TaskState,
)
from harness import CHECK_SECONDS, expect, main, read_all


# How long processes may take to end: 2 s of grace, and a busy machine.
END_SECONDS = 15


def message(text: str, task_id: str = '') -> SendMessageRequest:
    parts = [Part(text=text)]
    told = Message(message_id=str(uuid.uuid4()), task_id=task_id, role=Role.ROLE_USER, parts=parts)
    return SendMessageRequest(message=told)


def state(events: list[StreamResponse]) -> str:
    return TaskState.Name(events[-1].status_update.status.state).removeprefix('TASK_STATE_')


def chunks(events: list[StreamResponse]) -> list[str]:
    updates = [event.artifact_update for event in events if event.HasField('artifact_update')]
    return [part.text for update in updates for part in update.artifact.parts if part.text]


async def greets(client: Client) -> None:
    events = await read_all(client.send_message(message('Ada')))
    expect(events[0].HasField('task'), 'the first event is not the task')
    expect(state(events) == 'COMPLETED', f'it ended in {state(events)}')
    expect(''.join(chunks(events)) == 'Hello, Ada!\n', f'it said {chunks(events)}')


async def fails_with_the_reason(client: Client) -> None:
    events = await read_all(client.send_message(message(' ')))
    expect(state(events) == 'FAILED', f'it ended in {state(events)}')
    reason = events[-1].status_update.status.message.parts[0].text
    expect('exited with 1; see the server' in reason, f'the reason is {reason!r}')


async def asks_and_answers(client: Client) -> None:
    asked = await read_all(client.send_message(message('pizza')))
    expect(state(asked) == 'INPUT_REQUIRED', f'it ended in {state(asked)}')
    said = [event.status_update.status.message.parts for event in asked if event.HasField('status_update')]
    said = [parts[0].text for parts in said if parts]
    expect(said == ['Looking at "pizza"', 'For how many people?'], f'it said {said}')

    task = asked[0].task
    answered = await read_all(client.send_message(message('four', task_id=task.id)))
    expect(state(answered) == 'COMPLETED', f'the answer ended in {state(answered)}')
    closing = answered[-1].status_update.status.message.parts[0].text
    expect(closing == 'pizza for four, coming up.', f'it closed with {closing!r}')
    stored = await client.get_task(GetTaskRequest(id=task.id))
    order = stored.artifacts[0].parts[0].data.struct_value
    expect(dict(order.items()) == {'order': 'pizza', 'people': 'four'}, f'the order is {order}')


async def streams_line_by_line(client: Client) -> None:
    events = await read_all(client.send_message(message('3')))
    expect(state(events) == 'COMPLETED', f'it ended in {state(events)}')
    expect(''.join(chunks(events)) == '1\n2\n3\n', f'it counted {chunks(events)}')
    expect(len(chunks(events)) > 1, 'a line a second came all at once')


async def started(client: Client) -> tuple[str, AsyncIterator[StreamResponse], set[str]]:
    """A task that counts for a long time: its id, its open stream, its processes."""
    stream = client.send_message(message('1000'))
    task_id = ''
    async for event in stream:
        if event.HasField('task'):
            task_id = event.task.id
        if event.HasField('artifact_update'):
            break
    # The guard, the shell, and the shell's child.
    found = processes_below(int(os.environ['SERVER_PID']))
    expect(len(found) >= 2, f'only {len(found)} processes below the server')
    return task_id, stream, found


async def cancels_with_all_processes(client: Client) -> None:
    task_id, stream, processes = await started(client)
    canceled = await client.cancel_task(CancelTaskRequest(id=task_id))
    expect(canceled.status.state == TaskState.TASK_STATE_CANCELED, f'it is {canceled.status.state}')
    rest = await read_all(stream)
    expect(state(rest) == 'CANCELED', f'the stream ended in {state(rest)}')
    await expect_gone(processes)


async def dies_with_the_server(client: Client) -> None:
    _, _, processes = await started(client)
    os.kill(int(os.environ['SERVER_PID']), signal.SIGKILL)
    await expect_gone(processes)


def processes_below(pid: int) -> set[str]:
    """All descendants of a process, each with its start time, since process ids are reused."""
    parents = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit() and (fields := stat(entry)):
            parents[entry] = (fields[1], f'{entry} {fields[19]}')
    below, found = {str(pid)}, set()
    while more := {child for child, (parent, _) in parents.items() if parent in below} - below:
        below |= more
        found |= {parents[child][1] for child in more}
    return found


def stat(pid: str) -> list[str]:
    """The fields after the name, beginning with the state; nothing for a zombie."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
    except OSError:
        return []
    return [] if fields[0] == 'Z' else fields


async def expect_gone(processes: set[str]) -> None:
    def left() -> list[str]:
        split = [process.split() for process in processes]
        return [pid for pid, began in split if (fields := stat(pid)) and fields[19] == began]

    for _ in range(END_SECONDS * 20):
        if not left():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f'still there: {left()}')


@asynccontextmanager
async def connect(base_url: str, _: str) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http:
        card = await A2ACardResolver(http, base_url).get_agent_card()
        expect(card.capabilities.streaming, 'the card does not offer streaming')
        yield ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)


CHECKS = {
    'greet': [greets, fails_with_the_reason],
    'ask': [asks_and_answers],
    'count': [streams_line_by_line, cancels_with_all_processes, dies_with_the_server],
}

main(connect, CHECKS[sys.argv[2]])
