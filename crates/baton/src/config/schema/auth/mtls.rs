//! `[auth.mtls]`: client certificates.

use super::begins;
use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{CertName, Id, Word};

#[derive(Debug, Clone)]
pub(crate) struct Mtls {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) names: Setting<Vec<CertName>>,
    pub(crate) only_listed: Setting<bool>,
    pub(crate) owner_prefix: Setting<String>,
    pub(crate) scopes: Setting<Vec<Word>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) written: Written,
}

/// The owner of certificates with a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    pub(crate) name: Setting<Option<Word>>,
    pub(crate) owner: Setting<Option<Word>>,
    pub(crate) written: Written,
}

impl Default for Mtls {
    fn default() -> Self {
        Mtls {
            id: Setting::default(),
            names: Setting::new(vec![CertName::Uri, CertName::Dns, CertName::Email]),
            only_listed: Setting::default(),
            owner_prefix: Setting::new("mtls:".to_owned()),
            scopes: Setting::default(),
            clients: Vec::new(),
            written: Written::default(),
        }
    }
}

impl Section for Mtls {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("names", &mut self.names);
        visit.field("only_listed", &mut self.only_listed);
        visit.field("owner_prefix", &mut self.owner_prefix);
        visit.field("scopes", &mut self.scopes);
        visit.list("client", &mut self.clients);
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }

    fn is_there(&mut self) -> bool {
        begins(self).is_some()
    }
}

impl Section for Client {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("name", &mut self.name);
        visit.field("owner", &mut self.owner);
    }

    fn label(&self) -> Option<String> {
        self.name.as_deref().map(str::to_owned)
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}
