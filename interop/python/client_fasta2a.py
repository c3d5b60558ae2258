"""The client of `fasta2a`. Binding: `jsonrpc`.

It speaks a dialect of its own: 0.3's method names and states, but 1.0's parts and 1.0's wrappers around replies.
What a 0.3 agent answers passes its validation and comes out empty, so most checks can only see that far.
"""

import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fasta2a.client import A2AClient
from fasta2a.schema import Message

import conversation

from harness import CHECK_SECONDS, expect, main, skip


TASK_NOT_FOUND = -32001


def message(text: str) -> Message:
    return {'role': 'user', 'parts': [{'text': text}], 'message_id': str(uuid.uuid4())}


class Agent:
    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.client = A2AClient(base_url)


def expect_wrapped(result: dict, *members: str) -> None:
    if not any(member in result for member in members):
        skip('the agent took the message; the client looks for the wrapper of 1.0 in the reply and drops the rest')


async def p02_discovers_card(agent: Agent) -> None:
    card = A2AClient(agent.base_url, fetch_card=True).agent_card
    expect(card['name'] != '', 'the card has no name')
    expect(card['supported_interfaces'][0]['protocol_binding'] == 'JSONRPC', 'the first interface is not JSON-RPC')


async def p02_sends(agent: Agent) -> None:
    response = await agent.client.send_message(message('hello'))
    expect('error' not in response, f'an error: {response.get("error")}')
    expect_wrapped(response['result'], 'task')


async def p02_streams(agent: Agent) -> None:
    events = [event async for event in agent.client.stream_message(message('tck-stream-basic'))]
    expect(len(events) > 2, f'{len(events)} events')
    for event in events:
        expect('error' not in event, f'an error: {event.get("error")}')
    expect_wrapped(events[0]['result'], 'task')


async def p04_streams_plain_text_in_order(agent: Agent) -> None:
    events = [event async for event in agent.client.stream_message(message('tck-stream-chunked'))]
    expect(len(events) > 4, f'{len(events)} events')
    expect_wrapped(events[-2]['result'], 'artifact_update', 'status_update')


async def p02_maps_unknown_task_error(agent: Agent) -> None:
    """The client sends `id: null`, and accepts only the error message `Task not found`."""
    response = await agent.client.get_task(str(uuid.uuid4()))
    expect('error' in response, f'an unknown task was found: {response}')
    expect(response['error']['code'] == TASK_NOT_FOUND, f'the error is {response["error"]}')


async def p02_gets_task(agent: Agent) -> None:
    response = await agent.client.send_message(message('to be read again'))
    expect_wrapped(response['result'], 'task')
    sent = response['result']['task']
    got = await agent.client.get_task(sent['id'])
    expect(got['result']['id'] == sent['id'], 'another task came back')


async def p02_gets_message_reply(agent: Agent) -> None:
    response = await agent.client.send_message(message('tck-message-response'))
    expect('error' not in response, f'an error: {response.get("error")}')
    expect_wrapped(response['result'], 'message')


async def p02_talks_until_done(_: Agent) -> None:
    skip('the client cannot see which task asks')


async def p02_resumes_after_input_required(_: Agent) -> None:
    skip('the client cannot see which task asks')


@asynccontextmanager
async def connect(base_url: str, _: str) -> AsyncIterator[Agent]:
    agent = Agent(base_url)
    async with agent.client.http_client as http:
        http.timeout = CHECK_SECONDS
        yield agent


main(
    connect,
    conversation.checks(
        p02_discovers_card,
        p02_sends,
        p02_streams,
        p04_streams_plain_text_in_order,
        p02_gets_task,
        p02_maps_unknown_task_error,
        p02_talks_until_done,
        p02_resumes_after_input_required,
        p02_gets_message_reply,
    ),
)
