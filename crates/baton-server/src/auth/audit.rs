//! The audit log: security events with the target `audit`. Credentials are named by their public part only.

use std::net::IpAddr;

use super::scheme::Refusal;
use crate::store::record::IssuedKey;

/// A credential was refused.
pub(super) fn refused(scheme: &str, refusal: &Refusal, address: Option<IpAddr>) {
    let credential = refusal.credential.as_deref().filter(|_| refusal.is_named).unwrap_or("unknown");
    let address = address.map(tracing::field::display);
    tracing::info!(target: "audit", event = "credential refused", scheme, credential, reason = refusal.reason, address);
}

/// A key was issued.
pub(super) fn key_issued(key: &IssuedKey) {
    let IssuedKey { id, name, owner, scopes, .. } = key;
    tracing::info!(target: "audit", event = "key issued", credential = id, name, owner, scopes = scopes.join(" "));
}

/// A key was revoked.
pub(super) fn key_revoked(key: &IssuedKey) {
    let IssuedKey { id, name, owner, .. } = key;
    tracing::info!(target: "audit", event = "key revoked", credential = id, name, owner);
}

/// An authenticated caller lacks scopes.
pub(super) fn lacks_scopes(credential: &str, agent: &str, operation: &str, scopes: &str) {
    tracing::info!(target: "audit", event = "scope missing", credential, agent, operation, scopes);
}
