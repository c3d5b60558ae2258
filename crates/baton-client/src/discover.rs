//! Finds an agent's card: by the agent's address, by the card's own address, or in a file.

mod cache;
mod reference;

use std::path::{Path, PathBuf};

use baton_protocol::Generation;
use baton_protocol::domain::AgentCard;
use baton_protocol::wire::card::read_any;
use http::{HeaderValue, header};
use reqwest::Url;

pub use self::cache::CardCache;
use self::cache::{Freshness, Stored};
pub use self::reference::Reference;
use crate::address::without_secrets;
use crate::credentials::Credentials;
use crate::error::{CardError, Error, TransportError, TransportKind};
use crate::http::{Answer, Http, Request};
use crate::options::{SizeLimits, Timeouts};
use crate::origin::Origin;

/// A card with where it came from.
#[derive(Debug, Clone)]
pub struct Discovered {
    /// The card.
    pub card: AgentCard,
    /// The generation whose form the card has.
    pub generation: Generation,
    /// The card as it was sent: for showing, and for checking its signatures.
    pub json: String,
    /// Its address; `None` for a file.
    pub url: Option<String>,
    /// Its file, as an absolute path without links.
    pub file: Option<PathBuf>,
    /// The origin that the user named, which gets the user's credentials; `None` for a file.
    pub(crate) origin: Option<Origin>,
}

impl Discovered {
    /// A card that the user has from somewhere else, such as a registry. It is the user's own word, as a file is: its
    /// interfaces get the user's credentials.
    pub fn from_json(json: impl Into<String>) -> Result<Self, Error> {
        read_own(json.into(), "the given text")
    }
}

/// What discovery needs.
#[derive(Debug)]
pub(crate) struct Discovery<'a> {
    pub(crate) http: &'a Http,
    pub(crate) cache: &'a CardCache,
    pub(crate) credentials: &'a Credentials,
    pub(crate) timeouts: &'a Timeouts,
    pub(crate) limits: &'a SizeLimits,
}

/// More hops than anybody needs.
const MOST_REDIRECTS: usize = 5;

impl Discovery<'_> {
    pub(crate) async fn find(&self, reference: &Reference) -> Result<Discovered, Error> {
        let candidates = match reference {
            Reference::File(path) => return from_file(path, self.limits.card).await,
            Reference::Card(url) => vec![url.clone()],
            Reference::Agent(url) => reference::card_addresses(url),
        };
        let mut tried = Vec::new();
        let mut last_status = None;
        for url in candidates {
            match self.fetch(&url).await? {
                Fetched::Card(json) => return read_card(json, &url),
                Fetched::Nothing(status) => {
                    last_status = Some(status);
                    tried.push(format!("{} answered {status}", without_secrets(&url)));
                    // It exists, but not for us: another name would not help.
                    if matches!(status, 401 | 403) {
                        break;
                    }
                }
            }
        }
        Err(CardError::NotFound { tried: tried.join(", "), status: last_status }.into())
    }

    /// The text at a reference, whatever it is.
    pub(crate) async fn text(&self, reference: &Reference) -> Result<String, Error> {
        let url = match reference {
            Reference::File(path) => return read_file(path, self.limits.card).await,
            Reference::Card(url) | Reference::Agent(url) => url,
        };
        match self.fetch(url).await? {
            Fetched::Card(text) => Ok(text),
            Fetched::Nothing(status) => {
                let tried = format!("{} answered {status}", without_secrets(url));
                Err(CardError::NotFound { tried, status: Some(status) }.into())
            }
        }
    }

    /// Gets one address, from the cache while it is fresh. What somebody's credentials got is not kept: the cache may be shared
    /// with clients that have none.
    async fn fetch(&self, url: &Url) -> Result<Fetched, Error> {
        let known = self.cache.get(url);
        if let Some(known) = known.as_ref().filter(|known| known.is_fresh()) {
            return Ok(Fetched::Card(known.json.clone()));
        }
        let refused = |error: Error| no_card(error, url);
        let mut answer = self.ask(url, known.as_ref(), false).await.map_err(refused)?;
        // A card that only some may read. The address is the one the user named, so it may have the credentials.
        if answer.status() == 401 {
            self.cache.remove(url);
            if self.credentials.without_card() {
                answer = self.ask(url, None, true).await.map_err(refused)?;
                return match answer.status() {
                    200 => Ok(Fetched::Card(self.text_of(&mut answer, url).await?)),
                    status => Ok(Fetched::Nothing(status)),
                };
            }
        }
        let is_for_all = !(url.scheme() == "https" && self.http.has_client_certificate());
        match (answer.status(), known) {
            (304, Some(known)) => {
                let freshness = Freshness::read(&answer).or(known.freshness);
                self.cache.put(url, Stored { freshness, json: known.json.clone() });
                Ok(Fetched::Card(known.json))
            }
            (200, _) => {
                let freshness = Freshness::read(&answer);
                let json = self.text_of(&mut answer, url).await?;
                if is_for_all {
                    self.cache.put(url, Stored { freshness, json: json.clone() });
                }
                Ok(Fetched::Card(json))
            }
            (status, _) => Ok(Fetched::Nothing(status)),
        }
    }

    /// The body of an answer that should be a card.
    async fn text_of(&self, answer: &mut Answer, url: &Url) -> Result<String, Error> {
        let bytes = answer.bytes(self.limits.card).await.map_err(|error| no_card(error, url))?;
        as_text(bytes.into(), url)
    }

    /// Follows redirects, which never get credentials and never lead from https to http.
    async fn ask(&self, url: &Url, known: Option<&Stored>, with_credentials: bool) -> Result<Answer, Error> {
        let mut at = url.clone();
        for hop in 0..=MOST_REDIRECTS {
            let mut request = Request::get(at.clone(), self.timeouts.call, self.timeouts.idle);
            let accept = HeaderValue::from_static("application/json, application/a2a+json");
            request.headers.insert(header::ACCEPT, accept);
            if hop == 0 {
                known.into_iter().for_each(|known| known.freshness.ask(&mut request.headers));
                request.with_certificate = true;
                if with_credentials {
                    self.credentials.apply_without_card(&mut request).await?;
                }
            }
            let answer = self.http.send(request).await?;
            if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let next = answer.header(header::LOCATION).and_then(|location| at.join(location).ok());
            let Some(next) = next.filter(|next| Origin::of(next).is_some()) else {
                return Err(answer.fail(TransportKind::Redirected, "no address to go to"));
            };
            if at.scheme() == "https" && next.scheme() != "https" {
                let message = format!("refused to go from https to {}", without_secrets(&next));
                return Err(answer.fail(TransportKind::Redirected, message));
            }
            at = next;
        }
        let message = format!("more than {MOST_REDIRECTS} redirects");
        let url = without_secrets(url);
        Err(TransportError { kind: TransportKind::Redirected, url, message, reached: true }.into())
    }
}

enum Fetched {
    Card(String),
    /// With this status.
    Nothing(u16),
}

/// An answer came, but it is none that a card could be in.
fn no_card(error: Error, url: &Url) -> Error {
    match &error {
        Error::Transport(transport)
            if matches!(transport.kind, TransportKind::TooLarge | TransportKind::Malformed) =>
        {
            CardError::Invalid { at: without_secrets(url), problem: transport.message.clone() }.into()
        }
        _ => error,
    }
}

/// What is no text may still be something else than a card.
fn as_text(bytes: Vec<u8>, url: &Url) -> Result<String, Error> {
    String::from_utf8(bytes).or_else(|error| {
        let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
        match could_be_json(&lossy) {
            true => Err(CardError::Invalid {
                at: without_secrets(url),
                problem: format!("not UTF-8 ({})", error.utf8_error()),
            }
            .into()),
            false => Ok(lossy),
        }
    })
}

fn could_be_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn read_card(json: String, url: &Url) -> Result<Discovered, Error> {
    // A page for people: there is something at this address, but no card.
    if !could_be_json(&json) {
        let tried = format!("{} answered with something that is not JSON", without_secrets(url));
        return Err(CardError::NotFound { tried, status: Some(200) }.into());
    }
    let (generation, card) = read_any(&json)
        .map_err(|error| CardError::Invalid { at: without_secrets(url), problem: error.to_string() })?;
    Ok(Discovered { card, generation, json, url: Some(url.to_string()), file: None, origin: Origin::of(url) })
}

async fn from_file(path: &Path, limit: usize) -> Result<Discovered, Error> {
    let found = read_own(read_file(path, limit).await?, &path.display().to_string())?;
    let path = path.to_owned();
    let file = tokio::task::spawn_blocking(move || path.canonicalize()).await;
    Ok(Discovered { file: file.ok().and_then(Result::ok), ..found })
}

async fn read_file(path: &Path, limit: usize) -> Result<String, Error> {
    let at = path.display().to_string();
    let not_found =
        |error: std::io::Error| CardError::NotFound { tried: format!("{at}: {error}"), status: None };
    let path = path.to_owned();
    // One read more than the limit tells a file that is too large.
    let read = move || {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = tokio::task::spawn_blocking(read).await.map_err(|error| Error::Invalid(error.to_string()))?;
    let bytes = bytes.map_err(not_found)?;
    let invalid = |problem: String| CardError::Invalid { at: at.clone(), problem };
    if bytes.len() > limit {
        return Err(invalid(format!("larger than {limit} bytes")).into());
    }
    String::from_utf8(bytes).map_err(|error| invalid(error.to_string()).into())
}

fn read_own(json: String, at: &str) -> Result<Discovered, Error> {
    let invalid =
        |error: baton_protocol::Error| CardError::Invalid { at: at.to_owned(), problem: error.to_string() };
    let (generation, card) = read_any(&json).map_err(invalid)?;
    Ok(Discovered { card, generation, json, url: None, file: None, origin: None })
}
