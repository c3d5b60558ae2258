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
use crate::target::{self, Interface, Target};
use crate::wire::probe::NoAnswer;
use crate::wire::request::{self, NoSuchRequest, Operation};
use crate::wire::{Answer, Probe, Request, Secrets, errors};

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

    /// The same, with another way of sending.
    pub(crate) fn with(&self, probe: Probe) -> Self {
        Bench { probe, ..self.clone() }
    }

    pub fn client(&self) -> Option<&dyn ClientAdapter> {
        self.client.as_deref()
    }

    /// The same case through another binding of the agent, where it has that.
    pub fn on(&self, binding: Binding) -> Option<Self> {
        let interface = self.target.interfaces.get(&(self.generation(), binding))?.clone();
        Some(Bench { binding, interface, ..self.clone() })
    }

    /// The same case on the second agent, through the same binding where it has that.
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

    /// The header for the extensions the agent requires: without it every call would be refused, and rightly so.
    pub fn extensions(&self) -> Option<(String, String)> {
        target::extensions_header(self.target.card_of(self.generation()), self.generation())
    }

    /// Asks for an operation. The specification's tables disagree on the verb of a subscription over HTTP+JSON, so
    /// an agent that does not know the one is asked with the other.
    pub async fn ask(&self, operation: Operation, request: &Request) -> Result<Answer, NoAnswer> {
        let answer = self.probe.ask(self.generation(), self.binding, request).await?;
        match self.other_verb(operation, request, &answer) {
            Some(other) => self.probe.ask(self.generation(), self.binding, &other).await,
            None => Ok(answer),
        }
    }

    /// The other way to subscribe, when the answer looks as if this one were unknown.
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
    // The case after which the agent was gone for good: asking it more would only take time.
    let gone: Mutex<Option<String>> = Mutex::default();
    let gone = &gone;
    let secrets = Secrets::of(&target.all_credentials(probe.credentials()), &options.given, &target.base);
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
    // Not in order: a slow case at the front must not keep the others waiting.
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

/// How long the card may take to show that somebody is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a supervisor may take to start an agent again.
const RESTART: Duration = Duration::from_secs(5);

/// Whatever a case did, the agent must still answer. Asked twice: one lost connection is no crash. Asked straight: what a
/// detour does to connections is not the agent's doing.
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
