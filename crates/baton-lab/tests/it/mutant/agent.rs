//! The agent itself: what it has, and what is wrong with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::entry::Entry;
use super::fault::{Cut, Fault, Instead, Place, Quirk, Rule, What};
use super::profile::Profile;
use super::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct Agent {
    pub(super) profile: Profile,
    /// Where it listens.
    pub(super) base: String,
    /// Where it listens for gRPC.
    pub(super) grpc: String,
    faults: &'static [Fault],
    tasks: Arc<Mutex<Vec<Arc<Entry>>>>,
    /// For what is wrong with it: an answer that waits for the next client, a wound.
    pub(super) left_behind: Arc<Mutex<Option<Value>>>,
    hurt: AtomicBool,
    /// A request has broken off, some time.
    scarred: AtomicBool,
    webhooks: OnceLock<reqwest::Client>,
}

impl Agent {
    pub(super) fn new(profile: Profile, base: String, faults: &'static [Fault]) -> Self {
        let (tasks, left_behind, hurt) = (Arc::default(), Arc::default(), AtomicBool::new(false));
        let scarred = AtomicBool::new(false);
        Agent {
            profile,
            base,
            grpc: String::new(),
            faults,
            tasks,
            left_behind,
            hurt,
            scarred,
            webhooks: OnceLock::new(),
        }
    }

    /// With the tasks and the answers of another one.
    pub(super) fn sharing(self, other: &Self) -> Self {
        Agent { tasks: Arc::clone(&other.tasks), left_behind: Arc::clone(&other.left_behind), ..self }
    }

    pub(super) fn tasks(&self) -> Vec<Arc<Entry>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Entry>> {
        self.tasks().into_iter().find(|entry| entry.id == id)
    }

    pub(super) fn keep(&self, entry: Arc<Entry>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|known| known.id != entry.id);
        tasks.push(entry);
    }

    pub(super) fn webhooks(&self) -> &reqwest::Client {
        self.webhooks.get_or_init(|| reqwest::Client::builder().no_proxy().build().expect("a plain client"))
    }

    /// A rule is broken: what is done about it.
    pub(super) fn check(&self, rule: Rule, place: &Place, message: &str) -> Result<(), Refusal> {
        let instead = self.faults.iter().find_map(|fault| match fault {
            Fault::Rule(known, only, instead) if *known == rule && only.fits(place) => Some(*instead),
            _ => None,
        });
        match instead {
            Some(Instead::Allow) => Ok(()),
            Some(Instead::HangUp) => Err(Refusal::hang_up()),
            Some(Instead::Refuse(kind)) => Err(Refusal::new(kind, message)),
            None => rule.usual().map_or(Ok(()), |kind| Err(Refusal::new(kind, message))),
        }
    }

    pub(super) fn has(&self, quirk: Quirk, place: &Place) -> bool {
        self.faults
            .iter()
            .any(|fault| matches!(fault, Fault::Quirk(known, only) if *known == quirk && only.fits(place)))
    }

    pub(super) fn cuts(&self, place: &Place) -> Vec<Cut> {
        let cuts = self.faults.iter().filter_map(|fault| match fault {
            Fault::Events(only, cut) if only.fits(place) => Some(*cut),
            _ => None,
        });
        cuts.collect()
    }

    /// The phrase as this agent understands it.
    pub(super) fn understood<'a>(&self, text: &'a str) -> &'a str {
        let taken = self.faults.iter().find_map(|fault| match fault {
            Fault::Behaves(from, to) if text.starts_with(from) => Some(*to),
            _ => None,
        });
        taken.unwrap_or(text)
    }

    pub(super) fn edit(&self, what: What, place: &Place, value: &mut Value) {
        for fault in self.faults {
            if let Fault::Edit(wanted, only, edits) = fault
                && wanted.takes(what)
                && only.fits(place)
            {
                edits.iter().for_each(|edit| edit.apply(value));
            }
        }
    }

    pub(super) fn dress(&self, what: What, place: &Place, headers: &mut Vec<(String, String)>) {
        for fault in self.faults {
            if let Fault::Header(wanted, only, name, value) = fault
                && wanted.takes(what)
                && only.fits(place)
            {
                headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                headers.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
            }
        }
    }

    pub(super) fn status(&self, what: What, place: &Place, status: u16) -> u16 {
        let other = self.faults.iter().find_map(|fault| match fault {
            Fault::Status(wanted, only, status) if wanted.takes(what) && only.fits(place) => Some(*status),
            _ => None,
        });
        other.unwrap_or(status)
    }

    pub(super) fn hurt(&self) {
        self.hurt.store(true, Ordering::Relaxed);
        self.scarred.store(true, Ordering::Relaxed);
    }

    /// Was it ever hurt?
    pub(super) fn is_scarred(&self) -> bool {
        self.scarred.load(Ordering::Relaxed)
    }

    /// Was it hurt? Once told, it is well again.
    pub(super) fn takes_time_to_heal(&self) -> bool {
        self.hurt.swap(false, Ordering::Relaxed)
    }
}
