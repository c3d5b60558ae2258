//! Random domain values. Strings hold what breaks codecs: line breaks, NUL, quotes, separators, emoji.

use std::sync::Arc;

use baton_protocol::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
use baton_protocol::domain::*;
use baton_protocol::operation::{
    Call, CancelTask, GetTask, HistoryLength, ListTasks, SendMessage, SubscribeToTask,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub(crate) fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 ]{1,8}",
        1 => Just("\n".to_owned()),
        1 => Just("\r\n\r\n".to_owned()),
        1 => Just("\u{2028}\u{2029}".to_owned()),
        1 => Just("\0\u{1}\u{1f}\u{7f}".to_owned()),
        1 => Just("\"\\/'".to_owned()),
        1 => Just("👩‍🚀é\u{301}\u{feff}".to_owned()),
        1 => Just("data: {}\nid: 7\n\n".to_owned()),
        1 => "\\PC{0,4}",
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// A string that is there: an empty one has no presence in ProtoJSON.
fn some_text() -> impl Strategy<Value = Option<String>> {
    option::of(text().prop_filter("no presence", |text| !text.is_empty()))
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn id_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z0-9-]{1,12}", 1 => "[^\\p{Cc}]{1,20}"]
}

macro_rules! ids {
    ($($name:ident $id:ty;)*) => {$(
        pub(crate) fn $name() -> impl Strategy<Value = $id> {
            id_text().prop_map(|text| <$id>::parse(&text).expect("printable and short"))
        }
    )*};
}

ids! {
    task_id TaskId;
    context_id ContextId;
    message_id MessageId;
    artifact_id ArtifactId;
    push_config_id PushConfigId;
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
        (Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis()).prop_map(Timestamp::from_millis),
        (1_700_000_000_000i64..1_900_000_000_000).prop_map(Timestamp::from_millis),
    ]
}

pub(crate) fn json_text() -> impl Strategy<Value = JsonText> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-0.10e+3".to_owned()),
        Just("12345678901234567890".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        text().prop_map(|text| JsonText::from_string_value(&text).to_string()),
    ];
    let nested = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            vec(inner, 0..3).prop_map(|items| object_text(&items)),
        ]
    });
    nested.prop_map(|text| JsonText::parse(&text).expect("built as JSON"))
}

fn object_text(values: &[String]) -> String {
    let members: Vec<_> =
        values.iter().enumerate().map(|(n, value)| format!("\"k\\n{n}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

pub(crate) fn json_object() -> impl Strategy<Value = JsonObject> {
    vec(json_text(), 0..3).prop_map(|values| {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        JsonObject::parse(&object_text(&values)).expect("built as an object")
    })
}

fn metadata() -> impl Strategy<Value = Option<JsonObject>> {
    option::weighted(0.3, json_object())
}

pub(crate) fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        3 => text().prop_map(PartContent::Text),
        1 => vec(any::<u8>(), 0..20).prop_map(PartContent::Raw),
        1 => text().prop_map(PartContent::Url),
        1 => json_text().prop_map(PartContent::Data),
    ];
    (content, some_text(), some_text(), metadata()).prop_map(|(content, filename, media_type, metadata)| {
        Part { content, filename, media_type, metadata }
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    (
        message_id(),
        prop_oneof![Just(Role::User), Just(Role::Agent)],
        vec(part(), 1..3),
        option::of(task_id()),
        option::of(context_id()),
        metadata(),
        texts(),
        vec(task_id(), 0..3),
    )
        .prop_map(|(id, role, parts, task_id, context_id, metadata, extensions, reference_task_ids)| {
            Message { id, role, parts, task_id, context_id, metadata, extensions, reference_task_ids }
        })
}

pub(crate) fn artifact(id: impl Strategy<Value = ArtifactId>) -> impl Strategy<Value = Artifact> {
    (id, some_text(), some_text(), vec(part(), 1..3), metadata(), texts()).prop_map(
        |(id, name, description, parts, metadata, extensions)| Artifact {
            id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

pub(crate) fn state() -> impl Strategy<Value = TaskState> {
    proptest::sample::select(TaskState::ALL.to_vec())
}

pub(crate) fn task() -> impl Strategy<Value = Task> {
    let status = (state(), option::of(message()), timestamp())
        .prop_map(|(state, message, timestamp)| Status { state, message, timestamp });
    (task_id(), context_id(), status, vec(artifact(artifact_id()), 0..3), vec(message(), 0..3), metadata())
        .prop_map(|(id, context_id, status, artifacts, history, metadata)| Task {
            id,
            context_id,
            status,
            artifacts: artifacts.into_iter().map(Arc::new).collect(),
            history: history.into_iter().map(Arc::new).collect(),
            metadata,
            transitions: Vec::new(),
        })
}

pub(crate) fn status_update() -> impl Strategy<Value = StatusUpdate> {
    (state(), option::of(message()), metadata()).prop_map(|(state, message, metadata)| StatusUpdate {
        state,
        message,
        metadata,
    })
}

/// Few ids, so that artifacts are appended to and replaced.
pub(crate) fn artifact_update() -> impl Strategy<Value = ArtifactUpdate> {
    let id = "[abc]".prop_map(|text| ArtifactId::parse(&text).expect("a letter"));
    (artifact(id), any::<bool>(), any::<bool>(), 0..3u32, metadata()).prop_map(
        |(artifact, append, last_chunk, ordinal, metadata)| ArtifactUpdate {
            artifact,
            append,
            joins: false,
            last_chunk,
            ordinal,
            metadata,
        },
    )
}

pub(crate) fn push_config() -> impl Strategy<Value = PushConfig> {
    let authentication =
        (text(), some_text()).prop_map(|(scheme, credentials)| PushAuthentication { scheme, credentials });
    (option::of(push_config_id()), option::of(task_id()), text(), some_text(), option::of(authentication))
        .prop_map(|(id, task_id, url, token, authentication)| PushConfig {
            id,
            task_id,
            url,
            token,
            authentication,
            events: PushEvents::default(),
        })
}

pub(crate) fn task_page() -> impl Strategy<Value = TaskPage> {
    (vec(task(), 0..3), text(), 0..1000u32, 0..1_000_000u64, any::<bool>()).prop_map(
        |(tasks, next_page_token, page_size, total_size, with_artifacts)| TaskPage {
            tasks,
            next_page_token,
            page_size,
            total_size,
            with_artifacts,
        },
    )
}

fn history_length() -> impl Strategy<Value = HistoryLength> {
    prop_oneof![Just(HistoryLength::All), (0..=i32::MAX as u32).prop_map(HistoryLength::Last)]
}

fn send_message() -> impl Strategy<Value = SendMessage> {
    (message(), texts(), option::of(push_config()), history_length(), any::<bool>(), metadata()).prop_map(
        |(message, accepted_output_modes, push_config, history_length, return_immediately, metadata)| {
            SendMessage {
                message,
                client_task_id: None,
                accepted_output_modes,
                push_config,
                history_length,
                return_immediately,
                metadata,
            }
        },
    )
}

fn list_tasks() -> impl Strategy<Value = ListTasks> {
    let filter = (option::of(context_id()), vec(state(), 0..3), option::of(timestamp()))
        .prop_map(|(context_id, states, updated_since)| ListFilter { context_id, states, updated_since });
    (filter, option::of(any::<i32>()), some_text(), history_length(), any::<bool>()).prop_map(
        |(filter, page_size, page_token, history_length, include_artifacts)| ListTasks {
            filter,
            page_size,
            page_token,
            history_length,
            include_artifacts,
        },
    )
}

pub(crate) fn call() -> impl Strategy<Value = Call> {
    let one = || (task_id(), push_config_id());
    prop_oneof![
        4 => send_message().prop_map(Call::SendMessage),
        1 => send_message().prop_map(Call::SendStreamingMessage),
        1 => (task_id(), history_length())
            .prop_map(|(id, history_length)| Call::GetTask(GetTask { id, history_length })),
        2 => list_tasks().prop_map(Call::ListTasks),
        1 => (task_id(), metadata()).prop_map(|(id, metadata)| Call::CancelTask(CancelTask { id, metadata })),
        1 => task_id().prop_map(|id| Call::SubscribeToTask(SubscribeToTask { id })),
        1 => push_config().prop_map(Call::CreatePushConfig),
        1 => one().prop_map(|(task_id, id)| Call::GetPushConfig { task_id, id: Some(id) }),
        1 => (task_id(), option::of(any::<i32>()), some_text())
            .prop_map(|(task_id, page_size, page_token)| Call::ListPushConfigs { task_id, page_size, page_token }),
        1 => one().prop_map(|(task_id, id)| Call::DeletePushConfig { task_id, id }),
        1 => Just(Call::GetExtendedCard),
    ]
}

pub(crate) fn tenant() -> impl Strategy<Value = Option<String>> {
    some_text()
}

/// Names are unique in a map: the number makes them so.
fn named<T: std::fmt::Debug>(values: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(String, T)>> {
    vec((text(), values), 0..3)
        .prop_map(|pairs| (0..).zip(pairs).map(|(n, (name, value))| (format!("{name}{n}"), value)).collect())
}

fn flow() -> impl Strategy<Value = OAuthFlow> {
    (some_text(), some_text(), some_text(), some_text(), named(text()), any::<bool>()).prop_map(
        |(authorization_url, device_authorization_url, token_url, refresh_url, scopes, pkce_required)| {
            OAuthFlow {
                authorization_url,
                device_authorization_url,
                token_url,
                refresh_url,
                scopes,
                pkce_required,
            }
        },
    )
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let location =
        prop_oneof![Just(ApiKeyLocation::Query), Just(ApiKeyLocation::Header), Just(ApiKeyLocation::Cookie)];
    let one = || option::weighted(0.3, flow());
    let flows = (one(), one(), one(), one(), one()).prop_map(
        |(authorization_code, client_credentials, device_code, implicit, password)| OAuthFlows {
            authorization_code,
            client_credentials,
            device_code,
            implicit,
            password,
        },
    );
    let kind = prop_oneof![
        (location, text()).prop_map(|(location, name)| SchemeKind::ApiKey { location, name }),
        (text(), some_text()).prop_map(|(scheme, bearer_format)| SchemeKind::Http { scheme, bearer_format }),
        (flows, some_text())
            .prop_map(|(flows, metadata_url)| SchemeKind::OAuth2 { flows: Box::new(flows), metadata_url }),
        text().prop_map(|url| SchemeKind::OpenIdConnect { url }),
        Just(SchemeKind::MutualTls),
    ];
    (some_text(), kind).prop_map(|(description, kind)| SecurityScheme { description, kind })
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    vec(named(texts()).prop_map(|schemes| SecurityRequirement { schemes }), 0..3)
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    (text(), text(), text(), texts(), texts(), texts(), texts(), requirements()).prop_map(
        |(id, name, description, tags, examples, input_modes, output_modes, security_requirements)| {
            AgentSkill {
                id,
                name,
                description,
                tags,
                examples,
                input_modes,
                output_modes,
                security_requirements,
            }
        },
    )
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let flag = || option::of(any::<bool>());
    let extension =
        (text(), some_text(), any::<bool>(), metadata()).prop_map(|(uri, description, required, params)| {
            AgentExtension { uri, description, required, params }
        });
    (flag(), flag(), flag(), flag(), vec(extension, 0..3)).prop_map(
        |(streaming, push_notifications, extended_agent_card, state_transition_history, extensions)| {
            AgentCapabilities {
                streaming,
                push_notifications,
                extended_agent_card,
                state_transition_history,
                extensions,
            }
        },
    )
}

pub(crate) fn card() -> impl Strategy<Value = AgentCard> {
    let interface = (text(), text(), text(), some_text()).prop_map(
        |(url, protocol_binding, protocol_version, tenant)| AgentInterface {
            url,
            protocol_binding,
            protocol_version,
            tenant,
        },
    );
    let provider = (text(), text()).prop_map(|(organization, url)| AgentProvider { organization, url });
    let signature = (text(), text(), metadata()).prop_map(|(protected, signature, header)| CardSignature {
        protected,
        signature,
        header,
    });
    let head = (text(), text(), text(), vec(interface, 0..3), option::of(provider));
    // Presence: an empty URL is kept here.
    let urls = (option::of(text()), option::of(text()));
    let security = (named(scheme()), requirements());
    let rest = (capabilities(), texts(), texts(), vec(skill(), 0..3), vec(signature, 0..2));
    (head, urls, security, rest).prop_map(|(head, urls, security, rest)| {
        let (name, description, version, interfaces, provider) = head;
        let (documentation_url, icon_url) = urls;
        let (security_schemes, security_requirements) = security;
        let (capabilities, default_input_modes, default_output_modes, skills, signatures) = rest;
        AgentCard {
            name,
            description,
            version,
            interfaces,
            provider,
            documentation_url,
            icon_url,
            capabilities,
            security_schemes,
            security_requirements,
            default_input_modes,
            default_output_modes,
            skills,
            signatures,
        }
    })
}
