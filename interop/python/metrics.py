"""`/metrics`, read by the parsers of Prometheus' own Python library, held against what was asked before.

    python metrics.py http://127.0.0.1:3000

The server must be fresh, and nobody else may ask it anything: the counts have to be exactly right. Nothing but the
standard library makes the requests, so that no client adds any of its own.
"""

import json
import time
import urllib.error
import urllib.request

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness import CHECK_SECONDS, expect, main
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text


OPENMETRICS = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'

Labels = tuple[tuple[str, str], ...]


def labels(**pairs: str) -> Labels:
    return tuple(sorted(pairs.items()))


class Server:
    """Sends requests, and counts them as the server should."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: Counter[Labels] = Counter()
        self.events = 0
        self.sent = 0

    def request(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        head = {'Content-Type': 'application/json', **(headers or {})}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, head)) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def count(self, binding: str, generation: str, operation: str, outcome: str = 'ok') -> None:
        self.asked[
            labels(agent='default', binding=binding, generation=generation, operation=operation, outcome=outcome)
        ] += 1

    def rpc(self, generation: str, operation: str, method: str, params: object, outcome: str = 'ok') -> str:
        headers = {'A2A-Version': '1.0'} if generation == '1.0' else {}
        self.count('jsonrpc', generation, operation, outcome)
        return self.request('/', {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}, headers)

    def rest(self, generation: str, operation: str, path: str, body: object = None, outcome: str = 'ok') -> str:
        self.count('http_json', generation, operation, outcome)
        return self.request(path, body, {'A2A-Version': generation})

    def message(self, text: str) -> dict[str, object]:
        self.sent += 1
        return {'messageId': f'm{self.sent}', 'role': 'ROLE_USER', 'parts': [{'text': text}]}

    def older_message(self, text: str) -> dict[str, object]:
        self.sent += 1
        parts = [{'kind': 'text', 'text': text}]
        return {'kind': 'message', 'messageId': f'm{self.sent}', 'role': 'user', 'parts': parts}

    def metrics(self, accept: str) -> str:
        return self.request('/metrics', headers={'Accept': accept})


def traffic(server: Server) -> None:
    """Sends in three generations and two bindings, errors, streams, a repeat and a cancel."""
    send = {'message': server.message('Hello, Baton')}
    server.rpc('1.0', 'SendMessage', 'SendMessage', send)
    server.rpc('1.0', 'SendMessage', 'SendMessage', send)  # The same once more: a repeat.
    server.rpc('0.3', 'SendMessage', 'message/send', {'message': server.older_message('Hello, Baton')})
    legacy = {'role': 'user', 'parts': [{'type': 'text', 'text': 'Hello, Baton'}]}
    server.rpc('0.1', 'SendMessage', 'tasks/send', {'id': 'legacy-task', 'message': legacy})
    server.rest('1.0', 'SendMessage', '/message:send', {'message': server.message('fail')})
    proto = {'messageId': 'proto', 'role': 'ROLE_USER', 'content': [{'text': 'Hello, Baton'}]}
    server.rest('0.3', 'SendMessage', '/v1/message:send', {'message': proto})

    server.rpc('1.0', 'GetTask', 'GetTask', {'id': 'nobody'}, 'TASK_NOT_FOUND')
    server.rest('1.0', 'GetTask', '/tasks/nobody', outcome='TASK_NOT_FOUND')
    server.rpc('1.0', 'SendMessage', 'SendMessage', {'message': {'role': 'ROLE_USER'}}, 'INVALID_PARAMS')
    server.request('/', {'jsonrpc': '2.0', 'id': 1, 'method': 'NoSuchMethod'})
    server.count('jsonrpc', 'unknown', 'unknown', 'METHOD_NOT_FOUND')

    story = {'message': server.message('tell me a story')}
    stream = server.rpc('1.0', 'SendStreamingMessage', 'SendStreamingMessage', story)
    steps = {'message': server.message('work step by step')}
    stream += server.rest('1.0', 'SendStreamingMessage', '/message:stream', steps)
    server.events = sum(line.startswith('data:') for line in stream.splitlines())
    expect(server.events > 6, f'the streams showed {server.events} events')

    waiting = {'message': server.message('wait until I cancel'), 'configuration': {'returnImmediately': True}}
    answer = json.loads(server.rpc('1.0', 'SendMessage', 'SendMessage', waiting))
    task = answer['result']['task']['id']
    canceled = json.loads(server.rpc('1.0', 'CancelTask', 'CancelTask', {'id': task}))
    expect(canceled['result']['status']['state'] == 'TASK_STATE_CANCELED', f'{canceled}')

    server.request('/.well-known/agent-card.json')
    server.count('card', 'unknown', 'AgentCard')


# Tasks of the traffic, by how they ended.
ENDED = {'completed': 6, 'failed': 1, 'canceled': 1, 'rejected': 0}


def samples(families: list[Metric], name: str) -> dict[Labels, float]:
    return {
        labels(**sample.labels): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def one(families: list[Metric], name: str, **of: str) -> float:
    found = samples(families, name)
    expect(labels(**of) in found, f'no {name}{of} in {found}')
    return found[labels(**of)]


def scraped(server: Server) -> list[Metric]:
    """The numbers once all turns have ended: a legacy send answers before that."""
    since = time.monotonic()
    while True:
        families = list(openmetrics(server.metrics(OPENMETRICS)))
        if one(families, 'baton_turns_running') == 0 and one(families, 'baton_streams_open') == 0:
            return families
        expect(time.monotonic() - since < CHECK_SECONDS / 2, 'turns or streams do not end')


async def counts_requests_exactly(server: Server) -> None:
    traffic(server)
    counted = samples(scraped(server), 'baton_requests_total')
    expect(counted == dict(server.asked), f'counted {counted}, asked {dict(server.asked)}')


async def counts_what_requests_did(server: Server) -> None:
    families = scraped(server)
    for state, count in ENDED.items():
        expect(one(families, 'baton_tasks', state=state) == count, f'{state}: {families}')
        expect(one(families, 'baton_tasks_ended_total', state=state) == count, f'{state} ended')
    tasks = sum(ENDED.values())
    expect(sum(samples(families, 'baton_tasks').values()) == tasks, 'tasks in other states')
    for name, value in [
        ('baton_tasks_created_total', tasks),
        ('baton_tasks_stored', tasks),
        ('baton_turn_seconds_count', tasks),
        ('baton_stream_events_total', server.events),
        ('baton_idempotent_replays_total', 1),
        ('baton_turns_queued', 0),
    ]:
        expect(one(families, name) == value, f'{name} is {one(families, name)}, not {value}')
    expect(sum(samples(families, 'baton_store_errors_total').values()) == 0, 'the store failed')
    expect(samples(families, 'baton_refused_total') == {}, 'somebody was refused')
    expect(one(families, 'baton_store_commits_total') > 0, 'nothing was committed')


async def times_add_up(server: Server) -> None:
    """Each answered request is in a histogram once: in the one of its answer, or of its first event."""
    families = scraped(server)
    timed = samples(families, 'baton_request_seconds_count') | samples(families, 'baton_stream_first_event_seconds_count')
    asked: Counter[Labels] = Counter()
    for one_label, count in server.asked.items():
        pairs = dict(one_label)
        asked[labels(binding=pairs['binding'], operation=pairs['operation'])] += count
    expect(timed == dict(asked), f'timed {timed}, asked {dict(asked)}')
    for family in families:
        if family.type != 'histogram':
            continue
        ends = samples([family], f'{family.name}_count')
        for sample in family.samples:
            if sample.labels.get('le') == '+Inf':
                rest = labels(**{name: value for name, value in sample.labels.items() if name != 'le'})
                expect(sample.value == ends[rest], f'{family.name} ends at {sample.value}, not at {ends[rest]}')


async def parses_as_plain_text(server: Server) -> None:
    """The format for a reader without an `Accept` header."""
    text = server.metrics('*/*')
    older, newer = list(plain_text(text)), scraped(server)
    expect('# EOF' not in text, 'it ends like OpenMetrics')
    same = samples(older, 'baton_requests_total') == samples(newer, 'baton_requests_total')
    expect(same, 'the two formats tell different counts')
    types = {family.name: family.type for family in older}
    for name, kind in [('baton_requests', 'counter'), ('baton_tasks', 'gauge'), ('baton_request_seconds', 'histogram')]:
        expect(types.get(name) == kind, f'{name} is a {types.get(name)}')
    expect(one(older, 'baton_build_info', version=version(newer)) == 1, 'no version')
    expect(not any(kind in ('unknown', 'untyped') for kind in types.values()), f'{types}')


def version(families: list[Metric]) -> str:
    (found,) = samples(families, 'baton_build_info')
    return dict(found)['version']


async def names_follow_the_conventions(server: Server) -> None:
    for family in scraped(server):
        expect(family.name.startswith(('baton_', 'process_')), f'{family.name} has no prefix')
        expect(family.documentation.endswith('.'), f'{family.name} has no help')
        if 'seconds' in family.name or 'bytes' in family.name:
            expect(family.unit in ('seconds', 'bytes') and family.name.endswith(f'_{family.unit}'), f'{family}')


@asynccontextmanager
async def connected(url: str, _binding: str) -> AsyncIterator[Server]:
    yield Server(url)


if __name__ == '__main__':
    main(
        connected,
        [
            counts_requests_exactly,
            counts_what_requests_did,
            times_add_up,
            parses_as_plain_text,
            names_follow_the_conventions,
        ],
    )
