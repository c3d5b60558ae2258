//! `baton demo-server`: serves the demo agent, whatever configuration is around.

use std::ffi::OsString;

use clap::FromArgMatches as _;

use crate::args::Settings;
use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoServer {
    /// Address and port to listen at; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000")]
    listen: String,
}

pub(crate) async fn run(args: DemoServer) -> Result<(), Failure> {
    let flags: [OsString; 5] =
        ["serve".into(), "--listen".into(), args.listen.into(), "--store".into(), "memory:".into()];
    let command = <Settings as clap::Args>::augment_args(clap::Command::new("serve"));
    let settings =
        command.try_get_matches_from(flags).and_then(|matches| Settings::from_arg_matches(&matches));
    let settings = settings.map_err(|error| Failure::usage(error.to_string()))?;
    Box::pin(super::serve::run_demo(settings)).await
}
