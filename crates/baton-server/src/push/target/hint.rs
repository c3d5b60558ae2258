//! What an operator can do about a webhook URL that was refused. Callers learn nothing of it: what a server allows tells about
//! its network.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::address::AddressKind;
use super::allow::AllowedTarget;
use super::host::Host;
use super::{Guard, TargetRules, address, url};

/// The options that would let a refused URL pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The receiver is on this machine.
    Development,
    /// The receiver is in the operator's own network: this host.
    Allow(String),
    /// The same, without TLS.
    DevelopmentAndAllow(String),
}

/// The hints that were given: each once, since callers can repeat what leads to one.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    development: AtomicBool,
    allow: AtomicBool,
    both: AtomicBool,
}

impl Hints {
    /// Logs how this URL, which was refused, could be allowed, unless that was said before.
    pub(crate) fn give_for_url(&self, guard: &Guard, url: &str) {
        self.give(guard.rules.hint(url));
    }

    /// The same for a URL whose host had this address, which was refused.
    pub(crate) fn give_for_address(&self, url: &str, address: IpAddr) {
        self.give(match (address::kind(address), url::host_of(url)) {
            (AddressKind::Loopback, _) => Some(Hint::Development),
            (AddressKind::Private, Some(Host::Name(name))) => Some(Hint::Allow(name)),
            _ => None,
        });
    }

    fn give(&self, hint: Option<Hint>) {
        let Some(hint) = hint else { return };
        let given = match hint {
            Hint::Development => &self.development,
            Hint::Allow(_) => &self.allow,
            Hint::DevelopmentAndAllow(_) => &self.both,
        };
        if given.swap(true, Ordering::Relaxed) {
            return;
        }
        match hint {
            Hint::Development => tracing::info!(
                "refused a webhook on this machine; `[push] development = true` allows these, for trying things out where nobody \
                 else can call the server. This is said once"
            ),
            Hint::Allow(host) => tracing::info!(
                host,
                "refused a webhook in a local network; if it is your own, name the host or its addresses in `[push] allow`. This \
                 is said once"
            ),
            Hint::DevelopmentAndAllow(host) => tracing::info!(
                host,
                "refused a webhook without https; where there is no TLS, `[push] development = true` allows http to hosts that \
                 `[push] allow` names. This is said once"
            ),
        }
    }
}

impl TargetRules {
    /// `None` if no option helps, or none that should be suggested: it would open what callers must not reach.
    fn hint(&self, url: &str) -> Option<Hint> {
        let passes = |rules: &TargetRules| rules.passes(url);
        let development = TargetRules { development: true, ..self.clone() };
        if passes(&development) {
            return Some(Hint::Development);
        }
        let host = match url::host_of(url)? {
            Host::Name(name) => name,
            Host::Address(address) => match address::kind(address) {
                AddressKind::Global | AddressKind::Private => address.to_string(),
                AddressKind::Loopback | AddressKind::Special | AddressKind::NoHost => return None,
            },
        };
        let named: AllowedTarget = host.parse().ok()?;
        let allow: Vec<_> = self.allow.iter().cloned().chain([named]).collect();
        if passes(&TargetRules { allow: allow.clone(), ..self.clone() }) {
            return Some(Hint::Allow(host));
        }
        passes(&TargetRules { allow, ..development }).then_some(Hint::DevelopmentAndAllow(host))
    }

    fn passes(&self, url: &str) -> bool {
        url::Target::parse(url, self).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_a_name_with_a_refused_address_has_a_hint_unless_nobody_should_allow_it() {
        for (address, expected) in [
            ("10.0.0.1", [false, true]),
            ("127.0.0.1", [true, false]),
            ("169.254.169.254", [false, false]),
            ("0.0.0.0", [false, false]),
        ] {
            let hints = Hints::default();
            hints.give_for_address("https://hooks.example.org/", address.parse().unwrap());
            let given = [&hints.development, &hints.allow].map(|given| given.load(Ordering::Relaxed));
            assert_eq!((given, hints.both.into_inner()), (expected, false), "{address}");
        }
    }

    #[test]
    fn s14_a_refused_address_has_a_hint_if_an_option_would_allow_it() {
        let allow = |host: &str| Some(Hint::Allow(host.to_owned()));
        let both = |host: &str| Some(Hint::DevelopmentAndAllow(host.to_owned()));
        for (url, expected) in [
            ("http://127.0.0.1:4000/", Some(Hint::Development)),
            ("http://localhost:4000/", Some(Hint::Development)),
            ("https://localhost/", Some(Hint::Development)),
            ("https://[::1]:8443/", Some(Hint::Development)),
            ("https://hooks.corp.internal/a?key=s3cret", allow("hooks.corp.internal")),
            ("https://receiver:8443/", allow("receiver")),
            ("https://10.1.2.3/", allow("10.1.2.3")),
            ("https://[fd00::1]/", allow("fd00::1")),
            ("http://hooks.corp.internal/", both("hooks.corp.internal")),
            ("http://10.1.2.3:8080/", both("10.1.2.3")),
            ("http://example.org/", both("example.org")),
            // Nobody should allow these because a caller has asked for them.
            ("http://169.254.169.254/", None),
            ("https://100.100.100.200/", None),
            ("https://0.0.0.0/", None),
            // No option helps.
            ("https://10.1.2.3:6379/", None),
            ("https://ann@10.1.2.3/", None),
            ("https://127.1/", None),
            ("ftp://127.0.0.1/", None),
            ("", None),
        ] {
            assert_eq!(TargetRules::default().hint(url), expected, "{url}");
        }
        let development = TargetRules { development: true, ..TargetRules::default() };
        assert_eq!(development.hint("http://10.1.2.3:8080/"), allow("10.1.2.3"));
        assert_eq!(development.hint("https://10.1.2.3:8443/"), allow("10.1.2.3"));
    }
}
