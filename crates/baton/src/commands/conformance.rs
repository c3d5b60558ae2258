//! `baton conformance`: `baton test` in brief, in the form of the client commands. It runs Baton's own checks, not the
//! external TCK.

use std::ffi::OsString;

use baton_lab::case::Verdict;
use baton_lab::report::{Run, reason};
use clap::FromArgMatches as _;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::test::RunArgs;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::Settings;
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct Conformance {
    /// Checks to run: an id or the beginning of one, a section, category, level, tag or suite; a leading `!` excludes.
    #[arg(long, short = 's', value_name = "WORD")]
    select: Vec<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: Conformance) -> Result<(), Failure> {
    let mut failed = 0;
    client::run_without_limit(&args.options, async |call| {
        failed = check(call, &args.select).await?;
        Ok(())
    })
    .await?;
    // The result is on stdout, so that nothing else is said.
    if failed > 0 { Err(Failure::reported(1)) } else { Ok(()) }
}

async fn check(call: &Call, select: &[String]) -> Result<usize, CallError> {
    let args = run_args(&call.settings, select)?;
    call.settings.insecure_warning(call.settings.sends_private()).into_iter().for_each(output::warn);
    let run = super::test::judge(&args).await.map_err(|failure| CallError::usage(failure.to_string()))?;
    let failed: Vec<String> = problems(&run);
    let passed = run.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass).count();
    let object = json!({
        "agent": run.agent.name,
        "checks": passed + failed.len(),
        "passed": passed,
        "failed": failed.len(),
        "problems": failed,
    });
    call.output.result(&object.to_string(), || {
        let mut section = Section::default();
        section.field("Agent", &run.agent.name);
        section.field("Checks", (passed + failed.len()).to_string());
        section.field("Passed", passed.to_string());
        section.field("Failed", failed.len().to_string());
        failed.iter().for_each(|problem| section.field("Problem", problem.replace('\n', " ")));
        Ok(section.end())
    })?;
    Ok(failed.len())
}

/// The checks that count and failed.
fn problems(run: &Run) -> Vec<String> {
    let failures = run.counted_failures();
    failures
        .map(|outcome| {
            format!(
                "{} {} {}: {}",
                outcome.case.id(),
                outcome.binding,
                outcome.case.requirement(),
                reason(&outcome.verdict)
            )
        })
        .collect()
}

/// The same settings as `baton test` takes them.
fn run_args(settings: &Settings, select: &[String]) -> Result<RunArgs, CallError> {
    let Some(agent) = &settings.agent_card else {
        return Err(CallError::usage("no agent is named: give -a, or put its http(s) address first"));
    };
    let mut line: Vec<OsString> = vec!["test".into(), agent.into()];
    let mut flag = |name: &str, value: Option<OsString>| {
        if let Some(value) = value {
            line.extend([name.into(), value]);
        }
    };
    flag("--bearer", settings.bearer.as_ref().map(|token| token.expose_secret().into()));
    flag("--api-key", settings.api_key.as_ref().map(|key| key.expose_secret().into()));
    let user = settings.user.as_ref().filter(|_| settings.bearer.is_none());
    flag("--basic", user.map(|(name, password)| format!("{name}:{}", password.expose_secret()).into()));
    flag("--ca", settings.ca.as_ref().map(Into::into));
    flag("--client-cert", settings.client_cert.as_ref().map(Into::into));
    flag("--client-key", settings.client_key.as_ref().map(Into::into));
    flag("--generation", settings.version.as_ref().map(Into::into));
    for (name, value) in &settings.service_parameters {
        flag("--header", Some(format!("{name}: {}", value.expose_secret()).into()));
    }
    select.iter().for_each(|word| flag("--select", Some(word.into())));
    for transport in &settings.transports {
        let name = match *transport {
            "HTTP+JSON" => "rest",
            "GRPC" => "grpc",
            _ => "jsonrpc",
        };
        flag("--binding", Some(name.into()));
    }
    if settings.insecure {
        line.push("--insecure".into());
    }
    let command = <RunArgs as clap::Args>::augment_args(clap::Command::new("test"));
    let parsed = command.try_get_matches_from(line).and_then(|matches| RunArgs::from_arg_matches(&matches));
    // The message repeats the line, which may hold a secret; its kind is enough.
    parsed.map_err(|error| CallError::usage(format!("the settings do not fit: {}", error.kind())))
}
