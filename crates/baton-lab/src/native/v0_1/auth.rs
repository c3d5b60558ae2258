//! Who may ask: of agents whose card names a way to authenticate.

use serde_json::json;

use crate::native::talk::{Say, fresh_id};
use crate::native::v1::auth::{challenge, refuses_strangers, status};
use crate::native::{Checks, Done, checks};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v0_1.auth.strangers" => strangers,
    "v0_1.auth.status" => status,
    "v0_1.auth.challenge" => challenge,
};

async fn strangers(bench: &Bench) -> Done {
    let (id, send) = (json!({ "id": fresh_id() }), Say::text("hello").params(bench));
    let mut all =
        vec![(Operation::SendMessage, &send), (Operation::GetTask, &id), (Operation::CancelTask, &id)];
    if bench.target().capability_in(bench.generation(), "streaming") == true {
        all.extend([(Operation::SendStreamingMessage, &send), (Operation::SubscribeToTask, &id)]);
    }
    for (operation, params) in all {
        refuses_strangers(bench, operation, params).await?;
    }
    Ok(())
}
