//! Tests clients: serves scripted agents, correct or faulty ones, and judges whether the client that calls them follows
//! the protocol.
//!
//! Each script has an address of its own and an instruction for the client (*send any message*, *answer the question*).
//! The requests are recorded, and judged at the end by [`rules`]: a rule is a case like those of the suites, with
//! requirement, section and remedy, so that the reports are the same. Some rules need the exit code and output of the
//! client's command (see [`Ran`]); the others only need the requests.
//!
//! | module | holds |
//! |---|---|
//! | [`script`], `card`, `play`, `frames`, `spell` | the scripted agents |
//! | `server`, `stage`, [`heard`] | their sockets, their state, the recorded requests |
//! | [`rules`], `verdict` | the rules, and their results |

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

/// The running scripted agents.
#[derive(Debug)]
pub struct Judge {
    running: Arc<server::ScriptServer>,
}

/// What a client needs to know about one script.
#[derive(Debug, Clone)]
pub struct Play {
    pub variant: Variant,
    pub script: &'static Script,
    /// The agent's address.
    pub url: String,
    /// The client's credential, if the script requires one.
    pub secret: Option<(Credential, String)>,
}

impl Judge {
    /// Serves the scripts that exist for each of the variants.
    pub async fn start(
        listener: TcpListener,
        variants: &[Variant],
        scripts: &[&'static Script],
    ) -> io::Result<Self> {
        let plays = variants.iter().flat_map(|variant| scripts.iter().map(|script| (*variant, *script)));
        let fitting: Vec<_> = plays.filter(|(variant, script)| script.fits(*variant)).collect();
        Ok(Judge { running: server::open(listener, fitting).await? })
    }

    /// Its address; `/` lists the scripts.
    pub fn url(&self) -> &str {
        &self.running.home
    }

    /// All scripts with the instructions for the client, as text.
    pub fn index(&self) -> String {
        self.running.index()
    }

    /// All scripts, in order.
    pub fn plays(&self) -> Vec<Play> {
        let mut plays: Vec<Play> = self
            .running
            .stages()
            .map(|stage| {
                let stage = server::held(stage);
                let (variant, script) = (stage.variant, stage.script);
                let url = format!("{}/{variant}/{}", self.running.home, script.name);
                let secret = script.credential().map(|credential| (credential, stage.secret()));
                Play { variant, script, url, secret }
            })
            .collect();
        let place = |play: &Play| SCRIPTS.iter().position(|script| script.name == play.script.name);
        plays.sort_by_key(|play| (play.variant, place(play)));
        plays
    }

    /// Serves one script's card at the root, too, for clients that look only there.
    pub fn put_at_root(&self, play: Option<&Play>) {
        self.running.put_at_root(play.map(|play| (play.variant, play.script)));
    }

    /// Records how the client's command ended on a script.
    pub fn ended(&self, play: &Play, ran: Ran) {
        if let Some(stage) = self.running.stage(play.variant, play.script.name) {
            server::held(stage).ran = Some(ran);
        }
    }

    /// The time since the last call; `None` before the first call.
    pub fn quiet_for(&self) -> Option<Duration> {
        self.running.last_heard().map(|last| last.elapsed())
    }

    /// The outcomes of the selected rules.
    pub fn outcomes(&self, wanted: impl Fn(&Case) -> bool) -> Vec<Outcome> {
        verdict::outcomes(&self.running, wanted)
    }

    /// Closes all connections.
    pub async fn stop(&self) {
        self.running.close().await;
    }
}
