//! Switches gRPC on.

use super::Builder;
use crate::card::GrpcAddress;

impl Builder {
    /// Serves gRPC on the port of everything else, over HTTP/2 with and without TLS: the services of 1.0 and of 0.3. The cards
    /// tell its address as [`Mount::grpc_address`](crate::Mount::grpc_address) says. An agent with a
    /// [path](crate::Mount::path) of its own is not reached, since calls name no path; one with a tenant is.
    pub fn grpc(mut self) -> Self {
        self.grpc = true;
        self
    }

    /// [`grpc`](Self::grpc), with `grpc.health.v1.Health`, which says what `/readyz` says. Everybody may call it, as they may
    /// `/readyz`.
    pub fn grpc_health(mut self) -> Self {
        (self.grpc, self.grpc_health) = (true, true);
        self
    }

    /// [`grpc`](Self::grpc), with `grpc.reflection.v1` and `v1alpha`, for callers who are authenticated as for any other call.
    pub fn grpc_reflection(mut self) -> Self {
        (self.grpc, self.grpc_reflection) = (true, true);
        self
    }

    /// How the card of the agent mounted last tells the address of gRPC: [`Mount::grpc_address`](crate::Mount::grpc_address).
    pub fn grpc_address(self, form: GrpcAddress) -> Self {
        self.last(|mount| mount.grpc_address(form))
    }
}
