//! Checks the write-ahead log that an earlier process left for damage.
//!
//! SQLite reads a write-ahead log up to the first page whose checksum is wrong, and takes the rest for a write that a
//! crash cut short. Usually that is right. But each commit is synced before the next one begins, so if *two* commits (or
//! one, if the log's own header is wrong) follow that page, synced pages have changed on the disk and acknowledged commits
//! cannot be read any more. SQLite still uses the commits before that page; this module logs that later ones are lost.
//!
//! A log whose end is missing altogether cannot be told from a shorter log.

use std::fs;
use std::path::{Path, PathBuf};

use super::with_suffix;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Last bit set: big-endian checksums; not set: little-endian ones.
const MAGIC: u32 = 0x377f_0683;

/// What follows the last page that SQLite can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unreadable {
    commits: usize,
    /// The log's own header is damaged.
    header: bool,
}

/// Logs an error for a damaged write-ahead log and keeps a copy of it. Called before SQLite reads and checkpoints it.
pub(super) fn warn_if_damaged(database: &Path) {
    let path = with_suffix(database, "-wal");
    // Usually there is none. If it cannot be read, SQLite reports that.
    let Ok(log) = fs::read(&path) else { return };
    let Some(Unreadable { commits, header }) = unreadable(&log) else { return };
    if commits < 2 && !header {
        return;
    }
    let kept = keep(&path);
    tracing::error!(
        log = %path.display(),
        commits,
        kept = %kept.display(),
        "the write-ahead log is damaged: commits after the damage, some of them acknowledged, cannot be read; commits \
         before it are used, and a copy of the damaged log is kept. Check the disk, and consider a backup"
    );
}

/// Keeps the first damaged log and not later ones: it holds the most commits.
fn keep(log: &Path) -> PathBuf {
    let kept = with_suffix(log, ".damaged");
    if !kept.exists()
        && let Err(error) = fs::copy(log, &kept)
    {
        tracing::warn!(%error, file = %kept.display(), "could not copy the damaged log");
    }
    kept
}

fn unreadable(log: &[u8]) -> Option<Unreadable> {
    let header = log.get(..HEADER)?;
    let page = word(header, 8) as usize;
    let (little, sums) = (word(header, 0) & 1 == 0, (word(header, 24), word(header, 28)));
    let sound = word(header, 0) & !1 == MAGIC & !1 && checksum(little, (0, 0), &header[..24]) == sums;
    // With an invalid page size, frames are read as if it were the usual one.
    let page = if page.is_power_of_two() && (512..=65536).contains(&page) { page } else { 4096 };
    let frames: Vec<&[u8]> = log[HEADER..].chunks_exact(FRAME_HEADER + page).collect();
    let is_commit = |frame: &&&[u8]| word(frame, 4) != 0;
    if !sound {
        // Without a header the log's salt is unknown; count the commits that have the first frame's salt.
        let first = frames.first()?;
        let salt = &first[8..16];
        let commits = frames.iter().filter(|frame| &frame[8..16] == salt).filter(is_commit).count();
        return (commits > 0).then_some(Unreadable { commits, header: true });
    }
    let salt = &header[16..24];
    let mut running = sums;
    let used = frames.iter().take_while(|frame| {
        running = checksum(little, checksum(little, running, &frame[..8]), &frame[FRAME_HEADER..]);
        &frame[8..16] == salt && running == (word(frame, 16), word(frame, 20))
    });
    let used = used.count();
    // Frames with another salt were written before the last checkpoint; their commits are in the database.
    let commits = frames[used..].iter().filter(|frame| &frame[8..16] == salt).filter(is_commit).count();
    (commits > 0).then_some(Unreadable { commits, header: false })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// As SQLite's file format describes it, over pairs of words.
fn checksum(little: bool, (mut first, mut second): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at| if little { word(pair, at).swap_bytes() } else { word(pair, at) };
        first = first.wrapping_add(word(0)).wrapping_add(second);
        second = second.wrapping_add(word(4)).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of several commits, made by SQLite.
    fn log() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        for n in 0..5 {
            connection.execute("INSERT INTO t VALUES (?)", [n]).unwrap();
        }
        fs::read(with_suffix(&path, "-wal")).unwrap()
    }

    #[test]
    fn s06_a_log_that_sqlite_wrote_is_whole() {
        assert_eq!(unreadable(&log()), None);
        assert_eq!(unreadable(&[]), None);
        assert_eq!(unreadable(&[0; 40]), None);
    }

    #[test]
    fn s06_damage_in_the_middle_is_told_from_a_write_that_was_cut_short() {
        let whole = log();
        let frame = FRAME_HEADER + 4096;
        let frames = (whole.len() - HEADER) / frame;
        for byte in [HEADER + 100, HEADER + 3 * frame + 2000, HEADER + 3 * frame + 17] {
            let mut log = whole.clone();
            log[byte] ^= 4;
            let found = unreadable(&log).unwrap();
            assert!(!found.header && found.commits >= 2, "{byte}: {found:?}");
        }
        let mut last = whole.clone();
        last[HEADER + (frames - 1) * frame + 1000] ^= 4;
        assert_eq!(unreadable(&last), Some(Unreadable { commits: 1, header: false }), "as a crash leaves it");
        assert_eq!(unreadable(&whole[..whole.len() - 500]), None);
        let mut header = whole.clone();
        header[20] ^= 4;
        assert!(unreadable(&header).unwrap().header);
    }

    #[test]
    fn s06_frames_of_an_earlier_round_do_not_count() {
        let mut log = log();
        let frame = FRAME_HEADER + 4096;
        for at in (HEADER + 2 * frame..log.len()).step_by(frame) {
            log[at + 8] ^= 1;
        }
        assert_eq!(unreadable(&log), None);
    }
}
