//! Events as rows. Small events of one append share a row: a row costs more than what a small event says.

use std::ops::Range;

use bytes::Bytes;
use rusqlite::{Row, Statement, params};

use super::checksum::Sum;
use super::statements::{blob, signed, unsigned};
use crate::points::{Point, reached};
use crate::store::{StoreError, StoreResult, StoredEvent};

/// What shares a row: two rows fit a page, and whoever reads from the middle of a row reads little in vain.
const MOST_SHARED: usize = 1900;

/// Runs an [`INSERT_EVENT`](super::statements::INSERT_EVENT) for each row that the events make.
pub(super) fn insert(insert: &mut Statement<'_>, task: i64, events: &[StoredEvent]) -> StoreResult<()> {
    let mut rest = events;
    while let [first, ..] = rest {
        let (row, behind) = rest.split_at(sharing(rest));
        rest = behind;
        let last = row.last().map_or(first.number, |last| last.number);
        match row {
            [alone] => {
                let record = &alone.record()[..];
                let sum = Sum::of(last).bytes(record);
                insert.execute(params![task, signed(last), record, None::<&[u8]>, sum.stored()])?;
            }
            _ => {
                let (mut records, mut lengths) = (Vec::with_capacity(MOST_SHARED), Vec::new());
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

/// How many of the first events share a row: one at least.
fn sharing(events: &[StoredEvent]) -> usize {
    let mut bytes = 0;
    let small = events.iter().take_while(|event| {
        bytes += event.record().len();
        bytes <= MOST_SHARED
    });
    small.count().max(1)
}

/// Reads `(number, record, lengths, sum)` and adds the row's events whose numbers are asked for.
pub(super) fn read(row: &Row<'_>, after: u64, events: &mut Vec<StoredEvent>) -> StoreResult<()> {
    let (last, record) = (unsigned(row, 0)?, blob(row, 1)?);
    let lengths = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
    let sum = match lengths {
        None => Sum::of(last).bytes(&record),
        Some(lengths) => shared_sum(last, lengths, &record),
    };
    sum.check(row.get(3)?, &|| format!("event {last}"))?;
    let Some(lengths) = lengths else {
        events.push(StoredEvent::from_record(last, record)?);
        return Ok(());
    };
    let places = places(lengths, &record);
    let places = places.ok_or_else(|| StoreError::Damaged(format!("events up to {last}: cut short")))?;
    let numbers = (0..places.len() as u64).rev().map(|before| last.saturating_sub(before));
    for (number, place) in numbers.zip(places).filter(|(number, _)| *number > after) {
        events.push(StoredEvent::from_record(number, record.slice(place))?);
    }
    Ok(())
}

/// Where each record is. `None`: the lengths are those of something else.
fn places(lengths: &[u8], record: &Bytes) -> Option<Vec<Range<usize>>> {
    let (lengths, rest) = lengths.as_chunks::<2>();
    let mut end = 0;
    let place = |length: &[u8; 2]| {
        let start = end;
        end += usize::from(u16::from_le_bytes(*length));
        start..end
    };
    let places = lengths.iter().map(place).collect();
    (rest.is_empty() && end == record.len()).then_some(places)
}

fn shared_sum(last: u64, lengths: &[u8], records: &[u8]) -> Sum {
    Sum::of(last).bytes(lengths).bytes(records)
}
