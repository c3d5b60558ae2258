//! The master key, which encrypts the secrets in the store, and the one that did so before.

use baton_server::{MasterKey, MasterKeys};

use super::environment::{FILE, Variables};
use super::problem::{Problem, Problems};
use super::schema::Config;
use super::setting::{Setting, Source};
use super::value::SecretText;

const KEY: &str = "master_key";
const OLD: &str = "master_key_old";

pub(super) fn read(config: &Config, variables: &Variables, problems: &mut Problems) -> Option<MasterKeys> {
    let old = parse(&config.master_key_old, OLD, variables, problems);
    if config.master_key.is_none() && config.master_key_old.is_some() {
        let text = "there is no new master key: set `master_key` (BATON_MASTER_KEY), too";
        problems.add(Problem::new(config.master_key_old.source().clone(), OLD, text));
    }
    let keys = MasterKeys::new(parse(&config.master_key, KEY, variables, problems)?);
    Some(old.into_iter().fold(keys, MasterKeys::with_old))
}

fn parse(
    setting: &Setting<Option<SecretText>>,
    key: &str,
    variables: &Variables,
    problems: &mut Problems,
) -> Option<MasterKey> {
    let place = setting.as_ref()?;
    let no_file = |reason| match setting.source() {
        // A common mistake: the key itself in place of the path.
        Source::Variable(name) if name.ends_with(FILE) => {
            format!("{reason}; the key itself belongs into {}", name.trim_end_matches(FILE))
        }
        _ => reason,
    };
    let read = place.read(variables).map_err(no_file).and_then(|secret| {
        MasterKey::parse(secret.reveal()).map_err(|bad| format!("{}{bad}", place.whence()))
    });
    let refused = |reason| problems.add(Problem::new(setting.source().clone(), key, reason));
    read.map_err(refused).ok()
}
