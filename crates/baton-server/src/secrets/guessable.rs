//! Refuses master keys that somebody typed or made up. It finds the obvious ones only: whether a key is random cannot be seen
//! from the key. A key of `openssl rand` is refused by one of the rules with a chance below one in 500,000.

use super::master_key::BYTES;

/// 32 random bytes have fewer different values with a chance of 2^-54.
const DIFFERENT_BYTES: usize = 16;

/// The same for the 43 characters of their base64 form (2^-25), and for the 64 digits of their hexadecimal form (2^-30): numbers
/// have ten.
const DIFFERENT_CHARACTERS: usize = 20;
const DIFFERENT_DIGITS: usize = 11;

/// In base64, four in ten characters are small letters; in words nearly all are. So many of 43 are small with a chance of
/// 2^-21; and so many if all are letters, with 2^-20.
const SMALL_LETTERS: usize = 34;
const SMALL_AMONG_LETTERS: usize = 30;

/// `text` is how the bytes were given, in base64 or, if `is_hex`, in hexadecimal.
pub(super) fn is_guessable(text: &str, is_hex: bool, bytes: &[u8]) -> bool {
    let text = text.trim_end_matches('=').as_bytes();
    let few = if is_hex { DIFFERENT_DIGITS } else { DIFFERENT_CHARACTERS };
    let small = text.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    let most_small =
        if text.iter().all(u8::is_ascii_alphabetic) { SMALL_AMONG_LETTERS } else { SMALL_LETTERS };
    let is_made_of_words = !is_hex && small >= most_small;
    // A passphrase that was encoded.
    let is_text = bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    different(bytes) < DIFFERENT_BYTES
        || different(text) < few
        || is_made_of_words
        || is_text
        || repeats(bytes)
        || counts(bytes)
}

fn different(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// A pattern, again and again.
fn repeats(bytes: &[u8]) -> bool {
    (1..=BYTES / 2).any(|period| bytes.iter().zip(&bytes[period..]).all(|(one, later)| one == later))
}

/// Up or down, in equal steps.
fn counts(bytes: &[u8]) -> bool {
    let mut steps = bytes.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let first = steps.next();
    steps.all(|step| Some(step) == first)
}
