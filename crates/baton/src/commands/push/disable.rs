//! `baton push disable`.

use super::{Form, One, Reached, called};
use crate::commands::key::Place;
use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Disable {
    #[command(flatten)]
    which: One,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(args: Disable) -> Result<(), Failure> {
    let Disable { which, form, place } = args;
    let webhook = Reached::of(place).await?.disable(&which).await?;
    form.print(&webhook, || format!("{} is disabled; `baton push replay` opens it again\n", called(&webhook)))
}
