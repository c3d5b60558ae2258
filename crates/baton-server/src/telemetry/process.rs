//! Metrics of the process, under the names that all Prometheus clients use. They are read from `/proc` on Linux; elsewhere
//! only the start time is known.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The values that could be read; the others are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Process {
    pub(crate) start_seconds: f64,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) max_files: Option<u64>,
}

/// Ticks per second in `/proc/self/stat`: the kernel always reports 100 to user programs.
const TICKS: f64 = 100.0;

impl Process {
    /// Reads the values. `started` is used if the system does not tell when the process began.
    pub(crate) fn read(started: SystemTime) -> Self {
        let read = |name: &str| std::fs::read_to_string(name).ok();
        let stat = read("/proc/self/stat").and_then(|text| Stat::parse(&text));
        let up = read("/proc/uptime").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let age = stat.zip(up).map(|(stat, up)| (up - stat.start_ticks / TICKS).max(0.0));
        let born = age.and_then(|age| SystemTime::now().checked_sub(Duration::from_secs_f64(age)));
        let since = born.unwrap_or(started).duration_since(UNIX_EPOCH).unwrap_or_default();
        let status = read("/proc/self/status");
        let limits = read("/proc/self/limits");
        // Minus the descriptor that reading this folder opens.
        let open =
            std::fs::read_dir("/proc/self/fd").ok().map(|list| (list.count() as u64).saturating_sub(1));
        Process {
            start_seconds: (since.as_secs_f64() * 100.0).round() / 100.0,
            cpu_seconds: stat.map(|stat| stat.cpu_ticks / TICKS),
            resident_bytes: status.and_then(|text| number_after(&text, "VmRSS:")).map(|kilo| kilo * 1024),
            open_files: open,
            max_files: limits.and_then(|text| number_after(&text, "Max open files")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
}

impl Stat {
    /// Fields are counted after the program's name, which may contain spaces and brackets.
    fn parse(text: &str) -> Option<Self> {
        let after_name = text.get(text.rfind(')')? + 1..)?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Stat { cpu_ticks: field(11)? + field(12)?, start_ticks: field(19)? })
    }
}

/// The first number after a name at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";
        // Behind the state: 10 numbers, then user and system ticks (11, 12), and the start (19).
        let expected = Some(Stat { cpu_ticks: 11.0 + 12.0, start_ticks: 19.0 });
        for name in ["baton", "a b", "a) (b", ")"] {
            assert_eq!(Stat::parse(&format!("42 ({name}) {fields}")), expected, "{name}");
        }
        assert_eq!(Stat::parse("42 (baton) S 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_seen() {
        let process = Process::read(UNIX_EPOCH);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(
            process.start_seconds > now - 24.0 * 3600.0 && process.start_seconds <= now + 1.0,
            "{process:?}"
        );
        assert!(process.resident_bytes.unwrap() > 1024 * 1024);
        assert!(process.open_files.unwrap() > 0 && process.max_files.unwrap() >= process.open_files.unwrap());
        assert!(process.cpu_seconds.is_some());
    }
}
