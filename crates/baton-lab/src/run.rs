//! Running what was planned: each case on its own, several at a time, told of as it ends.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::Value;

use crate::acts::execute;
use crate::acts::variables::Variables;
use crate::case::{Case, Failure, Outcome, Verdict};
use crate::generation::{Binding, Generation};
use crate::native;
use crate::plan::{Decision, Planned};
use crate::target::{Interface, Target};
use crate::wire::request::{self, NoSuchRequest, Operation};
use crate::wire::{Probe, Request, Secrets};

#[derive(Debug, Clone)]
pub struct Options {
    /// Cases at a time.
    pub parallel: usize,
    /// Longest a case may take.
    pub timeout: Duration,
    /// From the command line.
    pub given: BTreeMap<String, Value>,
    pub environment: BTreeMap<String, String>,
    /// Makes what is random the same again.
    pub seed: u64,
    /// What no report may show.
    pub secrets: Secrets,
}

/// A client that can be tested: reads a wire payload and answers what it understood, as JSON.
pub trait ClientAdapter: Send + Sync + fmt::Debug {
    fn parse(&self, operation: &str, payload: &Value) -> Result<Value, String>;
}

/// What a case has to work with.
#[derive(Debug, Clone)]
pub struct Bench {
    target: Arc<Target>,
    case: Arc<Case>,
    binding: Binding,
    interface: Interface,
    probe: Probe,
    options: Arc<Options>,
    client: Option<Arc<dyn ClientAdapter>>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn case(&self) -> &Case {
        &self.case
    }

    pub fn generation(&self) -> Generation {
        self.case.generation
    }

    pub fn binding(&self) -> Binding {
        self.binding
    }

    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn client(&self) -> Option<&dyn ClientAdapter> {
        self.client.as_deref()
    }

    /// A remark for the report.
    pub fn note(&self, note: impl Into<String>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note.into());
    }

    pub fn card_url(&self) -> String {
        let name = if self.generation() == Generation::V0_1 { "agent.json" } else { "agent-card.json" };
        format!("{}/.well-known/{name}", self.target.base)
    }

    /// A path at this binding's address; `/` alone is the address itself.
    pub fn join(&self, path: &str) -> String {
        let url = &self.interface.url;
        match self.binding {
            Binding::Jsonrpc if path == "/" => url.clone(),
            _ => format!("{}{path}", url.trim_end_matches('/')),
        }
    }

    pub fn request(&self, operation: Operation, params: &Value) -> Result<Request, NoSuchRequest> {
        request::operation(self.generation(), self.binding, &self.interface, operation, params)
    }

    pub(crate) fn variables(&self) -> Variables {
        let mut variables = Variables::default();
        variables.given = self.options.given.clone();
        variables.document = self.case.source.variables.clone();
        variables.environment = self.options.environment.clone();
        // Both names the files have for the agent's address.
        for name in ["SUT_BASE_URL", "A2A_BASE_URL"] {
            let base = || self.target.base.clone();
            variables.environment.entry(name.to_owned()).or_insert_with(base);
        }
        variables
    }
}

/// What the runner tells while it runs.
#[derive(Debug, Clone)]
pub enum Progress {
    Started { id: String, binding: Binding },
    Ended(Box<Outcome>),
}

/// Runs the plan; the outcomes are in the plan's order.
pub async fn run(
    plan: Vec<Planned>,
    target: Arc<Target>,
    probe: Probe,
    options: Options,
    client: Option<Arc<dyn ClientAdapter>>,
    tell: impl Fn(Progress) + Send + Sync,
) -> Vec<Outcome> {
    let (options, tell) = (Arc::new(options), &tell);
    let parallel = options.parallel.max(1);
    let cases = plan.into_iter().map(|planned| {
        let (target, options, client) = (Arc::clone(&target), Arc::clone(&options), client.clone());
        let probe = probe.fresh();
        async move {
            let outcome = match planned.decision {
                Decision::Skip(reason) => Outcome {
                    case: planned.case,
                    binding: planned.binding,
                    verdict: Verdict::Skip(reason),
                    notes: Vec::new(),
                    steps: Vec::new(),
                    evidence: Vec::new(),
                    duration: Duration::ZERO,
                    crashed: false,
                },
                Decision::Run(interface) => {
                    tell(Progress::Started { id: planned.case.id().to_owned(), binding: planned.binding });
                    let bench = Bench {
                        target,
                        case: planned.case,
                        binding: planned.binding,
                        interface,
                        probe,
                        options,
                        client,
                        notes: Arc::default(),
                    };
                    let secrets = bench.options.secrets.clone();
                    let mut outcome = run_case(bench).await;
                    outcome.hide(&secrets);
                    outcome
                }
            };
            tell(Progress::Ended(Box::new(outcome.clone())));
            outcome
        }
    });
    futures_util::stream::iter(cases).buffered(parallel).collect().await
}

async fn run_case(bench: Bench) -> Outcome {
    let started = Instant::now();
    let test = Arc::clone(&bench.case.test);
    let work = async {
        match &test.native {
            Some(name) => match native::find(name) {
                Some(check) => (check(&bench).await, Vec::new()),
                None => (Verdict::Error(format!("no native check is called `{name}`")), Vec::new()),
            },
            None => execute::run(&bench, &test.steps, &test.assertions).await,
        }
    };
    let (verdict, steps) = match tokio::time::timeout(bench.options.timeout, work).await {
        Ok(done) => done,
        Err(_) => {
            let seconds = bench.options.timeout.as_secs();
            let failure = Failure::new(format!("the case did not end within {seconds} s"));
            (Verdict::Fail(failure), Vec::new())
        }
    };
    let evidence = bench.probe.exchanges();
    let crashed = !is_alive(&bench).await;
    let notes = bench.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Outcome {
        case: Arc::clone(&bench.case),
        binding: bench.binding,
        verdict,
        notes,
        steps,
        evidence,
        duration: started.elapsed(),
        crashed,
    }
}

/// Whatever a case did, the agent must still answer. Asked twice: one lost connection is no crash.
async fn is_alive(bench: &Bench) -> bool {
    let url = bench.card_url();
    let request = Request { method: "GET".to_owned(), url, headers: Vec::new(), body: None, streams: false };
    let probe = bench.probe.fresh();
    for _ in 0..2 {
        if probe.open(&request).await.is_ok() {
            return true;
        }
    }
    false
}
