//! `baton man`: the manual pages, made from the help texts. For packagers, so it is not listed.

use std::path::PathBuf;

use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write the pages of all commands into this folder; without it, the page of `baton` goes to stdout.
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Man) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("no manual pages: {error}"));
    match &args.dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(failed)?;
            clap_mangen::generate_to(crate::args::command(), folder).map_err(failed)
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(crate::args::command()).render(&mut page).map_err(failed)?;
            super::print(&String::from_utf8_lossy(&page))
        }
    }
}
