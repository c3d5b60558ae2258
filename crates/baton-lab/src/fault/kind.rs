//! The faults, and their text form: `split`, `delay=20ms`, `stall=2s@4096`, `cut@1000/up`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest time of a fault: a proxy that hangs for a day tests nothing.
const LONGEST: Duration = Duration::from_secs(600);
/// The default times of `delay` and `stall`.
const USUAL_DELAY: Duration = Duration::from_millis(20);
const USUAL_STALL: Duration = Duration::from_secs(1);

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// One kind of fault. If no position is given, it is random for each connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Forwards in small pieces, each in a write of its own, of at most `most` bytes if given.
    Split { most: Option<u32> },
    /// Delays everything.
    Delay { time: Duration },
    /// Forwards at most `rate` bytes per second.
    Slow { rate: u32 },
    /// After `at` bytes, forwards nothing for a time, once.
    Stall { time: Duration, at: Option<u64> },
    /// After `at` bytes, closes both connections (FIN).
    Cut { at: Option<u64> },
    /// After `at` bytes, resets both connections (RST).
    Reset { at: Option<u64> },
    /// After `at` bytes, closes this direction and keeps the other open.
    HalfClose { at: Option<u64> },
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Self::Split { .. } => "split",
            Self::Delay { .. } => "delay",
            Self::Slow { .. } => "slow",
            Self::Stall { .. } => "stall",
            Self::Cut { .. } => "cut",
            Self::Reset { .. } => "reset",
            Self::HalfClose { .. } => "half-close",
        }
    }

    /// The position of the fault, if it has one.
    pub fn at(self) -> Option<u64> {
        match self {
            Self::Split { .. } | Self::Delay { .. } | Self::Slow { .. } => None,
            Self::Stall { at, .. } | Self::Cut { at } | Self::Reset { at } | Self::HalfClose { at } => at,
        }
    }
}

/// An action and the direction it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub action: Action,
    /// `None`: both directions, each with its own position; for a cut, the first to reach it.
    pub side: Option<Side>,
}

impl Fault {
    pub fn new(action: Action) -> Self {
        // Half-closing usually means that a client has sent everything and closes its side.
        let side = matches!(action, Action::HalfClose { .. }).then_some(Side::Up);
        Fault { action, side }
    }

    pub fn hits(self, side: Side) -> bool {
        self.side.is_none_or(|own| own == side)
    }
}

/// The faults of one connection: one, or several together (`split+delay=20ms`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe(pub Vec<Fault>);

const FORMS: &str = "split[=BYTES], delay=TIME, slow=BYTES (in a second), stall=TIME[@BYTES], cut[@BYTES], \
                     reset[@BYTES], half-close[@BYTES], each with /up or /down for one direction, joined by + to come \
                     together";

impl FromStr for Recipe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split('+').map(str::parse).collect::<Result<_, _>>().map(Recipe)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`: {why}; write {FORMS}");
        let (rest, side) = match text.trim().split_once('/') {
            Some((rest, "up")) => (rest, Some(Side::Up)),
            Some((rest, "down")) => (rest, Some(Side::Down)),
            Some(_) => return Err(wrong("the direction is `up` (to the server) or `down`")),
            None => (text.trim(), None),
        };
        let (rest, at) = match rest.split_once('@') {
            Some((rest, at)) => {
                let at = at.parse().map_err(|_| wrong("after `@` comes a number of bytes"))?;
                (rest, Some(at))
            }
            None => (rest, None),
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        let time = |usual: Duration| match value {
            Some(value) => {
                time(value).ok_or_else(|| wrong("write a time such as 20ms or 2s, up to 10 minutes"))
            }
            None => Ok(usual),
        };
        let action = match name {
            "split" => {
                let most = value.map(|value| value.parse().ok().filter(|most| *most > 0));
                let most =
                    most.map(|most| most.ok_or_else(|| wrong("the size of a piece is a number from 1")));
                Action::Split { most: most.transpose()? }
            }
            "delay" => Action::Delay { time: time(USUAL_DELAY)? },
            "slow" => {
                let rate = value.and_then(|value| value.parse().ok()).filter(|rate| *rate > 0);
                Action::Slow { rate: rate.ok_or_else(|| wrong("say how many bytes go on in a second"))? }
            }
            "stall" => Action::Stall { time: time(USUAL_STALL)?, at },
            "cut" => Action::Cut { at },
            "reset" => Action::Reset { at },
            "half-close" => Action::HalfClose { at },
            _ => return Err(wrong("there is no such fault")),
        };
        if at.is_some() && action.at().is_none() {
            return Err(wrong("this one happens everywhere and takes no `@`"));
        }
        if value.is_some() && matches!(name, "cut" | "reset" | "half-close") {
            return Err(wrong("this one takes no `=`"));
        }
        let usual = Fault::new(action);
        Ok(Fault { side: side.or(usual.side), ..usual })
    }
}

fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let time = match &text[digits..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    (time <= LONGEST).then_some(time)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.name())?;
        match self.action {
            Action::Split { most: Some(size) } | Action::Slow { rate: size } => write!(f, "={size}")?,
            Action::Delay { time } | Action::Stall { time, .. } => write!(f, "={}ms", time.as_millis())?,
            _ => {}
        }
        if let Some(at) = self.action.at() {
            write!(f, "@{at}")?;
        }
        match self.side {
            Some(side) if self.side != Fault::new(self.action).side => write!(f, "/{}", side.name()),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index == 0 { "" } else { "+" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_people_write_them() {
        for (text, shown) in [
            ("split", "split"),
            ("split=1", "split=1"),
            ("delay=20ms", "delay=20ms"),
            ("delay", "delay=20ms"),
            ("slow=100/down", "slow=100/down"),
            ("stall=2s@4096", "stall=2000ms@4096"),
            ("stall=1m/down", "stall=60000ms/down"),
            ("cut@1000", "cut@1000"),
            ("cut@0/up", "cut@0/up"),
            ("reset", "reset"),
            ("half-close@9", "half-close@9"),
            ("half-close/down", "half-close/down"),
            ("split+delay=5ms/up", "split+delay=5ms/up"),
        ] {
            assert_eq!(text.parse::<Recipe>().unwrap().to_string(), shown, "{text}");
        }
        for bad in [
            "",
            "spilt",
            "split=0",
            "split=x",
            "split@4",
            "delay=20",
            "delay=2s@9",
            "slow",
            "slow=0",
            "slow=1@2",
            "stall=1h",
            "stall=11m",
            "cut=3",
            "cut@",
            "cut@-1",
            "cut@1/left",
            "split+",
            "half-close=1s",
        ] {
            let why = bad.parse::<Recipe>().unwrap_err();
            assert!(why.contains("half-close[@BYTES]"), "{bad}: {why}");
        }
    }

    #[test]
    fn a_direction_is_meant_or_both() {
        let fault = |text: &str| text.parse::<Fault>().unwrap();
        assert!(fault("cut").hits(Side::Up) && fault("cut").hits(Side::Down));
        assert!(fault("cut/down").hits(Side::Down) && !fault("cut/down").hits(Side::Up));
        assert!(!fault("half-close").hits(Side::Down));
    }
}
