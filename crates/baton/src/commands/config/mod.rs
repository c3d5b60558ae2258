//! `baton config …`: the settings of the client. The configuration of the server is `baton serve config …`.

mod show;

use crate::client::error::CallError;
use crate::client::settings::Format;
use crate::exit::Failure;
use crate::output;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print the settings in effect and where each comes from; secrets are hidden.
    Show(Box<show::ConfigShow>),
    /// Moved to `baton serve config check`.
    #[command(hide = true)]
    Check(Moved),
    /// Moved to `baton serve config default`.
    #[command(hide = true)]
    Default(Moved),
}

/// Whatever follows.
#[derive(Debug, clap::Args)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) async fn run(verb: ConfigVerb) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Show(args) => show::run(*args).await,
        ConfigVerb::Check(moved) => Err(moved.report("check")),
        ConfigVerb::Default(moved) => Err(moved.report("default")),
    }
}

impl Moved {
    fn report(&self, verb: &str) -> Failure {
        let words: Vec<String> = self.rest.iter().map(|word| output::task::shell_word(word)).collect();
        let hint = format!("baton serve config {verb} {}", words.join(" "));
        let error =
            CallError::usage("`baton config` is about the client now; the server's is `baton serve config`");
        let error = error.with_hint(hint.trim_end());
        output::error::report(&error, Format::Text, false, "");
        Failure::reported(error.code.exit_status())
    }
}
