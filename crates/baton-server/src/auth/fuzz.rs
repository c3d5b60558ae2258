//! Fuzz targets for the `Authorization` header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Uri};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use super::authorization::{Credentials, Found, find};
use super::basic::{BasicOptions, Header};
use super::digest::{Digest, DigestOptions, digest_password};
use super::request::AuthRequest;
use super::scheme::{Scheme as _, Verdict};
use super::users::StoredUser;

/// Each line is the value of one header. What is accepted means one thing only: read, written and read again it is the
/// same.
pub(crate) fn authorization(bytes: &[u8]) {
    let values: Vec<_> =
        bytes.split(|byte| *byte == b'\n').filter_map(|value| HeaderValue::from_bytes(value).ok()).collect();
    let count = values.len();
    let headers: HeaderMap = values.into_iter().map(|value| (AUTHORIZATION, value)).collect();
    for scheme in ["basic", "bearer", "digest"] {
        let Found::Credentials(credentials) = find(&headers, scheme) else { continue };
        assert_eq!(count, 1, "credentials of two headers");
        token(&credentials);
        let Ok(parameters) = credentials.parameters() else { continue };
        let mut written = String::new();
        for (name, value) in parameters.iter() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            written.push_str(&format!("{name}=\"{value}\", "));
        }
        let value = HeaderValue::from_bytes(format!("{scheme} ,{written}").as_bytes())
            .expect("no control characters");
        let again = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let Found::Credentials(again) = find(&again, scheme) else { panic!("not found again: {written}") };
        let again = again.parameters().unwrap_or_else(|error| panic!("{error}: {written}"));
        assert!(again.iter().eq(parameters.iter()), "{written}");
    }
}

fn token(credentials: &Credentials<'_>) {
    let Ok(token) = credentials.token68() else { return };
    assert_eq!(token.as_bytes(), credentials.as_bytes());
    let options = BasicOptions::default();
    let Ok(header) = Header::read(token, &options) else { return };
    let password = header.password.expose_secret();
    assert!(header.user.len() <= options.max_user && password.len() <= options.max_password);
    assert_eq!(
        STANDARD.encode(format!("{}:{password}", header.user)),
        token,
        "two ways to write one password"
    );
}

/// As the parameters of a header: nobody gets in without a nonce of the server. As a user's name: that user gets in, once
/// with each nonce and count.
pub(crate) fn digest(bytes: &[u8]) {
    const PASSWORD: &str = "pässwörd";
    let name = String::from_utf8_lossy(bytes);
    let stored = |user: &str| digest_password(user, "baton", &PASSWORD.into());
    let mut users = vec![StoredUser::new("ann", stored("ann"))];
    if name != "ann" {
        users.push(StoredUser::new(name.as_ref(), stored(&name)));
    }
    let is_user = Digest::new(users, DigestOptions::default()).ok();
    let scheme = is_user.clone().unwrap_or_else(|| {
        let ann = vec![StoredUser::new("ann", stored("ann"))];
        Digest::new(ann, DigestOptions::default()).expect("a user")
    });
    if let Ok(value) = HeaderValue::from_bytes(&[b"Digest ", bytes].concat()) {
        let verdict = verify(&scheme, value);
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }
    if is_user.is_none() {
        return;
    }
    let challenge = scheme.challenge(None).expect("a challenge");
    let nonce = challenge.to_str().expect("ASCII").split('"').nth(5).expect("a nonce").to_owned();
    let second = hash(format!("POST:{TARGET}"));
    let first = hash(format!("{name}:baton:{PASSWORD}"));
    let response = hash(format!("{first}:{nonce}:00000001:c:auth:{second}"));
    let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
    let header = format!(
        "Digest username=\"{quoted}\", realm=\"baton\", nonce=\"{nonce}\", uri=\"{TARGET}\", cnonce=\"c\", \
         nc=00000001, qop=auth, response=\"{response}\", algorithm=SHA-256"
    );
    let value = HeaderValue::from_bytes(header.as_bytes()).expect("no control characters");
    let verdict = verify(&scheme, value.clone());
    assert!(matches!(&verdict, Verdict::Verified(identity) if *identity.owner == *name), "{verdict:?}");
    let verdict = verify(&scheme, value);
    assert!(matches!(&verdict, Verdict::Refused(refusal) if !refusal.is_failure), "{verdict:?}");
}

const TARGET: &str = "/a?b=c";

fn verify(scheme: &Digest, value: HeaderValue) -> Verdict {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    let uri = Uri::from_static(TARGET);
    let request = AuthRequest::new(&Method::POST, &uri, &headers);
    scheme.verify(&request).now_or_never().expect("digest waits for nothing")
}

fn hash(text: String) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
