//! Events as rows. Small events of one append share a row, since a row costs more than a small event's bytes.

use std::ops::Range;

use bytes::Bytes;
use rusqlite::{Row, Statement, params};

use super::checksum::Checksum;
use super::statements::{blob, signed, unsigned};
use crate::points::{Point, reached};
use crate::store::{StoreError, StoreResult, StoredEvent};

/// Most bytes of events in a shared row. Two such rows fit a page, and a reader that needs only the row's last events
/// reads few bytes it does not need.
const MAX_SHARED_BYTES: usize = 1900;

/// Writes the events, with one [`INSERT_EVENT`](super::statements::INSERT_EVENT) per row.
pub(super) fn insert(insert: &mut Statement<'_>, task: i64, events: &[StoredEvent]) -> StoreResult<()> {
    let mut rest = events;
    while let [first, ..] = rest {
        let (row, behind) = rest.split_at(events_in_row(rest));
        rest = behind;
        let last = row.last().map_or(first.number, |last| last.number);
        match row {
            [alone] => {
                let record = &alone.record()[..];
                let sum = Checksum::of(last).bytes(record);
                insert.execute(params![task, signed(last), record, None::<&[u8]>, sum.stored()])?;
            }
            _ => {
                let (mut records, mut lengths) = (Vec::with_capacity(MAX_SHARED_BYTES), Vec::new());
                for event in row {
                    records.extend_from_slice(event.record());
                    lengths.extend_from_slice(&(event.record().len() as u16).to_le_bytes());
                }
                let sum = shared_sum(last, &lengths, &records);
                insert.execute(params![task, signed(last), records, lengths, sum.stored()])?;
            }
        }
        reached(Point::AppendEvent);
    }
    Ok(())
}

/// How many events, from the first on, go into the next row: at least one.
fn events_in_row(events: &[StoredEvent]) -> usize {
    let mut bytes = 0;
    let small = events.iter().take_while(|event| {
        bytes += event.record().len();
        bytes <= MAX_SHARED_BYTES
    });
    small.count().max(1)
}

/// Reads `(number, record, lengths, sum)` and pushes the row's events numbered above `after`.
pub(super) fn read(row: &Row<'_>, after: u64, events: &mut Vec<StoredEvent>) -> StoreResult<()> {
    let (last, record) = (unsigned(row, 0)?, blob(row, 1)?);
    let lengths = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
    let sum = match lengths {
        None => Checksum::of(last).bytes(&record),
        Some(lengths) => shared_sum(last, lengths, &record),
    };
    sum.check(row.get(3)?, &|| format!("event {last}"))?;
    let Some(lengths) = lengths else {
        events.push(StoredEvent::from_record(last, record)?);
        return Ok(());
    };
    let ranges = record_ranges(lengths, &record);
    let ranges = ranges.ok_or_else(|| StoreError::damaged(format!("events up to {last}: cut short")))?;
    let numbers = (0..ranges.len() as u64).rev().map(|before| last.saturating_sub(before));
    for (number, range) in numbers.zip(ranges).filter(|(number, _)| *number > after) {
        events.push(StoredEvent::from_record(number, record.slice(range))?);
    }
    Ok(())
}

/// How many bytes the task's events numbered above `after` and up to `through` have. `sizes` is
/// [`EVENT_SIZES`](super::statements::EVENT_SIZES).
pub(super) fn bytes_within(
    sizes: &mut Statement<'_>,
    task: i64,
    after: u64,
    through: u64,
) -> StoreResult<i64> {
    let mut rows = sizes.query([task, signed(after)])?;
    let (mut bytes, mut last) = (0, 0);
    while last < through
        && let Some(row) = rows.next()?
    {
        last = unsigned(row, 0)?;
        let Some(lengths) = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)? else {
            if last <= through {
                bytes += row.get::<_, i64>(1)?;
            }
            continue;
        };
        // From the last event of the row to its first.
        for (length, number) in lengths.as_chunks::<2>().0.iter().rev().zip((0..=last).rev()) {
            if (after + 1..=through).contains(&number) {
                bytes += i64::from(u16::from_le_bytes(*length));
            }
        }
    }
    Ok(bytes)
}

/// The range of each record. `None` if the lengths do not add up to `record`.
fn record_ranges(lengths: &[u8], record: &Bytes) -> Option<Vec<Range<usize>>> {
    let (lengths, rest) = lengths.as_chunks::<2>();
    let mut end = 0;
    let range = |length: &[u8; 2]| {
        let start = end;
        end += usize::from(u16::from_le_bytes(*length));
        start..end
    };
    let ranges = lengths.iter().map(range).collect();
    (rest.is_empty() && end == record.len()).then_some(ranges)
}

fn shared_sum(last: u64, lengths: &[u8], records: &[u8]) -> Checksum {
    Checksum::of(last).bytes(lengths).bytes(records)
}
