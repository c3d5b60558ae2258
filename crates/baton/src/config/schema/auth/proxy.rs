//! `[auth.proxy]`: a proxy in front that authenticates callers and names them.

use super::begins;
use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{AtProxy, HttpUrl, Id, TrustedProxy, Word};

#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) id: Setting<Option<Id>>,
    /// `trusted_proxies` by default.
    pub(crate) proxies: Setting<Option<Vec<TrustedProxy>>>,
    pub(crate) declare: Setting<Option<AtProxy>>,
    pub(crate) openid_url: Setting<Option<HttpUrl>>,
    pub(crate) header: Setting<String>,
    pub(crate) scopes_header: Setting<Option<Word>>,
    pub(crate) owner_prefix: Setting<String>,
    pub(crate) max_user: Setting<usize>,
    pub(crate) max_scopes: Setting<usize>,
    pub(crate) written: Written,
}

impl Default for Proxy {
    fn default() -> Self {
        Proxy {
            id: Setting::default(),
            proxies: Setting::default(),
            declare: Setting::default(),
            openid_url: Setting::default(),
            header: Setting::new("X-Forwarded-User".to_owned()),
            scopes_header: Setting::default(),
            owner_prefix: Setting::new("proxy:".to_owned()),
            max_user: Setting::new(256).at_least(1).at_most(1024),
            max_scopes: Setting::new(64).at_least(1).at_most(10_000),
            written: Written::default(),
        }
    }
}

impl Section for Proxy {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("proxies", &mut self.proxies);
        visit.field("declare", &mut self.declare);
        visit.field("openid_url", &mut self.openid_url);
        visit.field("header", &mut self.header);
        visit.field("scopes_header", &mut self.scopes_header);
        visit.field("owner_prefix", &mut self.owner_prefix);
        visit.field("max_user", &mut self.max_user);
        visit.field("max_scopes", &mut self.max_scopes);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}
