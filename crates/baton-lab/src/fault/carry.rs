//! One direction of one connection: reads, applies the planned faults, writes.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::draw::Draw;
use super::kind::{Action, Fault, Side};

/// Buffer size, for each direction of each connection.
const ROOM: usize = 64 * 1024;
/// Most pieces of one burst that are sent with a pause between them; without pauses the receiver might read them all at
/// once, as if nothing had been split.
const APART: usize = 48;
const BETWEEN: Duration = Duration::from_millis(1);
/// Pieces per second of a slowed connection.
const TRICKLES: usize = 20;

/// How a direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The sender has finished, or one side is gone: the other direction may go on.
    Over,
    /// The plan cuts the connection here.
    Cut,
    Reset,
}

/// The parameters of one direction.
pub(super) struct Way<'a> {
    pub(super) side: Side,
    pub(super) faults: Vec<Fault>,
    pub(super) draw: Draw,
    /// Called for each injected fault, with the number of bytes before it.
    pub(super) tell: &'a (dyn Fn(Fault, Side, u64) + Send + Sync),
    pub(super) count: &'a (dyn Fn(Side, usize) + Send + Sync),
}

/// Forwards until the sender has finished or a fault ends it.
pub(super) async fn carry(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, way: &mut Way<'_>) -> End {
    // An error on either side ends this direction; the other direction detects it by itself.
    match carried(from, to, way).await {
        Ok(end) => end,
        Err(_) => {
            let _ = to.shutdown().await;
            End::Over
        }
    }
}

async fn carried(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, way: &mut Way<'_>) -> io::Result<End> {
    let mut room = vec![0; ROOM];
    let mut so_far = 0;
    if let Some(end) = due(so_far, from, to, way).await? {
        return Ok(end);
    }
    let mut first = true;
    loop {
        let length = from.read(&mut room).await?;
        if length == 0 {
            to.shutdown().await?;
            return Ok(End::Over);
        }
        for fault in way.faults.clone() {
            if first && fault.action.at().is_none() {
                (way.tell)(fault, way.side, so_far);
            }
            if let Action::Delay { time } = fault.action {
                tokio::time::sleep(time).await;
            }
        }
        first = false;
        let mut burst = &room[..length];
        while !burst.is_empty() {
            let (now, later) = burst.split_at(burst.len().min(until_next(so_far, &way.faults)));
            // Counted before the write, since a test may read the count as soon as the receiver has the bytes.
            (way.count)(way.side, now.len());
            write(to, now, way).await?;
            so_far += u64::try_from(now.len()).unwrap_or(u64::MAX);
            burst = later;
            if let Some(end) = due(so_far, from, to, way).await? {
                return Ok(end);
            }
        }
    }
}

/// Bytes up to the next fault.
fn until_next(so_far: u64, faults: &[Fault]) -> usize {
    let left = faults.iter().filter_map(|fault| fault.action.at()?.checked_sub(so_far));
    let next = left.filter(|left| *left > 0).min();
    next.and_then(|next| usize::try_from(next).ok()).unwrap_or(usize::MAX)
}

/// Applies the faults that are due at this position.
async fn due(
    so_far: u64,
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    way: &Way<'_>,
) -> io::Result<Option<End>> {
    for fault in way.faults.iter().filter(|fault| fault.action.at() == Some(so_far)) {
        (way.tell)(*fault, way.side, so_far);
        match fault.action {
            Action::Stall { time, .. } => tokio::time::sleep(time).await,
            Action::Cut { .. } => return Ok(Some(End::Cut)),
            Action::Reset { .. } => return Ok(Some(End::Reset)),
            Action::HalfClose { .. } => {
                to.shutdown().await?;
                // Further bytes are read and dropped, so that the sender is not blocked.
                tokio::io::copy(from, &mut tokio::io::sink()).await?;
                return Ok(Some(End::Over));
            }
            Action::Split { .. } | Action::Delay { .. } | Action::Slow { .. } => {}
        }
    }
    Ok(None)
}

/// Writes, in pieces if the plan requires it.
async fn write(to: &mut OwnedWriteHalf, bytes: &[u8], way: &mut Way<'_>) -> io::Result<()> {
    let split = way.faults.iter().find_map(|fault| match fault.action {
        Action::Split { most } => Some(most),
        _ => None,
    });
    let rate = way.faults.iter().find_map(|fault| match fault.action {
        Action::Slow { rate } => Some(rate),
        _ => None,
    });
    if let Some(rate) = rate {
        return trickle(to, bytes, rate).await;
    }
    let Some(most) = split else { return to.write_all(bytes).await };
    // Without a size, the burst is divided into the largest number of pieces with pauses.
    let most = most
        .map_or_else(|| bytes.len().div_ceil(APART / 2), |most| usize::try_from(most).unwrap_or(usize::MAX));
    let (mut rest, mut pieces) = (bytes, 0);
    while !rest.is_empty() {
        let drawn = way.draw.up_to(u64::try_from(most).unwrap_or(u64::MAX));
        let (piece, later) = rest.split_at(rest.len().min(usize::try_from(drawn).unwrap_or(usize::MAX)));
        to.write_all(piece).await?;
        rest = later;
        pieces += 1;
        if pieces < APART && !rest.is_empty() {
            tokio::time::sleep(BETWEEN).await;
        }
    }
    Ok(())
}

/// Writes at most `rate` bytes per second.
async fn trickle(to: &mut OwnedWriteHalf, bytes: &[u8], rate: u32) -> io::Result<()> {
    let rate = usize::try_from(rate).unwrap_or(usize::MAX).max(1);
    for piece in bytes.chunks((rate / TRICKLES).max(1)) {
        to.write_all(piece).await?;
        let share = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        tokio::time::sleep(Duration::from_secs(1) * share / u32::try_from(rate).unwrap_or(u32::MAX)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_cut_where_something_happens() {
        let faults: Vec<Fault> =
            ["stall=1s@100", "cut@250", "split"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(until_next(0, &faults), 100);
        assert_eq!(until_next(99, &faults), 1);
        assert_eq!(until_next(100, &faults), 150);
        assert_eq!(until_next(250, &faults), usize::MAX);
        assert_eq!(until_next(0, &[]), usize::MAX);
    }
}
