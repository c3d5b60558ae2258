//! Judging clients: agents that follow a script, right or faulty, and say of the client that called them whether it
//! kept to the protocol.
//!
//! Each script has an address of its own and a task for the client (*send any message*, *answer the question*). What
//! comes over the wire is kept, and judged in the end by [`rules`]: a rule is a case like those of the suites, with
//! requirement, section and remedy, so that reports are the same. Some rules ask how the client came out of it; they
//! need a command that can be run (see [`Ran`]), everything else can be seen from here.
//!
//! | module | holds |
//! |---|---|
//! | [`script`], `card`, `play`, `frames`, `spell` | the scripted agents |
//! | `server`, `stage`, [`heard`] | their sockets, their state, what they heard |
//! | [`rules`], `verdict` | what is judged |

mod card;
mod frames;
pub mod heard;
mod play;
mod refusal;
pub mod rules;
pub mod script;
mod server;
mod spell;
mod stage;
mod variant;
mod verdict;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::case::{Case, Outcome};

pub use script::{Credential, Does, Ends, SCRIPTS, Script};
pub use stage::Ran;
pub use variant::Variant;

/// Scripted agents, being served.
#[derive(Debug)]
pub struct Judge {
    house: Arc<server::House>,
}

/// One script, as a client has to know it.
#[derive(Debug, Clone)]
pub struct Play {
    pub variant: Variant,
    pub script: &'static Script,
    /// The agent's address.
    pub url: String,
    /// The secret the client is given, where the script asks for one.
    pub secret: Option<(Credential, String)>,
}

impl Judge {
    /// Serves the scripts that fit each of the variants.
    pub async fn start(
        listener: TcpListener,
        variants: &[Variant],
        scripts: &[&'static Script],
    ) -> io::Result<Self> {
        let plays = variants.iter().flat_map(|variant| scripts.iter().map(|script| (*variant, *script)));
        let fitting: Vec<_> = plays.filter(|(variant, script)| script.fits(*variant)).collect();
        Ok(Judge { house: server::open(listener, fitting).await? })
    }

    /// Where it is; `/` there lists the scripts.
    pub fn url(&self) -> &str {
        &self.house.home
    }

    /// All scripts with what a client is to do, as text.
    pub fn index(&self) -> String {
        self.house.index()
    }

    /// What there is, in the order of the scripts.
    pub fn plays(&self) -> Vec<Play> {
        let mut plays: Vec<Play> = self
            .house
            .stages()
            .map(|stage| {
                let stage = server::held(stage);
                let (variant, script) = (stage.variant, stage.script);
                let url = format!("{}/{variant}/{}", self.house.home, script.name);
                let secret = script.credential().map(|credential| (credential, stage.secret()));
                Play { variant, script, url, secret }
            })
            .collect();
        let place = |play: &Play| SCRIPTS.iter().position(|script| script.name == play.script.name);
        plays.sort_by_key(|play| (play.variant, place(play)));
        plays
    }

    /// Puts one script's card at the root, too: some clients look nowhere else.
    pub fn put_at_root(&self, play: Option<&Play>) {
        self.house.put_at_root(play.map(|play| (play.variant, play.script)));
    }

    /// How the client's command ended on a script.
    pub fn ended(&self, play: &Play, ran: Ran) {
        if let Some(stage) = self.house.stage(play.variant, play.script.name) {
            server::held(stage).ran = Some(ran);
        }
    }

    /// How long nobody has called; `None` before the first call.
    pub fn quiet_for(&self) -> Option<Duration> {
        self.house.last_heard().map(|last| last.elapsed())
    }

    /// What is to be said of the client, by the rules that are wanted.
    pub fn outcomes(&self, wanted: impl Fn(&Case) -> bool) -> Vec<Outcome> {
        verdict::outcomes(&self.house, wanted)
    }

    /// Closes all connections.
    pub async fn stop(&self) {
        self.house.close().await;
    }
}
