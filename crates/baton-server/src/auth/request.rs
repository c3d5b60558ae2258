//! What an authenticator is told about a request.

use std::net::IpAddr;
use std::sync::Arc;

use baton_protocol::domain::AgentCard;
use baton_protocol::domain::security::SecurityRequirement;
use baton_protocol::operation::Operation;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};

use crate::card::Declared;
use crate::site::Site;

/// What is known of a request before its body is read.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AuthRequest<'a> {
    /// The agents that the request may be for, by id. It is one where the path decides; at an address that several agents
    /// share, the body names one of them by its tenant.
    pub agents: &'a [Arc<str>],
    /// The tenant that the path names, or that of the agent whose path it is.
    pub tenant: Option<&'a str>,
    /// The HTTP method.
    pub method: &'a Method,
    /// The target of the request, as the client sent it.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The address at the other end of the connection. `None` if the application's own listener does not provide it
    /// (`axum::extract::ConnectInfo`).
    pub peer: Option<IpAddr>,
    /// The caller's address, as far as it is known, for limits that count by address. It is the peer's, or that which a
    /// trusted proxy or one on this machine forwards. `None` if such a proxy names none, and for callers on this machine.
    pub client: Option<IpAddr>,
    /// The client's certificate, if the listener asked for one.
    pub tls_peer: Option<&'a TlsPeer>,
    /// The server, whose cards say what the agents require.
    pub(crate) site: Option<&'a Site>,
}

impl<'a> AuthRequest<'a> {
    /// A request without agents, tenant, peer and certificate, for tests of an authenticator; its fields can be set.
    pub fn new(method: &'a Method, uri: &'a Uri, headers: &'a HeaderMap) -> Self {
        AuthRequest {
            agents: &[],
            tenant: None,
            method,
            uri,
            headers,
            peer: None,
            client: None,
            tls_peer: None,
            site: None,
        }
    }

    /// The path of the server's public URL, which a proxy may have removed from `uri`; empty if there is none.
    pub(super) fn public_path(&self) -> &'a str {
        self.site.map_or("", Site::public_path)
    }

    /// The card of the agent, if the path alone says which one it is.
    pub(super) fn only_card(&self) -> Option<Declared> {
        if self.agents.len() == 1 { self.cards().next() } else { None }
    }

    /// The cards of these agents.
    pub(super) fn cards(&self) -> impl Iterator<Item = Declared> {
        let agents = self.agents.iter().filter_map(|id| self.site?.agent(id));
        agents.map(|agent| agent.card().declared())
    }

    /// What the cards of these agents require. Each list is an agent's: one requirement of it must be met, and one
    /// without schemes is met by anybody.
    pub fn requirements(&self) -> Vec<Vec<SecurityRequirement>> {
        self.cards().map(|card| card.security_requirements.clone()).collect()
    }
}

/// The certificate of a client. A TLS listener puts it into the extensions of each request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsPeer {
    /// The certificate chain as DER, the client's own certificate first. The listener has verified it.
    pub certificates: Vec<Bytes>,
}

impl TlsPeer {
    /// The client with these verified certificates.
    pub fn new(certificates: Vec<Bytes>) -> Self {
        TlsPeer { certificates }
    }
}

/// A call that has been decoded.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Access<'a> {
    /// The agent that is called.
    pub agent: &'a str,
    /// The tenant that the call names, or an empty string.
    pub tenant: &'a str,
    /// The operation that is called.
    pub operation: Operation,
    /// The skill that takes the message, if this is about a skill with requirements of its own. A call is checked for its
    /// agent first, and then for the skill, if there is one.
    pub skill: Option<&'a str>,
    /// What the card requires, of the skill if there is one, else of the agent: one of these must be met.
    pub requirements: &'a [SecurityRequirement],
    /// The card that says so. `None` for a skill, whose requirements are not compared before the body is read.
    pub(crate) card: Option<&'a Arc<AgentCard>>,
}

impl<'a> Access<'a> {
    /// A call of an operation of an agent, without a tenant and without requirements.
    pub fn new(agent: &'a str, operation: Operation) -> Self {
        Access { agent, tenant: "", operation, skill: None, requirements: &[], card: None }
    }
}
