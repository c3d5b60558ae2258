//! Bounds on how many items a message may hold, counted before it is decoded: an empty part has 2 bytes on the wire, and some
//! 120 in memory.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Far above what any limit on parts or keys allows.
pub(super) const MOST_ITEMS: usize = 100_000;

/// Whether a message has at most so many fields, and so many in its fields of these numbers, which are messages. A list has one
/// field for each item. What cannot be read counts as little: the decoder refuses it.
pub(super) fn fits(message: &[u8], within: &[u32]) -> bool {
    let mut count = 0;
    each_field(message, |number, content| {
        count += 1;
        if let Some(content) = content.filter(|_| within.contains(&number)) {
            each_field(content, |_, _| {
                count += 1;
                count <= MOST_ITEMS
            });
        }
        count <= MOST_ITEMS
    });
    count <= MOST_ITEMS
}

/// Whether the items of a `Struct` or `ListValue` can all have a value. The smallest has 4 bytes; empty ones, of which a message
/// could hold very many, are refused in any case.
pub(super) fn have_values(message: &[u8]) -> bool {
    let mut count = 0;
    each_field(message, |_, _| {
        count += 1;
        true
    });
    count * 4 <= message.len()
}

/// Calls `see` with the number of each field, and its content if that has a length, until it answers false.
fn each_field<'a>(mut rest: &'a [u8], mut see: impl FnMut(u32, Option<&'a [u8]>) -> bool) {
    while !rest.is_empty() {
        let Ok((number, wire_type)) = decode_key(&mut rest) else { return };
        let mut content = None;
        if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
            let Some((here, behind)) = length.and_then(|length| rest.split_at_checked(length)) else {
                return;
            };
            (content, rest) = (Some(here), behind);
        } else if skip_field(wire_type, number, &mut rest, DecodeContext::default()).is_err() {
            return;
        }
        if !see(number, content) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s09_items_are_counted_where_lists_are() {
        let items = |count: usize| [0x2a, 0].repeat(count);
        let inside = |number: u8, content: &[u8]| {
            let mut out = vec![number << 3 | 2];
            prost::encoding::encode_varint(content.len() as u64, &mut out);
            [out, content.to_vec()].concat()
        };
        assert!(fits(&[], &[]));
        assert!(fits(&items(MOST_ITEMS), &[2]) && !fits(&items(MOST_ITEMS + 1), &[2]));
        let most = inside(2, &items(MOST_ITEMS - 1));
        assert!(fits(&most, &[2]) && !fits(&inside(2, &items(MOST_ITEMS)), &[2]));
        // The same field twice is one list to the decoder.
        let half = inside(2, &items(MOST_ITEMS / 2));
        assert!(!fits(&[&half[..], &half].concat(), &[2]));
        // Text is not taken for a message.
        assert!(fits(&inside(1, &[b'x'; 4 * MOST_ITEMS]), &[2]));
        assert!(have_values(&[]) && have_values(&[0x0a, 2, 0x20, 1]) && !have_values(&items(1)));
        for broken in [&[0xff][..], &[0x12, 9, 0], &[0x0b], &[0x12]] {
            assert!(fits(broken, &[2]), "{broken:?}");
        }
    }
}
