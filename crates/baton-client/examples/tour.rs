//! Every operation, by every interface of an agent that knows the `tck-` phrases (`baton serve` does):
//!
//! `cargo run -p baton-client --example tour -- http://127.0.0.1:3000`
//!
//! `--bearer TOKEN` and `--api-key KEY` are credentials, `--ca FILE` is the authority to trust. With `--stranger FILE`,
//! another authority, it also checks what happens without the right credential and the right authority.
//!
//! Prints the name of each interface, and below it `ok`, `FAIL` or `skip` for each check, as the scripts of `interop` do.
//! Fails if any failed. `cargo xtask interop` runs it against agents of other SDKs.

// It is a program: it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "tour/receiver.rs"]
mod receiver;

use std::process::ExitCode;

use baton_client::protocol::domain::{Part, PushConfig, PushConfigId, TaskId, TaskState};
use baton_client::protocol::operation::{ListTasks, SendMessage};
use baton_client::protocol::{ErrorKind, Generation};
use baton_client::{Binding, Builder, Client, Ending, Error, Origin, TlsOptions, TransportKind, message};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into().into()) }
}

async fn send(client: &Client) -> Outcome {
    let answered = client.send("tck-complete-task").await?;
    let task = answered.task().ok_or("no task")?;
    check(task.status.state == TaskState::Completed && !task.artifacts.is_empty(), format!("{task:?}"))?;
    let again = client.get(&task.id).await?;
    check(again.artifacts.len() == task.artifacts.len(), format!("{again:?}"))
}

async fn only_a_message(client: &Client) -> Outcome {
    let answered = client.send("tck-message-response").await?;
    check(answered.message().is_some(), format!("{answered:?}"))
}

async fn stream(client: &Client) -> Outcome {
    let mut events = client.stream("tck-stream-chunked").await?;
    let mut count = 0;
    while let Some(event) = events.next().await {
        event?;
        count += 1;
    }
    let task = events.task().ok_or("no task")?;
    check(events.ending() == Some(Ending::Terminal), format!("{:?}", events.ending()))?;
    check(events.reconnects() == 0, format!("{} reconnects", events.reconnects()))?;
    check(count >= 4 && task.artifacts.len() == 1, format!("{count} events: {task:?}"))
}

async fn question_and_answer(client: &Client) -> Outcome {
    let asked = client.send("tck-input-required").await?;
    let task = asked.task().ok_or("no task")?;
    check(task.status.state == TaskState::InputRequired, format!("{task:?}"))?;
    let mut answer = message(vec![Part::text("Ann")]);
    (answer.task_id, answer.context_id) = (Some(task.id.clone()), Some(task.context_id.clone()));
    let done = client.send(answer).await?;
    let done = done.task().ok_or("no task")?;
    check(done.id == task.id && done.status.state == TaskState::Completed, format!("{done:?}"))
}

async fn subscribe_and_cancel(client: &Client) -> Outcome {
    let send =
        SendMessage { return_immediately: true, ..SendMessage::new(message(vec![Part::text("tck-cancel")])) };
    let id = client.send(send).await?.task().ok_or("no task")?.id.clone();
    let mut events = client.subscribe(&id).await?;
    let canceled = client.cancel(&id).await?;
    check(canceled.status.state == TaskState::Canceled, format!("{canceled:?}"))?;
    while let Some(event) = events.next().await {
        event?;
    }
    let state = events.task().map(|task| task.status.state);
    check(state == Some(TaskState::Canceled), format!("{state:?}"))
}

async fn not_found(client: &Client) -> Outcome {
    let error = client.get(&TaskId::parse("no-such-task")?).await.err().ok_or("it was found")?;
    check(error.kind() == Some(ErrorKind::TaskNotFound), error.to_string())
}

async fn list(client: &Client) -> Outcome {
    let mut tasks = client.tasks(ListTasks { page_size: Some(2), ..ListTasks::default() });
    let mut count = 0;
    while let Some(task) = tasks.next().await {
        task?;
        count += 1;
    }
    check(count > 2, format!("{count} tasks"))
}

/// A task that is at work, with a webhook.
async fn with_webhook(client: &Client) -> Result<(TaskId, PushConfig), Box<dyn std::error::Error>> {
    let send =
        SendMessage { return_immediately: true, ..SendMessage::new(message(vec![Part::text("tck-cancel")])) };
    let task_id = client.send(send).await?.task().ok_or("no task")?.id.clone();
    let config = PushConfig {
        id: Some(PushConfigId::parse("hook-1")?),
        task_id: Some(task_id.clone()),
        token: Some("token".to_owned()),
        ..PushConfig::new("http://127.0.0.1:65535/")
    };
    let made = client.create_push_config(config).await?;
    Ok((task_id, made))
}

async fn webhook(client: &Client) -> Outcome {
    let (task_id, made) = with_webhook(client).await?;
    let read = client.push_config(&task_id, made.id.as_ref().ok_or("no id")?).await?;
    client.cancel(&task_id).await?;
    check(read.url == made.url, format!("{read:?}"))
}

async fn webhook_list(client: &Client) -> Outcome {
    let (task_id, _) = with_webhook(client).await?;
    let listed = client.push_configs(&task_id, None).await;
    client.cancel(&task_id).await?;
    check(listed?.configs.len() == 1, "the webhook is not in the list")
}

async fn webhook_removed(client: &Client) -> Outcome {
    let (task_id, made) = with_webhook(client).await?;
    let id = made.id.as_ref().ok_or("no id")?;
    let deleted = client.delete_push_config(&task_id, id).await;
    let read = client.push_config(&task_id, id).await;
    client.cancel(&task_id).await?;
    deleted?;
    check(read.is_err(), "it is still there")
}

async fn extended_card(client: &Client) -> Outcome {
    let card = client.extended_card().await?;
    check(!card.name.is_empty(), "a card without a name")
}

/// Prints the verdict, and returns how many have failed.
fn told(check: &str, outcome: Outcome) -> u32 {
    match outcome {
        Ok(()) => {
            println!("ok {check}");
            0
        }
        Err(error) => {
            println!("FAIL {check}: {error}");
            1
        }
    }
}

async fn tour(client: &Client) -> u32 {
    let mut failed = 0;
    let mut told = |check: &str, outcome: Outcome| failed += told(check, outcome);
    told("p09_sends", send(client).await);
    told("p09_gets_message_reply", only_a_message(client).await);
    told("p09_streams", stream(client).await);
    told("p09_answers_a_question", question_and_answer(client).await);
    told("p09_subscribes_and_cancels", subscribe_and_cancel(client).await);
    told("p09_maps_unknown_task_error", not_found(client).await);
    match client.interface().version() {
        Generation::V1 => told("p09_lists_with_pages", list(client).await),
        Generation::V0_3 | Generation::V0_1 => println!("skip p09_lists_with_pages: not in this version"),
    }
    let capabilities = client.card().capabilities.clone();
    if capabilities.push_notifications == Some(true) {
        told("p09_makes_a_webhook", webhook(client).await);
        told("p09_lists_webhooks", webhook_list(client).await);
        told("p09_removes_a_webhook", webhook_removed(client).await);
        told("p09_receives_calls_of_a_webhook", receiver::receive(client).await);
    } else {
        const CHECKS: [&str; 4] = [
            "p09_makes_a_webhook",
            "p09_lists_webhooks",
            "p09_removes_a_webhook",
            "p09_receives_calls_of_a_webhook",
        ];
        for check in CHECKS {
            println!("skip {check}: not on the card");
        }
    }
    match capabilities.extended_agent_card {
        Some(true) => told("p09_reads_the_extended_card", extended_card(client).await),
        _ => println!("skip p09_reads_the_extended_card: not on the card"),
    }
    failed
}

/// A call that the agent must refuse as not authenticated; `sent` if it has a credential.
async fn refused(client: &Client, sent: bool) -> Outcome {
    let error = client.get(&TaskId::parse("no-such-task")?).await.err().ok_or("it was let in")?;
    let agent = error.agent().ok_or_else(|| error.to_string())?;
    let is_refused = agent.http_status() == Some(401) || agent.grpc_code() == Some(16);
    check(is_refused && agent.credentials_sent() == sent, error.to_string())
}

/// A server of an authority that nobody trusts is not even asked for its card.
async fn distrusted(builder: &Builder, url: &str, stranger: &[u8]) -> Outcome {
    let tls = TlsOptions::default().trust_only(stranger);
    let error = builder.clone().tls(tls).connect(url).await.err().ok_or("it was trusted")?;
    let kind = error.transport().ok_or_else(|| error.to_string())?.kind();
    check(kind == TransportKind::Tls, error.to_string())
}

/// What was given on the command line.
#[derive(Default)]
struct Given {
    url: String,
    bearer: Option<String>,
    api_key: Option<String>,
    ca: Option<Vec<u8>>,
    stranger: Option<Vec<u8>>,
}

impl Given {
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut given = Given { url: arguments.next()?, ..Given::default() };
        while let Some(flag) = arguments.next() {
            let value = arguments.next()?;
            match flag.as_str() {
                "--bearer" => given.bearer = Some(value),
                "--api-key" => given.api_key = Some(value),
                "--ca" => given.ca = Some(std::fs::read(value).ok()?),
                "--stranger" => given.stranger = Some(std::fs::read(value).ok()?),
                _ => return None,
            }
        }
        Some(given)
    }

    fn builder(&self) -> Builder {
        let tls = TlsOptions::default();
        let tls = self.ca.iter().fold(tls, |tls, ca| tls.trust_only(ca.clone()));
        Builder::default().tls(tls)
    }

    /// With all credentials, or with wrong ones in their place.
    fn with_credentials(&self, builder: Builder, right: bool) -> Builder {
        let value = |given: &String| if right { given.clone() } else { "wrong".to_owned() };
        let builder = self.bearer.iter().fold(builder, |builder, token| builder.bearer(value(token)));
        self.api_key.iter().fold(builder, |builder, key| builder.api_key(value(key)))
    }

    /// How the agent is guarded, by one of its interfaces.
    async fn guarded(&self, choose: impl Fn(Builder) -> Builder, stranger: &[u8]) -> u32 {
        let without = choose(self.builder()).connect(&self.url).await;
        let wrong = choose(self.with_credentials(self.builder(), false)).connect(&self.url).await;
        let refused_without = match without {
            Ok(client) => refused(&client, false).await,
            Err(error) => Err(error.into()),
        };
        let refused_wrong = match wrong {
            Ok(client) => refused(&client, true).await,
            Err(error) => Err(error.into()),
        };
        let mut failed = 0;
        failed += told("p09_refused_without_credential", refused_without);
        failed += told("p09_refused_with_a_wrong_credential", refused_wrong);
        failed += told(
            "p09_distrusts_an_unknown_authority",
            distrusted(&self.builder(), &self.url, stranger).await,
        );
        failed
    }
}

const BINDINGS: [(Binding, &str); 3] =
    [(Binding::JsonRpc, "JSON-RPC"), (Binding::HttpJson, "HTTP+JSON"), (Binding::Grpc, "gRPC")];

/// Many agents serve gRPC at a port of its own, which is another origin: credentials go there if it is trusted.
async fn with_port_of_grpc(builder: Builder, url: &str) -> Result<Client, Error> {
    let client = builder.clone().connect(url).await?;
    let origin = Origin::parse(client.interface().url())?;
    builder.trust_origin(origin).connect(url).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(given) = Given::read(std::env::args().skip(1)) else {
        eprintln!("usage: tour URL [--bearer TOKEN] [--api-key KEY] [--ca FILE] [--stranger FILE]");
        return ExitCode::from(2);
    };
    let builder = given.with_credentials(given.builder(), true);
    let mut failed = 0;
    for version in [Generation::V1, Generation::V0_3] {
        for (binding, shown) in BINDINGS {
            let choose = |builder: Builder| builder.bindings([binding]).versions([version]);
            let connected = match binding {
                Binding::Grpc => with_port_of_grpc(choose(builder.clone()), &given.url).await,
                _ => choose(builder.clone()).connect(&given.url).await,
            };
            match connected {
                Ok(client) => {
                    println!("{shown} {}", version.version());
                    failed += tour(&client).await;
                    if let Some(stranger) = &given.stranger {
                        failed += given.guarded(choose, stranger).await;
                    }
                }
                Err(error) => eprintln!("{shown} {}: {error}", version.version()),
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
