//! S-16: what a caller has open ends as soon as its credential is revoked, changed or expires. The tasks go on, and so does
//! what others have open.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityScheme};
use baton_server::auth::jwt::{FetchOptions, Fetcher, Jwt, JwtOptions, KeysFrom};
use baton_server::auth::{
    ApiKeys, AuthRequest, Basic, BasicOptions, BearerTokens, Chain, ChosenSecret, Identity, IssuedKeys,
    KeySet, MAX_KEYS, NewKey, Refusal, Scheme, Scopes, StoredUser, Verdict, hash_password,
};
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Asked, Content, Limits, Server};
use http::HeaderValue;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::asking::{ALL_BINDINGS, Ask, Interface, Sending, ask_with, sending};
use crate::fixtures::{Gate, agent_with};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, message, serve, with_agent};
use crate::issuer::AUDIENCE;
use crate::signers::Signer;
use crate::speakers::{Events, read};

/// A header with a credential.
type Credential = (&'static str, String);

/// A server whose turns wait at the gate, and two credentials of the same owner.
struct Stage {
    server: Arc<TestServer>,
    gate: Gate,
    leaves: Credential,
    stays: Credential,
}

/// A call under way.
struct Call(JoinHandle<(Interface, Answer)>);

/// An open stream that nothing happens on.
struct QuietStream(Interface, Events);

impl Stage {
    async fn new(chain: Chain, leaves: Credential, stays: Credential) -> Self {
        let gate = Gate::new();
        let agent = agent_with(&gate, |gate, _turn| async move {
            gate.pass().await;
            Ok(())
        });
        // Nobody waits for these: a send that waits and a keep-alive are far away.
        let mut limits = Limits::default();
        limits.keep_alive = Duration::from_secs(3600);
        limits.legacy_wait = Duration::from_secs(3600);
        let server = Arc::new(serve(with_agent(agent).auth(chain).limits(limits)).await);
        Stage { server, gate, leaves, stays }
    }

    fn call(&self, interface: Interface, (name, value): &Credential, ask: Ask) -> Call {
        let (server, name, value) = (Arc::clone(&self.server), *name, value.clone());
        Call(tokio::spawn(async move {
            let response = ask_with(&server, interface, &[(name, &value)], &ask).await.unwrap();
            (interface, read(response).await)
        }))
    }

    async fn stream(&self, interface: Interface, (name, value): &Credential, ask: Ask) -> QuietStream {
        let response = ask_with(&self.server, interface, &[(*name, value)], &ask).await.unwrap();
        let mut events = Events::open(response).await.ok().expect("a stream");
        events.next().await.expect("the task");
        QuietStream(interface, events)
    }

    /// Waits until so many tasks of the owner have this state.
    async fn until(&self, state: &str, count: usize) -> Value {
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        loop {
            let params = json!({"status": format!("TASK_STATE_{state}"), "pageSize": 100});
            let (name, value) = &self.stays;
            let tasks = self.server.call_with("ListTasks", params, &[(*name, value)]).await.result().clone();
            if tasks["totalSize"] == count {
                return tasks["tasks"].clone();
            }
            assert!(tokio::time::Instant::now() < give_up, "{tasks}");
        }
    }

    /// In every binding and generation: a send that waits for its turn, and streams on which nothing happens. `revoke` takes
    /// one of the two credentials away.
    async fn check(self, revoke: impl AsyncFnOnce()) {
        let both = [&self.leaves, &self.stays];
        let [leaving, staying] =
            both.map(|who| ALL_BINDINGS.map(|interface| self.call(interface, who, waiting("a"))));
        let tasks = self.until("WORKING", 2 * ALL_BINDINGS.len()).await;
        let [mut left, mut stayed] = [Vec::new(), Vec::new()];
        for (who, streams) in [(&self.leaves, &mut left), (&self.stays, &mut stayed)] {
            for interface in ALL_BINDINGS {
                streams.push(self.stream(interface, who, Ask::Stream(sending("b"))).await);
                let id = tasks[0]["id"].as_str().unwrap().to_owned();
                streams.push(self.stream(interface, who, Ask::Subscribe(id)).await);
            }
        }
        let working = 4 * ALL_BINDINGS.len();
        self.until("WORKING", working).await;

        revoke().await;
        for call in leaving {
            call.ends_refused().await;
        }
        for stream in left {
            stream.ends_refused().await;
        }
        let (name, value) = &self.leaves;
        let next = self.server.call_with("ListTasks", json!({}), &[(*name, value)]).await;
        assert_eq!(next.status, 401, "{}", next.body);

        // Their tasks go on.
        self.until("WORKING", working).await;
        self.gate.let_pass(working);
        for call in staying {
            let (interface, answer) = call.0.await.unwrap();
            assert_eq!(answer.status, 200, "{interface:?}: {}", answer.body);
            assert!(answer.body.to_string().to_lowercase().contains("completed"), "{}", answer.body);
        }
        for QuietStream(interface, mut events) in stayed {
            let last = events.rest().await.pop().expect("an end").data.to_string();
            assert!(last.to_lowercase().contains("completed"), "{interface:?}: {last}");
        }
        self.until("COMPLETED", working).await;
    }
}

impl Call {
    async fn ends_refused(self) {
        let (interface, answer) = self.0.await.unwrap();
        assert_eq!(answer.status, 401, "{interface:?}: {}", answer.body);
        let challenge = answer.header("www-authenticate").expect("it says how to come back");
        assert!(!challenge.is_empty());
        assert!(answer.body.to_string().contains("no longer valid"), "{interface:?}: {}", answer.body);
    }
}

impl QuietStream {
    async fn ends_refused(mut self) {
        let rest = self.1.rest().await;
        let last = rest.last().expect("an end").data.to_string();
        assert!(last.contains("no longer valid"), "{:?}: {rest:?}", self.0);
    }
}

/// A message whose answer waits for the end of its turn.
fn waiting(text: &str) -> Ask {
    Ask::Send(Sending { wait: Some(true), ..sending(text) })
}

fn bearer(token: &str) -> Credential {
    ("authorization", format!("Bearer {token}"))
}

const ANN: &str = "ann-has-sixteen-letters";
const BOB: &str = "bob-has-sixteen-letters";

fn secret(secret: &str, scopes: &[&str]) -> ChosenSecret {
    ChosenSecret::new(secret, &secret[..3], "team", Scopes::of(scopes.iter().copied()))
}

#[tokio::test]
async fn s16_a_removed_token_ends_what_its_callers_have_open_and_nothing_else() {
    let keys = Arc::new(KeySet::new().unwrap());
    keys.set_chosen(&[secret(ANN, &[]), secret(BOB, &["read"])]).unwrap();
    let chain = Chain::new().scheme("bearer", BearerTokens::new(Arc::clone(&keys)));
    let stage = Stage::new(chain, bearer(ANN), bearer(BOB)).await;
    stage.check(async || keys.set_chosen(&[secret(BOB, &["read"])]).unwrap()).await;
}

/// It has the same name and another secret.
#[tokio::test]
async fn s16_a_changed_token_ends_what_its_callers_have_open_and_nothing_else() {
    let keys = Arc::new(KeySet::new().unwrap());
    keys.set_chosen(&[secret(ANN, &[]), secret(BOB, &["read"])]).unwrap();
    let chain = Chain::new().scheme("bearer", BearerTokens::new(Arc::clone(&keys)));
    let stage = Stage::new(chain, bearer(BOB), bearer(ANN)).await;
    let change = async || {
        keys.set_chosen(&[secret(ANN, &[]), secret("bob-has-another-secret", &["read"])]).unwrap();
        // One list with a mistake changes nothing.
        keys.set_chosen(&[secret("too short", &[])]).unwrap_err();
        keys.set_chosen(&[secret(ANN, &[]), secret(ANN, &[])]).unwrap_err();
    };
    stage.check(change).await;
}

#[tokio::test]
async fn s16_a_revoked_key_ends_what_its_callers_have_open_and_nothing_else() {
    let (store, set) = (Arc::new(MemoryStore::new()), Arc::new(KeySet::new().unwrap()));
    let issued = IssuedKeys::open(store, Arc::clone(&set), MAX_KEYS).await.unwrap();
    let issue = async |name: &str| {
        use secrecy::ExposeSecret as _;
        let (name, owner) = (name.to_owned(), "team".to_owned());
        let (_, text) = issued.issue(NewKey { name, owner, scopes: vec![], expires_at: None }).await.unwrap();
        ("x-api-key", text.expose_secret().to_owned())
    };
    let (ann, bob) = (issue("ann").await, issue("bob").await);
    // A secret of the operator's beside them, which is replaced at the same time.
    let chosen = Arc::new(KeySet::new().unwrap());
    chosen.set_chosen(&[secret(ANN, &[])]).unwrap();
    let keys = ApiKeys::header("X-API-Key", set).unwrap().and(Arc::clone(&chosen));
    let stage = Stage::new(Chain::new().scheme("key", keys), ann, bob).await;
    let revoke = async || {
        issued.revoke("ann").await.unwrap();
        issued.refresh().await.unwrap();
        chosen.set_chosen(&[secret(BOB, &[])]).unwrap();
    };
    stage.check(revoke).await;
}

#[tokio::test]
async fn s16_a_removed_user_ends_what_its_callers_have_open_and_nothing_else() {
    let hashed = |password: &str| hash_password(&password.into()).unwrap();
    let (ann, bob) = (hashed("a"), hashed("b"));
    let user = |name: &str, hash: &str| StoredUser::new(name, hash.to_owned()).owner("team");
    let basic = Basic::new(vec![user("ann", &ann), user("bob", &bob)], BasicOptions::default()).unwrap();
    let credential = |pair: &str| ("authorization", format!("Basic {}", STANDARD.encode(pair)));
    let chain = Chain::new().scheme("basic", basic.clone());
    let stage = Stage::new(chain, credential("ann:a"), credential("bob:b")).await;
    // The password is another one; the user is the same.
    let change = async || basic.set_users(vec![user("ann", &hashed("c")), user("bob", &bob)]).unwrap();
    stage.check(change).await;
}

#[tokio::test]
async fn s16_a_withdrawn_signing_key_ends_what_its_tokens_have_open_and_nothing_else() {
    let (leaves, stays) = (Signer::new("one", "ES256"), Signer::new("two", "ES256"));
    let set = |signers: &[&Signer]| {
        json!({"keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>()}).to_string()
    };
    let mut options = JwtOptions::oidc("https://login.example.com", AUDIENCE);
    options.keys = KeysFrom::Set(set(&[&leaves, &stays]));
    let jwt = Arc::new(Jwt::new(options, Fetcher::new(&FetchOptions::default()).unwrap()).unwrap());
    let claims =
        json!({"iss": "https://login.example.com", "aud": AUDIENCE, "sub": "team", "exp": 4102444800u64});
    let tokens = [&leaves, &stays].map(|signer| bearer(&signer.token(&claims)));
    let [first, second] = tokens;
    let chain = Chain::new().shared_scheme("jwt", Arc::clone(&jwt) as Arc<dyn Scheme>);
    let stage = Stage::new(chain, first, second).await;
    let added = Signer::new("three", "ES256");
    stage.check(async || assert!(jwt.set_keys(&set(&[&added, &stays])).unwrap())).await;
}

/// Whoever has the header `x-short` is verified for a moment, whoever has `x-long` for good.
#[derive(Debug)]
struct ForAMoment;

#[async_trait]
impl Scheme for ForAMoment {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: "x-short".to_owned() };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        let has = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap());
        let identity = Identity::new("team", Scopes::default(), "credential");
        match (has("x-short"), has("x-long")) {
            (Some("again"), _) => Verdict::Refused(Refusal::new("expired")),
            (Some(_), _) => Verdict::Verified(identity.valid_for(Duration::from_secs(2))),
            (None, Some(_)) => Verdict::Verified(identity),
            (None, None) => Verdict::Absent,
        }
    }

    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        Some(HeaderValue::from_static("Short"))
    }
}

#[tokio::test]
async fn s16_an_expired_credential_ends_what_its_callers_have_open() {
    let (short, long) = (("x-short", "1".to_owned()), ("x-long", "1".to_owned()));
    let stage = Stage::new(Chain::new().scheme("short", ForAMoment), short, long).await;
    let calls = ALL_BINDINGS.map(|interface| stage.call(interface, &stage.leaves, waiting("a")));
    let mut streams = Vec::new();
    for interface in ALL_BINDINGS {
        streams.push(stage.stream(interface, &stage.leaves, Ask::Stream(sending("b"))).await);
    }
    for call in calls {
        call.ends_refused().await;
    }
    for stream in streams {
        stream.ends_refused().await;
    }
    stage.gate.let_pass(2 * ALL_BINDINGS.len());
    stage.until("COMPLETED", 2 * ALL_BINDINGS.len()).await;
}

/// A skill that answers with a message has no task that could be watched.
#[tokio::test]
async fn s16_a_revoked_caller_does_not_wait_for_the_reply_of_a_message_skill() {
    let gate = Gate::new();
    let slow = {
        let gate = gate.clone();
        move |_: Asked| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok::<_, AgentError>(Content::from("late"))
            }
        }
    };
    let keys = Arc::new(KeySet::new().unwrap());
    keys.set_chosen(&[secret(ANN, &[]), secret(BOB, &[])]).unwrap();
    let chain = Chain::new().scheme("bearer", BearerTokens::new(Arc::clone(&keys)));
    let server = Arc::new(serve(Server::agent("slow", "Answers late", slow).auth(chain)).await);
    let sent = message("a");
    let send = |(name, value): Credential, method: &'static str| {
        let (server, sent) = (Arc::clone(&server), sent.clone());
        tokio::spawn(async move { server.call_with(method, sent, &[(name, &value)]).await })
    };
    let [send_1, stream] = ["SendMessage", "SendStreamingMessage"].map(|method| send(bearer(ANN), method));
    let running = || server.server.load().running;
    while running() == 0 {
        tokio::task::yield_now().await;
    }
    keys.set_chosen(&[secret(BOB, &[])]).unwrap();
    for call in [send_1, stream] {
        assert_eq!(call.await.unwrap().status, 401);
    }
    gate.let_pass(1);
    let repeated = send(bearer(BOB), "SendMessage").await.unwrap();
    assert_eq!(repeated.header("a2a-idempotent-replay"), Some("true"), "{}", repeated.body);
    assert!(repeated.body.to_string().contains("late"));
}
