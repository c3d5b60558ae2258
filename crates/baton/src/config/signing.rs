//! Reads the key that signs cards, and the keys that are published beside it.

use baton_server::card::{BadSigningKey, CardSigning, SigningKey};

use super::environment::Variables;
use super::file::text_of;
use super::problem::{Problem, Problems};
use super::schema::Config;
use super::tls::is_for_everybody;
use super::value::SecretText;

/// `None` without `signing.key`, or if something is wrong with it.
pub(super) fn read(
    config: &Config,
    variables: &Variables,
    problems: &mut Problems,
    warnings: &mut Vec<String>,
) -> Option<CardSigning> {
    let signing = &config.signing;
    let Some(place) = signing.key.as_ref() else {
        let alone = [
            ("signing.key_id", signing.key_id.source(), signing.key_id.is_some()),
            ("signing.published_keys", signing.published_keys.source(), signing.published_keys.is_some()),
        ];
        for (key, source, _) in alone.into_iter().filter(|(.., is_set)| *is_set) {
            problems.add(Problem::new(source.clone(), key, "nothing is signed: set `signing.key`, too"));
        }
        return None;
    };
    let mut refuse = |key: &str, text: String| {
        problems.add(Problem::new(signing.key.source().clone(), key, text));
    };
    if config.public_url.is_none() {
        let text = "signed cards need `public_url` (--public-url), the address that clients use: otherwise the addresses \
                    on a card come from requests, and whoever sends one would choose what is signed";
        refuse("signing.key", text.to_owned());
    }
    let id = signing.key_id.as_ref().map(|id| (**id).to_owned());
    let key = place.read_lines(variables).and_then(|secret| {
        let read = SigningKey::read(secret.reveal(), id.as_deref());
        read.map_err(|bad| format!("{}{bad}", place.whence()))
    });
    let key = key.map_err(|text| refuse("signing.key", text)).ok()?;
    if let SecretText::File(file) = place
        && is_for_everybody(file)
    {
        let file = file.display();
        warnings.push(format!("every user of this machine can read the key {file}: `chmod 600 {file}`"));
    }
    let made = CardSigning::new(key);
    let Some(file) = signing.published_keys.as_ref() else { return Some(made) };
    let published = text_of(file)
        .and_then(|text| made.publish(&text).map_err(|bad: BadSigningKey| bad.to_string()))
        .map_err(|reason| format!("{}: {reason}", file.display()));
    let refused = |text| {
        problems.add(Problem::new(signing.published_keys.source().clone(), "signing.published_keys", text));
    };
    published.map_err(refused).ok()
}
