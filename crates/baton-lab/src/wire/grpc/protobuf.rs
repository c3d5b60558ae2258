//! The wire format of protobuf: fields as they come, and their bytes as they go.

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub String);

/// A field's value, by its wire type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

impl Wire<'_> {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Varint(_) => "a varint",
            Self::Fixed64(_) => "eight bytes",
            Self::Bytes(_) => "bytes with a length",
            Self::Fixed32(_) => "four bytes",
        }
    }
}

/// Takes the next field off the bytes; `None` at their end.
pub(crate) fn next<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u32, Wire<'a>)>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
    let number = number.ok_or_else(|| Malformed(format!("the tag {tag} has no valid field number")))?;
    let wire = match tag & 7 {
        0 => Wire::Varint(varint(bytes)?),
        1 => Wire::Fixed64(fixed(bytes)?),
        2 => {
            let length = varint(bytes)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
            let length =
                length.ok_or_else(|| Malformed(format!("field {number} is longer than its message")))?;
            let (inside, rest) = bytes.split_at(length);
            *bytes = rest;
            Wire::Bytes(inside)
        }
        5 => Wire::Fixed32(fixed(bytes)?),
        other => return Err(Malformed(format!("field {number} has the wire type {other}"))),
    };
    Ok(Some((number, wire)))
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some((&byte, rest)) = bytes.split_first() else {
            return Err(Malformed("the message ends within a number".to_owned()));
        };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed("a number has more than ten bytes".to_owned()))
}

fn fixed<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (first, rest) = bytes
        .split_first_chunk::<N>()
        .ok_or_else(|| Malformed("the message ends within a number".to_owned()))?;
    *bytes = rest;
    Ok(*first)
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
}

pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
    put_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_bytes(&mut out, 536_870_911, b"abc");
        put_double(&mut out, 3, 0.5);
        out.extend_from_slice(&[4 << 3 | 5, 1, 2, 3, 4]);
        let mut bytes = out.as_slice();
        assert_eq!(next(&mut bytes), Ok(Some((1, Wire::Varint(u64::MAX)))));
        assert_eq!(next(&mut bytes), Ok(Some((536_870_911, Wire::Bytes(b"abc")))));
        assert_eq!(next(&mut bytes), Ok(Some((3, Wire::Fixed64(0.5_f64.to_le_bytes())))));
        assert_eq!(next(&mut bytes), Ok(Some((4, Wire::Fixed32([1, 2, 3, 4])))));
        assert_eq!(next(&mut bytes), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        for bytes in [
            &[0x08][..],         // No value.
            &[0x08, 0x80],       // Half a number.
            &[0x00, 0x01],       // Field 0.
            &[0x0a, 0x05, b'a'], // Too short.
            &[0x0b],             // A group.
            &[0x09, 1, 2, 3],    // Half of eight bytes.
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ] {
            let mut rest = bytes;
            next(&mut rest).expect_err(&format!("{bytes:?}"));
        }
    }
}
