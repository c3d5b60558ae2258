//! P-03. Health and reflection of gRPC, called by clients that others generated from the .proto files of gRPC.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_protocol::wire::pb::Package;
use baton_server::store::StoreError;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Connections, Turn};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message as _;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest as Ask;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse as Answer;
use tonic_reflection::pb::v1::{ExtensionRequest, ServerReflectionRequest, ServerReflectionResponse};
use tonic_reflection::pb::v1alpha;

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::faults::FaultyStore;
use crate::fixtures::{Gate, agent_with};
use crate::grpc_client::{Grpc, channel};
use crate::grpc_raw::{framed, over};
use crate::harness::{TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::socket;

const OF_A2A: [&str; 2] = ["lf.a2a.v1.A2AService", "a2a.v1.A2AService"];
const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

async fn health(server: &TestServer) -> HealthClient<Channel> {
    HealthClient::new(channel(&server.url).await)
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn check(client: &mut HealthClient<Channel>, service: &str) -> Result<ServingStatus, Code> {
    let answer = client.check(about(service)).await.map_err(|status| status.code())?;
    Ok(answer.into_inner().status())
}

/// The next status of a watched service.
async fn next(
    watch: &mut tonic::Streaming<tonic_health::pb::HealthCheckResponse>,
) -> Result<Option<ServingStatus>, Status> {
    let next = tokio::time::timeout(TEST_TIMEOUT, watch.message()).await.expect("it goes on")?;
    Ok(next.map(|answer| answer.status()))
}

#[tokio::test]
async fn p03_health_is_asked_without_a_credential() {
    let server = serve(with_agent(obedient).grpc_health().authenticator(Arc::new(ByHeader))).await;
    let mut client = health(&server).await;
    for service in ["", HEALTH, OF_A2A[0], OF_A2A[1]] {
        assert_eq!(check(&mut client, service).await, Ok(ServingStatus::Serving), "{service}");
    }
    for service in ["lf.a2a.v1", "nobody.Knows", REFLECTION[0]] {
        assert_eq!(check(&mut client, service).await, Err(Code::NotFound), "{service}");
        let mut watch = client.watch(about(service)).await.unwrap().into_inner();
        assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::ServiceUnknown), "{service}");
    }
    let mut other = Grpc::connect(&server, Package::V1).await;
    let refused = other.call_raw("/grpc.health.v1.Health/List", Bytes::new()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "only health itself is for everybody");
}

#[tokio::test]
async fn p03_health_and_reflection_are_off_unless_they_are_switched_on() {
    let server = serve(with_agent(obedient)).await;
    assert_eq!(check(&mut health(&server).await, "").await, Err(Code::Unimplemented));
    let refused = ask(&server, vec![Ask::ListServices(String::new())]).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}

#[tokio::test]
async fn p03_health_follows_the_store_and_says_that_the_server_stops() {
    async fn wait(gate: Gate, turn: Turn) -> Result<(), AgentError> {
        gate.pass().await;
        turn.text_artifact("late", "late").await?;
        Ok(())
    }
    let (gate, store) = (Gate::new(), FaultyStore::over(Arc::new(MemoryStore::new())));
    let agent = with_agent(agent_with(&gate, wait)).store(store.clone()).drain(TEST_TIMEOUT);
    let server = serve(agent.grpc_health()).await;
    let mut client = health(&server).await;
    let mut watch = client.watch(about(OF_A2A[0])).await.unwrap().into_inner();
    assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::Serving));
    store.fail_writes(&StoreError::full("no room"));
    assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::NotServing));
    assert_eq!(check(&mut client, "").await, Ok(ServingStatus::NotServing), "as /readyz");
    store.recover();
    assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::Serving));

    let mut stream = server.stream("SendStreamingMessage", message("go"), None).await.ok().unwrap();
    assert_eq!(stream.next().await.unwrap().kind(), "task");
    let stopped = tokio::spawn(server.stop());
    assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::NotServing), "while it drains");
    gate.let_pass(1);
    assert_eq!(next(&mut watch).await.unwrap_err().code(), Code::Unavailable, "and then it ends");
    tokio::time::timeout(TEST_TIMEOUT, stopped).await.expect("it stops").unwrap();
}

#[tokio::test]
async fn p03_health_is_bounded() {
    let mut few = Connections::default();
    few.max_streams = 1;
    let server = serve(with_agent(obedient).connections(few).grpc_health()).await;
    let mut client = health(&server).await;
    let mut watch = client.watch(about("")).await.unwrap().into_inner();
    assert_eq!(next(&mut watch).await.unwrap(), Some(ServingStatus::Serving));
    let another = client.watch(about("")).await.unwrap_err();
    assert_eq!(another.code(), Code::Unavailable, "{another}");
    drop(watch);
    let long = client.check(about(&"x".repeat(2000))).await.unwrap_err();
    assert_eq!(long.code(), Code::ResourceExhausted, "{long}");
    let origin = format!("http://{}", socket::address(&server));
    for (headers, body, code) in [
        (&[("grpc-encoding", "gzip")][..], framed(0, b""), 12),
        (&[("grpc-timeout", "0n")], framed(0, b""), 4),
        (&[], framed(1, b""), 12),
        (&[], framed(0, b"\xff"), 3),
        (&[], Vec::new(), 3),
    ] {
        let io = socket::connect(&server).await;
        let answer = over(io, &origin, "/grpc.health.v1.Health/Check", headers, body).await;
        assert_eq!((answer.status, answer.code()), (200, code), "{answer:?}");
    }
}

/// All answers to these requests, in one stream.
async fn ask(server: &TestServer, asked: Vec<Ask>) -> Result<Vec<ServerReflectionResponse>, Status> {
    let request = |ask| ServerReflectionRequest { host: "h".to_owned(), message_request: Some(ask) };
    answers(server, asked.into_iter().map(request).collect()).await
}

async fn answers(
    server: &TestServer,
    requests: Vec<ServerReflectionRequest>,
) -> Result<Vec<ServerReflectionResponse>, Status> {
    let mut client = ServerReflectionClient::new(channel(&server.url).await);
    let mut request = Request::new(stream::iter(requests));
    request.metadata_mut().insert("x-owner", MetadataValue::from_static("me"));
    let answers = client.server_reflection_info(request).await?.into_inner();
    let all = answers.collect::<Vec<_>>();
    tokio::time::timeout(TEST_TIMEOUT, all).await.expect("it ends").into_iter().collect()
}

fn services(answer: &ServerReflectionResponse) -> Vec<String> {
    match &answer.message_response {
        Some(Answer::ListServicesResponse(list)) => list.service.iter().map(|it| it.name.clone()).collect(),
        other => panic!("no list: {other:?}"),
    }
}

/// The descriptors of an answer, which have to be complete.
fn pool(answer: &ServerReflectionResponse) -> DescriptorPool {
    let Some(Answer::FileDescriptorResponse(files)) = &answer.message_response else {
        panic!("no file: {answer:?}");
    };
    let decode = |file: &Vec<u8>| prost_reflect::prost_types::FileDescriptorProto::decode(&file[..]).unwrap();
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files.file_descriptor_proto.iter().map(decode)).unwrap();
    pool
}

fn refused(answer: &ServerReflectionResponse) -> i32 {
    match &answer.message_response {
        Some(Answer::ErrorResponse(error)) => error.error_code,
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn p03_reflection_tells_each_service_with_all_that_it_needs() {
    for health_too in [false, true] {
        let agent = with_agent(obedient).grpc_reflection();
        let server = serve(if health_too { agent.grpc_health() } else { agent }).await;
        let list = ask(&server, vec![Ask::ListServices("*".to_owned())]).await.unwrap();
        let listed = services(&list[0]);
        let mut expected: BTreeSet<&str> = OF_A2A.into_iter().chain(REFLECTION).collect();
        expected.extend(health_too.then_some(HEALTH));
        assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
        assert_eq!(list[0].valid_host, "h");
        assert_eq!(list[0].original_request.as_ref().unwrap().host, "h");
        for service in &listed {
            let answer = &ask(&server, vec![Ask::FileContainingSymbol(service.clone())]).await.unwrap()[0];
            let described = pool(answer).get_service_by_name(service).expect("the file has the service");
            assert!(described.methods().len() > 0, "{service}");
        }
        let of_health = &ask(&server, vec![Ask::FileContainingSymbol(HEALTH.to_owned())]).await.unwrap()[0];
        assert!(health_too || refused(of_health) == 5);
    }
}

#[tokio::test]
async fn p03_reflection_answers_one_request_after_the_other() {
    let server = serve(with_agent(obedient).grpc_reflection()).await;
    let symbols = [
        "lf.a2a.v1.A2AService.SendMessage",
        "lf.a2a.v1.Task",
        "lf.a2a.v1.TaskState",
        "google.protobuf.Timestamp",
        "a2a.v1.Task",
    ];
    let mut asked: Vec<_> = symbols.map(|it| Ask::FileContainingSymbol(it.to_owned())).to_vec();
    asked.push(Ask::FileByFilename("lf/a2a/v1/a2a.proto".to_owned()));
    asked.push(Ask::AllExtensionNumbersOfType("lf.a2a.v1.Task".to_owned()));
    let found = asked.len();
    let unknown = ExtensionRequest { containing_type: "lf.a2a.v1.Task".to_owned(), extension_number: 9 };
    asked.extend([
        Ask::FileByFilename("/etc/passwd".to_owned()),
        Ask::FileByFilename(String::new()),
        Ask::FileContainingSymbol("lf.a2a.v1.Nothing".to_owned()),
        Ask::FileContainingExtension(unknown),
        Ask::AllExtensionNumbersOfType("lf.a2a.v1.TaskState".to_owned()),
    ]);
    let answers = ask(&server, asked).await.unwrap();
    for (answer, symbol) in answers.iter().zip(symbols) {
        let pool = pool(answer);
        let (service, method) = symbol.rsplit_once('.').unwrap();
        let is_known = pool.get_message_by_name(symbol).is_some()
            || pool.get_enum_by_name(symbol).is_some()
            || pool.get_service_by_name(service).is_some_and(|it| it.methods().any(|it| it.name() == method));
        assert!(is_known, "{symbol}");
    }
    assert!(pool(&answers[5]).get_service_by_name(OF_A2A[0]).is_some());
    assert!(matches!(&answers[6].message_response, Some(Answer::AllExtensionNumbersResponse(none))
        if none.extension_number.is_empty()));
    assert!(answers[found..].iter().all(|answer| refused(answer) == 5), "{answers:?}");
    let nothing = self::answers(&server, vec![ServerReflectionRequest::default()]).await.unwrap();
    assert_eq!(refused(&nothing[0]), 3);
}

#[tokio::test]
async fn p03_the_older_name_of_reflection_is_known() {
    let server = serve(with_agent(obedient).grpc_reflection()).await;
    let channel = channel(&server.url).await;
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let ask = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let request = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(ask) };
    let mut answers = client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    match answers.message().await.unwrap().unwrap().message_response {
        Some(v1alpha::server_reflection_response::MessageResponse::ListServicesResponse(list)) => {
            assert!(list.service.iter().any(|service| service.name == OF_A2A[0]));
        }
        other => panic!("no list: {other:?}"),
    }
}

#[tokio::test]
async fn p05_reflection_needs_the_credential_that_calls_need() {
    let server = serve(with_agent(obedient).grpc_reflection().authenticator(Arc::new(ByHeader))).await;
    let mut client = ServerReflectionClient::new(channel(&server.url).await);
    let none = stream::iter(Vec::<ServerReflectionRequest>::new());
    let refused = client.server_reflection_info(none).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    ask(&server, vec![Ask::ListServices(String::new())]).await.unwrap();
}

#[tokio::test]
async fn p03_reflection_is_bounded() {
    let server = serve(with_agent(obedient).grpc_reflection()).await;
    let long = ask(&server, vec![Ask::FileByFilename("x".repeat(5000))]).await.unwrap_err();
    assert_eq!(long.code(), Code::ResourceExhausted, "{long}");
    let many = (0..50).map(|_| Ask::FileByFilename("x".repeat(4000))).collect();
    let many = ask(&server, many).await.unwrap_err();
    assert_eq!(many.code(), Code::ResourceExhausted, "{many}");
    let origin = format!("http://{}", socket::address(&server));
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    for (headers, body, code) in [
        (&[("grpc-encoding", "gzip")][..], framed(0, b""), 12),
        (&[("grpc-timeout", "soon")], framed(0, b""), 3),
        (&[("grpc-timeout", "0n")], framed(0, b""), 4),
        (&[], framed(1, b""), 12),
        (&[], framed(0, b"\xff"), 3),
        (&[], vec![0, 0, 0, 0, 9, 1], 3),
        (&[], Vec::new(), 0),
    ] {
        let io = socket::connect(&server).await;
        let answer = over(io, &origin, path, headers, body).await;
        assert_eq!((answer.status, answer.code()), (200, code), "{answer:?}");
    }
}

/// A client that opens a stream and says nothing does not keep it.
#[tokio::test]
async fn p03_a_reflection_stream_without_requests_ends() {
    let server = serve(with_agent(obedient).grpc_reflection()).await;
    let mut client = ServerReflectionClient::new(channel(&server.url).await);
    let silent = client.server_reflection_info(stream::pending()).await;
    let ended = match silent {
        Ok(answers) => {
            let mut answers = answers.into_inner();
            tokio::time::timeout(TEST_TIMEOUT, answers.message()).await.expect("it ends").unwrap_err()
        }
        Err(status) => status,
    };
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
}
