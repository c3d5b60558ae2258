//! Makes new inputs from known ones.

use crate::json::{self, Pool};
use crate::random::Random;

/// The known inputs, and pieces of them.
#[derive(Debug)]
pub(crate) struct Mutator {
    inputs: Vec<Vec<u8>>,
    pool: Pool,
    /// Words of all inputs: member names, states, header names, keys of TOML and YAML.
    words: Vec<Vec<u8>>,
    lines: Vec<Vec<u8>>,
}

/// Longer inputs are cut, since they only take time.
const MOST_BYTES: usize = 64 * 1024;

impl Mutator {
    pub(crate) fn new(inputs: Vec<Vec<u8>>) -> Self {
        let (mut pool, mut words, mut lines) = (Pool::default(), Vec::new(), Vec::new());
        let add = |into: &mut Vec<Vec<u8>>, piece: &[u8]| {
            if !into.iter().any(|known| known == piece) {
                into.push(piece.to_owned());
            }
        };
        for input in &inputs {
            pool.add(input);
            for word in input.split(|byte| !byte.is_ascii_alphanumeric() && !b"_-./".contains(byte)) {
                if (2..=40).contains(&word.len()) {
                    add(&mut words, word);
                }
            }
            input.split_inclusive(|byte| *byte == b'\n').for_each(|line| add(&mut lines, line));
        }
        Mutator { inputs, pool, words, lines }
    }

    /// Another input, a few changes away from one that is known.
    pub(crate) fn next(&self, random: &mut Random) -> Vec<u8> {
        let mut input = random.pick(&self.inputs).cloned().unwrap_or_default();
        let most = if random.one_in(4) { 12 } else { 4 };
        let rounds = 1 + random.below(most);
        for _ in 0..rounds {
            let done = match random.below(10) {
                0..=5 => json::change(random, &self.pool, &mut input),
                6 => self.change_lines(random, &mut input),
                _ => false,
            };
            if !done {
                self.change_bytes(random, &mut input);
            }
        }
        input.truncate(MOST_BYTES);
        input
    }

    fn change_lines(&self, random: &mut Random, input: &mut Vec<u8>) -> bool {
        let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() < 2 {
            return false;
        }
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(4) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other]),
            2 => lines.swap(at, other),
            _ => lines.insert(at, random.pick(&self.lines).map(Vec::as_slice).unwrap_or_default()),
        }
        *input = lines.concat();
        true
    }

    fn change_bytes(&self, random: &mut Random, input: &mut Vec<u8>) {
        let at = random.below(input.len() + 1);
        let most = if random.one_in(5) { 64 } else { 4 };
        let length = (1 + random.below(most)).min(input.len() - at);
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..at + length)),
            3 => {
                let odd = *b"\0\t\n\r \"%&+,-./0:;=?[\\]{}\x7f\x80\xc3\xff";
                input.insert(at, odd[random.below(odd.len())]);
            }
            4 => {
                let again = input[at..at + length].repeat(1 + random.below(3));
                input.splice(at..at, again);
            }
            5 | 6 => {
                let word = random.pick(&self.words).cloned().unwrap_or_default();
                let end = if random.one_in(2) { at } else { at + length };
                input.splice(at..end, word);
            }
            7 => {
                // The beginning of this input and the end of another.
                let other = random.pick(&self.inputs).map(Vec::as_slice).unwrap_or_default();
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let numbers = ["0", "-1", "1", "255", "65536", "4294967296", "9223372036854775808", "1e9"];
                let number = random.pick(&numbers).copied().unwrap_or_default();
                let digits = input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(at..at + digits, number.bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_tells_all_inputs() {
        let mutator =
            Mutator::new(vec![br#"{"a":[1,2]}"#.to_vec(), b"x = 1\n[t]\ny = 2\n".to_vec(), Vec::new()]);
        let run = |seed| {
            let mut random = Random::new(seed);
            (0..500).map(|_| mutator.next(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let different: std::collections::HashSet<_> = run(7).into_iter().collect();
        assert!(different.len() > 300, "only {} different inputs of 500", different.len());
    }
}
