//! Runs the plan: several cases at a time, each reported when it ends.

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
use crate::plan::{self, Decision, Planned};
use crate::target::{self, Interface, Target};
use crate::wire::request::{self, NoSuchRequest, Operation};
use crate::wire::{Answer, Credentials, NoAnswer, Probe, Request, Secrets, errors};

#[derive(Debug, Clone)]
pub struct Options {
    /// Cases at a time.
    pub parallel: usize,
    /// Longest time for a case.
    pub timeout: Duration,
    /// Variables from the command line.
    pub given: BTreeMap<String, Value>,
    /// A second user of the agent, whose tasks the first must not see.
    pub other: Option<Credentials>,
    pub environment: BTreeMap<String, String>,
    /// The seed of random choices.
    pub seed: u64,
}

impl Options {
    /// What no report of the run may show.
    pub fn secrets(&self, target: &Target, own: &Credentials) -> Secrets {
        let second = target.second.as_ref().map(|second| &second.credentials);
        Secrets::of(Some(own).into_iter().chain(second).chain(&self.other), &self.given, &target.base)
    }
}

/// A client under test: reads a wire payload and returns what it understood, as JSON.
pub trait ClientAdapter: Send + Sync + fmt::Debug {
    fn parse(&self, operation: &str, payload: &Value) -> Result<Value, String>;
}

/// Everything that a case needs.
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

    /// The same with another probe.
    pub(crate) fn with(&self, probe: Probe) -> Self {
        Bench { probe, ..self.clone() }
    }

    pub fn client(&self) -> Option<&dyn ClientAdapter> {
        self.client.as_deref()
    }

    /// The same case through another binding, if the agent has it.
    pub fn on(&self, binding: Binding) -> Option<Self> {
        let interface = self.target.interfaces.get(&(self.generation(), binding))?.clone();
        Some(Bench { binding, interface, ..self.clone() })
    }

    /// The same case on the second agent, through the same binding if it has it.
    pub fn second(&self) -> Option<Self> {
        let second = self.target.second.as_ref()?;
        let of = |binding| Some((binding, second.target.interfaces.get(&(self.generation(), binding))?));
        let known = [self.binding, Binding::Jsonrpc, Binding::Rest];
        let (binding, interface) = known.into_iter().find_map(of)?;
        let (target, interface) = (Arc::clone(&second.target), interface.clone());
        let probe = self.probe.acting_as(second.credentials.clone());
        Some(Bench { target, binding, interface, probe, ..self.clone() })
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
        let url = self.interface.url.trim_end_matches('/');
        match (self.binding, &self.interface.tenant) {
            (Binding::Jsonrpc, _) if path == "/" => self.interface.url.clone(),
            (Binding::Rest, Some(tenant)) => format!("{url}/{}{path}", request::encoded(tenant)),
            _ => format!("{url}{path}"),
        }
    }

    pub fn request(&self, operation: Operation, params: &Value) -> Result<Request, NoSuchRequest> {
        let (generation, binding) = (self.generation(), self.binding);
        let mut request = request::operation(generation, binding, &self.interface, operation, params)?;
        request.headers.extend(self.extensions());
        Ok(request)
    }

    /// The header with the extensions that the agent requires: without it every call would be refused.
    pub fn extensions(&self) -> Option<(String, String)> {
        target::extensions_header(self.target.card_of(self.generation()), self.generation())
    }

    /// Calls an operation. The specification's tables disagree on the verb of a subscription over HTTP+JSON, so if an
    /// agent does not know one, the other is tried.
    pub async fn ask(&self, operation: Operation, request: &Request) -> Result<Answer, NoAnswer> {
        let answer = self.probe.ask(self.generation(), self.binding, request).await?;
        match self.other_verb(operation, request, &answer) {
            Some(other) => self.probe.ask(self.generation(), self.binding, &other).await,
            None => Ok(answer),
        }
    }

    /// The subscription with the other verb, if the answer looks as if this one were unknown.
    fn other_verb(&self, operation: Operation, request: &Request, answer: &Answer) -> Option<Request> {
        let unknown = match answer {
            Answer::Error(error) => {
                error.status == 405 || error.status == 404 && errors::reason_in(&error.details).is_none()
            }
            _ => false,
        };
        let subscribes = operation == Operation::SubscribeToTask && self.binding == Binding::Rest;
        (subscribes && unknown && request.method == "GET")
            .then(|| Request { method: "POST".to_owned(), ..request.clone() })
    }

    pub(crate) fn variables(&self) -> Variables {
        let mut variables = Variables::default();
        variables.given = self.options.given.clone();
        variables.document = self.case.source.variables.clone();
        variables.environment = self.options.environment.clone();
        // The two names in files for the agent's address.
        for name in ["SUT_BASE_URL", "A2A_BASE_URL"] {
            let base = || self.target.base.clone();
            variables.environment.entry(name.to_owned()).or_insert_with(base);
        }
        variables
    }
}

/// Progress reports of the runner.
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
    // The case after which the agent did not come back: further cases would only take time.
    let gone: Mutex<Option<String>> = Mutex::default();
    let gone = &gone;
    let secrets = options.secrets(&target, probe.credentials());
    let secrets = &secrets;
    let cases = plan.into_iter().map(|planned| {
        let (target, options, client) = (Arc::clone(&target), Arc::clone(&options), client.clone());
        let probe = probe.fresh();
        async move {
            let decision = match gone.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                Some(id) => Decision::Skip(format!("the agent has not answered since {id}")),
                None => planned.decision,
            };
            let outcome = match decision {
                Decision::Skip(reason) => skipped(planned.case, planned.binding, reason),
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
                    let mut outcome = run_case(bench.clone()).await;
                    if outcome.crashed && !comes_back(&bench).await {
                        let id = outcome.case.id().to_owned();
                        gone.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(id);
                    }
                    outcome.hide(secrets);
                    outcome
                }
            };
            tell(Progress::Ended(Box::new(outcome.clone())));
            outcome
        }
    });
    // Unordered, so that a slow case does not delay others.
    let numbered = cases.enumerate().map(|(place, case)| async move { (place, case.await) });
    let mut done: Vec<_> = futures_util::stream::iter(numbered).buffer_unordered(parallel).collect().await;
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn skipped(case: Arc<Case>, binding: Binding, reason: String) -> Outcome {
    Outcome {
        case,
        binding,
        verdict: Verdict::Skip(reason),
        notes: Vec::new(),
        steps: Vec::new(),
        evidence: Vec::new(),
        duration: Duration::ZERO,
        crashed: false,
    }
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
    // Where the agent lets nobody in without credentials, a refusal says nothing about this case.
    let is_refused = |status: u16| {
        let mut answers = evidence.iter().filter_map(|exchange| exchange.received.as_ref());
        answers.any(|received| received.status == status)
    };
    let verdict = match bench.target.refused.filter(|status| is_refused(*status)) {
        Some(status) if !plan::is_about_authentication(&bench.case) => Verdict::Skip(plan::refused(status)),
        _ => verdict,
    };
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

/// Time limit for fetching the card, to see whether the agent still answers.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a supervisor may take to start an agent again.
const RESTART: Duration = Duration::from_secs(5);

/// After each case the agent must still answer. Two tries, since one lost connection is not a crash. Without the fault
/// proxy, since its faults are not the agent's.
async fn is_alive(bench: &Bench) -> bool {
    let url = bench.card_url();
    let request = Request { method: "GET".to_owned(), url, headers: Vec::new(), body: None, streams: false };
    let probe = bench.probe.fresh().direct().within(SIGN_OF_LIFE);
    for _ in 0..2 {
        if probe.open(&request).await.is_ok() {
            return true;
        }
    }
    false
}

async fn comes_back(bench: &Bench) -> bool {
    let since = Instant::now();
    while since.elapsed() < RESTART {
        if is_alive(bench).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    false
}
