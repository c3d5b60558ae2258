//! Client certificates.

use std::sync::Arc;

use baton_server::auth::{CertificateName, MutualTls, MutualTlsOptions, Scopes};

use super::{Planner, Records};
use crate::config::schema::{self, Tls, begins};
use crate::config::value::{CertName, ClientCerts};

const TABLE: &str = "auth.mtls";

impl Planner<'_> {
    pub(super) fn mtls(&mut self, section: &schema::Mtls, tls: &Tls) {
        let mut section = section.clone();
        let Some(source) = begins(&mut section) else { return };
        if !tls.is_on() || *tls.client_certs == ClientCerts::Off {
            let text = "the server asks for no certificates: set `tls.client_certs` to \"optional\" or \"required\", \
                        and `tls.client_ca`";
            return self.refuse(&source, TABLE, text);
        }
        let mut options = MutualTlsOptions::default();
        options.names = section.names.iter().map(|name| name.kind()).collect();
        options.only_listed = *section.only_listed;
        options.prefix.clone_from(&section.owner_prefix);
        options.scopes = Scopes::of(section.scopes.iter().map(|scope| &**scope));
        for client in section.clients.iter().filter(|client| !client.written.is_broken) {
            let place = client.written.source();
            let (Some(name), Some(owner)) = (client.name.as_deref(), client.owner.as_deref()) else {
                self.refuse(
                    &place,
                    "auth.mtls.client",
                    "expected `name`, as the certificate has it, and `owner`",
                );
                continue;
            };
            if options.owners.insert(name.to_owned(), owner.to_owned()).is_some() {
                self.refuse(&place, "auth.mtls.client.name", format!("`{name}` is there twice"));
            }
        }
        let (id, owners) = (section.id.clone(), options.owners.clone());
        let mtls = MutualTls::new(options);
        let scheme = Arc::new(mtls.clone());
        self.add(TABLE, &id, &mut section, &source, (scheme, Records::Certificates(mtls, owners)));
    }
}

impl CertName {
    fn kind(self) -> CertificateName {
        match self {
            CertName::Uri => CertificateName::Uri,
            CertName::Dns => CertificateName::Dns,
            CertName::Email => CertificateName::Email,
            CertName::CommonName => CertificateName::CommonName,
        }
    }
}
