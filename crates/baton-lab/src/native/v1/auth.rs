//! Authentication: missing credentials, wrong credentials, other users.

use serde_json::json;

use super::talk::skip;
use crate::native::callers::{self, asked, is_about_the_caller, other_user};
use crate::native::{Checks, Done, checks, differs};
use crate::run::Bench;
use crate::wire::Answer;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.auth.strangers" => callers::strangers,
    "v1.auth.status" => callers::status,
    "v1.auth.challenge" => callers::challenge,
    "v1.auth.wrong-credentials" => callers::wrong_credentials,
    "v1.auth.wrong-status" => callers::wrong_status,
    "v1.auth.broken-body" => callers::broken_body,
    "v1.auth.extended-card" => extended_card,
    "v1.auth.foreign-task" => callers::foreign_task,
    "v1.auth.foreign-list" => foreign_list,
    "v1.auth.foreign-page" => foreign_page,
    "v1.auth.foreign-changes" => callers::foreign_changes,
};

async fn extended_card(bench: &Bench) -> Done {
    let operation = Operation::GetExtendedAgentCard;
    match asked(bench, &bench.probe().stranger(), operation, &json!({})).await? {
        Answer::Error(error) if is_about_the_caller(&error) => Ok(()),
        Answer::Error(error) if bench.is_named(&error, "ExtendedAgentCardNotConfiguredError") => {
            Err(skip("no extended card is configured"))
        }
        other => Err(differs("the extended card to be refused without credentials", other.summary())),
    }
}

async fn foreign_list(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let task = bench.ended().await?;
    for params in [json!({}), json!({ "contextId": task["contextId"] })] {
        match asked(bench, &other, Operation::ListTasks, &params).await? {
            Answer::Reply { root: Some(page), .. } => {
                let seen = page["tasks"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(|one| one["id"] == task["id"]));
                if seen {
                    return Err(differs("no task of another user in the list", task["id"].to_string()));
                }
            }
            Answer::Error(error) if is_about_the_caller(&error) => {}
            other => return Err(differs("the other user's own list", other.summary())),
        }
    }
    Ok(())
}

/// The place in a list that one user was given shows another user nothing of it.
async fn foreign_page(bench: &Bench) -> Done {
    let other = other_user(bench)?;
    let mut own = Vec::new();
    for _ in 0..2 {
        own.push(bench.ended().await?["id"].clone());
    }
    let first = bench.reply(Operation::ListTasks, &json!({ "pageSize": 1 })).await?;
    let Some(token) = first["nextPageToken"].as_str().filter(|token| !token.is_empty()) else {
        return Err(differs("a `nextPageToken` after one of two tasks", "none"));
    };
    let params = json!({"pageSize": 100, "pageToken": token});
    match asked(bench, &other, Operation::ListTasks, &params).await? {
        Answer::Error(_) => Ok(()),
        Answer::Reply { root: Some(page), .. } => {
            let tasks = page["tasks"].as_array().into_iter().flatten();
            let seen = tasks.map(|task| &task["id"]).find(|id| own.contains(id));
            seen.map_or(Ok(()), |id| Err(differs("no task of another user on the page", id.to_string())))
        }
        other => Err(differs("a page of the other user's own tasks, or an error", other.summary())),
    }
}
