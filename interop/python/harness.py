"""What the check scripts share: running checks against one agent and printing the verdicts.

    python client_1_3.py http://127.0.0.1:3000 jsonrpc

Each script prints `ok <name>`, `FAIL <name>: <reason>` or `skip <name>: <why>` for each check, then
`N passed, N failed`; the exit code is 1 when a check failed. `note …` tells a figure that nothing depends on.
The agent has to obey the `tck-…` behaviours that Baton's demo agent obeys, and echo any other text. Names carry ids of
docs/mission-ledger.tsv, from which docs/mission.md is generated; docs/interop.md has a column for each name.
"""

import asyncio
import sys

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NoReturn, TypeVar


# A check that takes longer than this hangs; the slowest behaviour (`tck-long-running`) works for about 5 s.
CHECK_SECONDS = 40

T = TypeVar('T')
Check = Callable[[T], Awaitable[None]]


class Skipped(Exception):
    """The client cannot express what the check asks for."""


def expect(condition: bool, otherwise: str) -> None:
    """`assert` would be dropped under `python -O`."""
    if not condition:
        raise AssertionError(otherwise)


def skip(why: str) -> NoReturn:
    raise Skipped(why)


def note(what: str) -> None:
    """Prints something worth knowing that no verdict depends on."""
    print(f'note {what}', flush=True)


def cannot(name: str, why: str) -> Check:
    """A check that this client does not support, under any binding."""

    async def check(_: object) -> None:
        skip(why)

    check.__name__ = name
    return check


async def expect_error(call: Awaitable[object], wanted: Callable[[Exception], bool], otherwise: str) -> None:
    try:
        await call
    except Exception as error:  # noqa: BLE001 - clients raise what they like; `wanted` judges it
        expect(wanted(error), f'the error is {error!r}')
        return
    raise AssertionError(otherwise)


async def read_all(stream: AsyncIterator[T]) -> list[T]:
    return [event async for event in stream]


def main(connect: Callable[[str, str], AbstractAsyncContextManager[T]], checks: list[Check]) -> NoReturn:
    """`connect` opens the client for a base URL and a binding; its failure is the first check's failure."""
    if len(sys.argv) != 3:
        sys.exit(f'usage: {sys.argv[0]} BASE_URL BINDING')
    sys.exit(asyncio.run(_run(connect(sys.argv[1], sys.argv[2]), checks)))


async def _run(connection: AbstractAsyncContextManager[T], checks: list[Check]) -> int:
    tally = {'ok': 0, 'FAIL': 0, 'skip': 0}

    def report(verdict: str, name: str, reason: str = '') -> None:
        tally[verdict] += 1
        words = ' '.join(reason.split())
        print(f'{verdict} {name}: {words}' if words else f'{verdict} {name}', flush=True)

    try:
        async with asyncio.timeout(CHECK_SECONDS):
            agent = await connection.__aenter__()
    except Exception as error:  # noqa: BLE001 - without a connection no other check means anything
        report('FAIL', checks[0].__name__, _reason(error))
        for check in checks[1:]:
            report('FAIL', check.__name__, 'no connection')
    else:
        for check in checks:
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    await check(agent)
                report('ok', check.__name__)
            except Skipped as why:
                report('skip', check.__name__, str(why))
            except Exception as error:  # noqa: BLE001 - one failure must not hide the others
                report('FAIL', check.__name__, _reason(error))
        await connection.__aexit__(None, None, None)
    print(f'{tally["ok"]} passed, {tally["FAIL"]} failed', flush=True)
    return 1 if tally['FAIL'] else 0


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else repr(error)
