//! Reads `fixtures/wire/v0_1`, and checks what is only ever written.

use std::path::PathBuf;

use baton_protocol::domain::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, EventKind, JsonText, Message, MessageId, Part,
    PartContent, Role, Status, StatusUpdate, Task, TaskId, TaskState, Timestamp, Transition,
};
use baton_protocol::operation::{Call, HistoryLength, Operation, Reply};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::v0_1::{self, LegacyCardFacts, LegacyOptions};
use baton_protocol::{Error, ErrorKind};

use crate::codecs::written;
use crate::golden_files::{cases, check, check_folders, check_refused, content, fixtures};

/// Reads a text and writes what was understood.
type Rewrite = fn(&str) -> Result<Vec<u8>, Error>;

/// One row per folder of `fixtures/wire/v0_1`.
const OBJECTS: &[(&str, Rewrite)] = &[
    ("task", |text| {
        let task = v0_1::read_task(text)?;
        // What was read as states is written as states.
        let options =
            LegacyOptions { state_history: !task.transitions.is_empty(), ..LegacyOptions::default() };
        Ok(written(|out| v0_1::write_task(out, &task, &options)))
    }),
    ("stream", stream_item),
    ("card", |text| {
        let card = v0_1::read_card(text)?;
        Ok(written(|out| v0_1::write_card(out, &card, &LegacyCardFacts::default())))
    }),
    ("push-config", |text| {
        let reply = v0_1::read_reply(Operation::GetPushConfig, text)?;
        Ok(written(|out| v0_1::write_reply(out, &reply, &LegacyOptions::default())))
    }),
    ("request/send", |text| call("tasks/send", text)),
    ("request/send-subscribe", |text| call("tasks/sendSubscribe", text)),
    ("request/get", |text| call("tasks/get", text)),
    ("request/cancel", |text| call("tasks/cancel", text)),
    ("request/resubscribe", |text| call("tasks/resubscribe", text)),
    ("request/set-push", |text| call("tasks/pushNotification/set", text)),
    ("request/get-push", |text| call("tasks/pushNotification/get", text)),
];

fn call(method: &str, text: &str) -> Result<Vec<u8>, Error> {
    let operation = v0_1::operation_of(method).unwrap();
    assert_eq!(v0_1::method_of(operation), Some(method));
    let decoded = v0_1::decode_call(operation, Some(text))?;
    assert_eq!((decoded.call.operation(), decoded.tenant), (operation, None));
    Ok(written(|out| v0_1::write_call(out, &decoded.call)))
}

fn stream_item(text: &str) -> Result<Vec<u8>, Error> {
    let item = v0_1::read_stream_item(text)?;
    Ok(written(|out| match &item {
        StreamItem::Status { task_id, at, update, .. } => {
            v0_1::write_stream_status(out, task_id, *at, update)
        }
        StreamItem::Artifact { task_id, update, .. } => v0_1::write_stream_artifact(out, task_id, update),
        StreamItem::Task(_) | StreamItem::Message(_) => panic!("0.1 has no such event"),
    }))
}

fn root() -> PathBuf {
    fixtures().join("wire/v0_1")
}

fn objects() -> Vec<&'static str> {
    OBJECTS.iter().map(|(object, _)| *object).collect()
}

#[test]
fn p01_legacy_canonical_files_write_back_byte_for_byte() {
    for (object, rewrite) in OBJECTS {
        let files = cases(&root().join(object));
        assert!(!files.is_empty(), "no golden file for {object}");
        for path in files {
            check(&path, *rewrite, &content(&path));
        }
    }
}

#[test]
fn p01_legacy_lenient_files_are_understood_as_their_canonical_form() {
    let mut seen = 0;
    for (object, rewrite) in OBJECTS {
        for path in cases(&root().join(object).join("lenient")) {
            let expected = content(&path.with_extension("expected"));
            check(&path, *rewrite, &expected);
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} lenient files were found");
}

#[test]
fn legacy_refused_files_name_the_member_and_what_to_do() {
    check_refused(&root().join("refused"), &objects(), |object, text| {
        let (_, rewrite) = OBJECTS.iter().find(|(known, _)| *known == object).unwrap();
        rewrite(text)
    });
}

#[test]
fn every_legacy_folder_is_checked() {
    check_folders(&root(), &objects(), &[]);
}

fn task_id() -> TaskId {
    TaskId::parse("task-1").unwrap()
}

fn said(text: &str) -> Message {
    Message::new(MessageId::parse("m-1").unwrap(), Role::Agent, vec![Part::text(text)])
}

fn task(state: TaskState) -> Task {
    let at = |n| Timestamp::from_millis(n);
    let transition = |state, n| Transition { state, at: at(n) };
    Task {
        id: task_id(),
        context_id: ContextId::parse("session-1").unwrap(),
        status: Status { state, message: None, timestamp: at(2) },
        artifacts: Vec::new(),
        history: vec![said("one").into(), said("two").into()],
        metadata: None,
        transitions: vec![
            transition(TaskState::Submitted, 0),
            transition(TaskState::Working, 1),
            transition(state, 2),
        ],
    }
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    String::from_utf8(written(write)).unwrap()
}

/// The request of the guide, as printed.
#[test]
fn s17_the_client_names_the_task() {
    let params = r#"{"id":"task-1","sessionId":"session-1","message":{"role":"user","parts":[{"type":"text","text":"Analyze my dataset"}]}}"#;
    let decoded = v0_1::decode_call(Operation::SendMessage, Some(params)).unwrap();
    let Call::SendMessage(send) = decoded.call else { panic!("not a send") };
    assert_eq!(send.client_task_id, Some(task_id()));
    assert_eq!(send.message.task_id, None);
    assert_eq!(send.message.context_id.as_ref().map(ContextId::as_str), Some("session-1"));
    assert_eq!(send.message.text(), "Analyze my dataset");
    assert_eq!(send.history_length, HistoryLength::All);
    assert!(send.return_immediately, "tasks/send answers as soon as the task is stored");
}

#[test]
fn a_webhook_in_a_send_is_the_tasks_only_one() {
    let params = r#"{"id":"task-1","message":{"role":"user","parts":[{"text":"a"}]},"pushNotification":{"url":"https://example.org"}}"#;
    let decoded = v0_1::decode_call(Operation::SendStreamingMessage, Some(params)).unwrap();
    let Call::SendStreamingMessage(send) = decoded.call else { panic!("not a send") };
    let config = send.push_config.unwrap();
    assert_eq!(config.id.unwrap().as_str(), "task-1");
    assert_eq!(config.task_id, Some(task_id()));
    let get = v0_1::decode_call(Operation::GetPushConfig, Some(r#"{"id":"task-1"}"#)).unwrap();
    assert_eq!(get.call, Call::GetPushConfig { task_id: task_id(), id: None });
}

#[test]
fn s07_s10_history_is_the_states_when_on_and_the_messages_when_off() {
    let reply = Reply::Task(task(TaskState::Completed));
    let history = |state_history, history_length| {
        let options = LegacyOptions { state_history, history_length, task_id: None };
        let whole = text(|out| v0_1::write_reply(out, &reply, &options));
        whole.split_once(r#","history":"#).map(|(_, rest)| rest.trim_end_matches('}').to_owned())
    };
    let (all, last) = (HistoryLength::All, HistoryLength::Last);
    let [submitted, working, completed] = [("submitted", 0), ("working", 1), ("completed", 2)]
        .map(|(state, n)| format!(r#"{{"state":"{state}","timestamp":"1970-01-01T00:00:00.00{n}Z"}}"#));
    let [one, two] = ["one", "two"]
        .map(|text| format!(r#"{{"role":"agent","parts":[{{"type":"text","text":"{text}"}}]}}"#));
    for (state_history, length, expected) in [
        (true, all, Some(format!("[{submitted},{working},{completed}]"))),
        (true, last(2), Some(format!("[{working},{completed}]"))),
        (true, last(9), Some(format!("[{submitted},{working},{completed}]"))),
        (true, last(0), None),
        (false, all, Some(format!("[{one},{two}]"))),
        (false, last(1), Some(format!("[{two}]"))),
        (false, last(0), None),
    ] {
        assert_eq!(history(state_history, length), expected, "{state_history} {length:?}");
    }
}

#[test]
fn s10_history_length_of_tasks_get() {
    for (params, expected) in [
        (r#"{"id":"task-1"}"#, HistoryLength::All),
        (r#"{"id":"task-1","historyLength":null}"#, HistoryLength::All),
        (r#"{"id":"task-1","historyLength":0}"#, HistoryLength::Last(0)),
        (r#"{"id":"task-1","historyLength":100}"#, HistoryLength::Last(100)),
    ] {
        let decoded = v0_1::decode_call(Operation::GetTask, Some(params)).unwrap();
        let Call::GetTask(get) = decoded.call else { panic!("not a get") };
        assert_eq!(get.history_length, expected, "{params}");
    }
}

#[test]
fn s04_states_that_legacy_lacks_become_the_nearest() {
    for (state, name) in [
        (TaskState::Submitted, "submitted"),
        (TaskState::Working, "working"),
        (TaskState::InputRequired, "input-required"),
        (TaskState::AuthRequired, "input-required"),
        (TaskState::Completed, "completed"),
        (TaskState::Failed, "failed"),
        (TaskState::Canceled, "canceled"),
        (TaskState::Rejected, "failed"),
    ] {
        let whole = text(|out| v0_1::write_task(out, &task(state), &LegacyOptions::default()));
        assert!(whole.contains(&format!(r#""status":{{"state":"{name}""#)), "{whole}");
        let update = StatusUpdate { state, message: None, metadata: None };
        let at = Timestamp::from_millis(0);
        let frame = text(|out| v0_1::write_stream_status(out, &task_id(), at, &update));
        let last = state.is_terminal() || state.is_interrupted();
        assert!(frame.ends_with(&format!(r#""final":{last}}}"#)), "{frame}");
        let first = text(|out| v0_1::write_stream_task(out, &task(state)));
        assert_eq!(
            first,
            format!(
                r#"{{"id":"task-1","status":{{"state":"{name}","timestamp":"1970-01-01T00:00:00.002Z"}},"final":{last}}}"#
            )
        );
    }
}

#[test]
fn a_message_alone_is_told_as_a_task_that_is_done() {
    let mut message = said("hello");
    message.context_id = ContextId::parse("session-1").ok();
    let options = LegacyOptions { task_id: Some(task_id()), ..LegacyOptions::default() };
    let status = r#""status":{"state":"completed","message":{"role":"agent","parts":[{"type":"text","text":"hello"}]}}"#;
    assert_eq!(
        text(|out| v0_1::write_reply(out, &Reply::SentMessage(message.clone()), &options)),
        format!(r#"{{"id":"task-1","sessionId":"session-1",{status}}}"#)
    );
    assert_eq!(
        text(|out| v0_1::write_stream_message(out, Some(&task_id()), &message)),
        format!(r#"{{"id":"task-1",{status},"final":true}}"#)
    );
}

#[test]
fn s13_frames_are_named_status_and_artifact() {
    for (kind, name) in [
        (EventKind::Status(TaskState::Working), Some("status")),
        (EventKind::Artifact, Some("artifact")),
        (EventKind::UserMessage, None),
        (EventKind::AttemptStarted, None),
        (EventKind::CancelRequested, None),
    ] {
        assert_eq!(v0_1::event_name(kind), name);
    }
}

#[test]
fn p01_parts_that_legacy_cannot_say() {
    let artifact = |part| {
        let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![part]);
        let update = ArtifactUpdate {
            artifact,
            append: false,
            joins: false,
            last_chunk: true,
            ordinal: 7,
            metadata: None,
        };
        text(|out| v0_1::write_stream_artifact(out, &task_id(), &update))
    };
    let data =
        |json| Part { media_type: Some("text/x".to_owned()), ..Part::data(JsonText::parse(json).unwrap()) };
    for (part, expected) in [
        (data("{}"), r#"{"type":"data","data":{}}"#),
        (data("[1]"), r#"{"type":"data","data":[1]}"#),
        (data("null"), r#"{"type":"data","data":{"value":null}}"#),
        (data("\"x\""), r#"{"type":"data","data":{"value":"x"}}"#),
        (data("1.50"), r#"{"type":"data","data":{"value":1.50}}"#),
        (Part { filename: Some("f".to_owned()), ..Part::text("x") }, r#"{"type":"text","text":"x"}"#),
        (
            Part { content: PartContent::Raw(Vec::new()), filename: None, media_type: None, metadata: None },
            r#"{"type":"file","file":{"bytes":""}}"#,
        ),
    ] {
        assert_eq!(
            artifact(part),
            format!(
                r#"{{"id":"task-1","artifact":{{"parts":[{expected}],"index":7,"append":false,"lastChunk":true}}}}"#
            )
        );
    }
}

#[test]
fn operations_that_legacy_lacks_are_unknown_methods() {
    for method in
        ["tasks/list", "message/send", "SendMessage", "tasks/pushNotification/list", "", "tasks/Send"]
    {
        assert_eq!(v0_1::operation_of(method), None, "{method}");
    }
    for operation in [
        Operation::ListTasks,
        Operation::ListPushConfigs,
        Operation::DeletePushConfig,
        Operation::GetExtendedCard,
    ] {
        assert_eq!(v0_1::method_of(operation), None);
        let error = v0_1::decode_call(operation, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MethodNotFound);
        assert!(v0_1::read_reply(operation, "{}").is_err());
    }
}

#[test]
fn absent_legacy_params_are_an_empty_object() {
    for absent in [None, Some("null"), Some(""), Some(" null\n")] {
        let error = v0_1::decode_call(Operation::SendMessage, absent).unwrap_err();
        assert_eq!(error.to_string(), "Invalid parameters: id is required", "{absent:?}");
    }
}
