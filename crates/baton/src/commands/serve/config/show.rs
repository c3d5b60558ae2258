//! `baton serve config show`: the values in effect, each with its source.

use crate::args::{Format, Settings};
use crate::commands::serve::resolve;
use crate::commands::serve::webhooks::Webhooks;
use crate::config::{self, Loaded, Source};
use crate::exit::Failure;

pub(crate) async fn run(settings: Settings, format: Format, all: bool) -> Result<(), Failure> {
    let loaded = settings.into_inputs().load().await;
    let mut loaded = loaded.map_err(|problems| Failure::usage(problems.to_string()))?;
    super::warn(&loaded.warnings);
    decide(&mut loaded).await;
    let mut config = loaded.config;
    super::print(&match format {
        Format::Toml => config::show_toml(&mut config, all),
        Format::Json => format!("{:#}\n", config::show_json(&mut config, all)),
    })
}

/// Fills in what `serve` decides about webhooks if nobody says it. Without an address it is not known.
async fn decide(loaded: &mut Loaded) {
    let Ok(addresses) = resolve(&loaded.config).await else { return };
    let decided = Webhooks::of(loaded, &addresses);
    let push = &mut loaded.config.push;
    if push.enabled.is_none() {
        push.enabled.replace(Some(decided.enabled), Source::Default);
    }
    if push.development.is_none() {
        push.development.replace(Some(decided.development), Source::Default);
    }
}
