//! Domain to JSON and back, in every dialect, minus what `losses` says.

use baton_protocol::domain::{AgentCard, AgentInterface};
use baton_protocol::operation::{Call, HistoryLength, ListTasks, Operation, Reply};
use baton_protocol::wire::{StreamItem, v1};
use proptest::prelude::*;

use crate::codecs::{CODECS, Codec, Dialect};
use crate::losses::{after_call, after_card, after_item, after_message, after_reply, after_task};
use crate::strategies;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    String::from_utf8(crate::codecs::written(write)).unwrap()
}

fn check_reply(operation: Operation, reply: Reply) {
    for codec in &CODECS {
        let text = written(|out| (codec.write_reply)(out, &reply));
        let expected = after_reply(codec.dialect, reply.clone());
        assert_eq!((codec.read_reply)(operation, &text).unwrap(), expected, "{text}");
    }
}

fn check_item(item: StreamItem) {
    for codec in &CODECS {
        let text = String::from_utf8(codec.write_item(&item)).unwrap();
        let expected = after_item(codec.dialect, item.clone());
        assert_eq!((codec.read_stream_item)(&text).unwrap(), expected, "{text}");
    }
}

/// A card with an interface for this dialect: without one there is no 0.3 card to write.
fn callable(dialect: Dialect, mut card: AgentCard) -> AgentCard {
    if dialect != Dialect::V1 {
        let versions = ["1.0", "0.3", "0.2", "0.1"].into_iter().cycle();
        for (interface, version) in card.interfaces.iter_mut().zip(versions) {
            interface.protocol_version = version.to_owned();
            // No transport at all is read as the usual one.
            if interface.protocol_binding.is_empty() {
                interface.protocol_binding = "JSONRPC".to_owned();
            }
        }
        card.interfaces.push(AgentInterface {
            url: "https://agent.example.org".to_owned(),
            protocol_binding: "GRPC".to_owned(),
            protocol_version: "0.3".to_owned(),
            tenant: None,
        });
    }
    card
}

/// A call this dialect can make: in JSON-RPC of 0.3 a webhook must say whose it is.
fn sayable(codec: &Codec, mut call: Call) -> Call {
    if let (Dialect::V0_3, Call::CreatePushConfig(config)) = (codec.dialect, &mut call) {
        config.task_id.get_or_insert_with(|| baton_protocol::domain::TaskId::parse("t").unwrap());
    }
    call
}

proptest! {
    #[test]
    fn p01_a_message_survives(message in strategies::message()) {
        for codec in &CODECS {
            let text = written(|out| (codec.write_message)(out, &message));
            let expected = after_message(codec.dialect, message.clone());
            prop_assert_eq!((codec.read_message)(&text).unwrap(), expected);
        }
    }

    #[test]
    fn p01_a_task_survives(task in strategies::task()) {
        for codec in &CODECS {
            let text = written(|out| (codec.write_task)(out, &task));
            prop_assert_eq!((codec.read_task)(&text).unwrap(), after_task(codec.dialect, task.clone()));
        }
    }

    #[test]
    fn p01_a_card_survives(card in strategies::card()) {
        for codec in &CODECS {
            let card = callable(codec.dialect, card.clone());
            let text = written(|out| (codec.write_card)(out, &card));
            prop_assert_eq!((codec.read_card)(&text).unwrap(), after_card(codec.dialect, card));
        }
    }

    #[test]
    fn p02_a_call_survives(tenant in strategies::tenant(), call in strategies::call()) {
        for codec in &CODECS {
            let call = sayable(codec, call.clone());
            let text = written(|out| (codec.write_call)(out, tenant.as_deref(), &call));
            let decoded = (codec.decode_call)(call.operation(), Some(&text)).unwrap();
            prop_assert_eq!(decoded, after_call(codec.dialect, tenant.clone(), call));
        }
    }

    #[test]
    fn p02_replies_survive(
        task in strategies::task(),
        message in strategies::message(),
        config in strategies::push_config(),
        next_page_token in strategies::text(),
    ) {
        check_reply(Operation::SendMessage, Reply::SentTask(task.clone()));
        check_reply(Operation::SendMessage, Reply::SentMessage(message));
        check_reply(Operation::GetTask, Reply::Task(task.clone()));
        check_reply(Operation::CancelTask, Reply::Task(task));
        check_reply(Operation::GetPushConfig, Reply::PushConfig(config.clone()));
        check_reply(Operation::ListPushConfigs, Reply::PushConfigs { configs: vec![config], next_page_token });
        check_reply(Operation::DeletePushConfig, Reply::PushConfigDeleted);
    }

    #[test]
    fn p06_a_page_survives(page in strategies::task_page()) {
        check_reply(Operation::ListTasks, Reply::Tasks(page));
    }

    /// Cutting the texts of tasks to a page gives what writing the page gives.
    #[test]
    fn p06_a_page_is_the_same_from_texts(page in strategies::task_page(), most in prop::option::of(0..4u32)) {
        let history_length = most.map_or(HistoryLength::All, HistoryLength::Last);
        let list = ListTasks { include_artifacts: page.with_artifacts, history_length, ..ListTasks::default() };
        let (mut mixed, mut expected) = (v1::PageWriter::new(&list, 0), page.clone());
        for (n, task) in expected.tasks.iter_mut().enumerate() {
            if n % 2 == 0 {
                let text = written(|out| v1::write_task(out, task));
                prop_assert!(mixed.stored(text.as_bytes()), "{}", text);
            } else {
                mixed.task(task.clone());
            }
            history_length.trim(&mut task.history);
        }
        let mixed = mixed.end(&page.next_page_token, page.page_size, page.total_size);
        let expected = written(|out| v1::write_reply(out, &Reply::Tasks(expected)));
        prop_assert_eq!(String::from_utf8(mixed).unwrap(), expected);
    }

    /// Cutting a task's text gives what writing less of the task gives.
    #[test]
    fn p01_a_cut_history_is_the_same_from_text(task in strategies::task(), most in 0..4u32) {
        let text = written(|out| v1::write_task(out, &task));
        let mut expected = task;
        HistoryLength::Last(most).trim(&mut expected.history);
        let cut = v1::cut_history(text.as_bytes(), HistoryLength::Last(most)).expect("what was just written");
        prop_assert_eq!(String::from_utf8(cut).unwrap(), written(|out| v1::write_task(out, &expected)));
    }

    #[test]
    fn p04_stream_items_survive(
        task in strategies::task(),
        message in strategies::message(),
        at in strategies::timestamp(),
        status in strategies::status_update(),
        artifact in strategies::artifact_update(),
    ) {
        let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
        check_item(StreamItem::Task(task));
        check_item(StreamItem::Message(message));
        let (task, context) = (task_id.clone(), context_id.clone());
        check_item(StreamItem::Status { task_id: task, context_id: context, at, update: status });
        check_item(StreamItem::Artifact { task_id, context_id, update: artifact });
    }

    /// Whatever is cut out of or put into a valid text, reading answers; it never panics.
    #[test]
    fn damaged_text_is_answered(
        call in strategies::call(),
        at in any::<prop::sample::Index>(),
        length in 0..4usize,
        junk in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,4}",
    ) {
        for codec in &CODECS {
            let mut bytes = written(|out| (codec.write_call)(out, None, &call)).into_bytes();
            let at = at.index(bytes.len());
            bytes.splice(at..(at + length).min(bytes.len()), junk.bytes());
            if let Ok(text) = String::from_utf8(bytes) {
                let _ = (codec.decode_call)(call.operation(), Some(&text));
                let _ = (codec.read_task)(&text);
                let _ = (codec.read_stream_item)(&text);
            }
        }
    }
}
