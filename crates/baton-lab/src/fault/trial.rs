//! Runs the lab's cases under faults: the verdicts must not depend on the network.
//!
//! There are two kinds of faults, with different expectations:
//!
//! - **Normal behaviour of TCP** (pieces, delays, a short stall) must not change an answer. The cases are run through
//!   the proxy, and every verdict must be the same as without.
//! - **The end of a connection** (cut, reset, half-close) ends the exchange. No specification says what a server must
//!   do for a client that is gone, and HTTP lets it drop a half-closed one, too. But the agent must keep running, and
//!   the next client must not be affected. So the cases are run through the proxy, ignoring the result, then again
//!   without it, and those verdicts are compared.
//!
//! A case whose verdict differs is run once more before it is reported.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::draw::Draw;
use super::kind::Recipe;
use super::plan::Plan;
use super::proxy::{Proxy, Tally};
use super::tunnel;
use crate::case::{Category, Outcome, Verdict};
use crate::generation::{Binding, Generation};
use crate::plan::{Decision, Planned};
use crate::run::{self, Options};
use crate::target::Target;
use crate::wire::detour::{Detour, place_of};
use crate::wire::{Exchange, Probe};

/// Time limit for an answer while connections are cut: a longer wait would be in vain.
const CUT_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Split,
    Delay,
    Stall,
    Cut,
    Reset,
    HalfClose,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Split, Self::Delay, Self::Stall, Self::Cut, Self::Reset, Self::HalfClose];

    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Delay => "delay",
            Self::Stall => "stall",
            Self::Cut => "cut",
            Self::Reset => "reset",
            Self::HalfClose => "half-close",
        }
    }

    /// What the fault does, and what is expected.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Split => "bytes come in small pieces",
            Self::Delay => "everything comes 20 ms late",
            Self::Stall => "every request and reply stops for 300 ms in its middle",
            Self::Cut => "every other connection is closed early; the next client must not notice",
            Self::Reset => "every other connection is reset; the next client must not notice",
            Self::HalfClose => "every other client closes its side early; the next one must not notice",
        }
    }

    /// True if every exchange stays complete.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::Split | Self::Delay | Self::Stall)
    }

    fn plan(self, seed: u64) -> Plan {
        let recipes: &[&str] = match self {
            Self::Split => &["split"],
            Self::Delay => &["delay=20ms"],
            Self::Stall => &["stall=300ms"],
            Self::Cut => &["cut/up", "cut/down"],
            Self::Reset => &["reset/up", "reset/down"],
            Self::HalfClose => &["half-close"],
        };
        let recipes = recipes.iter().map(|text| text.parse::<Recipe>().expect("they are written here"));
        // If all connections were cut, no case would get past its first request.
        let every = if self.is_harmless() { 1 } else { 2 };
        Plan { recipes: recipes.collect(), every, seed }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        let names = || Self::ALL.map(Self::name).join(", ");
        known.ok_or_else(|| format!("`{text}` is no fault; there are {}", names()))
    }
}

/// Which cases are run under which faults.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub kinds: Vec<Kind>,
    /// All cases; otherwise one of each category, generation and binding, chosen by the seed.
    pub all: bool,
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct UnderFaults {
    /// The cases that were run.
    pub checks: Vec<(String, Generation, Binding)>,
    /// Results by kind of fault, up to the one that crashed the agent, if any did.
    pub kinds: Vec<UnderKind>,
}

#[derive(Debug, Clone)]
pub struct UnderKind {
    pub kind: Kind,
    /// Number of equal verdicts.
    pub same: usize,
    pub different: Vec<Difference>,
    /// Verdicts without meaning: a lost race, or a case whose verdict also varies without faults.
    pub open: Vec<Difference>,
    pub tally: Tally,
    pub duration: Duration,
}

/// A case whose verdict differs under faults.
#[derive(Debug, Clone)]
pub struct Difference {
    pub before: Verdict,
    pub after: Outcome,
}

impl Difference {
    pub fn evidence(&self) -> &[Exchange] {
        &self.after.evidence
    }
}

impl UnderKind {
    pub fn holds(&self) -> bool {
        self.different.is_empty()
    }

    /// True if the agent stopped answering.
    pub fn is_gone(&self) -> bool {
        self.different.iter().any(|found| found.after.crashed)
    }

    pub fn total(&self) -> usize {
        self.same + self.different.len() + self.open.len()
    }

    /// `25 verdicts the same, 1 different, 2 open; 140 of 141 connections hit`.
    pub fn in_words(&self) -> String {
        let mut text = match self.same {
            1 => "1 verdict the same".to_owned(),
            same => format!("{same} verdicts the same"),
        };
        for (count, word) in [(self.different.len(), "different"), (self.open.len(), "open")] {
            if count > 0 {
                text += &format!(", {count} {word}");
            }
        }
        text + &format!("; {} of {} connections hit", self.tally.faulted, self.tally.connections)
    }
}

impl UnderFaults {
    pub fn holds(&self) -> bool {
        self.kinds.iter().all(UnderKind::holds)
    }

    pub fn different(&self) -> usize {
        self.kinds.iter().map(|kind| kind.different.len()).sum()
    }
}

/// Why nothing could be run, in a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotTry(pub String);

/// The parameters of a trial.
#[derive(Debug, Clone)]
pub struct Trial {
    pub target: Arc<Target>,
    /// Sends directly to the agent.
    pub probe: Probe,
    pub options: Options,
    pub wanted: Wanted,
}

impl Trial {
    /// Runs cases of a plan again under each kind of fault; `plain` are their results without faults.
    pub async fn run(
        &self,
        plan: &[Planned],
        plain: &[Outcome],
        tell: impl Fn(Kind, usize) + Send + Sync,
    ) -> Result<UnderFaults, CannotTry> {
        let chosen = chosen(plan, plain, self.wanted.all, self.options.seed);
        if chosen.is_empty() {
            return Err(CannotTry(
                "no check passed or failed without faults, so there is nothing to compare".to_owned(),
            ));
        }
        let ways = ways(&self.target)?;
        let checks = chosen.iter().map(|one| {
            let case = &one.planned.case;
            (case.id().to_owned(), case.generation, one.planned.binding)
        });
        let mut all = UnderFaults { checks: checks.collect(), kinds: Vec::new() };
        for kind in self.wanted.kinds.iter().copied() {
            tell(kind, chosen.len());
            let under = self.one(kind, &chosen, &ways).await?;
            let gone = under.is_gone();
            all.kinds.push(under);
            if gone {
                break;
            }
        }
        Ok(all)
    }

    async fn one(&self, kind: Kind, chosen: &[Chosen], ways: &[String]) -> Result<UnderKind, CannotTry> {
        let started = Instant::now();
        let proxies = Proxies::start(ways, &kind.plan(self.options.seed)).await;
        let proxies = proxies.map_err(|error| CannotTry(format!("no proxy on loopback: {error}")))?;
        let through = self.probe.by(proxies.detour.clone()).map_err(|error| CannotTry(error.why))?;
        let mut under = UnderKind {
            kind,
            same: 0,
            different: Vec::new(),
            open: Vec::new(),
            tally: Tally::default(),
            duration: Duration::ZERO,
        };
        let after = if kind.is_harmless() {
            self.outcomes(chosen, &through, &self.options).await
        } else {
            let mut short = self.options.clone();
            short.timeout = short.timeout.min(2 * CUT_PATIENCE);
            let cut = self.outcomes(chosen, &through.within(CUT_PATIENCE), &short).await;
            // A crashed agent may have been restarted and answer now; it still counts as crashed.
            if cut.iter().any(|outcome| outcome.crashed) {
                cut
            } else {
                self.outcomes(chosen, &self.probe, &self.options).await
            }
        };
        // After a crash the remaining cases were not run, and running them again would only take time.
        let gone = after.iter().any(|outcome: &Outcome| outcome.crashed);
        for (one, after) in chosen.iter().zip(after) {
            let compared = compare(&one.before, &after);
            match compared {
                Compared::Same => under.same += 1,
                Compared::Different if !gone => self.look_again(one, after, &through, &mut under).await,
                _ => {
                    let found = Difference { before: one.before.clone(), after };
                    let counts = compared == Compared::Different && found.after.crashed;
                    if counts { under.different.push(found) } else { under.open.push(found) }
                }
            }
        }
        under.tally = proxies.stop().await;
        under.duration = started.elapsed();
        Ok(under)
    }

    /// Runs a case again: a verdict that differs only once, or that also varies without faults, is not reported as
    /// different.
    async fn look_again(&self, one: &Chosen, after: Outcome, through: &Probe, under: &mut UnderKind) {
        let is_different = |outcome: Option<Outcome>| {
            outcome.is_some_and(|outcome| compare(&one.before, &outcome) == Compared::Different)
        };
        let alone = std::slice::from_ref(one);
        let straight = self.outcomes(alone, &self.probe, &self.options).await.pop();
        // After a cut the second run was already without the proxy, so if it fails again, that is the finding.
        let steady = if under.kind.is_harmless() {
            !is_different(straight) && is_different(self.outcomes(alone, through, &self.options).await.pop())
        } else {
            is_different(straight)
        };
        let found = Difference { before: one.before.clone(), after };
        if steady { under.different.push(found) } else { under.open.push(found) }
    }

    async fn outcomes(&self, chosen: &[Chosen], probe: &Probe, options: &Options) -> Vec<Outcome> {
        let plan = chosen.iter().map(|one| one.planned.clone()).collect();
        run::run(plan, Arc::clone(&self.target), probe.clone(), options.clone(), None, |_| {}).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Same,
    Different,
    Open,
}

fn compare(before: &Verdict, after: &Outcome) -> Compared {
    match (before, &after.verdict) {
        _ if after.crashed => Compared::Different,
        (Verdict::Pass, Verdict::Pass) | (Verdict::Fail(_), Verdict::Fail(_)) => Compared::Same,
        // A race that is lost on a slow connection, and errors of the runner, say nothing about the agent.
        (_, Verdict::Inconclusive(_) | Verdict::Error(_)) => Compared::Open,
        _ => Compared::Different,
    }
}

/// A case to run, and its verdict without faults.
#[derive(Debug, Clone)]
struct Chosen {
    planned: Planned,
    before: Verdict,
}

/// The cases to run: those with a verdict, all or one of each kind.
fn chosen(plan: &[Planned], plain: &[Outcome], all: bool, seed: u64) -> Vec<Chosen> {
    let mut sorts: BTreeMap<(Generation, Binding, Category), Vec<Chosen>> = BTreeMap::new();
    for outcome in plain {
        let is_judged = matches!(outcome.verdict, Verdict::Pass | Verdict::Fail(_)) && !outcome.crashed;
        let planned = plan.iter().find(|planned| {
            planned.case.id() == outcome.case.id()
                && planned.case.generation == outcome.case.generation
                && planned.binding == outcome.binding
                && matches!(planned.decision, Decision::Run(_))
        });
        if let (true, Some(planned)) = (is_judged, planned) {
            let sort = (outcome.case.generation, outcome.binding, outcome.case.category);
            let one = Chosen { planned: planned.clone(), before: outcome.verdict.clone() };
            sorts.entry(sort).or_default().push(one);
        }
    }
    let drawn = (0..).zip(sorts.into_values()).flat_map(|(number, sort)| {
        if all {
            return sort;
        }
        // Cases that passed are preferred.
        let (passed, failed): (Vec<_>, Vec<_>) =
            sort.into_iter().partition(|one| one.before == Verdict::Pass);
        let mut among = if passed.is_empty() { failed } else { passed };
        vec![among.swap_remove(Draw::of(seed, number).index(among.len()))]
    });
    drawn.collect()
}

/// The hosts of the agent and of the second agent: each gets a proxy.
fn ways(target: &Target) -> Result<Vec<String>, CannotTry> {
    let mut ways = Vec::new();
    let second = target.second.as_ref().map(|second| &second.target);
    let all = [Some(target), second.map(AsRef::as_ref)].into_iter().flatten();
    let urls = all.flat_map(|target| {
        let own = target.interfaces.values().map(|interface| interface.url.as_str());
        own.chain([target.base.as_str()])
    });
    for url in urls {
        let Some((authority, _)) = place_of(url) else {
            return Err(CannotTry(format!("faults need http:// or https:// addresses, and {url} is none")));
        };
        if !ways.contains(&authority) {
            ways.push(authority);
        }
    }
    Ok(ways)
}

/// One running proxy per host.
struct Proxies {
    detour: Detour,
    running: Vec<(Proxy, tokio::task::JoinHandle<()>)>,
    stop: CancellationToken,
}

impl Proxies {
    async fn start(ways: &[String], plan: &Plan) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let (mut running, mut around, mut tunnels) = (Vec::new(), Vec::new(), Vec::new());
        for way in ways {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            around.push((way.clone(), address));
            let door = TcpListener::bind("127.0.0.1:0").await?;
            tunnels.push((way.clone(), door.local_addr()?));
            let until = stop.clone();
            tokio::spawn(async move { tunnel::serve(door, address, until.cancelled()).await });
            let proxy = Proxy::new(way.clone(), plan.clone());
            let (serving, until) = (proxy.clone(), stop.clone());
            let serve = async move { serving.serve(listener, until.cancelled()).await };
            running.push((proxy, tokio::spawn(serve)));
        }
        Ok(Proxies { detour: Detour::new(around).through(tunnels), running, stop })
    }

    /// Stops them, and returns their statistics.
    async fn stop(mut self) -> Tally {
        self.stop.cancel();
        let mut all = Tally::default();
        for (proxy, task) in std::mem::take(&mut self.running) {
            // It ends by itself; a panic in it was already reported.
            let _ = task.await;
            let tally = proxy.tally();
            all.connections += tally.connections;
            all.faulted += tally.faulted;
            all.unreachable += tally.unreachable;
            all.up += tally.up;
            all.down += tally.down;
            for (name, count) in tally.injected {
                *all.injected.entry(name).or_default() += count;
            }
        }
        all
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
