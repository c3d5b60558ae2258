//! Baton's answers, recorded once per run: the controls send these bytes, so that they send the same number.

use std::fs;
use std::path::PathBuf;

use crate::bench::Bench;
use crate::cores::Place;
use crate::subjects::BATON;
use crate::wire;

/// Files for the controls.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    pub send: PathBuf,
    pub get: PathBuf,
    pub stream: PathBuf,
    pub burst: PathBuf,
}

pub fn record(bench: &Bench) -> Result<Recorded, String> {
    let server = bench.start(&BATON, Place::Own, &[])?;
    let keep = |name: &str, bytes: &[u8]| -> Result<PathBuf, String> {
        let path = bench.scratch.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let id = wire::task_id(&server, wire::TEXT, "")?;
    Ok(Recorded {
        send: keep("send.json", &wire::ask(&server, &wire::send("SendMessage", wire::TEXT, ""))?)?,
        get: keep("get.json", &wire::ask(&server, &wire::get(&id))?)?,
        stream: keep(
            "stream.txt",
            &wire::ask(&server, &wire::send("SendStreamingMessage", wire::TEXT, ""))?,
        )?,
        burst: keep("burst.txt", &wire::ask(&server, &wire::send("SendStreamingMessage", "burst", ""))?)?,
    })
}
