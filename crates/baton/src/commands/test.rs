//! `baton test`: the lab on the command line.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_lab::case::{Case, Verdict};
use baton_lab::discover::{self, discover};
use baton_lab::generation::{Binding, Generation};
use baton_lab::plan::{Selection, plan};
use baton_lab::run::{self, Progress};
use baton_lab::suites;
use baton_lab::wire::{Credentials, Probe, ProbeOptions};

use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// The agent's address, or that of its card.
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<String>,

    /// A generation to test: 1.0, 0.3 or 0.1. May be given several times; all that are there otherwise.
    #[arg(long, value_name = "VERSION")]
    pub(crate) generation: Vec<Generation>,

    /// A binding to test: jsonrpc or rest. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) binding: Vec<Binding>,

    /// Cases to run: ids, sections, tags, categories; `!` in front leaves out. May be given several times.
    #[arg(long, value_name = "WORD")]
    pub(crate) select: Vec<String>,

    /// ACTS files or folders to run instead of the built-in suites.
    #[arg(long, value_name = "PATH")]
    pub(crate) suite: Vec<PathBuf>,

    /// Seconds a case may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,

    /// Lists the cases and runs nothing.
    #[arg(long)]
    pub(crate) list: bool,
}

pub(crate) async fn run(args: Test) -> Result<(), Failure> {
    let cases = cases(&args)?;
    let mut out = io::stdout().lock();
    if args.list {
        for case in &cases {
            let section = case.test.section.as_deref().unwrap_or("-");
            let _ = writeln!(
                out,
                "{:<24} {:<6} {:<10} {}",
                case.id(),
                case.level().name(),
                section,
                case.test.name
            );
        }
        return Ok(());
    }
    drop(out);
    let url = args.url.clone().unwrap_or_default();
    let timeout = Duration::from_secs(args.timeout);
    let probe = Probe::new(ProbeOptions { timeout, credentials: Credentials::default() });
    let probe = probe.map_err(|error| Failure::usage(error.to_string()))?;
    let look = discover::Options { generations: args.generation.clone(), ..discover::Options::default() };
    let found = discover(&url, &probe, &look).await.map_err(|found| Failure::usage(found.to_string()))?;
    let selection = Selection {
        generations: args.generation.clone(),
        bindings: args.binding.clone(),
        select: args.select.clone(),
        ..Selection::default()
    };
    let target = Arc::new(found.target);
    let plan = plan(&cases, &target, &selection);
    let options =
        run::Options { parallel: 8, timeout, given: BTreeMap::new(), environment: BTreeMap::new(), seed: 0, secrets: Default::default() };
    let outcomes = run::run(plan, target, probe, options, None, |progress| {
        if let Progress::Ended(outcome) = progress {
            let why = match &outcome.verdict {
                Verdict::Pass => String::new(),
                Verdict::Fail(failure) => format!(": {}", failure.message),
                Verdict::Skip(reason) | Verdict::Inconclusive(reason) | Verdict::Error(reason) => {
                    format!(": {reason}")
                }
            };
            let (word, id) = (outcome.verdict.word(), outcome.case.id());
            let _ =
                writeln!(io::stdout(), "{word:<6} {} {} {id}{why}", outcome.case.generation, outcome.binding);
        }
    })
    .await;
    let failed = outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_))).count();
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} cases failed"))) }
}

fn cases(args: &Test) -> Result<Vec<Arc<Case>>, Failure> {
    if args.suite.is_empty() {
        return suites::embedded().map_err(|error| Failure::failed(error.to_string()));
    }
    let mut all = Vec::new();
    for path in &args.suite {
        all.extend(suites::from_path(path, true).map_err(|error| Failure::usage(error.to_string()))?);
    }
    Ok(all)
}
