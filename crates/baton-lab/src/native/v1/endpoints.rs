//! Every address in a card must answer, in the generation and binding that is declared for it.

use serde_json::{Value, json};

use super::talk::fresh_id;
use crate::acts::assertion::Mismatch;
use crate::generation::{Binding, Generation};
use crate::native::{Checks, Done, checks};
use crate::run::Bench;
use crate::target::{self, Interface};
use crate::wire::request::{self, Operation};
use crate::wire::{Answer, WireError};

pub(in crate::native) const CHECKS: Checks = checks! {
    "v1.endpoints.all-answer" => all_answer,
};

async fn all_answer(bench: &Bench) -> Done {
    let (_, card) = bench.card().await?;
    let mut found = Vec::new();
    for (index, entry) in card["supportedInterfaces"].as_array().into_iter().flatten().enumerate() {
        if let Err((expected, actual)) = answers(bench, entry).await {
            let path = format!("supportedInterfaces[{index}]");
            found.push(Mismatch { path, expected, actual });
        }
    }
    super::shape::judge(found)
}

async fn answers(bench: &Bench, entry: &Value) -> Result<(), (String, String)> {
    let url = entry["url"].as_str().unwrap_or_default().to_owned();
    let (name, version) = (entry["protocolBinding"].as_str(), entry["protocolVersion"].as_str());
    let (name, version) = (name.unwrap_or_default(), version.unwrap_or_default());
    let minor = version.split('.').take(2).collect::<Vec<_>>().join(".");
    let generation: Result<Generation, _> = minor.parse();
    let binding = Binding::ALL.into_iter().find(|binding| binding.in_cards() == name);
    match (generation, binding) {
        (Ok(generation), Some(binding)) => {
            let url = target::with_scheme(&bench.target().base, url, binding);
            let tenant = entry["tenant"].as_str().filter(|tenant| !tenant.is_empty()).map(str::to_owned);
            speaks(bench, generation, binding, Interface { url, tenant }).await
        }
        _ => {
            bench.note(format!("{name} {version} at {url} was not tried; this runner does not speak it"));
            Ok(())
        }
    }
}

/// For an unknown task, an A2A endpoint sends an A2A error; a web server's plain 404 is not one.
pub(in crate::native) async fn speaks(
    bench: &Bench,
    generation: Generation,
    binding: Binding,
    interface: Interface,
) -> Result<(), (String, String)> {
    let wanted = format!("{} of {generation} at {}", binding.in_cards(), interface.url);
    let params = json!({ "id": fresh_id() });
    let built = request::operation(generation, binding, &interface, Operation::GetTask, &params);
    let mut request = built.map_err(|none| (wanted.clone(), none.0))?;
    request.headers.extend(target::extensions_header(&bench.target().card, generation));
    match bench.probe().ask(generation, binding, &request).await {
        Ok(Answer::Error(error)) if is_from_an_agent(binding, &error) => Ok(()),
        Ok(other) => Err((wanted, other.summary())),
        Err(error) => Err((wanted, error.to_string())),
    }
}

fn is_from_an_agent(binding: Binding, error: &WireError) -> bool {
    if matches!(error.status, 401 | 403) {
        return true;
    }
    match binding {
        Binding::Jsonrpc => error.code == Some(-32001),
        Binding::Grpc => error.code == Some(5),
        Binding::Rest => {
            error.status == 404
                && error.body.as_ref().is_some_and(Value::is_object)
                && error.message.is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, code: Option<i64>, message: Option<&str>, body: Option<Value>) -> WireError {
        WireError {
            status,
            headers: Vec::new(),
            code,
            name: None,
            message: message.map(str::to_owned),
            details: Value::Null,
            body,
        }
    }

    #[test]
    fn a_web_servers_404_is_no_agent() {
        let task =
            error(404, None, Some("no such task"), Some(json!({"error": {"message": "no such task"}})));
        assert!(is_from_an_agent(Binding::Rest, &task));
        assert!(is_from_an_agent(Binding::Rest, &error(401, None, None, None)));
        assert!(is_from_an_agent(Binding::Jsonrpc, &error(200, Some(-32001), None, None)));
        assert!(!is_from_an_agent(Binding::Rest, &error(404, None, None, None)));
        assert!(!is_from_an_agent(Binding::Rest, &error(500, None, Some("x"), Some(json!({})))));
        assert!(!is_from_an_agent(Binding::Jsonrpc, &error(200, Some(-32601), None, None)));
        assert!(!is_from_an_agent(Binding::Jsonrpc, &error(404, None, None, None)));
    }
}
