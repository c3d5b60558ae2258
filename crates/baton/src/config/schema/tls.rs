//! HTTPS on the main port.

use std::path::PathBuf;

use crate::config::setting::{Section, Setting, Visit};
use crate::config::value::{ClientCerts, MinTls};

#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) cert: Setting<Option<PathBuf>>,
    pub(crate) key: Setting<Option<PathBuf>>,
    pub(crate) self_signed: Setting<bool>,
    pub(crate) client_ca: Setting<Option<PathBuf>>,
    pub(crate) client_certs: Setting<ClientCerts>,
    pub(crate) min_version: Setting<MinTls>,
    pub(crate) hsts: Setting<bool>,
}

impl Default for Tls {
    fn default() -> Self {
        Tls {
            cert: Setting::default(),
            key: Setting::default(),
            self_signed: Setting::default(),
            client_ca: Setting::default(),
            client_certs: Setting::new(ClientCerts::Off),
            min_version: Setting::new(MinTls::V1_2),
            hsts: Setting::new(true),
        }
    }
}

impl Tls {
    /// Whether the server speaks HTTPS.
    pub(crate) fn is_on(&self) -> bool {
        self.cert.is_some() || *self.self_signed
    }
}

impl Section for Tls {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("cert", &mut self.cert);
        visit.field("key", &mut self.key);
        visit.field("self_signed", &mut self.self_signed);
        visit.field("client_ca", &mut self.client_ca);
        visit.field("client_certs", &mut self.client_certs);
        visit.field("min_version", &mut self.min_version);
        visit.field("hsts", &mut self.hsts);
    }
}
