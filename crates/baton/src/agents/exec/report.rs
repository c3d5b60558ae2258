//! What the guard reports to the server about its program, one line per report.

use rustix::process::WaitStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// Started, with this process id.
    Started(i32),
    /// The system's error number.
    CannotStart(i32),
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
}

impl Report {
    pub(super) fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Report::Exited(code),
            (None, Some(signal)) => Report::Signaled(signal),
            // Neither exited nor signaled: a stop, which is never waited for.
            (None, None) => Report::Signaled(0),
        }
    }

    fn parts(self) -> (&'static str, i32) {
        match self {
            Report::Started(pid) => ("started", pid),
            Report::CannotStart(code) => ("cannot-start", code),
            Report::Exited(code) => ("exited", code),
            Report::Signaled(signal) => ("signaled", signal),
        }
    }

    pub(super) fn line(self) -> String {
        let (word, number) = self.parts();
        format!("{word} {number}\n")
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "started" => Some(Report::Started(number)),
            "cannot-start" => Some(Report::CannotStart(number)),
            "exited" => Some(Report::Exited(number)),
            "signaled" => Some(Report::Signaled(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_line() {
        for report in [Report::Started(1), Report::CannotStart(2), Report::Exited(255), Report::Signaled(9)] {
            assert_eq!(Report::parse(&report.line()), Some(report));
        }
        for odd in ["", "exited", "exited x", "left 1"] {
            assert_eq!(Report::parse(odd), None, "{odd}");
        }
    }
}
