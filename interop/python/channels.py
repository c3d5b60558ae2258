"""Channels of gRPC with certificates and credentials, for the checks with credentials."""

import asyncio

from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc


class Channels:
    """For the SDK's `grpc_channel_factory`: opens channels with TLS, and closes them."""

    def __init__(self, folder: Path, ca: str, certificate: str | None, metadata: dict[str, str]) -> None:
        """Certificates and keys are files in the folder, by their names; `metadata` comes with every call."""
        pem = [(folder / f'{certificate}.{kind}').read_bytes() for kind in ('key', 'pem')] if certificate else []
        self.tls = grpc.ssl_channel_credentials((folder / f'{ca}.pem').read_bytes(), *pem)
        self.metadata = metadata
        self.asked: Callable[[], Awaitable[dict[str, str]]] | None = None
        self.open: list[grpc.aio.Channel] = []

    def __call__(self, address: str) -> grpc.aio.Channel:
        credentials = grpc.composite_channel_credentials(self.tls, grpc.metadata_call_credentials(self._add))
        self.open.append(grpc.aio.secure_channel(address, credentials))
        return self.open[-1]

    def _add(self, _: object, done: grpc.AuthMetadataPluginCallback) -> None:
        """gRPC runs it in a thread of its own."""
        metadata = self.metadata | (asyncio.run(self.asked()) if self.asked else {})
        done([(name.lower(), value) for name, value in metadata.items()], None)

    async def close(self) -> None:
        for channel in self.open:
            await channel.close()
