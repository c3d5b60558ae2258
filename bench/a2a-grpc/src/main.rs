//! The echo agent on `a2a-server-lf`, over gRPC by `a2a-grpc`, both as published, with mimalloc.

use std::process::ExitCode;
use std::sync::Arc;

use a2a_grpc::GrpcHandler;
use a2a_pb::proto::a2a_service_server::A2aServiceServer;
use bench_host::Host;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    bench_host::run(None, serve)
}

async fn serve(host: Host) -> Result<(), String> {
    let (address, port) = host.address();
    let address = format!("{address}:{port}").parse().map_err(|_| "a strange address")?;
    let service = A2aServiceServer::new(GrpcHandler::new(Arc::new(echo_a2a_server_lf::handler())));
    let server = tonic::transport::Server::builder().add_service(service);
    let served = tokio::spawn(server.serve(address)).await;
    served.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
