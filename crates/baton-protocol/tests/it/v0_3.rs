//! What only 0.3 has: method names and their aliases, `final`, and what its two dialects understand differently.

use baton_protocol::domain::{
    ContextId, JsonText, Message, MessageId, Part, Role, StatusUpdate, TaskId, TaskState, Timestamp,
};
use baton_protocol::operation::{Call, HistoryLength, Operation};
use baton_protocol::wire::v0_3::{self, operation_of, proto_json};

use crate::codecs::{CODECS, Dialect, written};

#[test]
fn p02_every_method_and_its_aliases() {
    for (method, expected) in [
        ("message/send", Some(Operation::SendMessage)),
        ("message/stream", Some(Operation::SendStreamingMessage)),
        ("tasks/get", Some(Operation::GetTask)),
        ("tasks/list", Some(Operation::ListTasks)),
        ("tasks/cancel", Some(Operation::CancelTask)),
        ("tasks/resubscribe", Some(Operation::SubscribeToTask)),
        ("tasks/subscribe", Some(Operation::SubscribeToTask)),
        ("tasks/pushNotificationConfig/set", Some(Operation::CreatePushConfig)),
        ("tasks/pushNotificationConfig/create", Some(Operation::CreatePushConfig)),
        ("tasks/pushNotificationConfig/get", Some(Operation::GetPushConfig)),
        ("tasks/pushNotificationConfig/list", Some(Operation::ListPushConfigs)),
        ("tasks/pushNotificationConfig/delete", Some(Operation::DeletePushConfig)),
        ("agent/getAuthenticatedExtendedCard", Some(Operation::GetExtendedCard)),
        ("agent/getExtendedCard", Some(Operation::GetExtendedCard)),
        ("agent/authenticatedExtendedCard", Some(Operation::GetExtendedCard)),
        ("tasks/send", None),
        ("tasks/pushNotification/set", None),
        ("SendMessage", None),
        ("Message/Send", None),
        ("", None),
    ] {
        assert_eq!(operation_of(method), expected, "{method}");
    }
}

#[test]
fn p04_final_is_told_from_the_state_alone() {
    let (task, context) = (TaskId::parse("t").unwrap(), ContextId::parse("c").unwrap());
    for state in TaskState::ALL {
        let update = StatusUpdate { state, message: None, metadata: None };
        let expected = state.is_terminal() || state == TaskState::InputRequired;
        for codec in CODECS.iter().filter(|codec| codec.dialect != Dialect::V1) {
            let at = Timestamp::from_millis(0);
            let out = written(|out| (codec.write_stream_status)(out, &task, &context, at, &update));
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.contains(r#""final":true"#), expected, "{text}");
            // The schema requires the member; the proto's writers drop a false one.
            let told = expected || codec.dialect == Dialect::V0_3;
            assert_eq!(text.contains(r#""final":"#), told, "{text}");
        }
    }
}

/// The same body under both dialects: absent flags and zero do not mean the same.
#[test]
fn p02_what_is_left_unsaid_differs_by_dialect() {
    let message = r#"{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}"#;
    let all = HistoryLength::All;
    for (configuration, at_once, at_once_rest, history, history_rest) in [
        ("null", false, true, all, all),
        ("{}", false, true, all, all),
        (r#"{"blocking":null}"#, false, true, all, all),
        (r#"{"blocking":true}"#, false, false, all, all),
        (r#"{"blocking":false}"#, true, true, all, all),
        (r#"{"historyLength":0}"#, false, true, HistoryLength::Last(0), all),
        (r#"{"historyLength":3}"#, false, true, HistoryLength::Last(3), HistoryLength::Last(3)),
    ] {
        let params = format!(r#"{{"message":{message},"configuration":{configuration}}}"#);
        for (decoded, at_once, history) in [
            (v0_3::decode_call(Operation::SendMessage, Some(&params)), at_once, history),
            (proto_json::decode_call(Operation::SendMessage, Some(&params)), at_once_rest, history_rest),
        ] {
            let Call::SendMessage(send) = decoded.unwrap().call else { panic!("another call") };
            assert_eq!((send.return_immediately, send.history_length), (at_once, history), "{configuration}");
        }
    }
}

/// A card that no 0.3 client can call is not made up into one.
#[test]
fn p01_a_card_without_an_interface_of_0_3_has_no_url() {
    let card = baton_protocol::domain::AgentCard::new("a", "b", "1");
    for codec in CODECS.iter().filter(|codec| codec.dialect != Dialect::V1) {
        let text = String::from_utf8(written(|out| (codec.write_card)(out, &card))).unwrap();
        let error = (codec.read_card)(&text).unwrap_err();
        assert_eq!(error.violations(baton_protocol::wire::dialect::Dialect::V0_3)[0].field, "url");
    }
}

/// Data that is put into an object for the wire is one level deeper there, and the limit is the reader's.
#[test]
fn p01_the_detour_of_data_counts_as_a_level() {
    let nested = |depth: usize, open: &str, close: &str| {
        let text = format!("{}0{}", open.repeat(depth), close.repeat(depth));
        let part = Part::data(JsonText::parse(&text).unwrap());
        Message::new(MessageId::parse("m").unwrap(), Role::User, vec![part])
    };
    let list = |depth| nested(depth, "[", "]");
    let object = |depth| nested(depth, "{\"a\":", "}");
    let most = JsonText::MAX_DEPTH;
    for (codec, message, survives) in [
        (&CODECS[1], object(most), true),
        (&CODECS[1], list(most - 1), true),
        (&CODECS[1], list(most), false),
        (&CODECS[2], object(most - 1), true),
        (&CODECS[2], object(most), false),
        (&CODECS[2], list(most - 2), true),
        (&CODECS[2], list(most - 1), false),
    ] {
        let text = String::from_utf8(written(|out| (codec.write_message)(out, &message))).unwrap();
        assert_eq!((codec.read_message)(&text).is_ok(), survives, "{text}");
    }
}
