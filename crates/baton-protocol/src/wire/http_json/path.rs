//! Maps method and path to an operation.
//!
//! Paths are compared strictly: segments are not decoded (`%74asks` is not `tasks`), only ids are, once. Anything that
//! is not exactly a route is not found.

use super::percent::decode_id;
use crate::domain::{PushConfigId, TaskId};
use crate::generation::{AskedVersion, Generation};
use crate::operation::Operation;

/// What a path means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub generation: Generation,
    /// The prefix of a 1.0 path. It overrides the query and the body.
    pub tenant: Option<String>,
    pub operation: Operation,
    pub task_id: Option<TaskId>,
    pub config_id: Option<PushConfigId>,
}

/// The path exists, but not for this method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongMethod {
    /// The value of the `Allow` header.
    pub allow: &'static str,
}

/// Finds the operation. `path` is raw, without the query; `asked` is the requested version.
///
/// The first segment `v1` means 0.3, unless the request asks for 1.0 and there is a tenant of that name. Other first
/// segments of routes cannot be tenants.
pub fn route(
    method: &str,
    path: &str,
    asked: &AskedVersion,
    known_tenant: impl Fn(&str) -> bool,
) -> Result<Option<Route>, WrongMethod> {
    let Some(segments) = segments(path) else { return Ok(None) };
    let found = match segments.as_slice() {
        ["v1", rest @ ..] if *asked == AskedVersion::Known(Generation::V1) && known_tenant("v1") => {
            find(Generation::V1, Some("v1"), rest)
        }
        ["v1", rest @ ..] => find(Generation::V0_3, None, rest),
        // Python servers of 0.2 and 0.3 have the card at this path.
        ["agent", "authenticatedExtendedCard"] => {
            Some(Found::new(Generation::V0_3, None, &[("GET", Operation::GetExtendedCard)]))
        }
        all => find(Generation::V1, None, all).or_else(|| match all {
            [tenant, rest @ ..] if is_tenant(tenant) => find(Generation::V1, Some(tenant), rest),
            _ => None,
        }),
    };
    found.map(|found| found.of_method(method)).transpose()
}

/// The generation of a client that asks for a path where nothing is. 0.3 clients append `/v1` to the agent's URL.
pub fn generation_at(path: &str) -> Generation {
    if path == "/v1" || path.starts_with("/v1/") { Generation::V0_3 } else { Generation::V1 }
}

/// Whether the server runs. This and the next two are about the server, not about an agent.
pub const HEALTH_PATH: &str = "/healthz";
/// Whether work should be sent to the server.
pub const READY_PATH: &str = "/readyz";
/// What the server counts.
pub const METRICS_PATH: &str = "/metrics";

/// First segments that cannot be tenants: those of routes, the well-known folder, and paths about the server.
fn is_reserved(name: &str) -> bool {
    let about_server = [HEALTH_PATH, READY_PATH, METRICS_PATH].into_iter().map(|path| &path[1..]);
    [".", "..", ".well-known", "tasks", "extendedAgentCard"]
        .into_iter()
        .chain(about_server)
        .any(|it| it == name)
}

/// The path of an operation in 1.0, below version prefix and tenant, with names in braces where ids stand. In 0.3 only
/// that of the extended card is another.
pub fn path_template(operation: Operation) -> &'static str {
    match operation {
        Operation::SendMessage => "/message:send",
        Operation::SendStreamingMessage => "/message:stream",
        Operation::GetTask => "/tasks/{id}",
        Operation::ListTasks => "/tasks",
        Operation::CancelTask => "/tasks/{id}:cancel",
        Operation::SubscribeToTask => "/tasks/{id}:subscribe",
        Operation::CreatePushConfig | Operation::ListPushConfigs => "/tasks/{id}/pushNotificationConfigs",
        Operation::GetPushConfig | Operation::DeletePushConfig => {
            "/tasks/{id}/pushNotificationConfigs/{configId}"
        }
        Operation::GetExtendedCard => "/extendedAgentCard",
    }
}

/// True if a tenant can be used in a path: it needs no escaping and is not a reserved name.
pub fn is_tenant(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed) && !is_reserved(name)
}

/// Longest path of the table, tenant included.
const MOST_SEGMENTS: usize = 5;

/// The segments of a path; one slash at the end is accepted, empty segments are not.
fn segments(path: &str) -> Option<Vec<&str>> {
    let raw = |byte: u8| byte > b' ' && byte != 0x7f && !matches!(byte, b'\\' | b'?' | b'#');
    if !path.bytes().all(raw) {
        return None;
    }
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<_> = path.split('/').take(MOST_SEGMENTS + 1).collect();
    (segments.len() <= MOST_SEGMENTS && segments.iter().all(|segment| !segment.is_empty()))
        .then_some(segments)
}

/// A path that exists, with an operation for each of its methods.
struct Found {
    route: Route,
    methods: &'static [(&'static str, Operation)],
}

impl Found {
    fn new(
        generation: Generation,
        tenant: Option<&str>,
        methods: &'static [(&'static str, Operation)],
    ) -> Self {
        let tenant = tenant.map(str::to_owned);
        // A placeholder until `of_method` knows the HTTP method.
        let operation = methods[0].1;
        Found { route: Route { generation, tenant, operation, task_id: None, config_id: None }, methods }
    }

    fn of_method(mut self, method: &str) -> Result<Route, WrongMethod> {
        let known: Vec<_> = self.methods.iter().map(|(name, _)| *name).collect();
        let allow = match known.as_slice() {
            ["GET", "POST"] => "GET, HEAD, POST",
            ["GET", "DELETE"] => "GET, HEAD, DELETE",
            ["GET"] => "GET, HEAD",
            [one, ..] => one,
            [] => "",
        };
        // HEAD is GET without the body, which is left out when the answer is sent.
        let method = if method == "HEAD" { "GET" } else { method };
        let (_, operation) =
            self.methods.iter().find(|(name, _)| *name == method).ok_or(WrongMethod { allow })?;
        self.route.operation = *operation;
        Ok(self.route)
    }
}

/// The table, without version prefix and tenant. Takes what [`path_template`] writes, and older spellings.
fn find(generation: Generation, tenant: Option<&str>, segments: &[&str]) -> Option<Found> {
    use Operation::*;
    let found = |methods| Some(Found::new(generation, tenant, methods));
    let of_task = |id: &str, methods| {
        let mut found = Found::new(generation, tenant, methods);
        found.route.task_id = Some(TaskId::parse(&decode_id(id)?).ok()?);
        Some(found)
    };
    match segments {
        ["message:send"] => found(&[("POST", SendMessage)]),
        ["message:stream"] => found(&[("POST", SendStreamingMessage)]),
        ["extendedAgentCard"] if generation == Generation::V1 => found(&[("GET", GetExtendedCard)]),
        ["card"] if generation == Generation::V0_3 => found(&[("GET", GetExtendedCard)]),
        ["tasks"] => found(&[("GET", ListTasks)]),
        ["tasks", id] => match id.rsplit_once(':') {
            Some((id, "cancel")) => of_task(id, &[("POST", CancelTask)]),
            // The protobuf annotations say GET, the specification's text says POST.
            Some((id, "subscribe")) => of_task(id, &[("GET", SubscribeToTask), ("POST", SubscribeToTask)]),
            _ => of_task(id, &[("GET", GetTask)]),
        },
        [tasks, id, "pushNotificationConfigs"] if is_tasks(generation, tasks) => {
            of_task(id, &[("GET", ListPushConfigs), ("POST", CreatePushConfig)])
        }
        [tasks, id, "pushNotificationConfigs", config] if is_tasks(generation, tasks) => {
            let mut found = of_task(id, &[("GET", GetPushConfig), ("DELETE", DeletePushConfig)])?;
            found.route.config_id = Some(PushConfigId::parse(&decode_id(config)?).ok()?);
            Some(found)
        }
        _ => None,
    }
}

/// An earlier proto file of 0.3 had `task` instead of `tasks`, and clients were generated from it.
fn is_tasks(generation: Generation, segment: &str) -> bool {
    segment == "tasks" || segment == "task" && generation == Generation::V0_3
}
