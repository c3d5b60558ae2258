//! The field tables of the specification, message by message: number, name, and the type unless it is a string. `rep` is
//! repeated, `opt` has presence by the word `optional`; fields of a oneof stand after its name and a colon.

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};

use super::oracle::pool;

const V1: &str = "\
SendMessageRequest = 1 tenant; 2 message Message; 3 configuration SendMessageConfiguration; 4 metadata Struct
SendMessageConfiguration = 1 rep accepted_output_modes; 2 task_push_notification_config TaskPushNotificationConfig; 3 opt history_length int32; 4 return_immediately bool
GetTaskRequest = 1 tenant; 2 id; 3 opt history_length int32
ListTasksRequest = 1 tenant; 2 context_id; 3 status TaskState; 4 opt page_size int32; 5 page_token; 6 opt history_length int32; 7 status_timestamp_after Timestamp; 8 opt include_artifacts bool
ListTasksResponse = 1 rep tasks Task; 2 next_page_token; 3 page_size int32; 4 total_size int32
CancelTaskRequest = 1 tenant; 2 id; 3 metadata Struct
SubscribeToTaskRequest = 1 tenant; 2 id
GetTaskPushNotificationConfigRequest = 1 tenant; 2 task_id; 3 id
DeleteTaskPushNotificationConfigRequest = 1 tenant; 2 task_id; 3 id
ListTaskPushNotificationConfigsRequest = 1 task_id; 2 page_size int32; 3 page_token; 4 tenant
ListTaskPushNotificationConfigsResponse = 1 rep configs TaskPushNotificationConfig; 2 next_page_token
GetExtendedAgentCardRequest = 1 tenant
SendMessageResponse = payload: 1 task Task; payload: 2 message Message
StreamResponse = payload: 1 task Task; payload: 2 message Message; payload: 3 status_update TaskStatusUpdateEvent; payload: 4 artifact_update TaskArtifactUpdateEvent
Task = 1 id; 2 context_id; 3 status TaskStatus; 4 rep artifacts Artifact; 5 rep history Message; 6 metadata Struct
TaskStatus = 1 state TaskState; 2 message Message; 3 timestamp Timestamp
Message = 1 message_id; 2 context_id; 3 task_id; 4 role Role; 5 rep parts Part; 6 metadata Struct; 7 rep extensions; 8 rep reference_task_ids
Part = content: 1 text; content: 2 raw bytes; content: 3 url; content: 4 data Value; 5 metadata Struct; 6 filename; 7 media_type
Artifact = 1 artifact_id; 2 name; 3 description; 4 rep parts Part; 5 metadata Struct; 6 rep extensions
TaskStatusUpdateEvent = 1 task_id; 2 context_id; 3 status TaskStatus; 4 metadata Struct
TaskArtifactUpdateEvent = 1 task_id; 2 context_id; 3 artifact Artifact; 4 append bool; 5 last_chunk bool; 6 metadata Struct
TaskPushNotificationConfig = 1 tenant; 2 id; 3 task_id; 4 url; 5 token; 6 authentication AuthenticationInfo
AuthenticationInfo = 1 scheme; 2 credentials
AgentCard = 1 name; 2 description; 3 rep supported_interfaces AgentInterface; 4 provider AgentProvider; 5 version; 6 opt documentation_url; 7 capabilities AgentCapabilities; 8 security_schemes map<string, SecurityScheme>; 9 rep security_requirements SecurityRequirement; 10 rep default_input_modes; 11 rep default_output_modes; 12 rep skills AgentSkill; 13 rep signatures AgentCardSignature; 14 opt icon_url
AgentInterface = 1 url; 2 protocol_binding; 3 tenant; 4 protocol_version
AgentProvider = 1 url; 2 organization
AgentCapabilities = 1 opt streaming bool; 2 opt push_notifications bool; 3 rep extensions AgentExtension; 4 opt extended_agent_card bool
AgentExtension = 1 uri; 2 description; 3 required bool; 4 params Struct
AgentSkill = 1 id; 2 name; 3 description; 4 rep tags; 5 rep examples; 6 rep input_modes; 7 rep output_modes; 8 rep security_requirements SecurityRequirement
AgentCardSignature = 1 protected; 2 signature; 3 header Struct
StringList = 1 rep list
SecurityRequirement = 1 schemes map<string, StringList>
SecurityScheme = scheme: 1 api_key_security_scheme APIKeySecurityScheme; scheme: 2 http_auth_security_scheme HTTPAuthSecurityScheme; scheme: 3 oauth2_security_scheme OAuth2SecurityScheme; scheme: 4 open_id_connect_security_scheme OpenIdConnectSecurityScheme; scheme: 5 mtls_security_scheme MutualTlsSecurityScheme
APIKeySecurityScheme = 1 description; 2 location; 3 name
HTTPAuthSecurityScheme = 1 description; 2 scheme; 3 bearer_format
OAuth2SecurityScheme = 1 description; 2 flows OAuthFlows; 3 oauth2_metadata_url
OpenIdConnectSecurityScheme = 1 description; 2 open_id_connect_url
MutualTlsSecurityScheme = 1 description
OAuthFlows = flow: 1 authorization_code AuthorizationCodeOAuthFlow; flow: 2 client_credentials ClientCredentialsOAuthFlow; flow: 3 implicit ImplicitOAuthFlow; flow: 4 password PasswordOAuthFlow; flow: 5 device_code DeviceCodeOAuthFlow
AuthorizationCodeOAuthFlow = 1 authorization_url; 2 token_url; 3 refresh_url; 4 scopes map<string, string>; 5 pkce_required bool
ClientCredentialsOAuthFlow = 1 token_url; 2 refresh_url; 3 scopes map<string, string>
ImplicitOAuthFlow = 1 authorization_url; 2 refresh_url; 3 scopes map<string, string>
PasswordOAuthFlow = 1 token_url; 2 refresh_url; 3 scopes map<string, string>
DeviceCodeOAuthFlow = 1 device_authorization_url; 2 token_url; 3 refresh_url; 4 scopes map<string, string>
TaskState = 0 TASK_STATE_UNSPECIFIED; 1 TASK_STATE_SUBMITTED; 2 TASK_STATE_WORKING; 3 TASK_STATE_COMPLETED; 4 TASK_STATE_FAILED; 5 TASK_STATE_CANCELED; 6 TASK_STATE_INPUT_REQUIRED; 7 TASK_STATE_REJECTED; 8 TASK_STATE_AUTH_REQUIRED
Role = 0 ROLE_UNSPECIFIED; 1 ROLE_USER; 2 ROLE_AGENT
";

/// Messages that are missing here are those of 1.0.
const V0_3: &str = "\
SendMessageRequest = 1 request Message as message; 2 configuration SendMessageConfiguration; 3 metadata Struct
SendMessageConfiguration = 1 rep accepted_output_modes; 2 push_notification PushNotificationConfig; 3 history_length int32; 4 blocking bool
GetTaskRequest = 1 name; 2 history_length int32
CancelTaskRequest = 1 name
TaskSubscriptionRequest = 1 name
GetTaskPushNotificationConfigRequest = 1 name
DeleteTaskPushNotificationConfigRequest = 1 name
CreateTaskPushNotificationConfigRequest = 1 parent; 2 config_id; 3 config TaskPushNotificationConfig
ListTaskPushNotificationConfigRequest = 1 parent; 2 page_size int32; 3 page_token
ListTaskPushNotificationConfigResponse = 1 rep configs TaskPushNotificationConfig; 2 next_page_token
GetAgentCardRequest =
SendMessageResponse = payload: 1 task Task; payload: 2 msg Message as message
StreamResponse = payload: 1 task Task; payload: 2 msg Message as message; payload: 3 status_update TaskStatusUpdateEvent; payload: 4 artifact_update TaskArtifactUpdateEvent
TaskStatus = 1 state TaskState; 2 update Message as message; 3 timestamp Timestamp
Part = part: 1 text; part: 2 file FilePart; part: 3 data DataPart; 4 metadata Struct
FilePart = file: 1 file_with_uri; file: 2 file_with_bytes bytes; 3 mime_type; 4 name
DataPart = 1 data Struct
Message = 1 message_id; 2 context_id; 3 task_id; 4 role Role; 5 rep content Part; 6 metadata Struct; 7 rep extensions
Artifact = 1 artifact_id; 3 name; 4 description; 5 rep parts Part; 6 metadata Struct; 7 rep extensions
TaskStatusUpdateEvent = 1 task_id; 2 context_id; 3 status TaskStatus; 4 final bool; 5 metadata Struct
PushNotificationConfig = 1 id; 2 url; 3 token; 4 authentication AuthenticationInfo
AuthenticationInfo = 1 rep schemes; 2 credentials
TaskPushNotificationConfig = 1 name; 2 push_notification_config PushNotificationConfig
AgentInterface = 1 url; 2 transport
AgentCard = 1 name; 2 description; 3 url; 4 provider AgentProvider; 5 version; 6 documentation_url; 7 capabilities AgentCapabilities; 8 security_schemes map<string, SecurityScheme>; 9 rep security Security; 10 rep default_input_modes; 11 rep default_output_modes; 12 rep skills AgentSkill; 13 supports_authenticated_extended_card bool; 14 preferred_transport; 15 rep additional_interfaces AgentInterface; 16 protocol_version; 17 rep signatures AgentCardSignature; 18 icon_url
AgentCapabilities = 1 streaming bool; 2 push_notifications bool; 3 rep extensions AgentExtension
AgentSkill = 1 id; 2 name; 3 description; 4 rep tags; 5 rep examples; 6 rep input_modes; 7 rep output_modes; 8 rep security Security
Security = 1 schemes map<string, StringList>
AuthorizationCodeOAuthFlow = 1 authorization_url; 2 token_url; 3 refresh_url; 4 scopes map<string, string>
OAuthFlows = flow: 1 authorization_code AuthorizationCodeOAuthFlow; flow: 2 client_credentials ClientCredentialsOAuthFlow; flow: 3 implicit ImplicitOAuthFlow; flow: 4 password PasswordOAuthFlow
TaskState = 0 TASK_STATE_UNSPECIFIED; 1 TASK_STATE_SUBMITTED; 2 TASK_STATE_WORKING; 3 TASK_STATE_COMPLETED; 4 TASK_STATE_FAILED; 5 TASK_STATE_CANCELLED; 6 TASK_STATE_INPUT_REQUIRED; 7 TASK_STATE_REJECTED; 8 TASK_STATE_AUTH_REQUIRED
";

#[test]
fn p02_every_field_has_the_number_of_the_specification() {
    let row = |text: &'static str, name: &str| text.lines().find(|row| row.split(" =").next() == Some(name));
    for (package, count) in [("lf.a2a.v1", 46), ("a2a.v1", 47)] {
        let messages = pool().all_messages().filter(|it| it.parent_message().is_none());
        let messages = messages.map(|it| (it.parent_file().package_name().to_owned(), shown(&it)));
        let enums = pool().all_enums().map(|it| {
            let values: Vec<_> = it.values().map(|it| format!("{} {}", it.number(), it.name())).collect();
            (it.parent_file().package_name().to_owned(), format!("{} = {}", it.name(), values.join("; ")))
        });
        let found: Vec<_> =
            messages.chain(enums).filter(|(of, _)| of == package).map(|(_, row)| row).collect();
        for found in &found {
            let name = found.split(" =").next().unwrap();
            let expected = if package == "a2a.v1" { row(V0_3, name) } else { None };
            assert_eq!(Some(found.as_str()), expected.or_else(|| row(V1, name)), "{package}");
        }
        assert_eq!(found.len(), count, "{package}");
    }
}

fn shown(message: &MessageDescriptor) -> String {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    let fields: Vec<_> = fields.iter().map(shown_field).collect();
    format!("{} = {}", message.name(), fields.join("; ")).trim_end().to_owned()
}

fn shown_field(field: &FieldDescriptor) -> String {
    let is_optional = field.field_descriptor_proto().proto3_optional();
    let oneof = field.containing_oneof().filter(|_| !is_optional);
    let oneof = oneof.map(|oneof| format!("{}: ", oneof.name())).unwrap_or_default();
    let word = match field.cardinality() {
        _ if is_optional => "opt ",
        Cardinality::Repeated if !field.is_map() => "rep ",
        _ => "",
    };
    let kind = match field.kind() {
        Kind::String => String::new(),
        kind => format!(" {}", shown_kind(&kind)),
    };
    let json = match field.json_name() {
        "message" if field.name() != "message" => " as message",
        _ => "",
    };
    format!("{oneof}{} {word}{}{kind}{json}", field.number(), field.name())
}

fn shown_kind(kind: &Kind) -> String {
    match kind {
        Kind::Message(entry) if entry.is_map_entry() => {
            let value = entry.map_entry_value_field().kind();
            format!("map<string, {}>", shown_kind(&value))
        }
        Kind::Message(message) => message.name().to_owned(),
        Kind::Enum(named) => named.name().to_owned(),
        kind => format!("{kind:?}"),
    }
}
