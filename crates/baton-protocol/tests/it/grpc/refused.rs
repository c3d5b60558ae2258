use baton_protocol::operation::{Operation, Reply};
use baton_protocol::wire::StreamItem;
use baton_protocol::wire::pb::v0_3::messages as v0_3;
use baton_protocol::wire::pb::v1::messages as v1;
use baton_protocol::wire::pb::{DESCRIPTORS, Package};
use baton_protocol::{Error, ErrorKind};
use prost::Message as _;
use prost::bytes::Bytes;

fn message(edit: impl FnOnce(&mut v1::Message)) -> v1::SendMessageRequest {
    let mut message = v1::Message {
        message_id: "m".to_owned(),
        role: 1,
        parts: vec![part(v1::part::Content::Text("x".to_owned()))],
        ..v1::Message::default()
    };
    edit(&mut message);
    v1::SendMessageRequest { message: Some(message), ..v1::SendMessageRequest::default() }
}

fn part(content: v1::part::Content) -> v1::Part {
    v1::Part { content: Some(content), ..v1::Part::default() }
}

/// A send with this `Value` as data.
fn data(value: &[u8]) -> v1::SendMessageRequest {
    let data = part(v1::part::Content::Data(Bytes::copy_from_slice(value)));
    message(|it| it.parts.push(data))
}

/// A send with this `Struct` as metadata of the message.
fn metadata(fields: &[u8]) -> v1::SendMessageRequest {
    message(|it| it.metadata = Some(Bytes::copy_from_slice(fields)))
}

fn configured(edit: impl FnOnce(&mut v1::SendMessageConfiguration)) -> v1::SendMessageRequest {
    let mut configuration = v1::SendMessageConfiguration::default();
    edit(&mut configuration);
    v1::SendMessageRequest { configuration: Some(configuration), ..message(|_| {}) }
}

/// A field of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut out);
    [out, content.to_vec()].concat()
}

/// A `Value` of lists in lists.
fn lists(depth: usize) -> Vec<u8> {
    let mut value = vec![0x08, 0];
    for _ in 0..depth {
        // `values` of `ListValue` in `list_value` of `Value`.
        value = field(6, &field(1, &value));
    }
    value
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    field(1, &[field(1, key.as_bytes()), field(2, value)].concat())
}

/// As the other tables of refused input: the member, and what to do.
fn told(error: &Error, package: Package) -> String {
    let told: Vec<_> = error.violations(package.dialect()).into_iter().collect();
    assert!(told.len() <= 1, "{error}");
    told.first().map_or_else(|| error.to_string(), |told| format!("{}: {}", told.field, told.description))
}

#[test]
fn p02_requests_of_1_0_are_refused_with_the_member() {
    let task = |id: &str| v1::GetTaskRequest { id: id.to_owned(), ..v1::GetTaskRequest::default() };
    let webhook = |url: &str| v1::TaskPushNotificationConfig {
        url: url.to_owned(),
        ..v1::TaskPushNotificationConfig::default()
    };
    let config = |task_id: &str, id: &str| v1::GetTaskPushNotificationConfigRequest {
        task_id: task_id.to_owned(),
        id: id.to_owned(),
        ..v1::GetTaskPushNotificationConfigRequest::default()
    };
    let list = |edit: fn(&mut v1::ListTasksRequest)| {
        let mut list = v1::ListTasksRequest::default();
        edit(&mut list);
        list.encode_to_vec()
    };
    let time = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
    let late =
        v1::ListTasksRequest { status_timestamp_after: time(253_402_300_800, 0), ..Default::default() };
    let nanos = v1::ListTasksRequest { status_timestamp_after: time(0, -1), ..Default::default() };
    let more = v1::ListTasksRequest { status_timestamp_after: time(0, 1_000_000_000), ..Default::default() };
    let far = v1::ListTasksRequest { status_timestamp_after: time(i64::MAX, 0), ..Default::default() };
    let negative = v1::GetTaskRequest { history_length: Some(-1), ..task("t") };
    use Operation::*;
    for (operation, request, expected) in [
        (SendMessage, Vec::new(), "message: is required"),
        (SendMessage, message(|it| it.message_id.clear()).encode_to_vec(), "message.messageId: is required"),
        (
            SendMessage,
            message(|it| it.message_id = "x".repeat(257)).encode_to_vec(),
            "message.messageId: is longer than 256 bytes",
        ),
        (
            SendMessage,
            message(|it| it.context_id = "a\nb".to_owned()).encode_to_vec(),
            "message.contextId: holds a control character",
        ),
        (
            SendMessage,
            message(|it| it.reference_task_ids = vec!["t".to_owned(), String::new()]).encode_to_vec(),
            "message.referenceTaskIds[1]: must not be empty",
        ),
        (
            SendMessage,
            message(|it| it.role = 0).encode_to_vec(),
            "message.role: must be ROLE_USER or ROLE_AGENT",
        ),
        (
            SendMessage,
            message(|it| it.role = 3).encode_to_vec(),
            "message.role: must be ROLE_USER or ROLE_AGENT",
        ),
        (
            SendMessage,
            message(|it| it.role = -1).encode_to_vec(),
            "message.role: must be ROLE_USER or ROLE_AGENT",
        ),
        (
            SendMessage,
            message(|it| it.parts.clear()).encode_to_vec(),
            "message.parts: must hold at least one part",
        ),
        (
            SendStreamingMessage,
            message(|it| it.parts.push(v1::Part::default())).encode_to_vec(),
            "message.parts[1]: must hold exactly one of text, raw, url and data",
        ),
        (
            SendMessage,
            configured(|it| it.history_length = Some(-1)).encode_to_vec(),
            "configuration.historyLength: must not be negative",
        ),
        (
            SendMessage,
            configured(|it| it.task_push_notification_config = Some(webhook(""))).encode_to_vec(),
            "configuration.taskPushNotificationConfig.url: is required",
        ),
        // Values.
        (SendMessage, data(&[]).encode_to_vec(), "message.parts[1].data: holds a value of no kind"),
        (
            SendMessage,
            data(&[&[0x11][..], &f64::NAN.to_le_bytes()].concat()).encode_to_vec(),
            "message.parts[1].data: must not hold NaN or an infinite number",
        ),
        (
            SendMessage,
            data(&[&[0x11][..], &f64::NEG_INFINITY.to_le_bytes()].concat()).encode_to_vec(),
            "message.parts[1].data: must not hold NaN or an infinite number",
        ),
        (
            SendMessage,
            data(&field(3, b"\xff")).encode_to_vec(),
            "message.parts[1].data: is not a valid google.protobuf.Value",
        ),
        (
            SendMessage,
            data(&[0x32, 0x7f]).encode_to_vec(),
            "message.parts[1].data: is not a valid google.protobuf.Value",
        ),
        (
            SendMessage,
            data(&lists(101)).encode_to_vec(),
            "message.parts[1].data: must not be nested deeper than 100 levels",
        ),
        (
            SendMessage,
            data(&lists(20_000)).encode_to_vec(),
            "message.parts[1].data: must not be nested deeper than 100 levels",
        ),
        (
            SendMessage,
            metadata(&[entry("a", &[0x20, 1]), entry("a", &[0x20, 0])].concat()).encode_to_vec(),
            "message.metadata: names the member \"a\" twice",
        ),
        (
            SendMessage,
            metadata(&field(1, &field(1, b"a"))).encode_to_vec(),
            "message.metadata: holds a value of no kind",
        ),
        (GetTask, task("").encode_to_vec(), "id: is required"),
        (GetTask, negative.encode_to_vec(), "historyLength: must not be negative"),
        (
            ListTasks,
            list(|it| it.status = 9),
            "status: must be the name of a task state, such as TASK_STATE_WORKING",
        ),
        (
            ListTasks,
            list(|it| it.status = -1),
            "status: must be the name of a task state, such as TASK_STATE_WORKING",
        ),
        (ListTasks, list(|it| it.history_length = Some(i32::MIN)), "historyLength: must not be negative"),
        (ListTasks, late.encode_to_vec(), "statusTimestampAfter: must be a time in the years 1 to 9999"),
        (ListTasks, nanos.encode_to_vec(), "statusTimestampAfter: must be a time in the years 1 to 9999"),
        (ListTasks, more.encode_to_vec(), "statusTimestampAfter: must be a time in the years 1 to 9999"),
        (ListTasks, far.encode_to_vec(), "statusTimestampAfter: must be a time in the years 1 to 9999"),
        (CancelTask, Vec::new(), "id: is required"),
        (SubscribeToTask, Vec::new(), "id: is required"),
        (CreatePushConfig, webhook("").encode_to_vec(), "url: is required"),
        (
            CreatePushConfig,
            v1::TaskPushNotificationConfig {
                authentication: Some(v1::AuthenticationInfo::default()),
                ..webhook("u")
            }
            .encode_to_vec(),
            "authentication.scheme: is required",
        ),
        (GetPushConfig, config("", "c").encode_to_vec(), "taskId: is required"),
        (GetPushConfig, config("t", "").encode_to_vec(), "id: is required"),
        (ListPushConfigs, Vec::new(), "taskId: is required"),
        (DeletePushConfig, Vec::new(), "taskId: is required"),
    ] {
        let error = Package::V1.decode_call(operation, request.into()).expect_err(expected);
        assert_eq!(told(&error, Package::V1), expected);
        assert_eq!(error.kind(), ErrorKind::InvalidParams);
    }
}

#[test]
fn p02_requests_of_0_3_are_refused_with_the_member() {
    let send = |message: v0_3::Message| {
        v0_3::SendMessageRequest { request: Some(message), ..Default::default() }.encode_to_vec()
    };
    let part = |part| v0_3::Part { part: Some(part), ..Default::default() };
    let message = |content: Vec<v0_3::Part>| v0_3::Message {
        message_id: "m".to_owned(),
        role: 1,
        content,
        ..Default::default()
    };
    let name = |name: &str| v0_3::CancelTaskRequest { name: name.to_owned() }.encode_to_vec();
    let create = |parent: &str, name: &str, url: &str, schemes: &[&str]| {
        let authentication = v0_3::AuthenticationInfo {
            schemes: schemes.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        let settings = v0_3::PushNotificationConfig {
            url: url.to_owned(),
            authentication: Some(authentication),
            ..Default::default()
        };
        let config = v0_3::TaskPushNotificationConfig {
            name: name.to_owned(),
            push_notification_config: Some(settings),
        };
        v0_3::CreateTaskPushNotificationConfigRequest {
            parent: parent.to_owned(),
            config: Some(config),
            ..Default::default()
        }
        .encode_to_vec()
    };
    use Operation::*;
    use v0_3::part::Part;
    for (operation, request, expected) in [
        (SendMessage, Vec::new(), "message: is required"),
        (SendMessage, send(message(Vec::new())), "message.content: must hold at least one part"),
        (
            SendMessage,
            send(message(vec![v0_3::Part::default()])),
            "message.content[0]: must hold exactly one of text, file and data",
        ),
        (
            SendMessage,
            send(message(vec![part(Part::File(v0_3::FilePart::default()))])),
            "message.content[0].file: must hold exactly one of fileWithUri and fileWithBytes",
        ),
        (
            SendMessage,
            send(message(vec![part(Part::Data(v0_3::DataPart { data: Some(vec![0xff].into()) }))])),
            "message.content[0].data.data: is not a valid google.protobuf.Value",
        ),
        (GetTask, Vec::new(), "name: is required"),
        (GetTask, name("t"), "name: must be a resource name such as tasks/{id}"),
        (CancelTask, name("tasks/"), "name: must be a resource name such as tasks/{id}"),
        (SubscribeToTask, name("tasks/a\n"), "name: must be a resource name such as tasks/{id}"),
        (ListPushConfigs, Vec::new(), "parent: is required"),
        (GetPushConfig, Vec::new(), "name: is required"),
        (DeletePushConfig, name("tasks/t"), "name: must be tasks/{id}/pushNotificationConfigs/{id}"),
        (CreatePushConfig, Vec::new(), "config: is required"),
        (CreatePushConfig, create("", "", "u", &["Bearer"]), "parent: is required"),
        (
            CreatePushConfig,
            create("t", "tasks/t", "u", &["Bearer"]),
            "parent: must be a resource name such as tasks/{id}",
        ),
        (
            CreatePushConfig,
            create("tasks/t", "t", "u", &["Bearer"]),
            "config.name: must be a resource name such as tasks/{id}",
        ),
        (
            CreatePushConfig,
            create("tasks/t", "", "", &["Bearer"]),
            "config.pushNotificationConfig.url: is required",
        ),
        (
            CreatePushConfig,
            create("tasks/t", "", "u", &[]),
            "config.pushNotificationConfig.authentication.schemes: is required",
        ),
    ] {
        let error = Package::V0_3.decode_call(operation, request.into()).expect_err(expected);
        assert_eq!(told(&error, Package::V0_3), expected);
        assert_eq!(error.kind(), ErrorKind::InvalidParams);
    }
}

/// What is no message at all is like what is no JSON.
#[test]
fn p02_bytes_that_are_no_message_are_a_parse_error() {
    for (bytes, why) in [
        (&b"\x0a"[..], "invalid varint"),
        (b"\x0a\x05ab", "buffer underflow"),
        (b"\x12\x02\xff\xfe", "data is not UTF-8 encoded"),
        (b"\x08\x01", "invalid wire type"),
        (b"\x00", "invalid tag value: 0"),
        (&[0x7b; 200], "recursion limit reached"),
        (DESCRIPTORS, "invalid"),
    ] {
        for package in Package::ALL {
            let bytes = || Bytes::copy_from_slice(bytes);
            let error = package.decode_call(Operation::GetTask, bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ParseError, "{error}");
            assert!(error.to_string().starts_with("Invalid parameters: not a valid message ("), "{error}");
            let error = package.read_reply(Operation::GetTask, bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidAgentResponse, "{error}");
        }
        let error = Package::V1.decode_call(Operation::GetTask, Bytes::copy_from_slice(bytes)).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
    }
}

#[test]
fn p02_answers_are_refused_with_the_member() {
    let task = |status: Option<v1::TaskStatus>| v1::Task { id: "t".to_owned(), status, ..Default::default() };
    let working = || Some(v1::TaskStatus { state: 2, ..Default::default() });
    let artifact = v1::Artifact::default();
    let page = v1::ListTasksResponse { total_size: -1, ..Default::default() };
    let scheme = |scheme| v1::AgentCard {
        security_schemes: [("s".to_owned(), v1::SecurityScheme { scheme })].into(),
        ..Default::default()
    };
    let key = v1::ApiKeySecurityScheme { location: "body".to_owned(), ..Default::default() };
    use Operation::*;
    for (operation, answer, expected) in [
        (SendMessage, Vec::new(), "reply: must hold exactly one of task and message"),
        (GetTask, Vec::new(), "id: is required"),
        (GetTask, task(None).encode_to_vec(), "status: is required"),
        (
            CancelTask,
            v1::Task { artifacts: vec![artifact], ..task(working()) }.encode_to_vec(),
            "artifacts[0].artifactId: is required",
        ),
        (ListTasks, page.encode_to_vec(), "totalSize: must not be negative"),
        (
            ListTasks,
            v1::ListTasksResponse { tasks: vec![task(working()), task(None)], ..Default::default() }
                .encode_to_vec(),
            "tasks[1].status: is required",
        ),
        (
            GetExtendedCard,
            scheme(None).encode_to_vec(),
            "securitySchemes.s: must hold exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, \
             oauth2SecurityScheme, openIdConnectSecurityScheme and mtlsSecurityScheme",
        ),
        (
            GetExtendedCard,
            scheme(Some(v1::security_scheme::Scheme::ApiKeySecurityScheme(key))).encode_to_vec(),
            "securitySchemes.s.apiKeySecurityScheme.location: must be query, header or cookie",
        ),
    ] {
        let error = Package::V1.read_reply(operation, answer.into()).expect_err(expected);
        assert_eq!(told(&error, Package::V1), expected);
        assert_eq!(error.kind(), ErrorKind::InvalidAgentResponse);
    }
    let error = Package::V1.read_stream_item(Bytes::new()).unwrap_err();
    assert_eq!(
        told(&error, Package::V1),
        "stream event: must hold exactly one of task, message, statusUpdate and artifactUpdate"
    );
    let card = v0_3::AgentCard::default().encode_to_vec();
    let error = Package::V0_3.read_reply(GetExtendedCard, card.into()).unwrap_err();
    assert_eq!(told(&error, Package::V0_3), "url: is required");
}

/// States and parts of a later version do not make an answer unreadable.
#[test]
fn p01_answers_may_have_what_a_later_version_has() {
    let status = |state| Some(v1::TaskStatus { state, ..Default::default() });
    let task = |state| v1::Task { id: "t".to_owned(), status: status(state), ..Default::default() };
    let page = v1::ListTasksResponse { tasks: vec![task(0), task(3), task(9)], ..Default::default() };
    let read = Package::V1.read_reply(Operation::ListTasks, page.encode_to_vec().into()).unwrap();
    let states: Vec<_> = read.unknown_states.iter().map(Option::as_deref).collect();
    assert_eq!(states, [Some("TASK_STATE_UNSPECIFIED"), None, Some("9")]);
    let Reply::Tasks(page) = read.value else { panic!() };
    let states: Vec<_> = page.tasks.iter().map(|task| task.status.state.number()).collect();
    assert_eq!(states, [2, 3, 2]);
    assert_eq!(page.tasks[0].context_id.as_str(), "t");
    assert!(!page.tasks[0].status.timestamp.is_known());

    let hologram = v1::Part { filename: "h".to_owned(), ..v1::Part::default() };
    let message = message(|it| it.parts.push(hologram)).message.unwrap();
    let payload = Some(v1::stream_response::Payload::Message(message));
    let response = v1::StreamResponse { payload }.encode_to_vec();
    // A field that nobody knows yet, too.
    let response = [response, field(15, b"new")].concat();
    let StreamItem::Message(message) = Package::V1.read_stream_item(response.into()).unwrap().value else {
        panic!("another item");
    };
    let part = &message.parts[1];
    assert_eq!(part.filename.as_deref(), Some("h"));
    assert!(
        matches!(&part.content, baton_protocol::domain::PartContent::Data(data) if data.as_str() == "{}")
    );
}
