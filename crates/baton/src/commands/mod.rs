//! One file per command.

mod card_file;
pub(crate) mod serve;
pub(crate) mod test;
