"""The client of `a2a-sdk` 1.3.0, as its documentation shows it: reads a card, or reads it and sends a message.

    python client.py card URL
    python client.py send URL TEXT
"""

import asyncio
import sys
import uuid

import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest


async def main() -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(httpx_client=http, base_url=sys.argv[2]).get_agent_card()
        if sys.argv[1] == 'card':
            print(card)
            return
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        request = SendMessageRequest(
            message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=sys.argv[3])]),
            configuration=SendMessageConfiguration(return_immediately=True),
        )
        async for event in client.send_message(request):
            print(event)


asyncio.run(main())
