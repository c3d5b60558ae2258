//! Calls as HTTP requests and answers as replies, for all bindings. Everything that differs between generations is in
//! the codecs of `baton-protocol`, which the server uses, too.

#[cfg(feature = "grpc")]
pub(crate) mod grpc;

use baton_protocol::Generation;
use baton_protocol::domain::{JsonText, TaskId};
use baton_protocol::operation::{Call, Reply};
use baton_protocol::wire::dialect::AnswerFacts;
use baton_protocol::wire::http_json;
use baton_protocol::wire::jsonrpc::{self, Response, RpcId};
use baton_protocol::wire::peer_error::PeerError;
use baton_protocol::wire::peer_state::{FromPeer, put_back};
use bytes::Bytes;
use http::Method;
use reqwest::Url;

use crate::choose::{Binding, Interface};
use crate::error::{AgentError, Error, TransportKind};
use crate::http::Answer;

/// Of an interface that speaks gRPC, if this library does not.
pub(crate) const NOT_BUILT_IN: &str = "gRPC is not built in";

/// A call in the form of its binding.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Option<Bytes>,
    pub(crate) content_type: &'static str,
}

/// Writes a call. The id is used by JSON-RPC only; `bare_webhook` is the other form of webhooks in HTTP+JSON of 0.3.
pub(crate) fn encode(
    interface: &Interface,
    call: &Call,
    id: &RpcId,
    bare_webhook: bool,
) -> Result<Encoded, Error> {
    let Interface { url, binding, generation, tenant, .. } = interface;
    #[cfg(feature = "grpc")]
    if *binding == Binding::Grpc {
        return grpc::encode(interface, call);
    }
    let operation = call.operation();
    let not_in_version = |what: &str| Error::NotInVersion {
        operation,
        version: *generation,
        what: format!("{} {what}", operation.facts().v1),
    };
    let dialect = interface.dialect();
    let method = dialect.method(operation).ok_or_else(|| not_in_version("does not exist"))?;
    match binding {
        Binding::JsonRpc => {
            let mut body = Vec::new();
            jsonrpc::write_request(&mut body, id, method, |out| {
                dialect.write_call(out, tenant.as_deref(), call);
            });
            Ok(Encoded {
                method: Method::POST,
                url: url.clone(),
                body: Some(body.into()),
                content_type: "application/json",
            })
        }
        Binding::HttpJson => {
            let mut request = http_json::path_of(*generation, tenant.as_deref(), call)
                .ok_or_else(|| not_in_version("with these ids has no path"))?;
            if let (Generation::V0_3, true, Call::CreatePushConfig(config)) = (generation, bare_webhook, call)
            {
                // The same as in the reply.
                let mut body = Vec::new();
                let config = Reply::PushConfig(config.clone());
                dialect.write_reply(&mut body, &config, &AnswerFacts::default());
                request.body = Some(body);
            }
            let method = Method::from_bytes(request.method.as_bytes())
                .map_err(|_| not_in_version("has no HTTP method"))?;
            let content_type = match generation {
                Generation::V1 => "application/a2a+json",
                Generation::V0_3 | Generation::V0_1 => "application/json",
            };
            Ok(Encoded {
                method,
                url: below(url, &request.path_and_query)?,
                body: request.body.map(Bytes::from),
                content_type,
            })
        }
        Binding::Grpc => Err(Error::Invalid(NOT_BUILT_IN.to_owned())),
    }
}

/// The interface's address with a path behind it. Its own query, if it has one, is kept.
fn below(base: &Url, path_and_query: &str) -> Result<Url, Error> {
    let mut url = base.clone();
    let (path, query) = match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    };
    // `set_path` leaves escapes as they are.
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if let Some(query) = query {
        let whole = base.query().map_or_else(|| query.to_owned(), |own| format!("{own}&{query}"));
        url.set_query(Some(&whole));
    }
    Ok(url)
}

/// A reply, and the JSON that it was read from, if it was JSON.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) reply: FromPeer<Reply>,
    json: Option<Bytes>,
}

impl Received {
    /// As JSON in the words of the version in use.
    pub(crate) fn json(&self, interface: &Interface) -> String {
        match &self.json {
            // The codecs have read it as text already.
            Some(json) => String::from_utf8_lossy(json).into_owned(),
            None => {
                let mut out = Vec::new();
                interface.dialect().write_reply(&mut out, &self.reply.value, &AnswerFacts::default());
                put_back(&String::from_utf8_lossy(&out), &self.reply.unknown_states)
            }
        }
    }
}

/// Reads the answer of a call that does not stream.
pub(crate) async fn read_reply(
    interface: &Interface,
    call: &Call,
    id: &RpcId,
    answer: &mut Answer,
    limit: usize,
) -> Result<Received, Error> {
    #[cfg(feature = "grpc")]
    if interface.binding == Binding::Grpc {
        let reply = grpc::read_reply(interface, call, answer, limit).await?;
        check_reply(call, &reply.value, answer)?;
        let received = Received { reply, json: None };
        answer.show(|| received.json(interface).into());
        return Ok(received);
    }
    let body = answer.bytes(limit).await?;
    let text = result_of(interface, id, answer, &body)?;
    let reply = interface.dialect().read_reply(call.operation(), text);
    let reply = reply.map_err(|error| answer.malformed(error.to_string()))?;
    check_reply(call, &reply.value, answer)?;
    // A missing result is read as `null`, which is not in the body.
    let json = match body.as_ptr_range().contains(&text.as_ptr()) {
        true => body.slice_ref(text.as_bytes()),
        false => Bytes::copy_from_slice(text.as_bytes()),
    };
    Ok(Received { reply, json: Some(json) })
}

fn check_reply(call: &Call, reply: &Reply, answer: &Answer) -> Result<(), Error> {
    match reply {
        Reply::Task(task) | Reply::SentTask(task) => check_task(call, task.id.as_str(), answer),
        _ => Ok(()),
    }
}

/// The task that a call is about.
pub(crate) fn task_of(call: &Call) -> Option<&TaskId> {
    match call {
        Call::GetTask(get) => Some(&get.id),
        Call::CancelTask(cancel) => Some(&cancel.id),
        Call::SubscribeToTask(subscribe) => Some(&subscribe.id),
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => send.message.task_id.as_ref(),
        _ => None,
    }
}

/// Refuses an answer about another task than the one that was asked about.
pub(crate) fn check_task(call: &Call, got: &str, answer: &Answer) -> Result<(), Error> {
    match task_of(call) {
        Some(asked) if asked.as_str() != got => {
            Err(answer.malformed(format!("it is not about task {asked}")))
        }
        _ => Ok(()),
    }
}

/// The result in an answer's body, without its envelope; or the error.
pub(crate) fn result_of<'a>(
    interface: &Interface,
    id: &RpcId,
    answer: &Answer,
    body: &'a [u8],
) -> Result<&'a str, Error> {
    let status = answer.status();
    if (300..400).contains(&status) {
        let to = answer.redirect_target();
        return Err(answer.fail(TransportKind::Redirected, format!("to {to}; calls are not redirected")));
    }
    let generation = interface.generation;
    if interface.binding == Binding::JsonRpc {
        match jsonrpc::parse_response(body) {
            Ok((_, Response::Error { code, message, data })) => {
                let peer = PeerError::of_rpc(generation, code, message, data, Some(status));
                return Err(agent_error(answer, peer).into());
            }
            Ok((said, Response::Result(result))) if status < 300 => {
                return match said {
                    Some(said) if !is_same_id(&said, id) => {
                        Err(answer.malformed("it answers another request"))
                    }
                    _ => bounded(result, answer),
                };
            }
            Err(error) if status < 300 => return Err(answer.malformed(error.to_string())),
            Ok(_) | Err(_) => {}
        }
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    if status >= 300 {
        return Err(agent_error(answer, PeerError::of_http(generation, Some(status), text)).into());
    }
    bounded(text, answer)
}

/// Refuses nesting without end: the codecs skip members that they do not know, however deep, and raw results have them.
pub(crate) fn bounded<'a>(text: &'a str, answer: &Answer) -> Result<&'a str, Error> {
    match JsonText::check_answer_depth(text) {
        Ok(()) => Ok(text),
        Err(refused) => Err(answer.malformed(refused.to_string())),
    }
}

/// Some servers answer the number 1 with the text "1".
pub(crate) fn is_same_id(said: &RpcId, sent: &RpcId) -> bool {
    said.as_str().trim_matches('"') == sent.as_str()
}

pub(crate) fn agent_error(answer: &Answer, peer: PeerError) -> AgentError {
    let stated = answer.retry_after();
    let in_details = peer.retry_after_seconds.map(|seconds| std::time::Duration::from_secs(seconds.into()));
    AgentError {
        retry_after: stated.or(in_details),
        challenges: answer.challenges(),
        credentials_sent: false,
        peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_the_interface() {
        for (base, path, expected) in [
            ("https://h", "/message:send", "https://h/message:send"),
            ("https://h/", "/tasks/a%2Fb:cancel", "https://h/tasks/a%2Fb:cancel"),
            ("https://h/agent/", "/v1/tasks?pageSize=2", "https://h/agent/v1/tasks?pageSize=2"),
            ("https://h/agent?key=1", "/tasks", "https://h/agent/tasks?key=1"),
            ("https://h/agent?key=1", "/tasks?a=b", "https://h/agent/tasks?key=1&a=b"),
        ] {
            assert_eq!(below(&Url::parse(base).unwrap(), path).unwrap().as_str(), expected);
        }
    }
}
