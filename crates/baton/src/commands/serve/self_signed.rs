//! `--tls-self-signed`: a certificate for trying HTTPS, made once and kept beside the store, so that what a client was told
//! to trust is the same after a restart.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_server::tls::TlsOptions;
use rcgen::{CertificateParams, DnType, KeyPair};

use crate::config::{Config, StoreUrl};
use crate::exit::Failure;

const CERTIFICATE: &str = "self-signed.crt";
const KEY: &str = "self-signed.key";

/// Beside the default stores, if the store is not a file.
const FOLDER: &str = "./baton-data";

/// Browsers refuse longer ones.
const VALID: Duration = Duration::from_secs(365 * 24 * 3600);
/// A certificate that expires sooner is made anew at start.
const AT_LEAST: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) struct SelfSigned {
    pub(super) options: TlsOptions,
    /// What clients have to trust.
    pub(super) file: PathBuf,
}

/// The certificate that is there, if it is for these addresses and lasts; else a new one.
pub(super) fn find_or_make(
    config: &Config,
    store: &StoreUrl,
    addresses: &[SocketAddr],
) -> Result<SelfSigned, Failure> {
    let folder = match store {
        StoreUrl::Sqlite(path) => path.parent().filter(|folder| !folder.as_os_str().is_empty()),
        StoreUrl::Memory => None,
    };
    let folder = folder.unwrap_or(Path::new(FOLDER)).to_owned();
    let (file, names) = (folder.join(CERTIFICATE), names(config, addresses));
    let kept = kept(&folder, &names);
    let (certificate, key) = match kept {
        Some(kept) => kept,
        None => make(&folder, &names).map_err(|error| {
            Failure::failed(format!("no certificate can be made in {}: {error}", folder.display()))
        })?,
    };
    let mut options = TlsOptions::new(certificate, key);
    // A browser would remember it for other servers under this name, and for this one with another certificate.
    options.hsts = false;
    let options =
        config.with_tls_clients(options).map_err(|problems| Failure::usage(problems.to_string()))?;
    Ok(SelfSigned { options, file })
}

/// What clients may call this server: its host name, the public URL's host, and where it listens.
fn names(config: &Config, addresses: &[SocketAddr]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let public = config.public_url.as_ref().and_then(|url| host_of(url.as_str()));
    let listened = addresses.iter().filter_map(|address| match address.ip().is_unspecified() {
        true => usual_address(address).map(|ip| ip.to_string()),
        false => Some(address.ip().to_string()),
    });
    for name in host_name().into_iter().chain(public).chain(listened) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn host_of(url: &str) -> Option<String> {
    let host = reqwest::Url::parse(url).ok()?.host_str()?.to_owned();
    Some(host.trim_start_matches('[').trim_end_matches(']').to_owned())
}

/// `None` if the machine does not tell, or the name is none that a certificate can have.
fn host_name() -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let name = files.into_iter().find_map(|file| fs::read_to_string(file).ok())?;
    let name = name.trim().to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    (!name.is_empty() && name.len() <= 253 && name.bytes().all(is_plain)).then_some(name)
}

/// The address under which this machine calls others, for a server at all addresses. Connecting a UDP socket sends
/// nothing; it only chooses the route.
fn usual_address(unspecified: &SocketAddr) -> Option<IpAddr> {
    let elsewhere: SocketAddr = match unspecified {
        // Addresses for documentation.
        SocketAddr::V4(_) => (Ipv4Addr::new(192, 0, 2, 1), 9).into(),
        SocketAddr::V6(_) => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into(),
    };
    let socket = UdpSocket::bind((unspecified.ip(), 0)).ok()?;
    socket.connect(elsewhere).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_unspecified()).then_some(own)
}

/// The first line of the file, which readers of PEM skip. It tells for which addresses the certificate is.
fn title(names: &[String]) -> String {
    format!("Made by `baton serve --tls-self-signed`, for {}", names.join(", "))
}

fn kept(folder: &Path, names: &[String]) -> Option<(String, String)> {
    let certificate = fs::read_to_string(folder.join(CERTIFICATE)).ok()?;
    let key = fs::read_to_string(folder.join(KEY)).ok()?;
    let options = TlsOptions::new(&*certificate, key.clone());
    let lasts = options.expires_at().is_ok_and(|expires| expires > SystemTime::now() + AT_LEAST);
    let usable = certificate.lines().next() == Some(&title(names)) && lasts && options.check().is_ok();
    usable.then_some((certificate, key))
}

fn make(folder: &Path, names: &[String]) -> io::Result<(String, String)> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "Baton, self-signed");
    let now = SystemTime::now();
    // Clocks differ a little.
    params.not_before = (now - Duration::from_secs(3600)).into();
    params.not_after = (now + VALID).into();
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    let (certificate, key) = (format!("{}\n{}", title(names), certificate.pem()), key.serialize_pem());
    fs::create_dir_all(folder)?;
    // The certificate last: without it the key is not used.
    write(&folder.join(KEY), &key)?;
    write(&folder.join(CERTIFICATE), &certificate)?;
    Ok((certificate, key))
}

/// Under another name first, so that no reader finds half a file. Only the owner may read it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let half = path.with_extension("half");
    match fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&half)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(half, path)
}
