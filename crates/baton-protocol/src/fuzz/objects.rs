//! Tasks, messages, events and replies in every dialect: what is read must be written and read again as the same, must
//! survive storing, and must be writable in every other dialect.

use super::codecs::{
    DIALECTS, nearly_too_deep, read_item, read_message, read_reply, read_task, survives, write_item,
    write_message, write_reply,
};
use crate::domain::{Task, TaskId};
use crate::error::{Error, ErrorKind};
use crate::operation::{FACTS, HistoryLength, ListTasks, Operation, Reply};
use crate::wire::StreamItem;
use crate::wire::dialect::{AnswerFacts, Dialect};
use crate::wire::v1::PageWriter;

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for dialect in DIALECTS {
        if let Ok(task) = read_task(dialect, text) {
            told_elsewhere(&StreamItem::Task(task.clone()));
            kept(&task);
        }
        if let Some(Ok(message)) = read_message(dialect, text) {
            survives(
                dialect,
                &message,
                |message| write_message(dialect, message),
                |text| read_message(dialect, text).unwrap_or_else(|| Err(Error::of(ErrorKind::Internal))),
            );
            told_elsewhere(&StreamItem::Message(message));
        }
        if let Ok(item) = read_item(dialect, text) {
            survives(dialect, &item, |item| write_item(dialect, item), |text| read_item(dialect, text));
            told_elsewhere(&item);
        }
        // Cards have a target of their own.
        for facts in FACTS.iter().filter(|it| !it.streams && it.operation != Operation::GetExtendedCard) {
            let read = |text: &str| read_reply(dialect, facts.operation, text);
            if let Ok(reply) = read(text) {
                survives(dialect, &reply, |reply| reply_text(dialect, reply), read);
            }
        }
    }
}

fn reply_text(dialect: Dialect, reply: &Reply) -> String {
    // The legacy `history` is either a list of states or of messages: states if there are any.
    let state_history =
        matches!(reply, Reply::Task(task) | Reply::SentTask(task) if !task.transitions.is_empty());
    write_reply(dialect, reply, &AnswerFacts { state_history, ..AnswerFacts::default() })
}

/// A snapshot stores the task as 1.0 JSON, and its transitions separately.
fn kept(task: &Task) {
    let task = Task { transitions: Vec::new(), ..task.clone() };
    let stored = write_reply(Dialect::V1, &Reply::Task(task.clone()), &AnswerFacts::default());
    assert_eq!(read_task(Dialect::V1, &stored).as_ref().ok(), Some(&task), "{stored}");
    listed(&task, &stored);
}

/// Cutting a task's stored JSON for a list must give the same text as writing the task for the list.
fn listed(task: &Task, stored: &str) {
    for (include_artifacts, history) in [(false, None), (true, None), (false, Some(0)), (true, Some(1))] {
        let history_length = history.map_or(HistoryLength::All, HistoryLength::Last);
        let list = ListTasks { include_artifacts, history_length, ..ListTasks::default() };
        let [mut cut, mut whole] = [(); 2].map(|()| PageWriter::new(&list, 0));
        for _ in 0..2 {
            assert!(cut.stored(stored.as_bytes()), "{stored}");
            whole.task(task.clone());
        }
        let [cut, whole] =
            [cut, whole].map(|page| String::from_utf8(page.end("", 2, 2)).expect("codecs write text"));
        assert_eq!(cut, whole);
    }
}

/// Every dialect can write the item so that its own reader accepts it. `docs/generations.md` lists what is lost.
fn told_elsewhere(item: &StreamItem) {
    for dialect in DIALECTS {
        let text = written_for(dialect, item);
        if let Err(error) = read_item(dialect, &text) {
            assert!(nearly_too_deep(dialect, &text), "{dialect:?} {error}: {text}");
        }
    }
}

/// A message alone has to name a task in 0.1.
fn written_for(dialect: Dialect, item: &StreamItem) -> String {
    match item {
        StreamItem::Message(message) => super::written(|out| {
            let task_id = TaskId::parse("t").ok();
            dialect.write_stream_message(out, message, &AnswerFacts { task_id, ..AnswerFacts::default() });
        }),
        item => write_item(dialect, item),
    }
}
