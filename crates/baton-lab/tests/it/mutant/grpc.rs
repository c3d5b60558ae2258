//! gRPC: its own port, its own framing; the messages are read and written by prost-reflect.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::HeaderMap;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::ask::Outcome;
use super::door::{Arrived, MOST};
use super::fault::{Place, Quirk, Rule, What};
use super::feed::Feed;
use super::handle::handle;
use super::refusal::{Kind, Refusal};
use super::spell;

/// The methods of 1.0 and 0.3.
const METHODS: &[(Operation, &str, &str)] = &[
    (Operation::SendMessage, "SendMessage", "SendMessage"),
    (Operation::SendStreamingMessage, "SendStreamingMessage", "SendStreamingMessage"),
    (Operation::GetTask, "GetTask", "GetTask"),
    (Operation::ListTasks, "ListTasks", ""),
    (Operation::CancelTask, "CancelTask", "CancelTask"),
    (Operation::SubscribeToTask, "SubscribeToTask", "TaskSubscription"),
    (Operation::GetExtendedAgentCard, "GetExtendedAgentCard", "GetAgentCard"),
    (Operation::CreatePushConfig, "CreateTaskPushNotificationConfig", "CreateTaskPushNotificationConfig"),
    (Operation::GetPushConfig, "GetTaskPushNotificationConfig", "GetTaskPushNotificationConfig"),
    (Operation::ListPushConfigs, "ListTaskPushNotificationConfigs", "ListTaskPushNotificationConfig"),
    (Operation::DeletePushConfig, "DeleteTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"),
];

/// The descriptors are those of the official packages, field by field: the tests with the SDKs compare them.
static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let bytes = include_bytes!("../../../../baton-protocol/src/wire/pb/generated/descriptors.bin");
    DescriptorPool::decode(&bytes[..]).expect("descriptors of both services")
});

pub(super) async fn listen(listener: TcpListener, agent: Arc<Agent>, stop: CancellationToken) {
    while let Some(Ok((stream, _))) = stop.run_until_cancelled(listener.accept()).await {
        let _ = stream.set_nodelay(true);
        let agent = Arc::clone(&agent);
        let service = service_fn(move |request| {
            let agent = Arc::clone(&agent);
            async move { respond(&agent, request).await }
        });
        let serving = async move {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
    }
}

type Response = hyper::Response<UnsyncBoxBody<Bytes, Infallible>>;
type Headers = Vec<(String, String)>;

/// An answer about to go: what is framed, and how it ends.
struct Leaving {
    http: u16,
    head: Headers,
    messages: BoxStream<'static, Piece>,
}

enum Piece {
    Message(Vec<u8>),
    End(Headers),
}

async fn respond(agent: &Arc<Agent>, request: hyper::Request<Incoming>) -> io::Result<Response> {
    let broken = || io::Error::other("hung up");
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MOST).collect().await.map_err(|_| broken())?.to_bytes().to_vec();
    let arrived = Arrived::new(&head, body);
    let Some(leaving) = answer(agent, &arrived).await else { return Err(broken()) };
    let mut response = hyper::Response::builder().status(leaving.http);
    for (name, value) in &leaving.head {
        response = response.header(name, value);
    }
    let frames = leaving.messages.map(|piece| {
        Ok(match piece {
            Piece::Message(bytes) => Frame::data(Bytes::from(bytes)),
            Piece::End(trailers) => Frame::trailers(mapped(&trailers)),
        })
    });
    response.body(StreamBody::new(frames).boxed_unsync()).map_err(io::Error::other)
}

fn mapped(headers: &Headers) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        let value = HeaderValue::from_str(value).expect("the agent writes ASCII");
        (HeaderName::from_bytes(name.as_bytes()).expect("the agent writes names"), value)
    };
    headers.iter().map(header).collect()
}

/// `None`: the agent hangs up.
async fn answer(agent: &Arc<Agent>, arrived: &Arrived) -> Option<Leaving> {
    let mut place = Place::new(Generation::V1, Binding::Grpc);
    let deadline = arrived.header("grpc-timeout").and_then(duration);
    let call = call(agent, arrived, &mut place);
    let deadline = deadline.filter(|_| !agent.has(Quirk::NoDeadline, &place));
    let outcome = match call {
        Ok(call) => {
            let handling = handle(agent, arrived, call, &mut place);
            match deadline {
                None => handling.await,
                Some(deadline) => match tokio::time::timeout(deadline, handling).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(Refusal::new(Kind::TooLate, "the deadline has passed")),
                },
            }
        }
        Err(refusal) => Err(agent.owner(arrived, &place).err().unwrap_or(refusal)),
    };
    match outcome {
        Ok((Outcome::Reply(root), more)) => Some(replied(agent, &place, root, more)),
        Ok((Outcome::Stream(feed), more)) => Some(streamed(agent, &place, feed, more, deadline)),
        Err(refusal) => refused(agent, &place, &refusal),
    }
}

fn call(agent: &Agent, arrived: &Arrived, place: &mut Place) -> Result<(Operation, Value), Refusal> {
    let (service, name) = arrived.path.trim_start_matches('/').split_once('/').unwrap_or_default();
    place.generation = match service {
        "a2a.v1.A2AService" => Generation::V0_3,
        "lf.a2a.v1.A2AService" => Generation::V1,
        _ => {
            let older = arrived.header("a2a-version") == Some("0.3");
            place.generation = if older { Generation::V0_3 } else { Generation::V1 };
            agent.check(Rule::UnknownService, place, "there is no such service")?;
            place.generation
        }
    };
    let spelled = |row: &&(Operation, &str, &'static str)| {
        let known = if place.generation == Generation::V1 { row.1 } else { row.2 };
        known == name && !name.is_empty()
    };
    let Some(&(operation, ..)) = METHODS.iter().find(spelled) else {
        agent.check(Rule::UnknownMethod, place, "there is no such method")?;
        return Err(Refusal::new(Kind::MethodNotFound, "there is no such method"));
    };
    place.operation = Some(operation);
    let method = POOL.get_service_by_name(service).and_then(|service| {
        let mut methods = service.methods();
        methods.find(|method| method.name() == name)
    });
    let input = method.expect("the descriptors have every method").input();
    let message = unframed(agent, arrived, place)?;
    let read = DynamicMessage::decode(input, &message[..]);
    let Ok(read) = read else {
        agent.check(Rule::NotProtobuf, place, "this is no message")?;
        return Ok((operation, json!({})));
    };
    if read.unknown_fields().next().is_some() {
        agent.check(Rule::UnknownMember, place, "this field is not known here")?;
    }
    let options = prost_reflect::SerializeOptions::new().stringify_64_bit_integers(false);
    let params = read.serialize_with_options(serde_json::value::Serializer, &options);
    let params = whole(params.map_err(|_| Refusal::new(Kind::InvalidParams, "this is no JSON"))?);
    Ok((operation, named(place, operation, params)))
}

/// The one message of a request.
fn unframed(agent: &Agent, arrived: &Arrived, place: &Place) -> Result<Vec<u8>, Refusal> {
    let mut rest = &arrived.body[..];
    let mut found = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((message, after)) = after.split_at_checked(length) else { break };
        found.push((head[0], message.to_vec()));
        rest = after;
    }
    if found.is_empty() || !rest.is_empty() {
        agent.check(Rule::NoFrame, place, "this is no message of gRPC")?;
    }
    if found.len() > 1 {
        agent.check(Rule::TwoFrames, place, "one message is enough")?;
    }
    let Some((flag, message)) = found.into_iter().next() else { return Ok(Vec::new()) };
    if flag != 0 {
        agent.check(Rule::Squeezed, place, "this compression is not known here")?;
    }
    Ok(message)
}

/// The params in 1.0's words. 0.3 has names in place of ids, and else what HTTP+JSON has.
fn named(place: &Place, operation: Operation, params: Value) -> Value {
    if place.generation == Generation::V1 {
        return params;
    }
    let name =
        params.get("name").or_else(|| params.get("parent")).and_then(Value::as_str).unwrap_or_default();
    let words: Vec<String> = name.split('/').map(str::to_owned).collect();
    let mut params = params;
    if matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage) && params.is_object() {
        // Absent is false here, and not as elsewhere whatever the agent likes.
        let blocking = params["configuration"]["blocking"] == true;
        params["configuration"]["blocking"] = json!(blocking);
    }
    let mut spelled = spell::params(place, operation, params);
    if let Some(members) = spelled.as_object_mut() {
        members.remove("name");
        members.remove("parent");
    }
    match (operation, words.as_slice()) {
        (Operation::GetTask | Operation::CancelTask | Operation::SubscribeToTask, [_, id]) => {
            spelled["id"] = json!(id);
        }
        (Operation::CreatePushConfig | Operation::ListPushConfigs, [_, task]) => {
            spelled["taskId"] = json!(task)
        }
        (Operation::GetPushConfig | Operation::DeletePushConfig, [_, task, _, id]) => {
            spelled["taskId"] = json!(task);
            spelled["id"] = json!(id);
        }
        _ => {}
    }
    spelled
}

/// Numbers of free-form JSON are doubles.
fn whole(mut value: Value) -> Value {
    match &mut value {
        Value::Number(number) => {
            if let Some(double) = number.as_f64().filter(|it| number.is_f64() && it.fract() == 0.0) {
                return json!(double as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = whole(item.take())),
        Value::Object(members) => members.values_mut().for_each(|member| *member = whole(member.take())),
        _ => {}
    }
    value
}

/// `100m` or `2S`.
fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "n" => Duration::from_nanos(number),
        "u" => Duration::from_micros(number),
        "m" => Duration::from_millis(number),
        "S" => Duration::from_secs(number),
        _ => Duration::from_secs(number.saturating_mul(60)),
    })
}

fn head(agent: &Agent, what: What, place: &Place, more: Headers) -> Headers {
    let mut head = vec![("content-type".to_owned(), "application/grpc".to_owned())];
    head.extend(more);
    agent.dress(what, place, &mut head);
    head
}

/// How a call ends.
fn trailers(agent: &Agent, place: &Place, code: i64) -> Headers {
    let mut trailers = vec![("grpc-status".to_owned(), code.to_string())];
    agent.dress(What::Trailers, place, &mut trailers);
    trailers
}

fn output(place: &Place) -> MessageDescriptor {
    let v1 = place.generation == Generation::V1;
    let service = if v1 { "lf.a2a.v1.A2AService" } else { "a2a.v1.A2AService" };
    let row = METHODS.iter().find(|row| Some(row.0) == place.operation).expect("a known method is answered");
    let name = if v1 { row.1 } else { row.2 };
    let service = POOL.get_service_by_name(service).expect("both services are described");
    let mut methods = service.methods();
    methods.find(|method| method.name() == name).expect("every method is described").output()
}

/// The message with its frame. What the message has no field for is left out.
fn framed(agent: &Agent, place: &Place, value: &Value) -> Vec<u8> {
    let mut message = encoded(output(place), value);
    if agent.has(Quirk::WrongField, place) {
        // Field 2, a text everywhere, as a number.
        message.extend_from_slice(&[2 << 3, 1]);
    }
    let flag = u8::from(agent.has(Quirk::Squeezes, place));
    let length = u32::try_from(message.len()).expect("the agent says little");
    [&[flag][..], &length.to_be_bytes(), &message].concat()
}

fn encoded(descriptor: MessageDescriptor, value: &Value) -> Vec<u8> {
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    match DynamicMessage::deserialize_with_options(descriptor, value, &lenient) {
        Ok(message) => message.encode_to_vec(),
        // A defect that protobuf cannot say shows as a message without anything.
        Err(_) => Vec::new(),
    }
}

fn replied(agent: &Arc<Agent>, place: &Place, root: Value, more: Headers) -> Leaving {
    let mut root = spell::reply(place, root);
    agent.edit(What::Reply, place, &mut root);
    let message = framed(agent, place, &root);
    let mut pieces = vec![Piece::Message(message.clone())];
    if agent.has(Quirk::TwoAnswers, place) {
        pieces.push(Piece::Message(message));
    }
    pieces.push(Piece::End(trailers(agent, place, 0)));
    let http = agent.status(What::Reply, place, 200);
    Leaving { http, head: head(agent, What::Reply, place, more), messages: stream::iter(pieces).boxed() }
}

fn streamed(
    agent: &Arc<Agent>,
    place: &Place,
    feed: Feed,
    more: Headers,
    deadline: Option<Duration>,
) -> Leaving {
    let until = deadline.map(|deadline| tokio::time::Instant::now() + deadline);
    let (agent, place) = (Arc::clone(agent), place.clone());
    let head = head(&agent, What::Event, &place, more);
    let http = agent.status(What::Event, &place, 200);
    let messages = stream::unfold(Some(feed), move |feed| {
        let (agent, place) = (Arc::clone(&agent), place.clone());
        async move {
            let mut feed = feed?;
            let next = async { feed.next().await };
            let event = match until {
                None => next.await,
                Some(until) => match tokio::time::timeout_at(until, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        if agent.has(Quirk::DeadlineCancels, &place) {
                            feed.cancel();
                        }
                        return Some((Piece::End(trailers(&agent, &place, 4)), None));
                    }
                },
            };
            Some(match event {
                Some(event) => {
                    let mut told = spell::event(&place, &event);
                    agent.edit(What::Event, &place, &mut told);
                    (Piece::Message(framed(&agent, &place, &told)), Some(feed))
                }
                None => (Piece::End(trailers(&agent, &place, 0)), None),
            })
        }
    });
    Leaving { http, head, messages: messages.boxed() }
}

/// A refusal is a head alone.
fn refused(agent: &Agent, place: &Place, refusal: &Refusal) -> Option<Leaving> {
    let kind = refusal.kind?;
    let what = What::Refusal(Some(kind));
    let (_, mut error) = refusal.spelled(kind, place);
    agent.edit(what, place, &mut error);
    let code = code(error["status"].as_str().unwrap_or_default());
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let mut last = vec![("grpc-status".to_owned(), code.to_string()), ("grpc-message".to_owned(), message)];
    if error["details"].as_array().is_some_and(|details| !details.is_empty()) {
        error["code"] = json!(code);
        let descriptor = POOL.get_message_by_name("google.rpc.Status").expect("it is described");
        let details = STANDARD_NO_PAD.encode(encoded(descriptor, &error));
        last.push(("grpc-status-details-bin".to_owned(), details));
    }
    if kind == Kind::Unauthenticated {
        last.push(("www-authenticate".to_owned(), "Bearer".to_owned()));
    }
    let http = agent.status(what, place, 200);
    if agent.has(Quirk::EventBeforeRefusal, place) {
        let pieces = vec![Piece::Message(framed(agent, place, &json!({}))), Piece::End(last)];
        return Some(Leaving {
            http,
            head: head(agent, what, place, vec![]),
            messages: stream::iter(pieces).boxed(),
        });
    }
    Some(Leaving { http, head: head(agent, what, place, last), messages: stream::empty().boxed() })
}

fn code(name: &str) -> i64 {
    match name {
        "INVALID_ARGUMENT" => 3,
        "DEADLINE_EXCEEDED" => 4,
        "NOT_FOUND" => 5,
        "PERMISSION_DENIED" => 7,
        "FAILED_PRECONDITION" => 9,
        "UNIMPLEMENTED" => 12,
        "UNAUTHENTICATED" => 16,
        _ => 13,
    }
}
