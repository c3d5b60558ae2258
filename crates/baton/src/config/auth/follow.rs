//! A reload: the running schemes take over what the new configuration says.
//!
//! Cards declare the schemes, and callers are known by the place of a scheme in the chain. So no scheme comes, goes, or is
//! declared in another way before the next start. But whoever is taken out of the configuration is refused at once: what is
//! enforced follows, whatever cards say, and a scheme that is gone lets nobody in.

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use baton_server::auth::{AuthRequest, Refusal, Scheme, Verdict, Withdrawn};
use http::HeaderValue;

use super::{AuthPlan, Records, SchemePlan, api_key, issuers};

/// The result of [`AuthPlan::follow`].
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Whether anything is different now.
    pub(crate) replaced: bool,
    /// The schemes that let nobody in from now on.
    pub(crate) withdrawn: Vec<String>,
    /// The schemes that cards declare as before, though something else is enforced.
    pub(crate) declared_as_before: Vec<String>,
    /// What needs a restart.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// `auth.basic`
    table: &'static str,
    /// The keys of the table that are followed all the same.
    but_for: &'static [&'static str],
}

/// What a scheme does about the new configuration.
enum Step {
    Same,
    Replaced,
    Withdrawn,
    /// All but its records.
    Waits,
}

impl Followed {
    /// Whether a change of this key needs a restart.
    pub(crate) fn waits(&self, key: &str) -> bool {
        self.waiting.iter().any(|Waiting { table, but_for }| {
            key.strip_prefix(table).is_some_and(|rest| {
                let rest = rest.trim_start_matches('.');
                !but_for.iter().any(|word| is_key(rest, word))
            })
        })
    }
}

/// Whether a key of a table is this one, or in this list.
pub(super) fn is_key(key: &str, word: &str) -> bool {
    key.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

impl AuthPlan {
    /// Takes over what `new` says. What is open of callers whose record is the same goes on; if the options of a scheme are
    /// others, what is open of all its callers is ended.
    pub(crate) fn follow(&mut self, new: &AuthPlan) -> Followed {
        let mut followed = Followed { replaced: self.throttle_differs(new), ..Followed::default() };
        self.throttle = new.throttle.clone();
        for old in &mut self.schemes {
            let Some(new) = new.counterpart(old) else { continue };
            match old.follow(new) {
                Step::Same => {}
                Step::Replaced => followed.replaced = true,
                Step::Withdrawn => {
                    followed.replaced = true;
                    followed.withdrawn.push(old.name.clone());
                }
                Step::Waits => {
                    followed.waiting.push(Waiting { table: old.table, but_for: old.records.keys() });
                }
            }
            if old.table != api_key::TABLE && !old.is_declared_as(new) {
                followed.declared_as_before.push(old.name.clone());
            }
        }
        let is_new = |plan: &&SchemePlan| !self.schemes.iter().any(|old| old.is_followed_by(plan));
        let mut tables: Vec<_> = new.schemes.iter().filter(is_new).map(|plan| plan.table).collect();
        if tables.iter().any(|table| issuers::TABLES.contains(table)) {
            // Another issuer waits for it.
            tables.push(issuers::FETCH);
        }
        followed.waiting.extend(tables.into_iter().map(|table| Waiting { table, but_for: &[] }));
        followed
    }

    /// Adds the running schemes that the configuration has no longer, withdrawn.
    pub(super) fn keep_withdrawn(&mut self, running: &AuthPlan) {
        let gone = running.schemes.iter().filter(|old| self.counterpart(old).is_none());
        let gone: Vec<_> = gone.map(SchemePlan::withdrawn).collect();
        // First: where a new scheme has the name of an old one, the new one counts when cards are checked.
        self.schemes.splice(0..0, gone);
    }

    /// The names of the schemes that let nobody in.
    pub(crate) fn withdrawn(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().filter(|plan| plan.withdrawn).map(|plan| plan.name.as_str())
    }

    /// Which schemes are in effect, for tests: a scheme that was replaced is at another address.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<(&str, *const ())> {
        self.schemes.iter().map(|plan| (plan.name.as_str(), Arc::as_ptr(&plan.scheme).cast())).collect()
    }

    /// What the configuration says of a running scheme.
    fn counterpart(&self, old: &SchemePlan) -> Option<&SchemePlan> {
        self.schemes.iter().find(|plan| old.is_followed_by(plan))
    }

    fn throttle_differs(&self, new: &AuthPlan) -> bool {
        let (old, new) = (&self.throttle, &new.throttle);
        (old.burst, old.every, old.per_address, old.max_entries)
            != (new.burst, new.every, new.per_address, new.max_entries)
    }
}

impl SchemePlan {
    fn follow(&mut self, new: &SchemePlan) -> Step {
        if new.withdrawn {
            let step = if self.withdrawn { Step::Same } else { Step::Withdrawn };
            *self = new.clone();
            return step;
        }
        // Clients would send their key to a place where nobody looks for it.
        if self.table == api_key::TABLE && !self.is_declared_as(new) {
            return self.follow_records(new, Step::Waits);
        }
        let is_same_scheme = !self.withdrawn
            && self.records.is_like(&new.records)
            && self.made_of.has_options_of(&new.made_of, self.records.keys());
        if is_same_scheme {
            let step = if self.made_of.same_as(&new.made_of) { Step::Same } else { Step::Replaced };
            self.made_of = Arc::clone(&new.made_of);
            return self.follow_records(new, step);
        }
        let scheme = match self.is_declared_as(new) {
            true => Arc::clone(&new.scheme),
            false => {
                Arc::new(DeclaredAs { declared: self.scheme.declared(), scheme: Arc::clone(&new.scheme) })
            }
        };
        *self = SchemePlan { name: self.name.clone(), scheme, ..new.clone() };
        Step::Replaced
    }

    /// Withdrawn if it cannot be done: its records are checked with the options of the new configuration.
    fn follow_records(&mut self, new: &SchemePlan, step: Step) -> Step {
        let Err(error) = self.records.follow(&new.records) else { return step };
        tracing::error!(scheme = self.name, error, "cannot be followed before a restart");
        *self = self.withdrawn();
        Step::Withdrawn
    }

    /// Whether `new` is what the configuration says of this one. A table that can be there only once may have got another
    /// name.
    fn is_followed_by(&self, new: &SchemePlan) -> bool {
        self.table == new.table && (self.name == new.name || !issuers::TABLES.contains(&self.table))
    }

    fn is_declared_as(&self, new: &SchemePlan) -> bool {
        self.name == new.name && self.scheme.declared() == new.scheme.declared()
    }

    fn withdrawn(&self) -> Self {
        if self.withdrawn {
            return self.clone();
        }
        let scheme = Arc::new(Withdrawn::new(Arc::clone(&self.scheme)));
        SchemePlan { scheme, withdrawn: true, records: Records::None, ..self.clone() }
    }
}

/// A scheme that cards declare in another way until the next start. Both take the credential from the same place.
#[derive(Debug)]
struct DeclaredAs {
    declared: SecurityScheme,
    scheme: Arc<dyn Scheme>,
}

#[async_trait]
impl Scheme for DeclaredAs {
    fn declared(&self) -> SecurityScheme {
        self.declared.clone()
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        self.scheme.verify(request).await
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        self.scheme.challenge(refused)
    }

    fn is_sent_by_browsers(&self) -> bool {
        self.scheme.is_sent_by_browsers()
    }

    fn takes_bearer_tokens(&self) -> bool {
        self.scheme.takes_bearer_tokens()
    }
}
