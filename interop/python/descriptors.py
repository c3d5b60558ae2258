"""Baton's .proto files and golden messages, held against the official ones.

    python descriptors.py lf.a2a.v1

Needs a2a-sdk: 1.3.0 for the package of 1.0, 0.3.26 for `a2a.v1`, that of 0.3. Compares every message, enum and method with the
descriptors inside the SDK, in both directions. Then the official library reads the golden files of
`fixtures/wire/grpc` and the JSON that they were made from: both must be the same message. It prints what differs, and the
lines with verdicts that `harness.py` describes; `cargo xtask interop` runs it with both packages.
"""

import sys

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message import Message
from harness import note


ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / 'crates/baton-protocol/src/wire/pb/generated/descriptors.bin'
GOLDEN = ROOT / 'fixtures/wire'

Field = descriptor_pb2.FieldDescriptorProto

# The message of each golden folder, in 1.0 and in 0.3. Messages and parts are inside an item of a stream.
TYPES = {
    'message': ('StreamResponse', 'StreamResponse'),
    'part': ('StreamResponse', 'StreamResponse'),
    'task': ('Task', 'Task'),
    'stream': ('StreamResponse', 'StreamResponse'),
    'status-update': ('StreamResponse', 'StreamResponse'),
    'artifact-update': ('StreamResponse', 'StreamResponse'),
    'card': ('AgentCard', 'AgentCard'),
    'send-response': ('SendMessageResponse', 'SendMessageResponse'),
    'list-response': ('ListTasksResponse', None),
    'push-config': ('TaskPushNotificationConfig', 'TaskPushNotificationConfig'),
    'push-config-list': ('ListTaskPushNotificationConfigsResponse', 'ListTaskPushNotificationConfigResponse'),
    'request/send-message': ('SendMessageRequest', 'SendMessageRequest'),
    'request/send-streaming-message': ('SendMessageRequest', 'SendMessageRequest'),
    'request/get-task': ('GetTaskRequest', 'GetTaskRequest'),
    'request/list-tasks': ('ListTasksRequest', None),
    'request/cancel-task': ('CancelTaskRequest', 'CancelTaskRequest'),
    'request/subscribe-to-task': ('SubscribeToTaskRequest', 'TaskSubscriptionRequest'),
    'request/create-push-config': ('TaskPushNotificationConfig', 'CreateTaskPushNotificationConfigRequest'),
    'request/get-push-config': (
        'GetTaskPushNotificationConfigRequest',
        'GetTaskPushNotificationConfigRequest',
    ),
    'request/list-push-configs': (
        'ListTaskPushNotificationConfigsRequest',
        'ListTaskPushNotificationConfigRequest',
    ),
    'request/delete-push-config': (
        'DeleteTaskPushNotificationConfigRequest',
        'DeleteTaskPushNotificationConfigRequest',
    ),
    'request/get-extended-card': ('GetExtendedAgentCardRequest', 'GetAgentCardRequest'),
}


def official() -> ModuleType:
    """The generated module of the SDK that is installed: that of its own version, not of its layer for older ones."""
    for name in ('a2a.types.a2a_pb2', 'a2a.grpc.a2a_pb2'):
        try:
            return import_module(name)
        except ImportError:
            continue
    sys.exit('no descriptors found: a2a-sdk is not installed')


def facts(file: descriptor_pb2.FileDescriptorProto) -> set[str]:
    """One line for each thing that is visible on the wire, or in its JSON."""
    return set(messages('', file.message_type)) | set(enums_and_methods(file))


def messages(prefix: str, found: list[descriptor_pb2.DescriptorProto]) -> Iterator[str]:
    for message in found:
        name = prefix + message.name
        yield f'message {name}'
        for field in message.field:
            oneof = message.oneof_decl[field.oneof_index].name if field.HasField('oneof_index') else '-'
            yield ' '.join([
                f'field {name}.{field.name} = {field.number}',
                Field.Label.Name(field.label),
                Field.Type.Name(field.type),
                field.type_name or '-',
                'optional' if field.proto3_optional else f'oneof {oneof}',
                f'json {field.json_name}',
            ])
        yield from messages(f'{name}.', message.nested_type)


def enums_and_methods(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    for enum in file.enum_type:
        for value in enum.value:
            yield f'value {enum.name}.{value.name} = {value.number}'
    for service in file.service:
        for method in service.method:
            streams = f'{method.client_streaming} {method.server_streaming}'
            yield f'method {service.name}.{method.name} {method.input_type} {method.output_type} {streams}'


def compare_descriptors(theirs: ModuleType) -> int:
    all_ours = descriptor_pb2.FileDescriptorSet.FromString(OURS.read_bytes())
    ours = next(file for file in all_ours.file if file.package == theirs.DESCRIPTOR.package)
    expected = descriptor_pb2.FileDescriptorProto()
    theirs.DESCRIPTOR.CopyToProto(expected)
    missing, extra = facts(expected) - facts(ours), facts(ours) - facts(expected)
    for fact in sorted(missing):
        print(f'only in the SDK:  {fact}')
    for fact in sorted(extra):
        print(f'only in Baton:    {fact}')
    note(f'{len(facts(expected) & facts(ours))} facts agree')
    return len(missing) + len(extra)


def compare_golden(theirs: ModuleType) -> int:
    is_v1 = theirs.DESCRIPTOR.package == 'lf.a2a.v1'
    folder = 'v1' if is_v1 else 'v0_3_rest'
    lines = (GOLDEN / 'grpc' / f'{folder}.txt').read_text().splitlines()
    different = 0
    for line in lines:
        name, _, encoded = line.partition(' ')
        kind, case = name.rsplit('/', 1)
        text = (GOLDEN / folder / kind / f'{case}.json').read_text()
        if kind == 'part':
            parts = 'parts' if is_v1 else 'content'
            text = f'{{"messageId":"m","role":"ROLE_USER","{parts}":[{text}]}}'
        if kind in ('message', 'part'):
            text = f'{{"message":{text}}}'
        message: type[Message] = getattr(theirs, TYPES[kind][0 if is_v1 else 1])
        if json_format.Parse(text, message()) != message.FromString(bytes.fromhex(encoded)):
            print(f'{folder}/{name}: the JSON and the bytes are not the same message')
            different += 1
    note(f'{len(lines) - different} of {len(lines)} golden messages are the same as JSON and as bytes')
    return different


def report(name: str, different: int) -> bool:
    print(f'FAIL {name}: {different} differences' if different else f'ok {name}')
    return different == 0


if __name__ == '__main__':
    sdk = official()
    if [sdk.DESCRIPTOR.package] != sys.argv[1:]:
        sys.exit(f'the SDK that is installed has {sdk.DESCRIPTOR.package}')
    agree = report('p03_messages_are_those_of_the_official_package', compare_descriptors(sdk))
    agree &= report('p03_golden_messages_are_read_as_their_json', compare_golden(sdk))
    sys.exit(0 if agree else 1)
