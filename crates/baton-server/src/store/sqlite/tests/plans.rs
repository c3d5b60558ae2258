//! Statements use the indexes made for them, and a small write updates no index it need not.

use super::super::statements as sql;
use super::*;

fn explain(explain: &str, statement: &str, column: usize) -> Vec<String> {
    let (folder, store) = store();
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("baton.db")).unwrap();
    let mut explain = connection.prepare(&format!("{explain} {statement}")).unwrap();
    explain.raw_query().mapped(|row| row.get(column)).map(Result::unwrap).collect()
}

#[test]
fn nothing_scans_or_sorts_tasks() {
    for (name, statement, index) in [
        ("head", sql::HEAD, "sqlite_autoindex_task_1 (scope=? AND id=?)"),
        ("load", sql::LOAD, "sqlite_autoindex_task_1 (scope=? AND id=?)"),
        ("events", sql::EVENTS, "e USING INDEX event_by_task (task=? AND number>?)"),
        ("requests", sql::REQUESTS, "r USING PRIMARY KEY (task=?)"),
        (
            "list",
            sql::LIST_RESTING,
            "COVERING INDEX task_by_state (scope=? AND state=? AND status_at>? AND (status_at,id)<(?,?))",
        ),
        (
            "list of open ones",
            sql::LIST_OPEN,
            "COVERING INDEX task_open_by_time (scope=? AND status_at>? AND (status_at,id)<(?,?))",
        ),
        (
            "list of a context",
            sql::LIST_RESTING_IN_CONTEXT,
            "COVERING INDEX task_by_context \
             (scope=? AND context=? AND state=? AND status_at>? AND (status_at,id)<(?,?))",
        ),
        (
            "list of a context's open ones",
            sql::LIST_OPEN_IN_CONTEXT,
            "COVERING INDEX task_open_by_time (scope=? AND status_at>? AND (status_at,id)<(?,?))",
        ),
        ("what a status says", sql::SAID, "event_by_task (task=? AND number>?)"),
        ("total", sql::TALLY, "tally USING PRIMARY KEY (scope=?)"),
        ("total of a context", sql::CONTEXT_TALLY, "context_tally USING PRIMARY KEY (scope=? AND context=?)"),
        (
            "count since",
            sql::COUNT_SINCE,
            "COVERING INDEX task_by_state (scope=? AND state=? AND status_at>?)",
        ),
        (
            "count of open ones",
            sql::COUNT_OPEN_SINCE,
            "COVERING INDEX task_open_by_time (scope=? AND status_at>?)",
        ),
        (
            "count of a context",
            sql::COUNT_SINCE_IN_CONTEXT,
            "COVERING INDEX task_by_context (scope=? AND context=? AND state=? AND status_at>?)",
        ),
        (
            "count of open ones in a context",
            sql::COUNT_OPEN_SINCE_IN_CONTEXT,
            "COVERING INDEX task_open_by_time (scope=? AND status_at>?)",
        ),
        ("open tasks", sql::OPEN_TASKS, "task USING INDEX task_open (key>?)"),
        ("fold", sql::FOLDABLE, "task_foldable (ended_at<?)"),
        ("purge of those with nothing to fold", sql::PURGEABLE[0], "task_ended (ended_at<?)"),
        ("purge of the others", sql::PURGEABLE[1], "task_foldable (ended_at<?)"),
        (
            "a message of its own",
            sql::FIND_MESSAGE,
            "message_record USING PRIMARY KEY (scope=? AND message_id=? AND hash>? AND hash<?)",
        ),
        (
            "a task's first message",
            sql::FIND_MESSAGE,
            "task_message (scope=? AND message_id=? AND hash>? AND hash<?)",
        ),
        ("an owner's usage", sql::OWNER_USAGE, "owner_usage USING PRIMARY KEY (owner=?)"),
        ("the bytes of a log", sql::EVENT_SIZES, "event_by_task (task=? AND number>?)"),
        ("purge records", sql::PURGEABLE_RECORDS, "message_record_by_time (at<?)"),
    ] {
        let plan = explain("EXPLAIN QUERY PLAN", statement, 3);
        assert!(plan.iter().any(|line| line.contains(index)), "{name} does not use {index}: {plan:#?}");
        // `open` is the CTE with the page of keys.
        let bad = |line: &&String| {
            (line.contains("SCAN") && *line != "SCAN open")
                || line.contains("TEMP B-TREE")
                || line.contains("AUTOMATIC")
        };
        assert_eq!(plan.iter().find(bad), None, "{name}: {plan:#?}");
    }
}

/// It reads the rows of open tasks only.
#[test]
fn what_open_tasks_have_not_counted_is_found_by_their_index() {
    let plan = explain("EXPLAIN QUERY PLAN", sql::OWNER_UNCOUNTED, 3);
    assert_eq!(plan, ["SCAN t USING INDEX task_open", "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)"]);
}

#[test]
fn a_purge_finds_what_a_task_or_a_scope_owns_by_key() {
    for statement in sql::REMOVE_TASK.into_iter().chain([sql::REMOVE_SCOPE, sql::REMOVE_TALLY]) {
        let plan = explain("EXPLAIN QUERY PLAN", statement, 3);
        assert!(!plan.iter().any(|line| line.contains("SCAN ")), "{statement}: {plan:#?}");
    }
}

#[test]
fn an_append_that_leaves_the_status_alone_touches_no_index() {
    let writes = |statement| {
        let steps = explain("EXPLAIN", statement, 1);
        steps.iter().filter(|step| *step == "IdxInsert").count()
    };
    assert_eq!(writes(sql::UPDATE_HEAD_UNINDEXED), 0);
    assert_eq!(writes(sql::NUMBER_REQUEST), 0);
    // Six indexes; an open task is in two of them, a resting one in two or three.
    assert_eq!(writes(sql::UPDATE_HEAD), 6);
}

/// A prepared statement is planned once, not again for other parameter values.
#[test]
fn s12_no_statement_is_planned_anew_for_other_values() {
    let (folder, _store) = store();
    let session = session::Session::reader(&folder.path().join("baton.db"), Removals::default()).unwrap();
    let reading =
        [sql::HEAD, sql::LOAD, sql::LOAD_WITHIN, sql::EVENTS, sql::TAIL, sql::REQUESTS, sql::FIND_MESSAGE];
    let listing = [
        sql::LIST_RESTING,
        sql::LIST_OPEN,
        sql::LIST_RESTING_IN_CONTEXT,
        sql::LIST_OPEN_IN_CONTEXT,
        sql::COUNT_SINCE,
        sql::COUNT_OPEN_SINCE,
        sql::COUNT_SINCE_IN_CONTEXT,
        sql::COUNT_OPEN_SINCE_IN_CONTEXT,
        sql::BRIEF,
        sql::WHOLE,
        sql::SAID,
        sql::TALLY,
        sql::FOLDABLE,
    ];
    let mut anew = Vec::new();
    for sql in reading.into_iter().chain(listing) {
        let mut statement = session.connection.prepare(sql).unwrap();
        for value in 0..3_i64 {
            for parameter in 1..=statement.parameter_count() {
                statement.raw_bind_parameter(parameter, value).unwrap();
            }
            statement.raw_query().next().unwrap();
        }
        if statement.get_status(rusqlite::StatementStatus::RePrepare) > 0 {
            anew.push(sql);
        }
    }
    assert_eq!(anew, [""; 0]);
}
