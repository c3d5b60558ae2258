//! The agent's cards: one document for 1.0 and 0.3, another for 0.1.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_lab::generation::Generation;
use serde_json::{Value, json};

use super::agent::Agent;
use super::message_rules::MEDIA_TYPES;
use super::profile::{EXTENSION, REQUIRED_EXTENSION};
use super::scripts::EXAMPLE;

/// Below the agent's address.
pub(super) const RPC: &str = "/a2a";
pub(super) const REST: &str = "/rest";
pub(super) const RPC_V0_3: &str = "/old";
pub(super) const REST_V0_3: &str = "/old-rest";
pub(super) const RPC_V0_1: &str = "/legacy";

pub(super) fn public(agent: &Agent) -> Value {
    let base = &agent.base;
    let at = |path: &str| format!("{base}{path}");
    let interface = |path: &str, binding: &str, version: &str| json!({"url": at(path), "protocolBinding": binding, "protocolVersion": version});
    // An agent over gRPC has that in the place of HTTP+JSON.
    let grpc =
        |version: &str| json!({"url": agent.grpc, "protocolBinding": "GRPC", "protocolVersion": version});
    let [second, second_v0_3] = if agent.profile.speaks_grpc() {
        [grpc("1.0"), grpc("0.3")]
    } else {
        [interface(REST, "HTTP+JSON", "1.0"), interface(REST_V0_3, "HTTP+JSON", "0.3")]
    };
    let mut card = json!({
        "name": "Mutant",
        "description": "An agent that is right until it is told to be wrong.",
        "version": "1.0.0",
        "supportedInterfaces": [
            interface(RPC, "JSONRPC", "1.0"),
            second,
            interface(RPC_V0_3, "JSONRPC", "0.3"),
            second_v0_3],
        "capabilities": capabilities(agent),
        "defaultInputModes": MEDIA_TYPES,
        "defaultOutputModes": ["text/plain"],
        "skills": [skill()],
        "protocolVersion": "0.3.0",
        "url": at(RPC_V0_3),
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": at(RPC_V0_3), "transport": "JSONRPC"},
            {"url": second_v0_3["url"], "transport": second_v0_3["protocolBinding"]}]});
    if agent.profile.is_guarded() {
        card["supportsAuthenticatedExtendedCard"] = json!(true);
        card["securitySchemes"] = json!({"token": {
            "type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}}});
        card["securityRequirements"] = json!([{"schemes": {"token": {"list": []}}}]);
        card["security"] = json!([{"token": []}]);
        let protected = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"1","typ":"JOSE"}"#);
        card["signatures"] = json!([{"protected": protected, "signature": URL_SAFE_NO_PAD.encode("signed")}]);
    }
    card
}

pub(super) fn extended(agent: &Agent, _generation: Generation) -> Value {
    let mut card = public(agent);
    let more =
        json!({"id": "secret", "name": "Secret", "description": "For those who are known.", "tags": ["x"]});
    if let Some(skills) = card["skills"].as_array_mut() {
        skills.push(more);
    }
    card
}

pub(super) fn legacy(agent: &Agent) -> Value {
    let (streaming, push) = (agent.profile.streams(), agent.profile.pushes());
    let mut skill = skill();
    skill["inputModes"] = json!(["text/plain"]);
    skill["outputModes"] = json!(["text/plain"]);
    let mut card = json!({
        "name": "Mutant",
        "description": "An agent that is right until it is told to be wrong.",
        "url": format!("{}{RPC_V0_1}", agent.base),
        "version": "1.0.0",
        "capabilities": {"streaming": streaming, "pushNotifications": push, "stateTransitionHistory": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill]});
    if agent.profile.is_guarded() {
        card["authentication"] = json!({"schemes": ["Bearer"]});
    }
    card
}

fn capabilities(agent: &Agent) -> Value {
    let guarded = agent.profile.is_guarded();
    let mut extensions = vec![json!({"uri": EXTENSION, "description": "One that may be asked for."})];
    if guarded {
        extensions.push(json!({"uri": REQUIRED_EXTENSION, "required": true}));
    }
    json!({
        "streaming": agent.profile.streams(),
        "pushNotifications": agent.profile.pushes(),
        "extendedAgentCard": guarded,
        "stateTransitionHistory": true,
        "extensions": extensions})
}

fn skill() -> Value {
    json!({"id": "hello", "name": "Hello", "description": "Says hello.", "tags": ["greeting"],
        "examples": [EXAMPLE]})
}
