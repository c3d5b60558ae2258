//! The user that a proxy in front names.

use std::sync::Arc;

use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use baton_server::auth::{ProxyUser, ProxyUserOptions};

use super::{Planner, Records};
use crate::config::schema::{self, begins};
use crate::config::value::{AtProxy, TrustedProxy};

const TABLE: &str = "auth.proxy";

impl Planner<'_> {
    pub(super) fn proxy(&mut self, section: &schema::Proxy, trusted: &[TrustedProxy]) {
        let mut section = section.clone();
        let Some(source) = begins(&mut section) else { return };
        let Some(kind) = self.declared_at_proxy(&section) else { return };
        let proxies = section.proxies.as_deref().unwrap_or(trusted);
        if proxies.is_empty() {
            let text = "no proxy is trusted; name it in `trusted_proxies` (--trusted-proxy) or here";
            return self.refuse(&source, "auth.proxy.proxies", text);
        }
        let ranges = proxies.iter().map(|proxy| proxy.range).collect();
        let mut options = ProxyUserOptions::new(ranges, SecurityScheme { description: None, kind });
        match section.header.parse() {
            Ok(header) => options.header = header,
            Err(_) => {
                let text = "expected the name of a header such as \"X-Forwarded-User\"";
                return self.refuse(section.header.source(), "auth.proxy.header", text);
            }
        }
        match section.scopes_header.as_ref().map(|header| header.parse()).transpose() {
            Ok(header) => options.scopes_header = header,
            Err(_) => {
                let text = "expected the name of a header such as \"X-Forwarded-Groups\"";
                return self.refuse(section.scopes_header.source(), "auth.proxy.scopes_header", text);
            }
        }
        options.owner_prefix.clone_from(&section.owner_prefix);
        options.max_user = *section.max_user;
        options.max_scopes = *section.max_scopes;
        match ProxyUser::new(options) {
            Ok(user) => {
                let id = section.id.clone();
                self.add(TABLE, &id, &mut section, &source, (Arc::new(user), Records::None));
            }
            Err(error) => self.refuse(&source, TABLE, error.to_string()),
        }
    }

    /// What the card says that clients send. Only the operator knows what the proxy wants.
    fn declared_at_proxy(&mut self, section: &schema::Proxy) -> Option<SchemeKind> {
        let http = |scheme: &str| SchemeKind::Http { scheme: scheme.to_owned(), bearer_format: None };
        let is_openid = *section.declare == Some(AtProxy::OpenId);
        if section.openid_url.is_some() != is_openid {
            let (source, text) = match is_openid {
                true => (section.declare.source(), "missing; cards need it for `declare = \"openid\"`"),
                false => (section.openid_url.source(), "only for `declare = \"openid\"`"),
            };
            self.refuse(source, "auth.proxy.openid_url", text);
            return None;
        }
        match (*section.declare, section.openid_url.as_ref()) {
            (Some(AtProxy::OpenId), url) => Some(SchemeKind::OpenIdConnect { url: url?.reveal().to_owned() }),
            (Some(AtProxy::Bearer), _) => Some(http("bearer")),
            (Some(AtProxy::Basic), _) => Some(http("basic")),
            (Some(AtProxy::Digest), _) => Some(http("digest")),
            (Some(AtProxy::Certificate), _) => Some(SchemeKind::MutualTls),
            (None, _) => {
                let mut section = section.clone();
                let source = begins(&mut section)?;
                let text = "missing; it tells clients what the proxy wants: \"bearer\", \"basic\", \"digest\", \
                            \"openid\" or \"certificate\"";
                self.refuse(&source, "auth.proxy.declare", text);
                None
            }
        }
    }
}
