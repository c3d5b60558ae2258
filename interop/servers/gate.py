"""A gate before an agent: terminates TLS, wants a credential for everything but the card, and passes the rest on as it is.

    gate.py PORT AGENT_PORT CERTIFICATE KEY api-key|bearer SECRET

The card is the agent's own, with the gate's address and the credential that the gate wants added to those of the agent. It
speaks HTTP/1, so the card has no address of gRPC.
"""

import asyncio
import json
import ssl
import sys
import urllib.request

PORT, AGENT, CERTIFICATE, KEY, WAY, SECRET = sys.argv[1:]
HEADER = 'X-Gate-Key'
REFUSAL = (
    b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: %s\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n'
    b'Connection: close\r\n\r\nrefused\n'
)


def scheme(is_current: bool) -> dict:
    """The gate's own, in the words of 1.0 or of 0.3."""
    match (WAY, is_current):
        case ('api-key', True):
            return {'apiKeySecurityScheme': {'location': 'header', 'name': HEADER}}
        case ('api-key', False):
            return {'type': 'apiKey', 'in': 'header', 'name': HEADER}
        case (_, True):
            return {'httpAuthSecurityScheme': {'scheme': 'bearer'}}
        case _:
            return {'type': 'http', 'scheme': 'bearer'}


def changed(text: str) -> str:
    """The card with the gate's address and scheme."""
    for host in ('127.0.0.1', 'localhost'):
        text = text.replace(f'http://{host}:{AGENT}', f'https://127.0.0.1:{PORT}')
    card = json.loads(text)
    for list, kind in (('supportedInterfaces', 'protocolBinding'), ('additionalInterfaces', 'transport')):
        if list in card:
            card[list] = [each for each in card[list] if each[kind] != 'GRPC']
    # Some cards of 0.3 have the interfaces of 1.0, too; what they say of credentials is in the words of 0.3.
    is_current = 'url' not in card
    schemes = card.get('securitySchemes') or {}
    # An agent with users takes bearer tokens itself.
    name = 'bearer' if WAY == 'bearer' and 'bearer' in schemes else 'gate'
    schemes.setdefault(name, scheme(is_current))
    card['securitySchemes'] = schemes
    if is_current:
        wanted = card.get('securityRequirements') or [{'schemes': {}}]
        for each in wanted:
            each['schemes'].setdefault(name, {'list': []})
        card['securityRequirements'] = wanted
    else:
        wanted = card.get('security') or [{}]
        for each in wanted:
            each.setdefault(name, [])
        card['security'] = wanted
    return json.dumps(card)


def card(path: str, headers: dict[str, str]) -> bytes:
    passed_on = {name: value for name, value in headers.items() if name in ('accept', 'a2a-version')}
    request = urllib.request.Request(f'http://127.0.0.1:{AGENT}{path}', headers=passed_on)
    with urllib.request.urlopen(request) as answer:
        text = changed(answer.read().decode()).encode()
    head = f'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n'
    return head.encode() + text


def is_allowed(headers: dict[str, str]) -> bool:
    if WAY == 'api-key':
        return headers.get(HEADER.lower()) == SECRET
    return headers.get('authorization') == f'Bearer {SECRET}'


def without(lines: list[str], *names: str) -> list[str]:
    return [line for line in lines if line.partition(':')[0].lower() not in names]


async def pass_on(first: str, lines: list[str], body: bytes, writer: asyncio.StreamWriter) -> None:
    from_agent, to_agent = await asyncio.open_connection('127.0.0.1', int(AGENT))
    try:
        lines = [*without(lines, 'host', 'connection', HEADER.lower()), f'Host: 127.0.0.1:{AGENT}', 'Connection: close']
        to_agent.write('\r\n'.join([first, *lines, '', '']).encode('latin-1') + body)
        head = (await from_agent.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')[:-2]
        head = [head[0], *without(head[1:], 'connection', 'keep-alive'), 'Connection: close', '', '']
        writer.write('\r\n'.join(head).encode('latin-1'))
        # An event stream is passed on as it comes.
        while piece := await from_agent.read(65536):
            writer.write(piece)
            await writer.drain()
    finally:
        to_agent.close()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        first, *lines = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')[:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines)}
        body = await reader.readexactly(int(headers.get('content-length', 0)))
        path = first.split(' ')[1]
        if path.startswith('/.well-known/'):
            writer.write(await asyncio.to_thread(card, path, headers))
        elif is_allowed(headers):
            await pass_on(first, lines, body, writer)
        else:
            writer.write(REFUSAL % (b'Bearer' if WAY == 'bearer' else b'ApiKey'))
        await writer.drain()
    # Whoever only looks whether somebody listens, or leaves in the middle.
    except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def main() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE, KEY)
    server = await asyncio.start_server(serve, '127.0.0.1', int(PORT), ssl=context)
    await server.serve_forever()


asyncio.run(main())
