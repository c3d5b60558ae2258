"""The checks of webhooks, for every version of the Python SDK; `webhooks_1_3.py` and `webhooks_0_3.py` run them.

    SCRIPTED_AGENT=http://127.0.0.1:3001 AGENT_WITHOUT_WEBHOOKS=http://127.0.0.1:3002 \\
      python webhooks_1_3.py http://127.0.0.1:3000 jsonrpc

`cargo xtask interop --webhooks` starts the agents. The scripted one does what the text of a message says, line by line
(`baton serve --exec cat --exec-output jsonl`). Webhooks are registered with the SDK's client, and what comes is read
into the SDK's types; the SDKs have no receiver, so that and the verification of signatures are ours.
"""

import base64
import hashlib
import hmac
import json
import os
import time
import uuid

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

import httpx

from harness import CHECK_SECONDS, expect, expect_error, main, note, skip
from receiver import Call, Hook, Receiver


@dataclass(frozen=True)
class Event:
    """What one call told."""

    task_id: str
    state: str
    """In the words of 0.3; empty if the event has none."""
    shown: Any
    """For comparison with `Session.stream`."""


@dataclass(frozen=True)
class Config:
    """A registered webhook."""

    id: str
    url: str
    token: str
    credentials: str


class Session(Protocol):
    """The SDK's client with one agent."""

    protocol: str
    """The version: what is sent depends on it."""
    lists_and_deletes: bool
    """Whether the SDK can list and delete webhooks."""

    async def send(self, text: str, hook: Hook | None = None, task_id: str = '') -> Any:
        """Returns the SDK's task, once the agent rests."""

    async def start(self, text: str) -> str:
        """Sends without waiting; returns the task's id."""

    async def stream(self, text: str, hook: Hook | None = None, task_id: str = '') -> tuple[str, list[Any]]:
        """Returns the task's id, and what a webhook has to show, by what the stream showed."""

    async def cancel(self, task_id: str) -> None: ...

    async def create(self, task_id: str, config_id: str, hook: Hook) -> Config: ...

    async def read(self, task_id: str, config_id: str) -> Config: ...

    async def list(self, task_id: str) -> list[Config]: ...

    async def delete(self, task_id: str, config_id: str) -> None: ...

    def event(self, body: bytes) -> Event:
        """Reads a body into the SDK's types. Fails if they have no such member."""

    def is_as_in(self, shown: Any, task: Any) -> bool:
        """Whether the last event shows the task as the reply does."""

    def is_bad_url(self, error: Exception) -> bool: ...

    def is_not_supported(self, error: Exception) -> bool: ...


@dataclass
class Site:
    """The agents, and our receiver."""

    demo: Session
    scripted: Session
    without: Session
    receiver: Receiver

    async def events(self, session: Session, hook: Hook, last: str) -> list[Event]:
        """What came, up to this state."""
        calls = await self.receiver.until(hook, lambda calls: session.event(calls[-1].body).state == last)
        return [session.event(call.body) for call in calls]


def read_scripts() -> dict[str, str]:
    """For every state at which a turn can end, what the scripted agent is told."""
    scripts = json.loads(Path(__file__).parent.with_name('scripted_agent.json').read_text())
    return {state: '\n'.join(json.dumps(line) for line in lines) for state, lines in scripts.items()}


SCRIPTS = read_scripts()
FINAL_EVENT_MS = 100
"""It takes about one; a busy machine may take longer."""


async def p02_makes_a_webhook(site: Site) -> None:
    task_id = await site.demo.start('tck-cancel')
    hook = site.receiver.hook('a-token', 'a-secret')
    made = await site.demo.create(task_id, 'hook-1', hook)
    expect(made.id == 'hook-1' and made.url == hook.url, f'the reply shows {made}')
    read = await site.demo.read(task_id, 'hook-1')
    expect(read == made, f'made {made}, read {read}')
    expect(read.token == hook.token, f'the token is {read.token!r}')
    expect(hook.credentials not in read.credentials, 'the credentials are shown')
    await site.demo.cancel(task_id)
    events = await site.events(site.demo, hook, 'canceled')
    expect(all(event.task_id == task_id for event in events), 'an event names another task')


def needs_list_and_delete(site: Site) -> None:
    if not site.demo.lists_and_deletes:
        skip('the SDK has no such call')


async def p02_lists_webhooks(site: Site) -> None:
    needs_list_and_delete(site)
    task_id = await site.demo.start('tck-cancel')
    made = [await site.demo.create(task_id, name, site.receiver.hook()) for name in ('hook-1', 'hook-2')]
    listed = await site.demo.list(task_id)
    expect(sorted(listed, key=lambda config: config.id) == made, f'made {made}, listed {listed}')
    await site.demo.cancel(task_id)


async def p02_removes_a_webhook(site: Site) -> None:
    needs_list_and_delete(site)
    task_id = await site.demo.start('tck-cancel')
    removed, kept = site.receiver.hook(), site.receiver.hook()
    await site.demo.create(task_id, 'removed', removed)
    await site.demo.create(task_id, 'kept', kept)
    for _ in ('once', 'twice'):
        await site.demo.delete(task_id, 'removed')
    await expect_error(site.demo.read(task_id, 'removed'), lambda _: True, 'the webhook is still there')
    await site.demo.cancel(task_id)
    await site.events(site.demo, kept, 'canceled')
    # Another round gives a call that should not be made the time to arrive.
    other = site.receiver.hook()
    await site.demo.send('hello', other)
    await site.events(site.demo, other, 'completed')
    states = [site.demo.event(call.body).state for call in site.receiver.calls(removed)]
    expect('canceled' not in states, 'a webhook that was removed is called')


async def s14_webhook_bodies_have_no_unknown_member(site: Site) -> None:
    for state, script in SCRIPTS.items():
        hook = site.receiver.hook()
        task = await site.scripted.send(script, hook)
        events = await site.events(site.scripted, hook, state)
        expect(all(event.task_id == task.id for event in events), 'an event names another task')
        expect(site.scripted.is_as_in(events[-1].shown, task), f'{state}: {events[-1].shown} is not {task}')


async def s14_webhooks_show_what_a_stream_shows(site: Site) -> None:
    for session, text in ((site.scripted, SCRIPTS['completed']), (site.demo, 'tck-stream-chunked')):
        hook = site.receiver.hook()
        _, streamed = await session.stream(text, hook)
        expect_same(await site.events(session, hook, 'completed'), streamed)
    # The webhook of the first message tells of later turns, too.
    hook = site.receiver.hook()
    task_id, streamed = await site.demo.stream('tck-input-required', hook)
    await site.events(site.demo, hook, 'input-required')
    _, answered = await site.demo.stream('an answer', task_id=task_id)
    events = await site.events(site.demo, hook, 'completed')
    # A stream begins with the task as it is; the webhook knows it already.
    if site.demo.protocol == '1.0':
        answered = answered[1:]
    expect_same(events, streamed + answered)


def expect_same(events: list[Event], streamed: list[Any]) -> None:
    expect(len(events) == len(streamed), f'{len(events)} calls for {len(streamed)} events')
    for place, (event, wanted) in enumerate(zip(events, streamed, strict=True)):
        expect(event.shown == wanted, f'call {place} shows {event.shown}, the stream {wanted}')


async def s14_webhooks_are_signed(site: Site) -> None:
    secret = f'whsec_{base64.b64encode(os.urandom(32)).decode()}'
    for token, credentials in (('a-token', 'a-secret'), (secret, ''), ('', 'a-secret')):
        hook = site.receiver.hook(token, credentials)
        await site.demo.send('hello', hook)
        await site.events(site.demo, hook, 'completed')
        calls = site.receiver.calls(hook)
        for call in calls:
            check_headers(site.demo.protocol, hook, call)
        ids = {call.header('webhook-id') for call in calls}
        expect(len(ids) == len(calls), f'{len(calls)} events have {len(ids)} ids')


def check_headers(protocol: str, hook: Hook, call: Call) -> None:
    content_type = 'application/a2a+json' if protocol == '1.0' else 'application/json'
    expect(call.header('content-type') == content_type, f'the content type is {call.header("content-type")}')
    expect(call.header('a2a-version') == protocol, f'the version is {call.header("a2a-version")}')
    for name in ('x-a2a-notification-token', 'a2a-notification-token'):
        expect(call.header(name) == (hook.token or None), f'{name}: {call.header(name)}')
    wanted = f'Bearer {hook.credentials}' if hook.credentials else None
    expect(call.header('authorization') == wanted, f'authorization: {call.header("authorization")}')
    event_id, at = call.header('webhook-id') or '', call.header('webhook-timestamp') or ''
    expect(event_id != '', 'the event has no id')
    expect(at.isdigit() and abs(time.time() - int(at)) < 300, f'the timestamp is {at!r}')
    signed = signature(hook.token, event_id, at, call.body) if hook.token else None
    expect(call.header('webhook-signature') == signed, f'signed {call.header("webhook-signature")}, not {signed}')


def signature(token: str, event_id: str, at: str, body: bytes) -> str:
    """As Standard Webhooks has it; a token that is no such secret is hashed to one."""
    is_secret = token.startswith('whsec_')
    key = base64.b64decode(token.removeprefix('whsec_')) if is_secret else hashlib.sha256(token.encode()).digest()
    made = hmac.new(key, f'{event_id}.{at}.'.encode() + body, hashlib.sha256)
    return f'v1,{base64.b64encode(made.digest()).decode()}'


async def s14_the_final_event_comes_with_the_reply(site: Site) -> None:
    """A client that reads right after the reply finds it: half of the time within `FINAL_EVENT_MS`."""
    waits = []
    for _ in range(20):
        hook = site.receiver.hook()
        await site.demo.send('hello', hook)
        replied = time.monotonic()
        await site.events(site.demo, hook, 'completed')
        waits.append((site.receiver.calls(hook)[-1].at - replied) * 1000)
    waits.sort()
    note(f'the final event came {waits[10]:.1f} ms after the reply (median), {waits[-1]:.1f} ms at most')
    expect(waits[10] <= FINAL_EVENT_MS, f'the final event comes {waits[10]:.1f} ms after the reply (median of 20)')


async def s14_refuses_webhooks_of_local_networks(site: Site) -> None:
    refused = site.demo.is_bad_url
    task_id = await site.demo.start('tck-cancel')
    hosts = ('10.0.0.1', '192.168.0.1', '169.254.169.254', '[fd00::1]', 'metadata.google.internal')
    for url in [f'{scheme}://{host}/' for scheme in ('http', 'https') for host in hosts] + ['ftp://127.0.0.1/']:
        hook = Hook(url, '', '')
        await expect_error(site.demo.send('hello', hook), refused, f'{url} came with a message')
        await expect_error(site.demo.create(task_id, 'hook-1', hook), refused, f'{url} was taken')
    await site.demo.cancel(task_id)


async def p02_maps_push_not_supported_error(site: Site) -> None:
    hook = site.receiver.hook()
    refused = site.without.is_not_supported
    await expect_error(site.without.send('hello', hook), refused, 'a webhook came with a message')
    task_id = await site.without.start('tck-cancel')
    await expect_error(site.without.create(task_id, 'hook-1', hook), refused, 'a webhook was taken')
    await site.without.cancel(task_id)


@asynccontextmanager
async def connect(make: Any, base_url: str, binding: str) -> AsyncIterator[Site]:
    sdk = make(binding)
    agents = (base_url, os.environ['SCRIPTED_AGENT'], os.environ['AGENT_WITHOUT_WEBHOOKS'])
    async with httpx.AsyncClient(timeout=CHECK_SECONDS) as http, Receiver.started() as receiver:
        yield Site(*[await sdk.session(http, url) for url in agents], receiver)


def fresh_id() -> str:
    return str(uuid.uuid4())


def read_whole(model: Any, body: bytes) -> Any:
    """Reads a body into a pydantic model of 0.3. It drops members that it does not know: then one is missing."""
    read = model.model_validate_json(body, strict=True)
    kept, came = read.model_dump(mode='json', by_alias=True, exclude_unset=True), json.loads(body)
    expect(kept == came, f'of {came} the SDK kept {kept}')
    return read


def run(make: Any) -> NoReturn:
    """`make` makes the SDK for a binding; its method `session(http, base_url)` connects to an agent."""
    main(
        partial(connect, make),
        [
            p02_makes_a_webhook,
            p02_lists_webhooks,
            p02_removes_a_webhook,
            s14_webhook_bodies_have_no_unknown_member,
            s14_webhooks_show_what_a_stream_shows,
            s14_webhooks_are_signed,
            s14_the_final_event_comes_with_the_reply,
            s14_refuses_webhooks_of_local_networks,
            p02_maps_push_not_supported_error,
        ],
    )
