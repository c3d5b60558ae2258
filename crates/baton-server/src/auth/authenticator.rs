//! The interface of everything that authenticates, and the authenticator that lets everybody in.

use std::fmt;

use async_trait::async_trait;
use baton_protocol::domain::security::SecurityScheme;
use baton_protocol::{Error, ErrorKind};

use super::challenge::Challenge;
use super::principal::Principal;
use super::request::{Access, AuthRequest};

/// Decides who is calling, and what they may do.
#[async_trait]
pub trait Authenticator: Send + Sync + fmt::Debug + 'static {
    /// The caller, or why the request is refused. The body is read only after this succeeds.
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge>;

    /// Whether the caller may do this. Called after the call is decoded, before anything is read or written for it.
    fn authorize(&self, principal: &Principal, access: &Access<'_>) -> Result<(), Challenge> {
        let _ = (principal, access);
        Ok(())
    }

    /// The answer to a caller whose credential has expired or been revoked since it was verified.
    fn no_longer_valid(&self, principal: &Principal) -> Challenge {
        let _ = principal;
        Challenge::new(Error::new(ErrorKind::Unauthenticated, "The credential was refused: no longer valid"))
    }

    /// The schemes that this authenticator knows, by name, for the cards. With `Some`, every card declares only schemes that
    /// are among them, and a card without a security section gets one: any one of the schemes is enough. With `None`,
    /// the default, the cards are the author's: the authenticator has to enforce what they declare.
    fn schemes(&self) -> Option<Vec<(String, SecurityScheme)>> {
        None
    }

    /// Whether this authenticator ever refuses a caller. A card that declares security schemes needs one that does.
    fn enforces(&self) -> bool {
        true
    }
}

/// Accepts every request: every caller is anonymous.
#[derive(Debug, Clone)]
pub struct Anonymous {
    /// Made once, since every request needs it.
    principal: Principal,
}

impl Default for Anonymous {
    fn default() -> Self {
        Anonymous { principal: Principal::anonymous() }
    }
}

#[async_trait]
impl Authenticator for Anonymous {
    async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        Ok(self.principal.clone())
    }

    fn enforces(&self) -> bool {
        false
    }
}
