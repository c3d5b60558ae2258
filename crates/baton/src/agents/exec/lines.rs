//! Splits stdout into lines, counts them, and limits their length.

/// A line that cannot even be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadLine {
    TooLong { number: usize, most: usize },
    NotText { number: usize },
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadLine::TooLong { number, most } => write!(f, "line {number} is longer than {most} bytes"),
            BadLine::NotText { number } => write!(f, "line {number} is not UTF-8"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Lines {
    most: usize,
    open: Vec<u8>,
    number: usize,
}

impl Lines {
    pub(super) fn new(most: usize) -> Self {
        Lines { most, open: Vec::new(), number: 0 }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The complete lines, with their numbers from 1. Blank lines are left out, but counted.
    pub(super) fn cut(&mut self, bytes: &[u8]) -> Result<Vec<(usize, String)>, BadLine> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.grow(&rest[..end])?;
            rest = &rest[end + 1..];
            lines.extend(self.end()?);
        }
        self.grow(rest)?;
        Ok(lines)
    }

    /// A last line without a line break counts as a line.
    pub(super) fn finish(&mut self) -> Result<Option<(usize, String)>, BadLine> {
        if self.open.is_empty() { Ok(None) } else { self.end() }
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), BadLine> {
        if self.open.len() + bytes.len() > self.most {
            return Err(BadLine::TooLong { number: self.number + 1, most: self.most });
        }
        self.open.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<Option<(usize, String)>, BadLine> {
        self.number += 1;
        let line = String::from_utf8(std::mem::take(&mut self.open));
        let line = line.map_err(|_| BadLine::NotText { number: self.number })?;
        let blank = line.trim().is_empty();
        Ok((!blank).then_some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(reads: &[&[u8]]) -> Result<Vec<(usize, String)>, BadLine> {
        let mut lines = Lines::new(8);
        let mut all = Vec::new();
        for bytes in reads {
            all.extend(lines.cut(bytes)?);
        }
        all.extend(lines.finish()?);
        Ok(all)
    }

    #[test]
    fn lines_are_counted_wherever_reads_end() {
        let expected = [(1, "a".to_owned()), (3, "é\r".to_owned()), (5, "last".to_owned())];
        assert_eq!(cut(&[b"a\n \n\xc3", b"\xa9\r\n\nla", b"st"]).unwrap(), expected);
        assert_eq!(cut(&[b""]).unwrap(), []);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(cut(&[b"12345678\n", b"1234", b"56789"]), Err(BadLine::TooLong { number: 2, most: 8 }));
        assert_eq!(cut(&[b"a\n\xff\n"]), Err(BadLine::NotText { number: 2 }));
    }
}
