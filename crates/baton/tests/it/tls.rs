//! HTTPS by flags and by `[tls]`: what is served, what is refused, and certificates that are replaced while serving. The
//! clients are curl and openssl, which know nothing of rustls.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use crate::served::{Served, baton, finished};

struct Folder {
    folder: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Folder {
    /// With an authority in `ca.pem`, and a certificate of it for this machine in `cert.pem` and `key.pem`.
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // openssl takes a certificate for self-signed if it has the name of its authority.
        params.distinguished_name.push(rcgen::DnType::CommonName, "the authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = Folder { folder: tempfile::tempdir().unwrap(), authority };
        folder.write("ca.pem", &folder.authority.pem());
        folder.signs("cert.pem", "key.pem", "localhost", |_| {});
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("half"), text).unwrap();
        fs::rename(self.path("half"), self.path(name)).unwrap();
    }

    fn signs(&self, certificate: &str, key: &str, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let pair = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        change(&mut params);
        self.write(key, &pair.serialize_pem());
        self.write(certificate, &params.signed_by(&pair, &self.authority).unwrap().pem());
    }

    fn baton(&self, args: &[&str]) -> Command {
        self.baton_at("127.0.0.1:0", args)
    }

    fn baton_at(&self, listen: &str, args: &[&str]) -> Command {
        let mut command = baton(&["serve", "--listen", listen, "--store", "memory:"]);
        command.args(args).current_dir(self.folder.path());
        command
    }

    fn serve(&self, args: &[&str]) -> Served {
        Served::of(&mut self.baton(args))
    }

    fn serve_cert(&self) -> Served {
        self.serve(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"])
    }

    fn run(&self, program: &str, args: &[&str], input: &str) -> Output {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let _gone = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What curl prints; an error if it fails.
    fn curl(&self, args: &[&str]) -> Result<String, String> {
        let output = self.run("curl", &[&["-sS", "--cacert", "ca.pem", "--noproxy", "*"], args].concat(), "");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

#[test]
fn curl_is_served_in_both_protocols_and_both_versions() {
    let folder = Folder::new();
    let server = folder.serve_cert();
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.welcome);
    let card = format!("{}/.well-known/agent-card.json", server.url);
    for protocol in ["--http1.0", "--http1.1", "--http2", "--http2-prior-knowledge", "--no-alpn"] {
        for version in ["1.2", "1.3"] {
            let told = folder.curl(&[protocol, "--tlsv1.2", "--tls-max", version, &card]);
            let told = told.unwrap_or_else(|error| panic!("{protocol} {version}: {error}"));
            assert!(told.contains(&format!("\"{}", server.url)), "the card gives https addresses: {told}");
        }
    }
    // Not for localhost, since it would apply to every other server of this machine.
    let head = folder.curl(&["-i", &card]).unwrap().to_ascii_lowercase();
    assert!(!head.contains("strict-transport-security"), "{head}");
    let named = folder.curl(&["-i", "-H", "Host: agent.example", &card]).unwrap().to_ascii_lowercase();
    assert!(named.contains("strict-transport-security: max-age=31536000\r\n"), "{named}");
    let plain = folder.curl(&["-i", &card.replace("https://", "http://")]).unwrap();
    assert!(plain.starts_with("HTTP/1.1 400") && plain.contains("use https://"), "{plain}");
    assert!(!plain.to_ascii_lowercase().contains("strict-transport-security"));
}

/// The line that is printed can be pasted as it is, and the certificate is the same after a restart.
#[test]
fn a_self_signed_certificate_is_made_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let first = folder.serve(&["--tls-self-signed"]);
    let line = first.welcome.lines().find(|line| line.trim().starts_with("curl ")).unwrap().trim().to_owned();
    assert!(line.contains("--cacert ./baton-data/self-signed.crt https://127.0.0.1:"), "{line}");
    let answer = folder.run("sh", &["-c", &line], "");
    let answer = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.contains("\"result\""), "{answer}");
    let certificate = fs::read(folder.path("baton-data/self-signed.crt")).unwrap();
    for file in ["self-signed.crt", "self-signed.key"] {
        let mode = fs::metadata(folder.path("baton-data").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(first.terminate().success());
    let second = folder.serve(&["--tls-self-signed"]);
    assert_eq!(fs::read(folder.path("baton-data/self-signed.crt")).unwrap(), certificate);
    let health = format!("{}/healthz", second.url.replace("127.0.0.1", "localhost"));
    let healthy = folder.run("curl", &["-sS", "--cacert", "baton-data/self-signed.crt", &health], "");
    assert!(healthy.status.success(), "{}", String::from_utf8_lossy(&healthy.stderr));
    drop(second);
    // Another address is not in it, so it is made anew.
    let third = Served::of(&mut folder.baton_at("127.0.0.2:0", &["--tls-self-signed"]));
    assert_ne!(fs::read(folder.path("baton-data/self-signed.crt")).unwrap(), certificate);
    let health = format!("{}/healthz", third.url);
    assert!(
        folder.run("curl", &["-sS", "--cacert", "baton-data/self-signed.crt", &health], "").status.success()
    );
}

#[test]
fn what_cannot_be_served_is_told_before_the_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.signs("other.pem", "other-key.pem", "localhost", |_| {});
    folder.signs("old.pem", "old-key.pem", "localhost", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    folder.write("empty.pem", "");
    for (certificate, key, says) in [
        ("cert.pem", "other-key.pem", "--tls-key: other-key.pem: the key does not belong to the certificate"),
        ("key.pem", "key.pem", "--tls-cert: key.pem: there is a private key in it and no certificate"),
        ("empty.pem", "key.pem", "--tls-cert: empty.pem: there is no certificate in it"),
        ("none.pem", "key.pem", "--tls-cert: none.pem: No such file"),
        ("cert.pem", "none.pem", "--tls-key: none.pem: No such file"),
        ("cert.pem", "cert.pem", "--tls-key: cert.pem: there is no private key in it"),
        ("old.pem", "old-key.pem", "--tls-cert: old.pem: the certificate expired on Fri, 01 Jan 2021"),
    ] {
        let (code, told) = finished(&mut folder.baton(&["--tls-cert", certificate, "--tls-key", key]));
        assert!(code == Some(2) && told.contains(says), "{code:?} {told}");
    }
    let (code, told) = finished(&mut folder.baton(&["--tls-cert", "cert.pem"]));
    assert!(code == Some(2) && told.contains("--tls-cert: a certificate needs its key"), "{told}");
    // A key that everybody can read, and a certificate that will not last.
    fs::set_permissions(folder.path("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(
        folder.serve_cert().stop_and_log().contains("every user of this machine can read the key key.pem")
    );
    fs::set_permissions(folder.path("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    folder.signs("cert.pem", "key.pem", "localhost", |params| {
        params.not_after = (std::time::SystemTime::now() + std::time::Duration::from_secs(100_000)).into();
    });
    assert!(folder.serve_cert().stop_and_log().contains("the certificate cert.pem expires in 1 days"));
}

#[test]
fn sighup_replaces_the_certificate_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let server = folder.serve_cert();
    let health = format!("{}/healthz", server.url);
    let serial = || {
        let told = folder.curl(&["-w", "%{certs}", "-o", "/dev/null", &health]).unwrap();
        told.lines()
            .find(|line| line.starts_with("Serial Number"))
            .unwrap_or_else(|| panic!("{told}"))
            .to_owned()
    };
    let first = serial();
    assert_eq!(serial(), first);
    folder.signs("cert.pem", "unused.pem", "localhost", |_| {});
    server.signal("-HUP");
    let log = server.log_with("nothing was changed");
    assert!(log.contains("the key does not belong to the certificate"), "{log}");
    assert_eq!(serial(), first);
    folder.signs("cert.pem", "key.pem", "localhost", |_| {});
    server.signal("-HUP");
    let log = server.log_with("configuration reloaded");
    assert!(log.contains("applied=\"tls\"") || log.contains("applied=tls"), "{log}");
    assert_ne!(serial(), first);
}

#[test]
fn client_certificates_are_asked_for_as_configured() {
    let folder = Folder::new();
    folder.signs("client.pem", "client-key.pem", "client.example", |_| {});
    let stranger = Folder::new();
    stranger.signs("client.pem", "client-key.pem", "client.example", |_| {});
    fs::copy(stranger.path("client.pem"), folder.path("stranger.pem")).unwrap();
    fs::copy(stranger.path("client-key.pem"), folder.path("stranger-key.pem")).unwrap();
    for (wanted, without) in [("optional", true), ("required", false)] {
        folder.write(
            "baton.toml",
            &format!(
                "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\nclient_certs = \"{wanted}\"\n"
            ),
        );
        let server = folder.serve(&[]);
        let health = format!("{}/healthz", server.url);
        assert_eq!(folder.curl(&[&health]).is_ok(), without, "{wanted}");
        let ours = ["--cert", "client.pem", "--key", "client-key.pem", &health];
        folder.curl(&ours).unwrap_or_else(|error| panic!("{wanted}: {error}"));
        let strangers = ["--cert", "stranger.pem", "--key", "stranger-key.pem", &health];
        assert!(folder.curl(&strangers).is_err(), "{wanted}");
    }
}

/// The certificate stays, and what is asked of clients follows the file.
#[test]
fn p05_a_reload_changes_the_authorities_of_clients_beside_a_self_signed_certificate() {
    let folder = Folder::new();
    folder.signs("client.pem", "client-key.pem", "client.example", |_| {});
    let file = |wanted: &str| {
        let text =
            format!("[tls]\nself_signed = true\nclient_ca = \"clients.pem\"\nclient_certs = \"{wanted}\"\n");
        folder.write("baton.toml", &text);
    };
    folder.write("clients.pem", &folder.authority.pem());
    file("required");
    let server = folder.serve(&[]);
    let health = format!("{}/healthz", server.url);
    let shows = ["-k", "--cert", "client.pem", "--key", "client-key.pem", &health];
    folder.curl(&shows).unwrap();
    // Another authority: the client is a stranger now.
    folder.write("clients.pem", &Folder::new().authority.pem());
    server.signal("-HUP");
    let log = server.log_with("configuration reloaded");
    assert!(log.contains("applied=\"tls\"") || log.contains("applied=tls"), "{log}");
    assert!(folder.curl(&shows).is_err());
    folder.write("clients.pem", "no certificate");
    server.signal("-HUP");
    server.log_with("nothing was changed");
}

/// Old versions, weak ciphers, renegotiation and early data, asked for by a client that would take them.
#[test]
fn openssl_gets_nothing_that_is_weak() {
    if Command::new("openssl").arg("version").output().is_err() {
        return;
    }
    let folder = Folder::new();
    let server = folder.serve_cert();
    let address = server.url.trim_start_matches("https://").to_owned();
    let asked = |args: &[&str], input: &str| {
        let common = ["s_client", "-connect", &address, "-CAfile", "ca.pem", "-verify_return_error"];
        let output = folder.run("openssl", &[&common, args].concat(), input);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    const WEAK: &str = "ALL:COMPLEMENTOFALL:@SECLEVEL=0";
    for (args, accepted) in [
        (&["-tls1_3"][..], true),
        (&["-tls1_2"], true),
        (&["-tls1_1", "-cipher", WEAK], false),
        (&["-tls1", "-cipher", WEAK], false),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"], true),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], true),
        // Without forward secrecy, with CBC, without encryption, without authentication.
        (&["-tls1_2", "-cipher", "AES256-GCM-SHA384:AES128-GCM-SHA256"], false),
        (&["-tls1_2", "-cipher", "AES256-SHA:AES128-SHA:@SECLEVEL=0"], false),
        (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA"], false),
        (&["-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"], false),
        (&["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"], false),
        (&["-tls1_2", "-cipher", "kDHE:kPSK:@SECLEVEL=0"], false),
        (&["-tls1_2", "-sigalgs", "ECDSA+SHA1:RSA+SHA1", "-cipher", WEAK], false),
        (&["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256"], false),
    ] {
        let (done, told) = asked(args, "");
        assert_eq!(done, accepted, "{args:?}: {told}");
        assert!(!accepted || told.contains("Verify return code: 0 (ok)"), "{args:?}: {told}");
    }
    let (_, told) = asked(&["-tls1_2"], "R\n");
    assert!(told.contains("RENEGOTIATING") && told.contains("no renegotiation"), "{told}");
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (_, told) = asked(&["-tls1_3", "-ign_eof"], request);
    assert!(told.contains("HTTP/1.1 200") && told.contains("Compression: NONE"), "{told}");
    assert!(told.contains("Max Early Data: 0"), "a ticket without early data: {told}");
    for (offered, chosen) in [("h2,http/1.1", "h2"), ("http/1.1,h2", "h2"), ("http/1.1", "http/1.1")] {
        let (_, told) = asked(&["-alpn", offered], "");
        assert!(told.contains(&format!("ALPN protocol: {chosen}\n")), "{offered}: {told}");
    }
}

/// The client commands: authorities of one's own, a client certificate, and what happens without.
#[test]
fn p09_cli_auth_009_a_client_certificate_is_shown_to_agents_that_ask() {
    let folder = Folder::new();
    folder.signs("client.pem", "client-key.pem", "client.example", |_| {});
    let file = "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\nclient_certs = \"required\"\n";
    folder.write("baton.toml", file);
    let server = folder.serve(&[]);
    let send = |args: &[&str]| {
        let mut command = baton(&["send", &server.url, "hello"]);
        let output =
            command.args(args).current_dir(folder.folder.path()).env("HOME", folder.folder.path()).output();
        let Output { status, stdout, stderr } = output.unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let ours = ["--client-cert", "client.pem", "--client-key", "client-key.pem"];
    let (code, out, err) = send(&[&["--ca", "ca.pem"], &ours[..]].concat());
    assert!(code == Some(0) && out.contains("State: TASK_STATE_COMPLETED"), "{out}{err}");
    let (code, _, err) = send(&[&["--insecure"], &ours[..]].concat());
    assert!(code == Some(0) && err.contains("CREDENTIALS ARE SENT"), "{err}");
    for args in [&["--ca", "ca.pem"][..], &ours, &[]] {
        let (code, _, err) = send(args);
        assert!(code == Some(3) && err.contains("A2ACLI_ERR_UNREACHABLE"), "{args:?}: {err}");
    }
}
