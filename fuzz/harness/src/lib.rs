//! Runs fuzz targets inside the crates' own test binaries.
//!
//! A target is a function that takes any bytes and panics if a property does not hold. The functions are in the crates,
//! beside the code they check (`fuzz` modules); `cargo xtask fuzz` gives the same functions to libFuzzer. Here they get
//! their corpora, and then mutated inputs for a few seconds: enough to find what a change has broken, on every machine
//! with a compiler.
//!
//! | variable | |
//! |---|---|
//! | `BATON_FUZZ_TIME` | how long new inputs are tried, in seconds; 5 |
//! | `BATON_FUZZ_SEED` | the seed of new inputs, which every run prints; default: the clock if a time was given, else 1 |
//! | `BATON_FUZZ_INPUT` | a file: this input and no other |
//! | `BATON_FUZZ_RESULTS` | a folder for one line of figures per target |

#![allow(clippy::print_stderr, reason = "a test says on stderr what it did")]

mod corpus;
mod json;
mod mutate;
mod random;
mod watch;

use std::fmt::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

pub use corpus::{Row, rows};

use mutate::Mutator;
use random::Random;
use watch::Watch;

/// Panics if a property does not hold.
pub type Check = fn(&[u8]);

const USUAL_TIME: Duration = Duration::from_secs(5);
/// How long the shrinking of a failed input may take.
const SHRINKING: Duration = Duration::from_secs(5);

/// Runs one of a crate's targets.
pub fn run(targets: &[(&str, Check)], name: &str) {
    let check = targets.iter().find(|(known, _)| *known == name).map(|(_, check)| *check);
    let check = check.unwrap_or_else(|| panic!("no target `{name}` in the crate's table"));
    let row = rows().into_iter().find(|row| row.name == name);
    let row = row.unwrap_or_else(|| panic!("fuzz/targets.tsv has no line for `{name}`"));
    if let Some(file) = env::var_os("BATON_FUZZ_INPUT") {
        let input = fs::read(&file).unwrap_or_else(|error| panic!("BATON_FUZZ_INPUT: {error}"));
        return check(&input);
    }
    Run { row, check, watch: Watch::start(name), slowest: Duration::ZERO }.all();
}

/// Checks that the crate's table and `fuzz/targets.tsv` have the same targets, and that a test runs each of them.
pub fn agree(package: &str, targets: &[(&str, Check)], tested: &[&str]) {
    let listed: Vec<String> =
        rows().into_iter().filter(|row| row.package == package).map(|row| row.name).collect();
    let own: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, own, "fuzz/targets.tsv, and the table of {package}");
    assert_eq!(own, tested, "the table of {package}, and its tests");
}

/// Makes one test per target, named after it, and one that checks that none is missing.
#[macro_export]
macro_rules! tests {
    ($targets:path: $($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                $crate::run($targets, stringify!($name));
            }
        )+

        #[test]
        fn every_target_is_listed_and_run() {
            $crate::agree(env!("CARGO_PKG_NAME"), $targets, &[$(stringify!($name)),+]);
        }
    };
}

struct Run {
    row: Row,
    check: Check,
    watch: Watch,
    slowest: Duration,
}

impl Run {
    fn all(mut self) {
        let asked = number("BATON_FUZZ_TIME");
        // The test command tries the same inputs each time, so that a failure is caused by the change being tested.
        let seed = number("BATON_FUZZ_SEED").unwrap_or_else(|| match asked {
            Some(_) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                now.as_nanos() as u64
            }
            None => 1,
        });
        let time = asked.map_or(USUAL_TIME, Duration::from_secs);
        eprintln!("{}: BATON_FUZZ_SEED={seed}", self.row.name);

        let started = Instant::now();
        let corpus = corpus::inputs(&self.row);
        assert!(!corpus.is_empty(), "{} has nothing to start from", self.row.name);
        let empty = (PathBuf::from("the empty input"), Vec::new());
        for (path, input) in corpus.iter().chain([&empty]) {
            self.try_one(input, &format!("{} failed", path.display()));
        }

        let mut random = Random::new(seed);
        let inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
        let files = inputs.len();
        let mutator = Mutator::new(inputs);
        // The time limit starts after the corpora were replayed.
        let begun = Instant::now();
        let mut count = 0_u64;
        while begun.elapsed() < time {
            let input = mutator.next(&mut random);
            count += 1;
            self.try_one(&input, &format!("new input {count} failed with BATON_FUZZ_SEED={seed}"));
        }
        let figures = format!(
            "{}\t{}\t{:.1}\t{files}\t{:.1}",
            self.row.name,
            count + files as u64 + 1,
            started.elapsed().as_secs_f64(),
            self.slowest.as_secs_f64() * 1000.0,
        );
        eprintln!("{figures}");
        if let Some(folder) = env::var_os("BATON_FUZZ_RESULTS") {
            let path = Path::new(&folder).join(&self.row.name);
            fs::write(&path, figures + "\n").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    fn try_one(&mut self, input: &[u8], failed: &str) {
        self.watch.begins(input);
        let started = Instant::now();
        let result = panic::catch_unwind(AssertUnwindSafe(|| (self.check)(input)));
        self.slowest = self.slowest.max(started.elapsed());
        self.watch.ended();
        let Err(cause) = result else { return };
        let small = smaller(self.check, input);
        let file = save(&self.row.name, &small);
        let Row { name, package, .. } = &self.row;
        eprintln!(
            "\n{name}: {failed}\n{} bytes, made smaller from {}: {}\nto try it again: \
             BATON_FUZZ_INPUT={} cargo nextest run -p {package} fuzz::tests::{name}\nto keep it: copy it into \
             fuzz/regressions/{name}/\n",
            small.len(),
            input.len(),
            shown(&small),
            file.display()
        );
        panic::resume_unwind(cause);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.trim_end_matches('s')
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

/// A shorter input that also fails, possibly for another reason.
fn smaller(check: Check, input: &[u8]) -> Vec<u8> {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let fails = |input: &[u8]| panic::catch_unwind(AssertUnwindSafe(|| check(input))).is_err();
    let (started, mut best) = (Instant::now(), input.to_vec());
    let mut piece = best.len().div_ceil(2);
    while piece > 0 && started.elapsed() < SHRINKING {
        let (mut at, before) = (0, best.len());
        while at < best.len() && started.elapsed() < SHRINKING {
            let mut without = best.clone();
            without.drain(at..(at + piece).min(best.len()));
            if fails(&without) {
                best = without;
            } else {
                at += piece;
            }
        }
        if best.len() == before {
            piece /= 2;
        }
    }
    panic::set_hook(usual);
    best
}

/// Saves an input and returns its file. The name is a hash of the bytes, so that the same input is one file.
fn save(name: &str, input: &[u8]) -> PathBuf {
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folder = corpus::root().join("target/fuzz/failures").join(name);
    let file = folder.join(format!("{hash:016x}"));
    if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)) {
        eprintln!("{}: {error}", file.display());
    }
    file
}

/// As a byte string literal.
fn shown(input: &[u8]) -> String {
    const MOST: usize = 600;
    let mut text = format!("b\"{}\"", input[..input.len().min(MOST)].escape_ascii());
    if input.len() > MOST {
        write!(text, " and {} more", input.len() - MOST).expect("into memory");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_input_is_made_small() {
        fn check(input: &[u8]) {
            assert!(!(input.contains(&b'a') && input.contains(&b'z')));
        }
        assert_eq!(smaller(check, b"..a.....................................z.."), b"az");
    }

    #[test]
    fn every_target_has_a_line_and_something_to_start_from() {
        let rows = rows();
        assert!(rows.len() > 10);
        for row in rows {
            assert!(!corpus::inputs(&row).is_empty(), "{}", row.name);
        }
    }
}
