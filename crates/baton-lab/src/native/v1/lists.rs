//! ListTasks: complete pages, working filters, newest first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::same::same;
use super::talk::{COMPLETE, Say, skip, state};
use crate::acts::assertion::show;
use crate::native::{Checks, Done, checks, differs, fail};
use crate::run::Bench;
use crate::wire::request::Operation;

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.lists.of-context" => of_context,
    "v1.lists.last-page" => last_page,
    "v1.lists.walk" => walk,
    "v1.lists.sorted" => sorted,
    "v1.lists.by-state" => by_state,
    "v1.lists.by-time" => by_time,
    "v1.lists.artifacts" => artifacts,
    "v1.lists.first-page" => first_page,
    "v1.lists.token-is-bound" => token_is_bound,
};

/// Makes tasks in one context, since other cases run at the same time.
async fn several(bench: &Bench, count: usize) -> Done<(Value, Vec<Value>)> {
    let first = bench.ended().await?;
    let context = first.get("contextId").filter(|context| context.is_string()).cloned();
    let Some(context) = context else { return Err(skip("the agent gives tasks no contextId to list by")) };
    let mut tasks = vec![first];
    while tasks.len() < count {
        let next = bench.ended_with(&Say::text(COMPLETE).within(&context)).await?;
        if next["contextId"] != context {
            return Err(skip("the agent does not keep tasks in the context it was given"));
        }
        tasks.push(next);
    }
    Ok((context, tasks))
}

fn tasks(page: &Value) -> &[Value] {
    page["tasks"].as_array().map_or(&[], Vec::as_slice)
}

fn ids(tasks: &[Value]) -> BTreeSet<String> {
    tasks.iter().map(|task| task["id"].as_str().unwrap_or_default().to_owned()).collect()
}

/// All pages of a list.
async fn pages(bench: &Bench, mut params: Value) -> Done<Vec<Value>> {
    let mut pages = Vec::new();
    loop {
        let page = bench.reply(Operation::ListTasks, &params).await?;
        let token = page["nextPageToken"].clone();
        pages.push(page);
        match token.as_str() {
            Some("") => return Ok(pages),
            Some(_) if pages.len() > 20 => {
                return Err(differs("the list to end", "20 pages, and a token for more"));
            }
            Some(_) => params["pageToken"] = token,
            None => return Err(differs("`nextPageToken` as a text on every page", show(&token))),
        }
    }
}

async fn of_context(bench: &Bench) -> Done {
    let (context, made) = several(bench, 1).await?;
    let page = bench.reply(Operation::ListTasks, &json!({ "contextId": context })).await?;
    if let Some(other) = tasks(&page).iter().find(|task| task["contextId"] != context) {
        return Err(differs(format!("only tasks of the context {context}"), show(other)));
    }
    if ids(tasks(&page)) == ids(&made) {
        return Ok(());
    }
    Err(differs(format!("the one task of the context, {}", made[0]["id"]), show(&json!(ids(tasks(&page))))))
}

async fn last_page(bench: &Bench) -> Done {
    let (context, _) = several(bench, 1).await?;
    let page = bench.reply(Operation::ListTasks, &json!({ "contextId": context })).await?;
    if page.get("nextPageToken") != Some(&json!("")) {
        let got = page.get("nextPageToken").map_or("no such member".to_owned(), show);
        return Err(differs("`nextPageToken` as the empty text on the last page", got));
    }
    if page["totalSize"] == 1 { Ok(()) } else { Err(differs("`totalSize` 1", show(&page["totalSize"]))) }
}

async fn walk(bench: &Bench) -> Done {
    let (context, made) = several(bench, 5).await?;
    let all = pages(bench, json!({"contextId": context, "pageSize": 2})).await?;
    let seen: Vec<Value> = all.iter().flat_map(|page| tasks(page).to_vec()).collect();
    if ids(&seen).len() != seen.len() {
        return Err(differs(
            "every task once",
            format!("{} tasks, {} different", seen.len(), ids(&seen).len()),
        ));
    }
    if ids(&seen) != ids(&made) {
        return Err(differs(show(&json!(ids(&made))), show(&json!(ids(&seen)))));
    }
    for (index, page) in all.iter().enumerate() {
        if tasks(page).len() > 2 {
            return Err(differs(
                "at most 2 tasks on a page",
                format!("{} on page {}", tasks(page).len(), index + 1),
            ));
        }
        if page["pageSize"] != 2 || page["totalSize"] != 5 {
            let got = format!("{} and {} on page {}", page["pageSize"], page["totalSize"], index + 1);
            return Err(differs("`pageSize` 2 and `totalSize` 5 on every page", got));
        }
    }
    newest_first(&seen)
}

async fn sorted(bench: &Bench) -> Done {
    let (context, _) = several(bench, 3).await?;
    let page = bench.reply(Operation::ListTasks, &json!({"contextId": context})).await?;
    newest_first(tasks(&page))
}

fn newest_first(tasks: &[Value]) -> Done {
    let times: Vec<&str> = tasks.iter().filter_map(|task| task["status"]["timestamp"].as_str()).collect();
    // Times in UTC with fractions of equal length can be sorted as text.
    if times.windows(2).all(|pair| pair[0].len() != pair[1].len() || pair[0] >= pair[1]) {
        return Ok(());
    }
    Err(differs("the newest status first", show(&json!(times))))
}

async fn by_state(bench: &Bench) -> Done {
    let (context, _) = several(bench, 1).await?;
    let waiting = bench.task(&Say::text("tck-input-required").within(&context)).await?;
    for (wanted, count) in [("INPUT_REQUIRED", 1), ("COMPLETED", 1), ("FAILED", 0)] {
        let params = json!({"contextId": context, "status": format!("TASK_STATE_{wanted}")});
        let page = bench.reply(Operation::ListTasks, &params).await?;
        let states: Vec<String> = tasks(&page).iter().map(state).collect();
        if states.len() != count || states.iter().any(|state| state != wanted) {
            return Err(differs(format!("{count} tasks in {wanted}"), format!("{states:?}")));
        }
        if page["totalSize"] != count {
            return Err(differs(format!("`totalSize` {count} for {wanted}"), page["totalSize"].to_string()));
        }
    }
    bench.clean_up(&waiting).await;
    Ok(())
}

/// The bound is inclusive, despite its name.
async fn by_time(bench: &Bench) -> Done {
    let (context, made) = several(bench, 1).await?;
    let task = bench.get(&made[0]["id"]).await?;
    let Some(time) = task["status"]["timestamp"].as_str() else {
        return Err(skip("the task has no timestamp"));
    };
    for (after, count) in [("2001-01-01T00:00:00Z", 1), (time, 1), ("2199-01-01T00:00:00Z", 0)] {
        let params = json!({"contextId": context, "statusTimestampAfter": after});
        let page = bench.reply(Operation::ListTasks, &params).await?;
        let got = tasks(&page).len();
        if got != count {
            return Err(differs(
                format!("{count} task at or after {after} (its status is of {time})"),
                format!("{got}"),
            ));
        }
    }
    Ok(())
}

async fn artifacts(bench: &Bench) -> Done {
    let (context, made) = several(bench, 1).await?;
    let task = bench.get(&made[0]["id"]).await?;
    let Some(own) = task.get("artifacts").filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    else {
        return Err(skip("the agent's task has no artifacts"));
    };
    for params in [json!({"contextId": context}), json!({"contextId": context, "includeArtifacts": false})] {
        let page = bench.reply(Operation::ListTasks, &params).await?;
        if let Some(task) = tasks(&page).iter().find(|task| task.get("artifacts").is_some()) {
            return Err(differs("no `artifacts` member unless it is asked for", show(&task["artifacts"])));
        }
    }
    let params = json!({"contextId": context, "includeArtifacts": true});
    let page = bench.reply(Operation::ListTasks, &params).await?;
    let listed = tasks(&page).first().and_then(|task| task.get("artifacts"));
    if same(listed, Some(own)) {
        Ok(())
    } else {
        Err(differs(show(own), listed.map_or("nothing".to_owned(), show)))
    }
}

/// Without parameters: the default page size, and all four members.
async fn first_page(bench: &Bench) -> Done {
    let page = bench.reply(Operation::ListTasks, &json!({"historyLength": 0})).await?;
    for member in ["tasks", "nextPageToken", "pageSize", "totalSize"] {
        if page.get(member).is_none() {
            return Err(fail(format!("`{member}` is missing; all four members are there in every answer")));
        }
    }
    if page["pageSize"] != 50 {
        return Err(differs("`pageSize` 50, the default", page["pageSize"].to_string()));
    }
    let count = tasks(&page).len();
    if count > 50 { Err(differs("at most 50 tasks", format!("{count}"))) } else { Ok(()) }
}

/// A made-up token must be refused, not treated as the first page.
async fn token_is_bound(bench: &Bench) -> Done {
    let params = json!({"pageToken": "bm8gc3VjaCB0b2tlbg", "pageSize": 1});
    let error = bench.refusal(Operation::ListTasks, &params).await?;
    bench.expect_named(&error, "InvalidParamsError")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first() {
        let list = |times: &[&str]| -> Vec<Value> {
            times.iter().map(|time| json!({"status": {"timestamp": time}})).collect()
        };
        newest_first(&list(&["2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z"])).unwrap();
        newest_first(&list(&["2026-01-02T00:00:00.000Z", "2026-01-02T00:00:00.000Z"])).unwrap();
        newest_first(&[]).unwrap();
        newest_first(&list(&["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"])).unwrap_err();
    }
}
