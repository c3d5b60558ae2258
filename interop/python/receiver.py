"""A receiver of webhooks on this machine, which keeps what it got."""

import asyncio
import time

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


# Calls arrive within milliseconds; whoever waits this long waits in vain.
PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Hook:
    """A webhook to register."""

    url: str
    token: str
    credentials: str


@dataclass(frozen=True)
class Call:
    at: float
    """By the clock `time.monotonic`."""
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name]
        if len(values) > 1:
            raise AssertionError(f'{name} comes {len(values)} times')
        return values[0] if values else None


class Receiver:
    """Answers every call with 204."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Call]] = {}
        self._changed = asyncio.Condition()
        self._url = ''
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator['Receiver']:
        receiver = cls()
        server = await asyncio.start_server(receiver._serve, '127.0.0.1', 0)
        receiver._url = f'http://127.0.0.1:{server.sockets[0].getsockname()[1]}'
        try:
            yield receiver
        finally:
            server.close()
            # Each task reads the end of its connection then.
            for writer in receiver._open.values():
                writer.close()
            await asyncio.gather(*receiver._open)

    def hook(self, token: str = '', credentials: str = '') -> Hook:
        """A webhook with an address of its own."""
        path = f'/{len(self._calls) + 1}'
        self._calls[path] = []
        return Hook(self._url + path, token, credentials)

    def calls(self, hook: Hook) -> list[Call]:
        return list(self._calls[hook.url.removeprefix(self._url)])

    async def until(self, hook: Hook, is_enough: Callable[[list[Call]], bool]) -> list[Call]:
        """Waits until the calls of a webhook, at least one, are enough."""

        def done() -> bool:
            calls = self.calls(hook)
            return bool(calls) and is_enough(calls)

        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
                await self._changed.wait_for(done)
        except TimeoutError:
            last = [call.body.decode(errors='replace') for call in self.calls(hook)[-1:]]
            raise AssertionError(f'{len(self.calls(hook))} calls came, the last is {last}') from None
        return self.calls(hook)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._open[task] = writer
        try:
            while True:
                head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1')
                request, *lines = head.rstrip().split('\r\n')
                pairs = [line.split(':', 1) for line in lines]
                headers = [(name.strip().lower(), value.strip()) for name, value in pairs]
                body = await reader.readexactly(int(dict(headers).get('content-length', '0')))
                method, path, _ = request.split(' ')
                if method == 'POST' and path in self._calls:
                    async with self._changed:
                        self._calls[path].append(Call(time.monotonic(), headers, body))
                        self._changed.notify_all()
                writer.write(b'HTTP/1.1 204 No Content\r\n\r\n')
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The server closes connections that it no longer needs.
        finally:
            writer.close()
            del self._open[task]
