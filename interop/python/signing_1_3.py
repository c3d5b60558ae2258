"""Signed cards with the Python `a2a-sdk` 1.3.0: it verifies those of Baton, and signs one that Baton verifies.

    SIGNED_CARDS=folder python signing_1_3.py http://127.0.0.1:3000 cards

`cargo xtask interop --signing` starts the agents, and verifies what is written into the folder. `OTHER_AGENTS` are agents
with other cards: one that has security requirements, one with text that is not ASCII.
"""

import json
import os

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from a2a.client import A2ACardResolver
from a2a.client.card_resolver import parse_agent_card
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.signing import InvalidSignaturesError, create_agent_card_signer, create_signature_verifier
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from google.protobuf.json_format import MessageToDict
from harness import expect, expect_error, main
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm


WELL_KNOWN = '/.well-known/agent-card.json'
ALGORITHMS = ['ES256', 'EdDSA']


class Cards:
    def __init__(self, http: httpx.AsyncClient, agents: list[str], keys: dict[str, PyJWK]) -> None:
        self.http, self.agents, self.keys = http, agents, keys
        self.asked: list[tuple[str | None, str | None]] = []
        self.verify = create_signature_verifier(self.key, ALGORITHMS)

    def key(self, key_id: str | None, url: str | None) -> PyJWK:
        self.asked.append((key_id, url))
        return self.keys[key_id or '']

    async def document(self, agent: str, version: str | None) -> dict[str, Any]:
        headers = {'A2A-Version': version} if version else {}
        answer = await self.http.get(agent + WELL_KNOWN, headers=headers)
        return answer.raise_for_status().json()


@asynccontextmanager
async def connect(url: str, _binding: str) -> AsyncIterator[Cards]:
    async with httpx.AsyncClient(timeout=20) as http:
        published = (await http.get(f'{url}/.well-known/jwks.json')).raise_for_status().json()
        keys = {key['kid']: PyJWK(key) for key in published['keys']}
        yield Cards(http, [url, *os.environ['OTHER_AGENTS'].split()], keys)


async def s02_verifies_signed_cards(cards: Cards) -> None:
    for agent in cards.agents:
        resolver = A2ACardResolver(cards.http, agent)
        card = await resolver.get_agent_card(signature_verifier=cards.verify)
        expect(len(card.signatures) >= 2, f'{len(card.signatures)} signatures')
        cards.verify(parse_agent_card(await cards.document(agent, '1.0')))
    expect(all(url and url.endswith('/.well-known/jwks.json') for _, url in cards.asked), f'{cards.asked}')


async def s02_refuses_a_signed_card_that_was_changed(cards: Cards) -> None:
    changes: list[Callable[[dict[str, Any]], None]] = [
        lambda card: card.update(name='another'),
        lambda card: card['supportedInterfaces'][0].update(url='https://evil.example/'),
        lambda card: card['capabilities'].update(streaming=not card['capabilities']['streaming']),
        lambda card: card['skills'][0]['tags'].append('more'),
    ]
    for agent in cards.agents:
        for version in [None, '1.0']:
            for change in changes:
                document = await cards.document(agent, version)
                change(document)

                async def verified(document: dict[str, Any] = document) -> None:
                    cards.verify(parse_agent_card(document))

                await expect_error(
                    verified(), lambda error: isinstance(error, InvalidSignaturesError), 'a changed card is verified'
                )


async def p09_signs_cards_for_baton(cards: Cards) -> None:
    """What Baton makes of the files is checked after this script."""
    folder = Path(os.environ['SIGNED_CARDS'])
    pairs = {
        'ES256': (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
        'EdDSA': (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
    }
    plain = await cards.document(cards.agents[0], '1.0')
    plain.pop('signatures')
    texts = {'ascii': 'Signed by the SDK', 'other': 'Von Zoë signiert ✍ 😀', 'empty': ''}
    for name, text in texts.items():
        for algorithm, (private, _) in pairs.items():
            header = {'kid': f'python-{algorithm}', 'alg': algorithm, 'jku': None, 'typ': 'JOSE'}
            card = parse_agent_card(json.loads(json.dumps(plain)))
            card.description = text
            pem = private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            signed: AgentCard = create_agent_card_signer(pem, header)(card)
            # The writer of protobuf leaves out what is empty; Baton requires a description.
            document = {'description': '', **MessageToDict(signed)}
            (folder / f'python.{name}.{algorithm}.json').write_text(json.dumps(document))
    for algorithm, (private, kind) in pairs.items():
        key = json.loads(kind.to_jwk(private.public_key()))
        key |= {'kid': f'python-{algorithm}', 'use': 'sig', 'alg': algorithm}
        (folder / f'python.{algorithm}.keys.json').write_text(json.dumps({'keys': [key]}))


if __name__ == '__main__':
    main(connect, [s02_verifies_signed_cards, s02_refuses_a_signed_card_that_was_changed, p09_signs_cards_for_baton])
