//! `baton serve config show`: the values in effect, each with its source.

use crate::args::{Format, Settings};
use crate::config;
use crate::exit::Failure;

pub(crate) async fn run(settings: Settings, format: Format, all: bool) -> Result<(), Failure> {
    let loaded = settings.into_inputs().load().await;
    let loaded = loaded.map_err(|problems| Failure::usage(problems.to_string()))?;
    super::warn(&loaded.warnings);
    let mut config = loaded.config;
    super::print(&match format {
        Format::Toml => config::show_toml(&mut config, all),
        Format::Json => format!("{:#}\n", config::show_json(&mut config, all)),
    })
}
