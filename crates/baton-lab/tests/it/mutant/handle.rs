//! What both bindings have in common: reading the body, who asks, which version, and the answer's way out.

use std::sync::Arc;

use baton_lab::generation::{Binding, Generation};
use baton_lab::wire::request::Operation;
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::agent::Agent;
use super::ask::{Ask, Outcome};
use super::door::{Arrived, Body, HangUp, Leaving};
use super::fault::{Place, Quirk, Rule, What};
use super::feed::{Feed, kind_of};
use super::profile::{EXTENSION, OTHER_TOKEN, REQUIRED_EXTENSION, TOKEN};
use super::refusal::{Kind, Refusal};
use super::{operations, spell};

impl Agent {
    /// The body as JSON; an object, or it is refused.
    pub(super) fn read(&self, arrived: &Arrived, place: &Place) -> Result<Value, Refusal> {
        let kind = arrived.header("content-type").unwrap_or_default();
        if kind == "application/json" && place.binding == Binding::Rest {
            self.check(Rule::PlainJson, place, "the content type has to be application/a2a+json")?;
        }
        if !["application/json", "application/a2a+json"].contains(&kind) {
            self.check(Rule::ForeignContentType, place, "the content type has to be JSON")?;
        }
        if arrived.body.len() > 1024 * 1024 {
            self.check(Rule::LongBody, place, "the body is too long")?;
        }
        let text = match std::str::from_utf8(&arrived.body) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                self.check(Rule::NotUtf8, place, "the body is not UTF-8")?;
                String::from_utf8_lossy(&arrived.body).into_owned()
            }
        };
        if text.matches("\"role\":").count() > 1 {
            self.check(Rule::TwiceTheSame, place, "a member is there twice")?;
        }
        let body = match serde_json::from_str(&text) {
            Ok(body) => body,
            Err(error) => {
                let deep = error.to_string().contains("recursion limit");
                let rule = if deep { Rule::TooDeep } else { Rule::BadJson };
                self.check(rule, place, "the body is not JSON")?;
                json!({})
            }
        };
        if !Value::is_object(&body) {
            self.check(Rule::BodyKind, place, "the body has to be an object")?;
        }
        Ok(body)
    }

    /// Whose request it is.
    pub(super) fn owner(&self, arrived: &Arrived, place: &Place) -> Result<String, Refusal> {
        if !self.profile.is_guarded() {
            return Ok("everybody".to_owned());
        }
        let token = arrived.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        match token {
            Some(token) if [TOKEN, OTHER_TOKEN].contains(&token) => Ok(token.to_owned()),
            Some(_) => {
                self.check(Rule::BadCredentials, place, "nobody has this token")?;
                Ok("a liar".to_owned())
            }
            None => {
                self.check(Rule::NoCredentials, place, "a token is needed")?;
                Ok("a stranger".to_owned())
            }
        }
    }

    fn check_version(&self, arrived: &Arrived, place: &Place) -> Result<(), Refusal> {
        let queried = arrived.query.iter().find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
        let queried =
            queried.filter(|_| !self.has(Quirk::NoVersionQuery, place)).map(|(_, value)| value.as_str());
        let version = arrived.header("a2a-version").or(queried).filter(|version| !version.is_empty());
        let Some(version) = version else {
            return match place.generation {
                Generation::V1 => {
                    self.check(Rule::VersionAbsent, place, "no A2A-Version means 0.3; send 1.0")
                }
                Generation::V0_3 | Generation::V0_1 => {
                    self.check(Rule::OldWithoutVersion, place, "send an A2A-Version")
                }
            };
        };
        let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() >= 2) else {
            return self.check(Rule::VersionNonsense, place, "this is no version");
        };
        if numbers.len() > 2 {
            self.check(Rule::VersionPatch, place, "this version is not spoken here")?;
        }
        let spoken = match place.generation {
            Generation::V1 => numbers[..2] == [1, 0],
            Generation::V0_3 | Generation::V0_1 => numbers[0] == 0,
        };
        if spoken {
            Ok(())
        } else {
            self.check(Rule::VersionUnknown, place, "this version is not spoken here")
        }
    }

    /// The extensions of a request that are active for it.
    fn extensions(&self, arrived: &Arrived, place: &Place) -> Result<Vec<String>, Refusal> {
        let header = match place.generation {
            Generation::V1 => "a2a-extensions",
            Generation::V0_3 => "x-a2a-extensions",
            Generation::V0_1 => return Ok(Vec::new()),
        };
        let named = arrived.header(header).unwrap_or_default();
        if named.len() > 8 * 1024 {
            self.check(Rule::LongHeader, place, "this header is too long")?;
        }
        let named: Vec<&str> = named.split(',').map(str::trim).filter(|uri| !uri.is_empty()).collect();
        let sends = matches!(place.operation, Some(Operation::SendMessage | Operation::SendStreamingMessage));
        if self.profile.is_guarded() && sends && !named.contains(&REQUIRED_EXTENSION) {
            self.check(Rule::RequiredExtension, place, "an extension has to be named in A2A-Extensions")?;
        }
        let known =
            |uri: &&str| *uri == EXTENSION || (*uri == REQUIRED_EXTENSION && self.profile.is_guarded());
        if sends && !named.iter().all(&known) {
            self.check(Rule::UnknownExtension, place, "this extension is not known here")?;
        }
        Ok(named.into_iter().filter(known).map(str::to_owned).collect())
    }
}

/// Asks; the answer's headers that come from the request are in the second.
pub(super) async fn handle(
    agent: &Arc<Agent>,
    arrived: &Arrived,
    (operation, params): (Operation, Value),
    place: &mut Place,
) -> Result<(Outcome, Vec<(String, String)>), Refusal> {
    let owner = agent.owner(arrived, place)?;
    agent.check_version(arrived, place)?;
    let active = agent.extensions(arrived, place)?;
    if operation == Operation::GetTask && agent.has(Quirk::HurtByHalves, place) && agent.takes_time_to_heal()
    {
        return Err(Refusal::new(Kind::Internal, "something is wrong in here"));
    }
    let (generation, binding, has_body) = (place.generation, place.binding, !arrived.body.is_empty());
    let ask = Ask { generation, binding, operation, params, owner, has_body };
    let outcome = operations::answer(agent, &ask, place).await?;
    let mut headers = Vec::new();
    if !active.is_empty() {
        let name = if generation == Generation::V1 { "a2a-extensions" } else { "x-a2a-extensions" };
        headers.push((name.to_owned(), active.join(",")));
    }
    if operation == Operation::GetExtendedAgentCard {
        headers.push(("cache-control".to_owned(), "private, max-age=60".to_owned()));
    }
    Ok((outcome, headers))
}

/// The answer as bytes. `frame` is what the binding puts around an object or an error.
pub(super) fn leave(
    agent: &Arc<Agent>,
    outcome: Result<(Outcome, Vec<(String, String)>), Refusal>,
    place: &Place,
    frame: impl Fn(&Agent, &Place, Framed) -> Value + Send + Sync + 'static,
) -> Result<Leaving, HangUp> {
    let kind = match (place.generation, place.binding) {
        (Generation::V1, Binding::Rest) => "application/a2a+json",
        _ => "application/json",
    };
    match outcome {
        Ok((Outcome::Reply(root), more)) => {
            let mut root = spell::reply(place, root);
            agent.edit(What::Reply, place, &mut root);
            let body = frame(agent, place, Framed::Object(root));
            let mut leaving = Leaving::json(agent.status(What::Reply, place, 200), kind, &body);
            leaving.headers.extend(more);
            agent.dress(What::Reply, place, &mut leaving.headers);
            Ok(leaving)
        }
        Ok((Outcome::Stream(feed), more)) => {
            let mut headers = vec![
                ("content-type".to_owned(), "text/event-stream".to_owned()),
                ("cache-control".to_owned(), "no-cache".to_owned()),
            ];
            headers.extend(more);
            agent.dress(What::Event, place, &mut headers);
            let (agent, place) = (Arc::clone(agent), place.clone());
            let status = agent.status(What::Event, &place, 200);
            let frames = events(feed).map(move |event| spelled(&agent, &place, &event, &frame));
            Ok(Leaving { status, headers, body: Body::Frames(frames.boxed()) })
        }
        Err(refusal) => {
            let kind_of_error = refusal.kind.ok_or(HangUp)?;
            let what = What::Refusal(Some(kind_of_error));
            let (status, mut error) = refusal.spelled(kind_of_error, place);
            agent.edit(what, place, &mut error);
            let body = frame(agent, place, Framed::Error(error));
            let mut leaving = Leaving::json(agent.status(what, place, status), kind, &body);
            if kind_of_error == Kind::Unauthenticated {
                leaving.headers.push(("www-authenticate".to_owned(), "Bearer".to_owned()));
            }
            agent.dress(what, place, &mut leaving.headers);
            Ok(leaving)
        }
    }
}

/// What is put into a frame.
pub(super) enum Framed {
    Object(Value),
    Error(Value),
}

fn events(feed: Feed) -> impl stream::Stream<Item = Value> + Send {
    stream::unfold(feed, |mut feed| async move { feed.next().await.map(|event| (event, feed)) })
}

fn spelled(
    agent: &Agent,
    place: &Place,
    event: &Value,
    frame: impl Fn(&Agent, &Place, Framed) -> Value,
) -> Vec<u8> {
    let kind = kind_of(event);
    let mut told = spell::event(place, event);
    agent.edit(What::Event, place, &mut told);
    let mut data = frame(agent, place, Framed::Object(told)).to_string();
    if agent.has(Quirk::RawLineEnds, place) {
        data = data.replace("\\n", "\n");
    }
    let name = match (place.generation, kind.as_str()) {
        (Generation::V0_1, _) if agent.has(Quirk::OddEventNames, place) => "event: done\n",
        (Generation::V0_1, "artifactUpdate") => "event: artifact\n",
        (Generation::V0_1, _) => "event: status\n",
        _ => "",
    };
    format!("{name}data: {data}\n\n").into_bytes()
}
