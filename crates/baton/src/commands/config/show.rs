//! `baton config show`: the client's settings in effect, each with its source.

use serde_json::{Map, Value, json};

use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::settings::Key;
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct ConfigShow {
    /// The server's configuration is shown by `baton serve config show`.
    #[arg(long, hide = true)]
    format: Option<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: ConfigShow) -> Result<(), Failure> {
    let server = args.format.is_some();
    client::run(&args.options, async |call| match server {
        true => Err(CallError::usage("`baton config show` is about the client now, and has no --format")
            .with_hint("baton serve config show")),
        false => show(call),
    })
    .await
}

fn show(call: &Call) -> Result<(), CallError> {
    let shown: Vec<_> = Key::all().filter_map(|key| Some((key, call.settings.shown(key)?))).collect();
    let object: Map<String, Value> = shown
        .iter()
        .map(|(key, (value, source))| {
            (key.flag().to_owned(), json!({"value": value, "source": source.to_string()}))
        })
        .collect();
    call.output.result(&Value::Object(object).to_string(), || {
        let mut section = Section::default();
        for (key, (value, source)) in &shown {
            section.field("Setting", format!("{}={value} source={source}", key.flag()));
        }
        Ok(section.end())
    })
}
