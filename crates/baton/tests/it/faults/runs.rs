//! A run: its seed, its length, and where its figures go.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long anything may take before a test counts as hung.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// xorshift: all the randomness a fault needs, and it replays.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len() as u64) as usize]
    }
}

/// One run of one kind of fault.
pub(crate) struct Run {
    kind: &'static str,
    pub(crate) seed: u64,
    /// The long form.
    pub(crate) full: bool,
    began: Instant,
    figures: Vec<(String, String)>,
}

impl Run {
    pub(crate) fn begin(kind: &'static str) -> Self {
        let seed = std::env::var("BATON_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1);
        let full = std::env::var_os("BATON_FAULTS_FULL").is_some();
        say(&format!("{kind}: seed {seed} (BATON_SEED={seed} repeats it)"));
        Run { kind, seed, full, began: Instant::now(), figures: Vec::new() }
    }

    /// So many in the test command, so many at length.
    pub(crate) fn count(&self, short: u64, long: u64) -> u64 {
        if self.full { long } else { short }
    }

    pub(crate) fn random(&self) -> Random {
        Random::new(self.seed)
    }

    pub(crate) fn figure(&mut self, name: &str, value: impl std::fmt::Display) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    /// Says what came out, and leaves it for `cargo xtask faults`.
    pub(crate) fn end(mut self) {
        self.figure("time", format!("{:.0} s", self.began.elapsed().as_secs_f64()));
        let figures: Vec<_> = self.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        say(&format!("{}: {}", self.kind, figures.join("; ")));
        let Some(folder) = std::env::var_os("BATON_FAULTS_RESULTS") else { return };
        let mut text = format!("seed\t{}\n", self.seed);
        for (name, value) in &self.figures {
            text += &format!("{name}\t{value}\n");
        }
        fs::write(Path::new(&folder).join(format!("{}.tsv", self.kind)), text).unwrap();
    }

    /// Where something is left to be looked at after a failure.
    pub(crate) fn leave(&self, name: &str, text: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}-{}-{name}", self.kind, self.seed));
        fs::write(&path, text).unwrap();
        path
    }
}

/// For whoever reads the test's output.
#[allow(clippy::print_stdout, reason = "a run must tell its seed, or nobody can repeat it")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
