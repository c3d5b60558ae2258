//! The URL of a webhook, read strictly.

use std::fmt;

use http::uri::PathAndQuery;

use super::host::{BadHost, Host};
use super::{TargetRules, port};

/// Longest URL.
const MAX_URL_BYTES: usize = 2048;

/// A URL that webhooks may be sent to, as far as the URL tells. The addresses of its host are judged at each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    is_https: bool,
    host: Host,
    port: u16,
    path: PathAndQuery,
}

/// Why a URL is refused, in words for whoever gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadTarget {
    TooLong,
    /// Not a URL, or one with characters that readers of URLs treat differently.
    Spelling,
    /// Any other scheme, too: whoever has no TLS has no https.
    NotHttps,
    UserInfo,
    Fragment,
    Host(BadHost),
    Port(u16),
    /// A name of this machine or of a local network.
    LocalName,
    /// An address that is not on the internet.
    LocalAddress,
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the webhook URL is longer than {MAX_URL_BYTES} bytes"),
            Self::Spelling => f.write_str(
                "the webhook URL cannot be read: write https://host/path, with other characters than ASCII percent-encoded",
            ),
            Self::NotHttps => f.write_str("the webhook URL must begin with https://"),
            Self::UserInfo => f.write_str(
                "the webhook URL must have no user or password: give credentials in the configuration's authentication",
            ),
            Self::Fragment => f.write_str("the webhook URL must have no fragment (#…): it would not be sent"),
            Self::Host(BadHost::Spelling) => f.write_str(
                "the host of the webhook URL must be a name of letters, digits and hyphens, or an address; international names \
                 are written in their ASCII form (xn--…), without a dot at the end",
            ),
            Self::Host(BadHost::OddAddress) => f.write_str(
                "the host of the webhook URL must be a name, or an IPv4 address as four decimal numbers without leading zeros",
            ),
            Self::Port(port) => write!(f, "port {port} is not one that webhooks may use; use 443, or one above 1023"),
            Self::LocalName | Self::LocalAddress => f.write_str(
                "the webhook URL must lead to a host on the internet, not to this server's own machine or network",
            ),
        }
    }
}

impl std::error::Error for BadTarget {}

impl Target {
    pub(super) fn parse(text: &str, rules: &TargetRules) -> Result<Self, BadTarget> {
        if text.len() > MAX_URL_BYTES {
            return Err(BadTarget::TooLong);
        }
        // A backslash is a slash for browsers and not for others; control characters and spaces are dropped by some.
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte)) {
            return Err(BadTarget::Spelling);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadTarget::Spelling)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" if rules.development => false,
            _ => return Err(BadTarget::NotHttps),
        };
        if rest.contains('#') {
            return Err(BadTarget::Fragment);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(BadTarget::UserInfo);
        }
        let (host, port) = split_port(authority).ok_or(BadTarget::Host(BadHost::Spelling))?;
        let host = Host::parse(host).map_err(BadTarget::Host)?;
        let port = port.unwrap_or(if is_https { 443 } else { 80 });
        rules.judge_host(&host)?;
        if !is_https && !rules.allows_http(&host) {
            return Err(BadTarget::NotHttps);
        }
        if !port::is_allowed(port) || (is_https && port == 80) {
            return Err(BadTarget::Port(port));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let path = path.parse().map_err(|_| BadTarget::Spelling)?;
        Ok(Target { is_https, host, port, path })
    }

    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What the request line asks for.
    pub(crate) fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// The value of the `Host` header: the port is left out if it is the scheme's.
    pub(crate) fn authority(&self) -> String {
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl TargetRules {
    fn judge_host(&self, host: &Host) -> Result<(), BadTarget> {
        match host {
            Host::Address(address) if self.allows_address(*address, false) => Ok(()),
            Host::Address(_) => Err(BadTarget::LocalAddress),
            Host::Name(_) if !host.is_local_name() || self.allows_host(host) => Ok(()),
            Host::Name(_) if self.development && host.is_localhost() => Ok(()),
            Host::Name(_) => Err(BadTarget::LocalName),
        }
    }

    /// Without TLS only this machine is called, and what the operator named. The addresses of a name are judged later.
    fn allows_http(&self, host: &Host) -> bool {
        match host {
            Host::Address(address) => self.allows_http_to(*address, false),
            Host::Name(_) => host.is_localhost() || self.allows_host(host),
        }
    }
}

/// The host of a URL that can be read that far.
pub(super) fn host_of(text: &str) -> Option<Host> {
    let (_, rest) = text.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    Host::parse(split_port(authority)?.0).ok()
}

/// `None` if the port is not a number.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let Some(digits) = port.strip_prefix(':') else { return port.is_empty().then_some((host, None)) };
    let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((host, Some(digits.parse().ok().filter(|_| is_number)?)))
}
