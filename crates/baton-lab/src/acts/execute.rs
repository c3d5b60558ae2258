//! Runs the steps of one test.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::assertion::{self, Mismatch};
use super::condition::Condition;
use super::document::{Backoff, Named, Raw, Repeat, Step};
use super::path;
use super::reading;
use super::stream;
use super::variables::{Unresolved, Variables};
use crate::case::{Failure, StepOutcome, Verdict};
use crate::generation::{Binding, Generation};
use crate::run::Bench;
use crate::target::Behaviours;
use crate::wire::errors;
use crate::wire::request::{self, NoSuchRequest, Operation};
use crate::wire::{Answer, Request, WireError};

/// Why a step did not pass.
enum Stop {
    Fail(Failure),
    Skip(String),
    Error(String),
}

impl From<Mismatch> for Stop {
    fn from(found: Mismatch) -> Self {
        Stop::Fail(Failure::of(found))
    }
}

impl From<Unresolved> for Stop {
    fn from(unresolved: Unresolved) -> Self {
        match unresolved {
            Unresolved::Runner(_) => Stop::Skip(unresolved.to_string()),
            Unresolved::Unknown(_) | Unresolved::Cycle(_) => Stop::Error(unresolved.to_string()),
        }
    }
}

/// Runs all steps; the first that does not pass determines the verdict.
pub async fn run(bench: &Bench, steps: &[Step], last: &[Named]) -> (Verdict, Vec<StepOutcome>) {
    let mut variables = bench.variables();
    let mut outcomes = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let id = step.id.clone().unwrap_or_else(|| format!("step-{}", index + 1));
        let started = Instant::now();
        let result = one(bench, step, &id, &mut variables).await;
        let verdict = match result {
            Ok(()) => Verdict::Pass,
            Err(Stop::Fail(failure)) => Verdict::Fail(failure.in_step(&id)),
            Err(Stop::Skip(reason)) => Verdict::Skip(reason),
            Err(Stop::Error(reason)) => Verdict::Error(format!("{id}: {reason}")),
        };
        let ended = verdict != Verdict::Pass;
        outcomes.push(StepOutcome { id, verdict: verdict.clone(), duration: started.elapsed() });
        if ended {
            let rest = steps[index + 1..].iter().enumerate();
            outcomes.extend(rest.map(|(later, step)| StepOutcome {
                id: step.id.clone().unwrap_or_else(|| format!("step-{}", index + later + 2)),
                verdict: Verdict::Skip("an earlier step did not pass".to_owned()),
                duration: Duration::ZERO,
            }));
            return (verdict, outcomes);
        }
    }
    match check_named(last, &variables) {
        Ok(()) => (Verdict::Pass, outcomes),
        Err(stop) => (stop.into(), outcomes),
    }
}

async fn one(bench: &Bench, step: &Step, id: &str, variables: &mut Variables) -> Result<(), Stop> {
    if let Some(delay) = step.delay_ms {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    if let Some(assertion) = &step.assertion {
        return check_named(std::slice::from_ref(assertion), variables);
    }
    if let Some(client) = &step.client_response {
        let Some(adapter) = bench.client() else {
            return Err(Stop::Skip("no client is there to be tested".to_owned()));
        };
        let expected = variables.resolve(step.expect_parsed.as_ref().unwrap_or(&Value::Null))?;
        let parsed = adapter.parse(&client.operation, &client.wire_payload).map_err(|reason| {
            Stop::Fail(Failure::new(format!("the client could not read the payload: {reason}")))
        })?;
        return Ok(assertion::check(&expected, Some(&parsed))?);
    }
    let mut answer = ask(bench, step, variables).await?;
    if let Some(repeat) = &step.repeat {
        answer = repeated(bench, step, repeat, variables, answer).await?;
    }
    let root = root_of(&answer, step.raw.is_some());
    let judged = judge(bench, step, &answer, root.as_ref(), variables)
        .and_then(|()| keep(step, id, &answer, root.as_ref(), variables));
    match (judged, own_words(bench, step, root.as_ref())) {
        // The agent's reaction to its own example phrase is not judged: a case that needs more is skipped.
        (Err(Stop::Fail(_)), Some(did)) => Err(Stop::Skip(format!(
            "the agent does not know the test phrases, and with its skill's own example it {did}"
        ))),
        (judged, _) => judged,
    }
}

/// What the agent did with its own example phrase, if it did not complete a task.
fn own_words(bench: &Bench, step: &Step, root: Option<&Value>) -> Option<String> {
    let knows = matches!(bench.target().behaviours, Behaviours::Prefixes);
    let text = step.params.as_ref()?.pointer("/message/parts/0/text")?.as_str()?;
    if knows || !text.starts_with("tck-complete-task") {
        return None;
    }
    let root = root?;
    if root.get("message").is_some() || root.get("kind") == Some(&json!("message")) {
        return Some("answers with a message instead of a task".to_owned());
    }
    let state = stream::state_of(root).filter(|state| state != "COMPLETED")?;
    Some(format!("ends in {state}"))
}

/// Captures values of a step's result for later steps.
fn keep(
    step: &Step,
    id: &str,
    answer: &Answer,
    root: Option<&Value>,
    variables: &mut Variables,
) -> Result<(), Stop> {
    if let Some(root) = root {
        variables.capture(id, "response", root.clone());
    }
    for (name, at) in &step.capture {
        let root = root.ok_or_else(|| {
            Stop::Fail(Failure::new(format!("there is nothing to take `{name}` from: {}", answer.summary())))
        })?;
        let found = path::one(root, at).map_err(Stop::Error)?;
        let Some(found) = found else {
            let failure = Failure::of(Mismatch {
                path: at.clone(),
                expected: "to be there".to_owned(),
                actual: "missing".to_owned(),
            });
            return Err(Stop::Fail(failure));
        };
        variables.capture(id, name, found.clone());
    }
    check_named(&step.assertions, variables)
}

async fn ask(bench: &Bench, step: &Step, variables: &Variables) -> Result<Answer, Stop> {
    let request = match (&step.raw, &step.operation) {
        (Some(raw), _) => raw_request(bench, raw, variables)?,
        (None, Some(name)) => {
            let params = variables.resolve(step.params.as_ref().unwrap_or(&json!({})))?;
            operation_request(bench, name, params)?
        }
        (None, None) => return Err(Stop::Error("the step asks nothing".to_owned())),
    };
    let (generation, binding) = (bench.generation(), bench.binding());
    // The card is plain JSON in every binding; a raw step examines the whole body.
    let card = request.method == "GET" && request.url == bench.card_url();
    let binding = if card || step.raw.is_some() { Binding::Rest } else { binding };
    let mut probe = bench.probe().clone();
    // Raw steps about missing or other credentials are sent without the user's own.
    if let Some(raw) = &step.raw
        && (raw.anonymous || raw.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")))
    {
        probe = probe.stranger();
    }
    if let Some(timeout) = step.expect_stream.as_ref().and_then(|stream| stream.timeout_ms) {
        probe = probe.within(Duration::from_millis(timeout));
    }
    let operation = step.operation.as_deref().and_then(reading::operation).filter(|_| !card);
    let asked = match operation {
        Some(operation) => bench.with(probe).ask(operation, &request).await,
        None => probe.ask(generation, binding, &request).await,
    };
    asked.map_err(|error| Stop::Fail(Failure::new(format!("no answer: {error}"))))
}

/// An operation by its ACTS name, in this bench's generation and binding.
fn operation_request(bench: &Bench, name: &str, params: Value) -> Result<Request, Stop> {
    let Some((operation, params)) = reading::read(bench.generation(), name, params) else {
        return Err(Stop::Error(format!("no operation is called `{name}`")));
    };
    if operation == Operation::GetAgentCard {
        let headers = request::version(bench.generation()).into_iter().collect();
        let url = bench.card_url();
        return Ok(Request { method: "GET".to_owned(), url, headers, body: None, streams: false });
    }
    let params = in_words_it_knows(bench, with_message_id(params, bench.generation()));
    bench.request(operation, &params).map_err(|NoSuchRequest(reason)| Stop::Skip(reason))
}

/// For an agent that does not know the test phrases: replaces `tck-complete-task` by an example phrase of its skills.
fn in_words_it_knows(bench: &Bench, mut params: Value) -> Value {
    let Behaviours::Examples(examples) = &bench.target().behaviours else { return params };
    let parts = params.pointer_mut("/message/parts").and_then(Value::as_array_mut);
    let text = parts.and_then(|parts| parts.first_mut()).and_then(|part| part.get_mut("text"));
    if let (Some(text), Some(example)) = (text, examples.first())
        && text.as_str().is_some_and(|text| text.starts_with("tck-complete-task"))
    {
        *text = json!(example);
    }
    params
}

/// Adds a message id if the document has none.
fn with_message_id(mut params: Value, generation: Generation) -> Value {
    if generation != Generation::V0_1
        && let Some(message) = params.get_mut("message").and_then(Value::as_object_mut)
    {
        message.entry("messageId").or_insert_with(|| json!(uuid::Uuid::new_v4().to_string()));
    }
    params
}

/// Why a raw step could not be sent: a variable without a value.
impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Fail(failure) => Verdict::Fail(failure),
            Stop::Skip(reason) => Verdict::Skip(reason),
            Stop::Error(reason) => Verdict::Error(reason),
        }
    }
}

/// The request of a raw step, for native checks that replace a file's own steps.
pub(crate) fn raw_of(bench: &Bench, step: &Step) -> Result<Request, Verdict> {
    let Some(raw) = &step.raw else {
        return Err(Verdict::Error("the step is not a raw one".to_owned()));
    };
    Ok(raw_request(bench, raw, &bench.variables())?)
}

fn raw_request(bench: &Bench, raw: &Raw, variables: &Variables) -> Result<Request, Stop> {
    let path = variables.resolve_text(&raw.path)?;
    let url = if path.starts_with("/.well-known/") {
        format!("{}{path}", bench.target().base)
    } else {
        bench.join(&path)
    };
    let mut headers = Vec::new();
    for (name, value) in &raw.headers {
        headers.push((name.clone(), variables.resolve_text(value)?));
    }
    let body = match (&raw.body, &raw.body_raw) {
        (_, Some(text)) => Some(variables.resolve_text(text)?.into_bytes()),
        (Some(value), None) => Some(variables.resolve(value)?.to_string().into_bytes()),
        (None, None) => None,
    };
    let has = |name: &str| raw.headers.keys().any(|known| known.eq_ignore_ascii_case(name));
    if body.is_some() && !has("content-type") {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    headers.extend(bench.extensions().filter(|(name, _)| !has(name)));
    Ok(Request { method: raw.method.clone(), url, headers, body, streams: false })
}

async fn repeated(
    bench: &Bench,
    step: &Step,
    repeat: &Repeat,
    variables: &Variables,
    first: Answer,
) -> Result<Answer, Stop> {
    let condition = Condition::parse(&repeat.until).map_err(Stop::Error)?;
    let mut answer = first;
    for attempt in 1..=repeat.max_attempts.max(1) {
        if let Answer::Error(error) = &answer {
            return Err(Stop::Fail(Failure::new(format!("while polling: {}", error.summary()))));
        }
        let root = root_of(&answer, step.raw.is_some()).unwrap_or(Value::Null);
        if condition.is_met(&root).map_err(Stop::Error)? {
            return Ok(answer);
        }
        if attempt == repeat.max_attempts.max(1) {
            break;
        }
        let factor = match repeat.backoff {
            Backoff::None => 1,
            Backoff::Linear => u64::from(attempt),
            Backoff::Exponential => 1 << (attempt - 1).min(16),
        };
        tokio::time::sleep(Duration::from_millis(repeat.delay_ms.saturating_mul(factor))).await;
        answer = ask(bench, step, variables).await?;
    }
    let attempts = repeat.max_attempts;
    let failure =
        Failure::expected(format!("`{}` within {attempts} attempts", repeat.until), answer.summary());
    Err(Stop::Fail(failure))
}

/// The JSON that assertions and captures are applied to.
fn root_of(answer: &Answer, raw: bool) -> Option<Value> {
    match answer {
        Answer::Reply { body, .. } if raw => body.clone(),
        Answer::Reply { root, .. } => root.clone(),
        Answer::Error(error) if raw => error.body.clone(),
        Answer::Error(error) => Some(json!({"error": {
            "code": error.code, "name": error.name, "message": error.message, "data": error.details}})),
        Answer::Stream { events, .. } => Some(Value::Array(events.clone())),
    }
}

fn judge(
    bench: &Bench,
    step: &Step,
    answer: &Answer,
    root: Option<&Value>,
    variables: &Variables,
) -> Result<(), Stop> {
    if let Some(expected) = &step.expect_error {
        return expect_error(bench, &variables.resolve(expected)?, answer);
    }
    if let Some(expected) = &step.expect_stream {
        let Answer::Stream { events, closed, error, .. } = answer else {
            return Err(Stop::Fail(Failure::expected("a stream of events", answer.summary())));
        };
        if let Some(error) = error {
            return Err(Stop::Fail(Failure::expected("events only", error.summary())));
        }
        if !closed {
            let limit = expected.timeout_ms.map_or(bench.probe().timeout(), Duration::from_millis);
            let open = format!("still open after {} s and {} events", limit.as_secs_f32(), events.len());
            return Err(Stop::Fail(Failure::expected("the stream to close", open)));
        }
        let json = serde_json::to_value(&expected.events).unwrap_or_default();
        let mut expected = expected.clone();
        expected.events = serde_json::from_value(variables.resolve(&json)?).unwrap_or_default();
        expected.final_event = expected.final_event.map(|value| variables.resolve(&value)).transpose()?;
        expected.each_event = expected.each_event.map(|value| variables.resolve(&value)).transpose()?;
        return Ok(stream::check_events(&expected, events)?);
    }
    let Some(expected) = &step.expect else {
        // Without any expectation an error still fails the step.
        return match answer {
            Answer::Error(error) if step.raw.is_none() => {
                Err(Stop::Fail(Failure::expected("an answer", error.summary())))
            }
            _ => Ok(()),
        };
    };
    expect(step, &variables.resolve(expected)?, answer, root)
}

fn expect(step: &Step, expected: &Value, answer: &Answer, root: Option<&Value>) -> Result<(), Stop> {
    let members = expected.as_object().cloned().unwrap_or_default();
    // "Any error", in the three forms that the files use.
    let wants_error = members.get("status") == Some(&json!("error"))
        || members.get("error").is_some_and(|error| error == &json!({"exists": true}));
    if wants_error {
        return match answer {
            Answer::Error(_) => Ok(()),
            other => Err(Stop::Fail(Failure::expected("an error", other.summary()))),
        };
    }
    if let Answer::Error(error) = answer
        && step.raw.is_none()
    {
        return Err(Stop::Fail(Failure::expected("an answer", error.summary())));
    }
    let status = answer.status();
    match members.get("status") {
        Some(wanted) => {
            let wanted = if *wanted == json!(200) && step.raw.is_none() {
                json!({"gte": 200, "lt": 300})
            } else {
                wanted.clone()
            };
            assertion::check(&wanted, Some(&json!(status)))
                .map_err(|found| Mismatch { path: "HTTP status".to_owned(), ..found })?;
        }
        None if !(200..300).contains(&status) => {
            return Err(Stop::Fail(Failure::expected("HTTP 200", format!("HTTP {status}"))));
        }
        None => {}
    }
    if let Some(headers) = members.get("headers").and_then(Value::as_object) {
        for (name, wanted) in headers {
            let actual = answer.header(name).map(|value| json!(value));
            assertion::check(wanted, actual.as_ref())
                .map_err(|found| Mismatch { path: format!("header {name}"), ..found })?;
        }
    }
    let body = members.get("body").cloned().or_else(|| {
        // Members of the body directly under `expect`.
        let others: serde_json::Map<_, _> = members
            .iter()
            .filter(|(name, _)| !["status", "headers"].contains(&name.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        (!others.is_empty()).then_some(Value::Object(others))
    });
    if let Some(body) = body {
        if root.is_none() {
            return Err(Stop::Fail(Failure::expected("an answer in JSON", answer.summary())));
        }
        assertion::check(&body, root)?;
    }
    Ok(())
}

fn expect_error(bench: &Bench, expected: &Value, answer: &Answer) -> Result<(), Stop> {
    let error: &WireError = match answer {
        Answer::Error(error) => error,
        Answer::Stream { error: Some(error), events, .. } if events.is_empty() => error,
        other => {
            let wanted = wanted_name(expected).map_or_else(|| "an error".to_owned(), |name| in_words(&name));
            return Err(Stop::Fail(Failure::expected(wanted, other.summary())));
        }
    };
    if let Some(wanted) = wanted_name(expected) {
        check_name(bench, &wanted, error)?;
    }
    let members = [
        ("message", error.message.as_ref().map(|text| json!(text))),
        ("details", Some(error.details.clone()).filter(|details| !details.is_null())),
        ("data", Some(error.details.clone()).filter(|details| !details.is_null())),
        ("status", Some(json!(error.status))),
    ];
    for (name, actual) in members {
        if let Some(wanted) = expected.get(name) {
            assertion::check(wanted, actual.as_ref()).map_err(|found| Mismatch {
                path: format!("error {name} {}", found.path).trim().to_owned(),
                ..found
            })?;
        }
    }
    Ok(())
}

/// The error's name, or an assertion on it; the official files also call it `code`.
fn wanted_name(expected: &Value) -> Option<Value> {
    expected.get("error_type").or_else(|| expected.get("code")).cloned()
}

fn check_name(bench: &Bench, wanted: &Value, error: &WireError) -> Result<(), Stop> {
    if let Some(code) = wanted.as_i64() {
        let actual = error.code.map(|code| json!(code));
        return Ok(assertion::check(&json!(code), actual.as_ref())
            .map_err(|found| Mismatch { path: "error code".to_owned(), ..found })?);
    }
    // HTTP+JSON of 0.3 defines neither the body nor the status of an error.
    if error.name.is_none()
        && (bench.generation(), bench.binding()) == (Generation::V0_3, Binding::Rest)
        && alternatives(wanted).any(|name| errors::fits_v0_3(name, error.status))
    {
        bench.note(format!("only the HTTP status {} tells the error; its body names none", error.status));
        return Ok(());
    }
    let actual = error.name.as_ref().map(|name| json!(name));
    if assertion::check(wanted, actual.as_ref()).is_ok() {
        return Ok(());
    }
    // A code of gRPC stands for several errors, as a status of HTTP+JSON does.
    if let (Binding::Grpc, None, Some(code)) = (bench.binding(), &error.name, error.code)
        && alternatives(wanted).any(|name| errors::fits_grpc(bench.generation(), name, code))
    {
        return Ok(());
    }
    // HTTP+JSON has no names for JSON-RPC's own errors: they are recognised by their status.
    let plain = error.name.is_none() && bench.binding() == Binding::Rest;
    let invalid = [json!("InvalidParamsError"), json!("InvalidRequestError"), json!("JSONParseError")];
    if plain
        && matches!(error.status, 400 | 422)
        && invalid.iter().any(|name| assertion::check(wanted, Some(name)).is_ok())
    {
        return Ok(());
    }
    // In some bindings a status alone fits several errors: then it is enough that it fits the expected one.
    if plain
        && error.body.is_some()
        && let Some(wanted) = wanted.as_str()
    {
        let status = error.status;
        if errors::http_status(wanted) == Some(status) {
            bench.note(format!("only the HTTP status {status} tells the error; its body names none"));
            return Ok(());
        }
        if errors::first_http_status(wanted) == Some(status) {
            bench.note(format!("HTTP {status} is what 1.0.0 had for {wanted}; 1.0.1 changed it"));
            return Ok(());
        }
    }
    Err(Stop::Fail(Failure::expected(in_words(wanted), error.summary())))
}

/// An error's name, or several, as text.
fn in_words(wanted: &Value) -> String {
    let several = wanted.get("one_of").and_then(Value::as_array);
    let names: Option<Vec<&str>> = several.map(|names| names.iter().filter_map(Value::as_str).collect());
    match (wanted.as_str(), names) {
        (Some(name), _) => name.to_owned(),
        (None, Some(names)) => names.join(" or "),
        (None, None) => assertion::show(wanted),
    }
}

/// The names that an expectation accepts: one, or those of `one_of`.
fn alternatives(wanted: &Value) -> impl Iterator<Item = &str> {
    let several = wanted.get("one_of").and_then(Value::as_array).into_iter().flatten();
    std::iter::once(wanted).chain(several).filter_map(Value::as_str)
}

fn check_named(assertions: &[Named], variables: &Variables) -> Result<(), Stop> {
    for assertion in assertions {
        let source = assertion.source.as_deref().unwrap_or_default();
        let source = variables.resolve(&json!(source))?;
        let resolve =
            |value: &Option<Value>| value.as_ref().map(|value| variables.resolve(value)).transpose();
        let mut assertion = assertion.clone();
        assertion.matches = resolve(&assertion.matches)?;
        for nodes in [&mut assertion.any, &mut assertion.all, &mut assertion.none].into_iter().flatten() {
            nodes.matches = variables.resolve(&nodes.matches)?;
        }
        assertion::named(&assertion, &source).map_err(|found| {
            let mut failure = Failure::of(found);
            if let Some(description) = &assertion.description {
                failure.message = format!("{description}: {}", failure.message);
            }
            Stop::Fail(failure)
        })?;
    }
    Ok(())
}
