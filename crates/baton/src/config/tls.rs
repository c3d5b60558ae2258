//! Reads the certificate and the key that `[tls]` names.

use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_server::tls::{BadTls, ClientCertificates, TlsOptions, TlsVersion};

use super::file::text_of;
use super::problem::{Problem, Problems};
use super::schema::Config;
use super::setting::Setting;
use super::value::{ClientCerts, MinTls};

/// A certificate that expires sooner than this is warned of.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// What the files hold; `None` without `tls.cert`, or if something is wrong with them.
pub(super) fn read(
    config: &Config,
    problems: &mut Problems,
    warnings: &mut Vec<String>,
) -> Option<TlsOptions> {
    let tls = &config.tls;
    let (cert_file, key_file) = (tls.cert.as_ref()?, tls.key.as_ref()?);
    let certificate = text(&tls.cert, "tls.cert", cert_file, problems);
    let key = text(&tls.key, "tls.key", key_file, problems);
    let options = with_clients(config, TlsOptions::new(certificate?, key?), problems)?;
    if let Err(error) = options.check() {
        let (setting, name) = match error {
            BadTls::Key(_) => (&tls.key, "tls.key"),
            BadTls::ClientAuthority(_) => (&tls.client_ca, "tls.client_ca"),
            _ => (&tls.cert, "tls.cert"),
        };
        let file = setting.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        problems.add(Problem::new(setting.source().clone(), name, format!("{file}: {error}")));
        return None;
    }
    if is_for_everybody(key_file) {
        let file = key_file.display();
        warnings.push(format!("every user of this machine can read the key {file}: `chmod 600 {file}`"));
    }
    if let Ok(expires) = options.expires_at()
        && let Ok(left) = expires.duration_since(SystemTime::now())
        && left < SOON
    {
        let (file, days) = (cert_file.display(), left.as_secs() / (24 * 3600));
        warnings.push(format!("the certificate {file} expires in {days} days"));
    }
    Some(options)
}

/// Adds the rest of `[tls]` to a certificate and its key.
pub(super) fn with_clients(
    config: &Config,
    mut options: TlsOptions,
    problems: &mut Problems,
) -> Option<TlsOptions> {
    let tls = &config.tls;
    let authorities = || text(&tls.client_ca, "tls.client_ca", tls.client_ca.as_ref()?, problems);
    options.clients = match *tls.client_certs {
        ClientCerts::Off => ClientCertificates::Off,
        ClientCerts::Optional => ClientCertificates::Optional({ authorities }()?),
        ClientCerts::Required => ClientCertificates::Required({ authorities }()?),
    };
    options.min_version = match *tls.min_version {
        MinTls::V1_2 => TlsVersion::V1_2,
        MinTls::V1_3 => TlsVersion::V1_3,
    };
    options.hsts = *tls.hsts;
    Some(options)
}

fn text<T>(setting: &Setting<T>, key: &str, file: &Path, problems: &mut Problems) -> Option<String> {
    let refused = |reason: String| {
        problems.add(Problem::new(setting.source().clone(), key, format!("{}: {reason}", file.display())));
    };
    text_of(file).map_err(refused).ok()
}

#[cfg(unix)]
pub(super) fn is_for_everybody(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_for_everybody(_: &Path) -> bool {
    false
}
