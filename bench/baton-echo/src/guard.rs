//! What the server wants from its callers: nothing, an API key, a JWT, or TLS.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_server::Builder;
use baton_server::auth::jwt::{FetchOptions, Fetcher, Jwt, JwtOptions, KeysFrom};
use baton_server::auth::{ApiKeys, Chain, KeySet, Scopes};
use baton_server::tls::TlsOptions;
use rcgen::{CertificateParams, KeyPair};

const ISSUER: &str = "https://login.example.com/realms/bench";
const AUDIENCE: &str = "https://agents.example.com/echo";
/// As long as what `openssl rand -hex 32` prints.
const API_KEY: &str = "5b1c2f0e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c";

pub(crate) fn applied(server: Builder) -> Result<Builder, String> {
    let Ok(guard) = std::env::var("GUARD") else { return Ok(server) };
    let (server, needed) = match guard.as_str() {
        "key" => (server.auth(api_key()?), format!("X-API-Key: {API_KEY}")),
        "jwt" => {
            let (chain, token) = jwt()?;
            (server.auth(chain), format!("Authorization: Bearer {token}"))
        }
        "tls" => {
            let (options, certificate) = tls()?;
            (server.tls(options), certificate)
        }
        _ => return Err(format!("GUARD is {guard}; write key, jwt or tls")),
    };
    let file = std::env::var("GUARD_FILE").map_err(|_| "GUARD needs GUARD_FILE")?;
    std::fs::write(&file, needed).map_err(|error| format!("{file}: {error}"))?;
    Ok(server)
}

fn api_key() -> Result<Chain, String> {
    let keys = KeySet::new().map_err(|error| error.to_string())?;
    keys.add_chosen(API_KEY, "bench", "bench", Scopes::default()).map_err(|error| error.to_string())?;
    let scheme = ApiKeys::header("X-API-Key", Arc::new(keys)).map_err(|error| error.to_string())?;
    Ok(Chain::new().scheme("apiKey", scheme))
}

/// A chain that knows a new key, and a token that is signed with it. It has the claims that a login server usually writes.
fn jwt() -> Result<(Chain, String), String> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|error| error.to_string())?;
    // 4, then both coordinates.
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let mut options = JwtOptions::jwks(ISSUER, AUDIENCE, "");
    options.keys = KeysFrom::Set(format!(
        r#"{{"keys":[{{"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":"bench-1","x":"{x}","y":"{y}"}}]}}"#
    ));
    let now = UNIX_EPOCH.elapsed().map_err(|error| error.to_string())?.as_secs();
    let expires = now + Duration::from_secs(24 * 60 * 60).as_secs();
    let header = r#"{"alg":"ES256","typ":"JWT","kid":"bench-1"}"#;
    let claims = format!(
        r#"{{"iss":"{ISSUER}","aud":["{AUDIENCE}","account"],"sub":"7f0c3a5e-2b44-4c1d-9d8e-6a1f0b2c3d4e","azp":"bench-client","iat":{now},"nbf":{now},"exp":{expires},"jti":"0d9f6b0e-4f0a-4a8e-8d55-3c6f1e2d4b7a","sid":"b6f8a1c2-90de-4b3f-8a77-1e5c9d2f4a60","scope":"openid profile email tasks:read tasks:write","preferred_username":"bench","email":"bench@example.com","email_verified":true}}"#
    );
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = pair.sign(&SystemRandom::new(), message.as_bytes()).map_err(|error| error.to_string())?;
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
    let fetcher = Fetcher::new(&FetchOptions::default()).map_err(|error| error.to_string())?;
    let scheme = Jwt::new(options, fetcher).map_err(|error| error.to_string())?;
    Ok((Chain::new().scheme("jwt", scheme), token))
}

/// A new certificate for this machine; clients have to be given it, since it is signed by itself.
fn tls() -> Result<(TlsOptions, String), String> {
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).map_err(|error| error.to_string())?;
    let certificate = params.self_signed(&key).map_err(|error| error.to_string())?.pem();
    Ok((TlsOptions::new(certificate.clone(), key.serialize_pem()), certificate))
}
