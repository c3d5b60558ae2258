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

    /// How the card of the agent mounted last tells the address of gRPC: [`Mount::grpc_address`](crate::Mount::grpc_address).
    pub fn grpc_address(self, form: GrpcAddress) -> Self {
        self.last(|mount| mount.grpc_address(form))
    }
}
