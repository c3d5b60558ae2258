//! `baton serve config default`: the file that documents every key.

use crate::config::DEFAULT_FILE;
use crate::exit::Failure;

pub(crate) fn run() -> Result<(), Failure> {
    super::print(DEFAULT_FILE)
}
