use baton_protocol::domain::{AgentCard, AgentInterface, PushConfig, TaskId};
use baton_protocol::operation::{Call, Operation, Reply};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::pb::Package;
use proptest::prelude::*;

use super::losses::{after_call, after_item, after_reply, same_call_json, same_item_json, same_json};
use crate::strategies;

fn check_reply(operation: Operation, reply: &Reply) {
    for package in Package::ALL {
        let message = package.write_reply(reply).unwrap();
        let read = package.read_reply(operation, message.into()).unwrap();
        assert_eq!(read.unknown_states, Vec::new());
        assert_eq!(same_json(read.value), after_reply(package, reply.clone()), "{package:?}");
    }
}

fn check_item(item: &StreamItem) {
    for package in Package::ALL {
        let message = package.write_stream_update(item);
        let read = package.read_stream_item(message.into()).unwrap();
        assert_eq!(same_item_json(read.value), after_item(package, item.clone()), "{package:?}");
    }
}

/// A card with an interface of each generation: without one there is no 0.3 card to write.
pub(super) fn callable(mut card: AgentCard) -> AgentCard {
    for version in ["1.0", "0.3"] {
        card.interfaces.insert(
            0,
            AgentInterface {
                url: "agent.example.org:443".to_owned(),
                protocol_binding: "GRPC".to_owned(),
                protocol_version: version.to_owned(),
                tenant: None,
            },
        );
    }
    card
}

/// A call that both packages can say: strings that are required are not empty, and a list has one state at most.
pub(super) fn sayable(mut call: Call) -> Call {
    match &mut call {
        Call::SendMessage(send) | Call::SendStreamingMessage(send) => {
            send.push_config = send.push_config.take().map(with_required);
        }
        Call::CreatePushConfig(config) => {
            *config = with_required(config.clone());
            config.task_id.get_or_insert_with(|| TaskId::parse("t").unwrap());
        }
        Call::ListTasks(list) => list.filter.states.truncate(1),
        _ => {}
    }
    call
}

pub(super) fn with_required(mut config: PushConfig) -> PushConfig {
    config.url.push('u');
    if let Some(authentication) = &mut config.authentication {
        authentication.scheme.push('s');
    }
    config
}

/// A webhook in an answer: it belongs to a task.
pub(super) fn stored_config() -> impl Strategy<Value = PushConfig> {
    (strategies::push_config(), strategies::task_id())
        .prop_map(|(config, task_id)| PushConfig { task_id: Some(task_id), ..config })
}

proptest! {
    #[test]
    fn p01_a_call_survives_grpc(tenant in strategies::tenant(), call in strategies::call()) {
        for package in Package::ALL {
            let call = sayable(call.clone());
            if package.method(call.operation()).is_some() {
                let message = package.write_call(tenant.as_deref(), &call).unwrap();
                let mut decoded = package.decode_call(call.operation(), message.into()).unwrap();
                decoded.call = same_call_json(decoded.call);
                prop_assert_eq!(decoded, after_call(package, tenant.clone(), call));
            }
        }
    }

    #[test]
    fn p01_replies_survive_grpc(
        task in strategies::task(),
        message in strategies::message(),
        config in stored_config(),
        next_page_token in strategies::text(),
    ) {
        check_reply(Operation::SendMessage, &Reply::SentTask(task.clone()));
        check_reply(Operation::SendMessage, &Reply::SentMessage(message));
        check_reply(Operation::CancelTask, &Reply::Task(task));
        check_reply(Operation::GetPushConfig, &Reply::PushConfig(config.clone()));
        let configs = Reply::PushConfigs { configs: vec![config], next_page_token };
        check_reply(Operation::ListPushConfigs, &configs);
        check_reply(Operation::DeletePushConfig, &Reply::PushConfigDeleted);
    }

    #[test]
    fn p06_a_page_survives_grpc(page in strategies::task_page()) {
        let reply = Reply::Tasks(page);
        let message = Package::V1.write_reply(&reply).unwrap();
        let read = Package::V1.read_reply(Operation::ListTasks, message.into()).unwrap();
        prop_assert_eq!(same_json(read.value), after_reply(Package::V1, reply.clone()));
        prop_assert!(Package::V0_3.write_reply(&reply).is_err());
    }

    #[test]
    fn p01_a_card_survives_grpc(card in strategies::card()) {
        check_reply(Operation::GetExtendedCard, &Reply::Card(Box::new(callable(card))));
    }

    #[test]
    fn p04_stream_items_survive_grpc(
        task in strategies::task(),
        message in strategies::message(),
        at in strategies::timestamp(),
        status in strategies::status_update(),
        artifact in strategies::artifact_update(),
    ) {
        let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
        check_item(&StreamItem::Task(task));
        check_item(&StreamItem::Message(message));
        let (id, context) = (task_id.clone(), context_id.clone());
        check_item(&StreamItem::Status { task_id: id, context_id: context, at, update: status });
        check_item(&StreamItem::Artifact { task_id, context_id, update: artifact });
    }

    /// Reading answers whatever the bytes are; it never panics.
    #[test]
    fn damaged_messages_are_answered(
        call in strategies::call(),
        at in any::<prop::sample::Index>(),
        length in 0..4usize,
        junk in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        for package in Package::ALL {
            let Ok(mut bytes) = package.write_call(None, &sayable(call.clone())) else { continue };
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..(at + length).min(bytes.len()), junk.iter().copied());
            for facts in &baton_protocol::operation::FACTS {
                let _ = package.decode_call(facts.operation, bytes.clone().into());
                let _ = package.read_reply(facts.operation, bytes.clone().into());
            }
            let _ = package.read_stream_item(bytes.into());
        }
    }
}

/// Every operation has the path that the service gives it, and no other path names one.
#[test]
fn p02_methods_are_found_by_their_paths() {
    let pool = super::oracle::pool();
    for package in Package::ALL {
        let service = pool.get_service_by_name(package.service()).unwrap();
        let mut found = 0;
        for method in service.methods() {
            let path = format!("/{}/{}", package.service(), method.name());
            let (of, operation) = Package::of_path(&path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!((of, operation.facts().streams), (package, method.is_server_streaming()), "{path}");
            assert_eq!(package.method(operation), Some(method.name()));
            assert!(!method.is_client_streaming());
            found += 1;
        }
        let named =
            baton_protocol::operation::FACTS.iter().filter(|it| package.method(it.operation).is_some());
        assert_eq!(named.count(), found);
    }
    for path in [
        "",
        "/",
        "lf.a2a.v1.A2AService/GetTask",
        "/lf.a2a.v1.A2AService/",
        "/lf.a2a.v1.A2AService/TaskSubscription",
        "/a2a.v1.A2AService/ListTasks",
        "/a2a.v1.A2AService/GetTask/",
        "/A2AService/GetTask",
    ] {
        assert_eq!(Package::of_path(path), None, "{path}");
    }
}

/// What a package cannot say is refused where it is asked for.
#[test]
fn calls_without_words_are_refused() {
    use baton_protocol::domain::TaskState;
    let list = |states: &[TaskState]| {
        let mut list = baton_protocol::operation::ListTasks::default();
        list.filter.states = states.to_vec();
        Call::ListTasks(list)
    };
    let several = list(&[TaskState::Working, TaskState::Failed]);
    assert!(Package::V1.write_call(None, &list(&[TaskState::Working])).is_ok());
    for (package, call) in [(Package::V1, several), (Package::V0_3, list(&[]))] {
        let error = package.write_call(None, &call).unwrap_err();
        assert_eq!(error.kind(), baton_protocol::ErrorKind::UnsupportedOperation, "{error}");
    }
    let error = Package::V0_3.decode_call(Operation::ListTasks, Vec::new().into()).unwrap_err();
    assert_eq!(error.kind(), baton_protocol::ErrorKind::MethodNotFound);
}

/// Zero is a value where a field has presence, and nothing where it has none.
#[test]
fn p02_zero_is_not_always_nothing() {
    use baton_protocol::operation::{HistoryLength, ListTasks, SendMessage};
    let none = HistoryLength::Last(0);
    let sent = |package: Package, call: &Call| {
        let message = package.write_call(None, call).unwrap();
        package.decode_call(call.operation(), message.into()).unwrap().call
    };
    let list = ListTasks { page_size: Some(0), history_length: none, ..ListTasks::default() };
    assert_eq!(sent(Package::V1, &Call::ListTasks(list.clone())), Call::ListTasks(list));
    let id = baton_protocol::domain::MessageId::parse("m").unwrap();
    let parts = vec![baton_protocol::domain::Part::text("")];
    let message = baton_protocol::domain::Message::new(id, baton_protocol::domain::Role::User, parts);
    let send = SendMessage { history_length: none, ..SendMessage::new(message) };
    for (package, expected) in [(Package::V1, none), (Package::V0_3, HistoryLength::All)] {
        let expected = Call::SendMessage(SendMessage { history_length: expected, ..send.clone() });
        assert_eq!(sent(package, &Call::SendMessage(send.clone())), expected);
    }
    let task_id = TaskId::parse("t").unwrap();
    let list = |page_size| Call::ListPushConfigs { task_id: task_id.clone(), page_size, page_token: None };
    for package in Package::ALL {
        assert_eq!(sent(package, &list(Some(0))), list(None));
        assert_eq!(sent(package, &list(Some(-1))), list(Some(-1)));
    }
}

/// Protobuf has nanoseconds. Times are cut to milliseconds, but the lower bound of a filter is rounded up: otherwise it
/// would let earlier times through.
#[test]
fn p06_fractions_of_a_millisecond_are_cut_or_rounded_up() {
    use baton_protocol::wire::pb::v1::messages::{ListTasksRequest, Task, TaskStatus};
    use prost::Message as _;
    for (seconds, nanos, cut, up) in [
        (1, 0, 1000, 1000),
        (1, 2_000_000, 1002, 1002),
        (1, 2_000_001, 1002, 1003),
        (-1, 999_999_999, -1, 0),
        (-2, 0, -2000, -2000),
    ] {
        let at = || Some(prost_types::Timestamp { seconds, nanos });
        let status = Some(TaskStatus { state: 2, timestamp: at(), ..Default::default() });
        let task = Task { id: "t".to_owned(), status, ..Default::default() }.encode_to_vec();
        let read = Package::V1.read_reply(Operation::GetTask, task.into()).unwrap().value;
        assert!(
            matches!(read, Reply::Task(task) if task.status.timestamp.as_millis() == cut),
            "{seconds} {nanos}"
        );
        let list = ListTasksRequest { status_timestamp_after: at(), ..Default::default() }.encode_to_vec();
        let list = Package::V1.decode_call(Operation::ListTasks, list.into()).unwrap().call;
        let Call::ListTasks(list) = list else { panic!("{list:?}") };
        assert_eq!(list.filter.updated_since.unwrap().as_millis(), up, "{seconds} {nanos}");
    }
}
