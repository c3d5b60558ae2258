//! Domain to 1.0 JSON and back.
//!
//! What does not survive, on purpose (kept in step with `docs/generations.md`, "1.0 losses"):
//!
//! | value | becomes | why |
//! |---|---|---|
//! | `ArtifactUpdate.ordinal` | 0 | not on the wire; `lifecycle` stamps it again |
//! | `AgentCapabilities.state_transition_history` | none | 1.0 has no such member |
//! | several OAuth flows in one scheme | the first of authorizationCode, clientCredentials, deviceCode, implicit, password | a oneof in 1.0 |
//! | members a flow does not have (`pkceRequired` outside authorizationCode, URLs of other flows) | none | not in that flow's message |
//! | `TaskPage` artifacts when `with_artifacts` is false | none | the member is left out by rule |
//! | `TaskPage.with_artifacts` on an empty page | false | told by the tasks alone |
//! | optional strings without presence that are `Some("")` | none | ProtoJSON drops empty strings |
//! | counts above 2³¹ − 1 (`page_size`, `total_size`, `HistoryLength::Last`) | 2³¹ − 1 | int32 on the wire |
//! | the tenant of a stored push config | none in replies | it belongs to the scope |

use baton_protocol::domain::security::{OAuthFlow, OAuthFlows, SchemeKind};
use baton_protocol::domain::{AgentCard, ArtifactUpdate, TaskPage};
use baton_protocol::operation::{Operation, Reply};
use baton_protocol::wire::v1::{self, Decoded, StreamItem};
use proptest::prelude::*;

use crate::strategies;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'), "a raw line break would end an SSE event");
    String::from_utf8(out).unwrap()
}

fn check_reply(operation: Operation, reply: Reply) {
    let text = written(|out| v1::write_reply(out, &reply));
    assert_eq!(v1::read_reply(operation, &text).unwrap(), after_reply(reply), "{text}");
}

fn after_reply(reply: Reply) -> Reply {
    match reply {
        Reply::Tasks(page) => Reply::Tasks(after_page(page)),
        Reply::Card(card) => Reply::Card(Box::new(after_card(*card))),
        other => other,
    }
}

fn after_page(mut page: TaskPage) -> TaskPage {
    if !page.with_artifacts {
        page.tasks.iter_mut().for_each(|task| task.artifacts.clear());
    }
    page.with_artifacts &= !page.tasks.is_empty();
    page
}

fn after_artifact(mut update: ArtifactUpdate) -> ArtifactUpdate {
    update.ordinal = 0;
    update
}

fn after_card(mut card: AgentCard) -> AgentCard {
    card.capabilities.state_transition_history = None;
    for (_, scheme) in &mut card.security_schemes {
        if let SchemeKind::OAuth2 { flows, .. } = &mut scheme.kind {
            **flows = after_flows(std::mem::take(flows));
        }
    }
    card
}

fn after_flows(flows: OAuthFlows) -> OAuthFlows {
    let none = OAuthFlows::default;
    if let Some(flow) = flows.authorization_code {
        let flow = OAuthFlow { device_authorization_url: None, ..flow };
        OAuthFlows { authorization_code: Some(flow), ..none() }
    } else if let Some(flow) = flows.client_credentials {
        let flow = OAuthFlow {
            authorization_url: None,
            device_authorization_url: None,
            pkce_required: false,
            ..flow
        };
        OAuthFlows { client_credentials: Some(flow), ..none() }
    } else if let Some(flow) = flows.device_code {
        let flow = OAuthFlow { authorization_url: None, pkce_required: false, ..flow };
        OAuthFlows { device_code: Some(flow), ..none() }
    } else if let Some(flow) = flows.implicit {
        let flow =
            OAuthFlow { device_authorization_url: None, token_url: None, pkce_required: false, ..flow };
        OAuthFlows { implicit: Some(flow), ..none() }
    } else if let Some(flow) = flows.password {
        let flow = OAuthFlow {
            authorization_url: None,
            device_authorization_url: None,
            pkce_required: false,
            ..flow
        };
        OAuthFlows { password: Some(flow), ..none() }
    } else {
        none()
    }
}

proptest! {
    #[test]
    fn p01_a_message_survives(message in strategies::message()) {
        let text = written(|out| v1::write_message(out, &message));
        prop_assert_eq!(v1::read_message(&text).unwrap(), message);
    }

    #[test]
    fn p01_a_task_survives(task in strategies::task()) {
        let text = written(|out| v1::write_task(out, &task));
        prop_assert_eq!(v1::read_task(&text).unwrap(), task);
    }

    #[test]
    fn p01_a_card_survives(card in strategies::card()) {
        let text = written(|out| v1::write_card(out, &card));
        prop_assert_eq!(v1::read_card(&text).unwrap(), after_card(card));
    }

    #[test]
    fn p02_a_call_survives(tenant in strategies::tenant(), call in strategies::call()) {
        let text = written(|out| v1::write_call(out, tenant.as_deref(), &call));
        let decoded = v1::decode_call(call.operation(), Some(&text)).unwrap();
        prop_assert_eq!(decoded, Decoded { tenant, call });
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

    #[test]
    fn p04_stream_items_survive(
        task in strategies::task(),
        message in strategies::message(),
        at in strategies::timestamp(),
        status in strategies::status_update(),
        artifact in strategies::artifact_update(),
    ) {
        let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
        let text = written(|out| v1::write_stream_status(out, &task_id, &context_id, at, &status));
        prop_assert_eq!(
            v1::read_stream_item(&text).unwrap(),
            StreamItem::Status { task_id: task_id.clone(), context_id: context_id.clone(), at, update: status }
        );
        let text = written(|out| v1::write_stream_artifact(out, &task_id, &context_id, &artifact));
        let update = after_artifact(artifact);
        prop_assert_eq!(v1::read_stream_item(&text).unwrap(), StreamItem::Artifact { task_id, context_id, update });
        let text = written(|out| v1::write_stream_task(out, &task));
        prop_assert_eq!(v1::read_stream_item(&text).unwrap(), StreamItem::Task(task));
        let text = written(|out| v1::write_stream_message(out, &message));
        prop_assert_eq!(v1::read_stream_item(&text).unwrap(), StreamItem::Message(message));
    }

    /// Whatever is cut out of or put into a valid text, reading answers; it never panics.
    #[test]
    fn damaged_text_is_answered(
        call in strategies::call(),
        at in any::<prop::sample::Index>(),
        length in 0..4usize,
        junk in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,4}",
    ) {
        let mut bytes = written(|out| v1::write_call(out, None, &call)).into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + length).min(bytes.len()), junk.bytes());
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = v1::decode_call(call.operation(), Some(&text));
            let _ = v1::read_task(&text);
        }
    }
}
