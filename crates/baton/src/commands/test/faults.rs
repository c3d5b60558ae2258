//! `--faults`: the same checks on a bad network.

use baton_lab::case::Outcome;
use baton_lab::fault::trial::{Kind, Trial, UnderFaults, Wanted};
use baton_lab::plan::Planned;

use super::terminal;
use crate::exit::Failure;

/// The value of `--faults`; `None` if it was not given.
pub(super) fn wanted(words: &[String]) -> Result<Option<Wanted>, Failure> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut wanted = Wanted { kinds: Vec::new(), all: false };
    for word in words {
        match word.as_str() {
            "some" => {}
            "all" => wanted.all = true,
            name => match name.parse::<Kind>() {
                Ok(kind) if wanted.kinds.contains(&kind) => {}
                Ok(kind) => wanted.kinds.push(kind),
                Err(why) => return Err(Failure::usage(format!("--faults: {why}; `all` takes all checks"))),
            },
        }
    }
    if wanted.kinds.is_empty() {
        wanted.kinds = Kind::ALL.to_vec();
    }
    Ok(Some(wanted))
}

/// Runs the checks under faults; after an interrupt, the results without faults are kept.
pub(super) async fn run(
    trial: &Trial,
    plan: &[Planned],
    plain: &[Outcome],
    shown: bool,
) -> Result<(Option<UnderFaults>, Option<String>), Failure> {
    let tell = |kind: Kind, checks: usize| {
        if shown {
            terminal::say(&format!("under faults: {kind} ({}), {checks} checks", kind.sentence()));
        }
    };
    tokio::select! {
        under = trial.run(plan, plain, tell) => match under {
            Ok(under) => Ok((Some(under), None)),
            Err(why) => Err(Failure::usage(format!("--faults: {why}"))),
        },
        _ = tokio::signal::ctrl_c() => Ok((None, Some("interrupted while checks ran under faults".to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_faults_and_checks() {
        let wanted =
            |words: &[&str]| wanted(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(wanted(&[]).unwrap().is_none());
        let some = wanted(&["some"]).unwrap().unwrap();
        assert!(!some.all && some.kinds == Kind::ALL);
        assert!(wanted(&["all"]).unwrap().unwrap().all);
        let chosen = wanted(&["all", "split", "split", "half-close"]).unwrap().unwrap();
        assert!(chosen.all && chosen.kinds == [Kind::Split, Kind::HalfClose]);
        wanted(&["spilt"]).unwrap_err();
    }
}
