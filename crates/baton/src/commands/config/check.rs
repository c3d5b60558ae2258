//! `baton config check`: all that `serve` would refuse, before anything is opened.

use crate::args::Settings;
use crate::config;
use crate::exit::Failure;

pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    let wrong = |problems: config::Problems| Failure::usage(problems.to_string());
    let loaded = settings.into_inputs().load().map_err(wrong)?;
    config::prove(&loaded.agents).await.map_err(wrong)?;
    super::warn(&loaded.warnings);
    super::print("ok\n")
}
