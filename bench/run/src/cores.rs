//! Pins the server to one core and the generator to another.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where a server may run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// The first core, alone.
    Own,
    /// Both; the generator is on the second one.
    Both,
}

/// The first two cores that we may use.
fn two() -> Result<(usize, usize), String> {
    let allowed = sched_getaffinity(None).map_err(|error| format!("cores: {error}"))?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    match (cores.next(), cores.next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err("the bench needs two cores: one for the server, one for the generator".to_owned()),
    }
}

/// The cores of a run, found before anything is pinned.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    server: usize,
    generator: usize,
}

impl Cores {
    pub fn find() -> Result<Self, String> {
        let (server, generator) = two()?;
        Ok(Cores { server, generator })
    }

    /// Starts a child on these cores: it inherits this thread's affinity.
    pub fn within<T>(self, place: Place, start: impl FnOnce() -> T) -> Result<T, String> {
        match place {
            Place::Own => pin(&[self.server])?,
            Place::Both => pin(&[self.server, self.generator])?,
        }
        let started = start();
        pin(&[self.generator])?;
        Ok(started)
    }
}

fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).map_err(|error| format!("cannot pin to a core: {error}"))
}
