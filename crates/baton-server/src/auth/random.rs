//! Random bytes for secrets, from the operating system.

/// The operating system gave no random bytes, so no secret can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random numbers")]
#[non_exhaustive]
pub struct NoRandomNumbers;

pub(crate) fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], NoRandomNumbers> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(bytes)
}
