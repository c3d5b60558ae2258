//! The reason that a client gets when a program has failed.

use std::io;

use rustix::process::Signal;

use super::process::Ended;

/// `Ok` for an exit with 0. Otherwise the reason, with the last lines of stderr if clients may see them (`shown`):
/// stderr can contain keys, paths and other people's data.
pub(super) fn judge(ended: Ended, shown: Option<&[String]>) -> Result<(), String> {
    let reason = match ended {
        Ended::Exited(0) => return Ok(()),
        Ended::Exited(code) => format!("The agent's program exited with {code}"),
        Ended::Signaled(signal) => match name(signal) {
            Some(name) => format!("The agent's program was ended by signal {signal} ({name})"),
            None => format!("The agent's program was ended by signal {signal}"),
        },
        Ended::CannotStart(code) => {
            let error = io::Error::from_raw_os_error(code);
            format!("The agent's program could not be started: {error}")
        }
        Ended::Unguarded => "The agent's program was ended from outside".to_owned(),
    };
    match shown {
        None => Err(format!("{reason}; see the server's log")),
        Some([]) => Err(reason),
        Some([line]) => Err(format!("{reason}: {line}")),
        Some(lines) => Err(format!("{reason}:\n{}", lines.join("\n"))),
    }
}

fn name(signal: i32) -> Option<&'static str> {
    let named = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    named.into_iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_told() {
        let words = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(judge(Ended::Exited(0), Some(&words(&["a warning"]))), Ok(()));
        assert_eq!(judge(Ended::Exited(0), None), Ok(()));
        let unshown = judge(Ended::Exited(3), None);
        assert_eq!(unshown, Err("The agent's program exited with 3; see the server's log".to_owned()));
        for (ended, last_lines, expected) in [
            (Ended::Exited(3), words(&[]), "The agent's program exited with 3"),
            (Ended::Exited(3), words(&["no such city"]), "The agent's program exited with 3: no such city"),
            (Ended::Exited(1), words(&["a", "b"]), "The agent's program exited with 1:\na\nb"),
            (Ended::Signaled(9), words(&[]), "The agent's program was ended by signal 9 (SIGKILL)"),
            (Ended::Signaled(99), words(&[]), "The agent's program was ended by signal 99"),
            (Ended::Unguarded, words(&[]), "The agent's program was ended from outside"),
        ] {
            assert_eq!(judge(ended, Some(&last_lines)), Err(expected.to_owned()));
        }
        let reason = judge(Ended::CannotStart(2), Some(&[])).unwrap_err();
        assert!(reason.contains("could not be started: No such file"), "{reason}");
    }
}
