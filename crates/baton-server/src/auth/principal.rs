//! Who is calling.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use baton_protocol::domain::AgentCard;

use super::scheme::Identity;

/// The owner of what anonymous callers store.
const ANONYMOUS: &str = "anonymous";

/// The caller. Its owner is part of every stored key.
#[derive(Debug, Clone)]
pub struct Principal {
    owner: Arc<str>,
    anonymous: bool,
    /// What a [`Chain`](super::Chain) verified, by the place of each scheme in it.
    verified: Option<Arc<[(usize, Identity)]>>,
    /// The card whose requirements the chain has compared with that, and found met. A `Weak` does not keep the card, but no
    /// other card can get its address.
    met: Option<Weak<AgentCard>>,
}

/// What was compared makes no difference.
impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        (&self.owner, self.anonymous, &self.verified) == (&other.owner, other.anonymous, &other.verified)
    }
}

impl Eq for Principal {}

/// An owner has a name without control characters. `anonymous` is reserved: the tasks of anonymous callers are stored under
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an owner cannot be `anonymous`, which is the owner of callers who are not authenticated, and not empty or with control \
     characters; choose another name"
)]
#[non_exhaustive]
pub struct ReservedOwner;

impl Principal {
    /// An authenticated caller. `owner` is unique among all callers and is never shown to other callers.
    pub fn new(owner: &str) -> Result<Self, ReservedOwner> {
        if is_anonymous(owner) {
            return Err(ReservedOwner);
        }
        Ok(Principal { owner: Arc::from(owner), anonymous: false, verified: None, met: None })
    }

    /// A caller whose credentials were verified; the first of them names the owner.
    pub(super) fn verified(identities: Vec<(usize, Identity)>) -> Result<Self, ReservedOwner> {
        let Some((_, first)) = identities.first() else { return Ok(Self::anonymous()) };
        if !can_own(&first.owner) {
            return Err(ReservedOwner);
        }
        let owner = Arc::clone(&first.owner);
        Ok(Principal { owner, anonymous: false, verified: Some(identities.into()), met: None })
    }

    /// A caller who is not authenticated. All anonymous callers see each other's tasks.
    pub fn anonymous() -> Self {
        Principal { owner: Arc::from(ANONYMOUS), anonymous: true, verified: None, met: None }
    }

    /// The owner whose tasks the caller sees.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether the caller was not authenticated.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// What the credential that names the owner allows.
    pub fn scopes(&self) -> Scopes {
        self.identities().first().map_or_else(Scopes::default, |(_, identity)| identity.scopes.clone())
    }

    /// Whether none of the credentials has expired or been revoked since they were verified.
    pub(crate) fn is_still_valid(&self) -> bool {
        self.identities().iter().all(|(_, identity)| identity.is_still_valid())
    }

    /// Waits until one of the credentials is revoked. `None` if there are none.
    pub(crate) fn until_revoked(&self) -> Option<impl Future<Output = ()> + Send + '_> {
        if self.identities().is_empty() {
            return None;
        }
        // Made when it is first polled: who does not have to wait needs no memory for it.
        let mut each: Option<Vec<_>> = None;
        Some(poll_fn(move |cx| {
            let each = each.get_or_insert_with(|| {
                self.identities().iter().map(|(_, identity)| Box::pin(identity.until_revoked())).collect()
            });
            let is_over = each.iter_mut().any(|one| one.as_mut().poll(cx).is_ready());
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    /// Waits until one of the credentials is revoked or expires. `None` if there are none.
    pub(crate) fn until_invalid(&self) -> Option<impl Future<Output = ()> + Send + '_> {
        let revoked = self.until_revoked()?;
        Some(async {
            tokio::select! {
                biased;
                () = revoked => {}
                () = self.until_expired() => {}
            }
        })
    }

    async fn until_expired(&self) {
        while let Some(left) = self.expires_in() {
            if left.is_zero() {
                return;
            }
            // Timers have this precision: one that is too early would have to be set again.
            tokio::time::sleep(left + Duration::from_millis(1)).await;
        }
        std::future::pending().await
    }

    /// How long until the first of the credentials expires, if any does.
    pub(crate) fn expires_in(&self) -> Option<Duration> {
        self.identities().iter().filter_map(|(_, identity)| identity.expires_in()).min()
    }

    /// Remembers that the requirements of this card are met.
    pub(super) fn has_met(mut self, card: &Arc<AgentCard>) -> Self {
        self.met = Some(Arc::downgrade(card));
        self
    }

    /// Whether the requirements of this card were compared and are met.
    pub(super) fn meets(&self, card: &Arc<AgentCard>) -> bool {
        self.met.as_ref().is_some_and(|met| std::ptr::eq(met.as_ptr(), Arc::as_ptr(card)))
    }

    pub(super) fn identities(&self) -> &[(usize, Identity)] {
        self.verified.as_deref().unwrap_or_default()
    }

    pub(crate) fn shared_owner(&self) -> &Arc<str> {
        &self.owner
    }
}

/// Whether an authenticated caller may have this owner.
pub(super) fn can_own(owner: &str) -> bool {
    !owner.is_empty() && !is_anonymous(owner) && !owner.chars().any(char::is_control)
}

/// Whether this owner is that of callers who are not authenticated. No principal with another kind has it.
pub(crate) fn is_anonymous(owner: &str) -> bool {
    owner == ANONYMOUS
}

/// What a credential allows: a set of names that an operator or another server gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Option<Arc<[Box<str>]>>);

impl Scopes {
    /// These scopes.
    pub fn of<S: Into<Box<str>>>(names: impl IntoIterator<Item = S>) -> Self {
        let names: Arc<[Box<str>]> = names.into_iter().map(Into::into).collect();
        Scopes(Some(names).filter(|names| !names.is_empty()))
    }

    /// Whether the scope is among them.
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|scope| scope == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.as_deref().unwrap_or_default().iter().map(|scope| &**scope)
    }
}
