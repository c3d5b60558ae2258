"""The checks with credentials, for every version of the Python SDK; `auth_1_3.py` and `auth_0_3.py` run them.

    CREDENTIALS=credentials.json python auth_1_3.py https://127.0.0.1:3000 jsonrpc

`cargo xtask interop --auth` starts the agent and an identity provider, and writes the file. API keys and tokens go the
SDK's own way: an `AuthInterceptor` that asks a `CredentialService` for what the card requires. HTTP basic, digest and
certificates are left to httpx, whose client the SDK takes; over gRPC to a channel of `channels.py`.
"""

import base64
import json
import os
import ssl

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

import httpx

from channels import Channels
from harness import CHECK_SECONDS, expect, expect_error, main, skip


class Session(Protocol):
    """The SDK's client with one credential."""

    async def send(self, text: str) -> str:
        """Returns the id of the completed task."""

    async def stream(self, text: str) -> str:
        """Reads the stream to the task's completion; returns the task's id."""

    async def get(self, task_id: str) -> str: ...

    async def list(self) -> list[str] | None:
        """The ids of the caller's tasks; `None` if the SDK has no such operation."""

    async def extended_card(self) -> str:
        """The description on the card for callers that are known."""


class Sdk(Protocol):
    """What differs between the SDK's versions."""

    # Of the SDK: takes a CredentialService.
    interceptor: Callable[[Any], Any]
    credential_service: type
    # Of the card's interfaces.
    is_grpc: bool

    async def card(self, http: httpx.AsyncClient, base_url: str) -> Any: ...

    def scheme_kinds(self, card: Any) -> dict[str, str]:
        """For each scheme of the card what it is."""

    def token_url(self, card: Any) -> str:
        """Where the card says that tokens are issued to clients."""

    def session(
        self, card: Any, http: httpx.AsyncClient, channels: Channels, interceptors: list[Any]
    ) -> Session: ...

    def has_status(self, status: int) -> Callable[[Exception], bool]: ...

    def is_not_found(self, error: Exception) -> bool: ...

    def is_network(self, error: Exception) -> bool:
        """No connection was made."""


class Agent:
    """One agent under test, and the credentials for it."""

    def __init__(self, sdk: Sdk, base_url: str, card: Any) -> None:
        self.sdk = sdk
        self.base_url = base_url
        self.card = card

    @asynccontextmanager
    async def session(
        self,
        credentials: dict[str, str] | None = None,
        user: list[str] | None = None,
        digest: list[str] | None = None,
        ca: str = 'ca',
        certificate: str | None = None,
    ) -> AsyncIterator[Session]:
        """`credentials` by the scheme's name."""

        class Mine(self.sdk.credential_service):
            async def get_credentials(self, security_scheme_name: str, context: object) -> str | None:
                return (credentials or {}).get(security_scheme_name)

        auth = httpx.BasicAuth(*user) if user else httpx.DigestAuth(*digest) if digest else None
        metadata = {'authorization': f'Basic {base64.b64encode(":".join(user).encode()).decode()}'} if user else {}
        async with http_client(ca, certificate, auth) as http:
            channels = Channels(GIVEN_AT.parent, ca, certificate, metadata)
            yield self.sdk.session(self.card, http, channels, [self.sdk.interceptor(Mine())])
            await channels.close()

    def name_of(self, kind: str) -> str:
        """The name of the card's scheme of that kind."""
        return next(name for name, found in self.sdk.scheme_kinds(self.card).items() if found == kind)

    async def token(self, scope: str = 'tasks') -> str:
        """From the identity provider, by client credentials."""
        client = GIVEN['oauth']
        form = {'grant_type': 'client_credentials', 'resource': client['resource'], 'scope': scope}
        async with http_client() as http:
            answer = await http.post(
                self.sdk.token_url(self.card), data=form, auth=(client['id'], client['secret'])
            )
        expect(answer.status_code == 200, f'no token: {answer.text}')
        return answer.json()['access_token']


GIVEN_AT = Path(os.environ['CREDENTIALS'])
GIVEN = json.loads(GIVEN_AT.read_text())


def beside(name: str) -> str:
    return str(GIVEN_AT.parent / name)


def http_client(
    ca: str = 'ca', certificate: str | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    trusted = ssl.create_default_context(cafile=beside(f'{ca}.pem'))
    if certificate:
        trusted.load_cert_chain(beside(f'{certificate}.pem'), beside(f'{certificate}.key'))
    return httpx.AsyncClient(verify=trusted, timeout=CHECK_SECONDS, auth=auth)


async def use(session: Session) -> None:
    """Everything that a caller does with tasks."""
    sent = await session.send('hello')
    expect(await session.get(sent) == sent, 'another task came back')
    streamed = await session.stream('tck-stream-basic hi')
    listed = await session.list()
    expect(listed is None or {sent, streamed} <= set(listed), 'own tasks are not listed')


async def p05_reads_the_schemes_of_the_card(agent: Agent) -> None:
    kinds = sorted(agent.sdk.scheme_kinds(agent.card).values())
    expect(kinds == ['apiKey', 'basic', 'bearer', 'digest', 'mutualTLS', 'oauth2'], f'the kinds are {kinds}')


async def p05_api_key(agent: Agent) -> None:
    async with agent.session({agent.name_of('apiKey'): GIVEN['apiKey']}) as session:
        await use(session)


async def p05_bearer_token(agent: Agent) -> None:
    async with agent.session({agent.name_of('bearer'): GIVEN['tokens']['ann']}) as session:
        await use(session)


async def p05_oauth_client_credentials(agent: Agent) -> None:
    async with agent.session({agent.name_of('oauth2'): await agent.token()}) as session:
        await use(session)
        task = await session.send('for the next token')
    async with agent.session({agent.name_of('oauth2'): await agent.token()}) as session:
        expect(await session.get(task) == task, 'another token of the same client does not see the task')


async def p05_http_basic(agent: Agent) -> None:
    async with agent.session(user=GIVEN['basic']) as session:
        await use(session)


async def p05_http_digest(agent: Agent) -> None:
    if agent.sdk.is_grpc:
        skip('gRPC libraries do not answer challenges, so they have no digest authentication')
    async with agent.session(digest=GIVEN['digest']) as session:
        await use(session)


async def p05_client_certificate(agent: Agent) -> None:
    async with agent.session(certificate='build') as session:
        await use(session)


async def p05_certificates_of_strangers_are_refused(agent: Agent) -> None:
    """On both sides: the client does not know the server's authority, then the server not the client's."""
    for options in ({'ca': 'stranger'}, {'certificate': 'intruder'}):
        async with agent.session({agent.name_of('apiKey'): GIVEN['apiKey']}, **options) as session:
            await expect_error(session.send('hello'), agent.sdk.is_network, f'a connection with {options}')


async def p05_extended_card(agent: Agent) -> None:
    async with agent.session({agent.name_of('bearer'): GIVEN['tokens']['ann']}) as session:
        description = await session.extended_card()
        expect(description == GIVEN['extended'], f'the description is {description}')


async def s16_refuses_without_credential(agent: Agent) -> None:
    refused = agent.sdk.has_status(401)
    async with agent.session() as session:
        await expect_error(session.send('hello'), refused, 'a send without credential')
        await expect_error(session.stream('hello'), refused, 'a stream without credential')
        await expect_error(session.get('some-task'), refused, 'a get without credential')


async def s16_refuses_wrong_credentials(agent: Agent) -> None:
    head, claims, signature = (await agent.token()).split('.')
    wrong = {'apiKey': 'not-the-key-0123', 'bearer': 'not-a-token-0123', 'oauth2': f'{head}.{claims}.x{signature}'}
    for kind, credential in wrong.items():
        async with agent.session({agent.name_of(kind): credential}) as session:
            await expect_error(session.send('hello'), agent.sdk.has_status(401), f'a send with a wrong {kind}')
    user, _ = GIVEN['basic']
    async with agent.session(user=[user, 'not the password']) as session:
        await expect_error(session.send('hello'), agent.sdk.has_status(401), 'a send with a wrong password')


async def s16_refuses_a_missing_scope(agent: Agent) -> None:
    async with agent.session({agent.name_of('oauth2'): await agent.token(scope='')}) as session:
        await expect_error(session.send('hello'), agent.sdk.has_status(403), 'a send without the scope')


async def s16_foreign_tasks_are_not_found(agent: Agent) -> None:
    bearer = agent.name_of('bearer')
    async with agent.session({bearer: GIVEN['tokens']['ann']}) as ann:
        task = await ann.send('private')
    async with agent.session({bearer: GIVEN['tokens']['bob']}) as bob:
        await expect_error(bob.get(task), agent.sdk.is_not_found, 'a foreign task was found')
        listed = await bob.list()
        expect(listed is None or task not in listed, 'a foreign task is listed')


@asynccontextmanager
async def _connect(sdk: Callable[[str], Sdk], base_url: str, binding: str) -> AsyncIterator[Agent]:
    chosen = sdk(binding)
    async with http_client() as http:
        card = await chosen.card(http, base_url)
    yield Agent(chosen, base_url, card)


def run(sdk: Callable[[str], Sdk]) -> NoReturn:
    """`sdk` makes the adapter for a binding."""
    main(
        partial(_connect, sdk),
        [
            p05_reads_the_schemes_of_the_card,
            p05_api_key,
            p05_bearer_token,
            p05_oauth_client_credentials,
            p05_http_basic,
            p05_http_digest,
            p05_client_certificate,
            p05_certificates_of_strangers_are_refused,
            p05_extended_card,
            s16_refuses_without_credential,
            s16_refuses_wrong_credentials,
            s16_refuses_a_missing_scope,
            s16_foreign_tasks_are_not_found,
        ],
    )
