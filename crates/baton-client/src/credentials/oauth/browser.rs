//! The authorization code flow with PKCE (RFC 7636, RFC 8252): the user agrees in a browser, which comes back to a port on
//! this machine.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::endpoints::Endpoints;
use super::token_request::Grant;
use super::{Caller, Prompt, Token, TokenSource};
use crate::error::Error;

/// A user who does nothing for so long has gone away.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The head of the browser's request, which is all that is read of it.
const LONGEST_HEAD: usize = 16 * 1024;

pub(super) async fn log_in(
    source: &TokenSource,
    caller: &Caller,
    endpoints: &Endpoints,
    prompt: &(dyn Fn(Prompt) + Send + Sync),
) -> Result<Token, Error> {
    let no_port =
        |error: std::io::Error| Error::Credentials(format!("no port for the browser's answer: {error}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(no_port)?;
    let port = listener.local_addr().map_err(no_port)?.port();
    let redirect_uri = format!("http://127.0.0.1:{port}/callback");
    let (state, verifier) = (random()?, random()?);
    let mut url = endpoints.start()?.clone();
    let scopes = source.scopes.join(" ");
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let pairs = [
        ("response_type", "code"),
        ("client_id", &source.client.id),
        ("redirect_uri", &redirect_uri),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    url.query_pairs_mut().extend_pairs(pairs);
    if !scopes.is_empty() {
        url.query_pairs_mut().append_pair("scope", &scopes);
    }
    prompt(Prompt::Browser { url: url.into() });
    let waited = tokio::time::timeout(PATIENCE, answered(&listener, &state, endpoints.issuer.as_deref()));
    let code = waited
        .await
        .map_err(|_| Error::Credentials("the browser did not come back in time".to_owned()))??;
    let grant = Grant::Code { code: &code, redirect_uri: &redirect_uri, verifier: &verifier };
    source.request(caller, &endpoints.token, grant).await
}

/// 256 random bits as text.
fn random() -> Result<String, Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Credentials(format!("no randomness: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Waits for the request that has our state. Anything else on this machine may connect, too, and is turned away.
async fn answered(listener: &TcpListener, state: &str, issuer: Option<&str>) -> Result<String, Error> {
    loop {
        let (mut socket, _) = listener
            .accept()
            .await
            .map_err(|error| Error::Credentials(format!("no answer of the browser: {error}")))?;
        let head = tokio::time::timeout(Duration::from_secs(5), head(&mut socket)).await;
        let came = head.ok().flatten().and_then(|head| Came::read(&head));
        let Some(came) = came.filter(|came| came.state.as_deref() == Some(state)) else {
            answer(&mut socket, "404 Not Found", "Nothing is here.").await;
            continue;
        };
        let result = came.judge(issuer);
        let text = match &result {
            Ok(_) => "You are signed in. You can close this window.",
            Err(_) => "You are not signed in. The program that sent you here says why.",
        };
        answer(&mut socket, "200 OK", text).await;
        return result;
    }
}

/// What the browser brought.
#[derive(Debug, Default, PartialEq, Eq)]
struct Came {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl Came {
    fn read(head: &str) -> Option<Self> {
        let target = head.strip_prefix("GET ")?.split(' ').next()?;
        let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
        if url.path() != "/callback" {
            return None;
        }
        let mut came = Came::default();
        for (name, value) in url.query_pairs() {
            let place = match &*name {
                "state" => &mut came.state,
                "code" => &mut came.code,
                "error" => &mut came.error,
                "iss" => &mut came.issuer,
                _ => continue,
            };
            *place = Some(value.into_owned());
        }
        Some(came)
    }

    /// RFC 9207: an answer of another server is an attack.
    fn judge(self, issuer: Option<&str>) -> Result<String, Error> {
        if let (Some(said), Some(expected)) = (&self.issuer, issuer)
            && said != expected
        {
            return Err(Error::Credentials("the answer is of another authorization server".to_owned()));
        }
        match (self.code, self.error) {
            (Some(code), None) => Ok(code),
            (_, Some(error)) => {
                Err(Error::Credentials(format!("the authorization server refused ({error})")))
            }
            (None, None) => Err(Error::Credentials("the authorization server sent no code".to_owned())),
        }
    }
}

async fn head(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = socket.read(&mut piece).await.ok()?;
        if read == 0 || head.len() + read > LONGEST_HEAD {
            return None;
        }
        head.extend_from_slice(&piece[..read]);
    }
    String::from_utf8(head).ok()
}

async fn answer(socket: &mut TcpStream, status: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>Sign-in</title><p>{text}");
    let length = body.len();
    let whole = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{body}"
    );
    // If the browser does not take it, the login is not worse for it.
    let _ = socket.write_all(whole.as_bytes()).await;
    let _ = socket.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_only_our_callback_is_read() {
        let read = |target: &str| Came::read(&format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"));
        let came = read("/callback?code=a%20b&state=s&iss=https%3A%2F%2Fid").unwrap();
        assert_eq!((came.code.as_deref(), came.state.as_deref()), (Some("a b"), Some("s")));
        assert!(read("/favicon.ico").is_none());
        assert!(Came::read("POST /callback?code=a HTTP/1.1\r\n\r\n").is_none());
        assert!(read("/callback?code=a&iss=https://other").unwrap().judge(Some("https://id")).is_err());
        assert!(read("/callback?code=a&iss=https://id").unwrap().judge(Some("https://id")).is_ok());
        assert!(read("/callback?error=access_denied").unwrap().judge(None).is_err());
    }
}
