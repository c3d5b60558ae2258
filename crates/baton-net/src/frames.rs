//! Follows the frames of an HTTP/2 connection by their headers, without reading their contents.
//!
//! The h2 crate limits the memory of a connection, but not the time: a client that sends a frame byte by byte would stay
//! for ever. And frames that carry no request cost work all the same. Both are detected here.

use super::options::Connections;

/// One WINDOW_UPDATE is expected for every so many bytes that were written to the client. Half the size of the smallest
/// event: some clients send two per frame, one for the stream and one for the connection.
const BYTES_PER_WINDOW_UPDATE: u32 = 64;
/// Most bytes that window updates may still come for: no honest client is that late.
const MAX_UNANSWERED: u32 = 4 * 1024 * 1024;

const HEADER: usize = 9;

#[derive(Debug)]
pub(super) struct Frames {
    /// Bytes of the preface that have not come yet.
    preface: usize,
    header: [u8; HEADER],
    have: usize,
    payload_left: u32,
    /// A header list goes on in the next frame.
    open_headers: bool,
    /// The client's SETTINGS have come; they must be its first frame.
    settled: bool,
    /// Frames without a request or data that may come at once, and per second.
    burst: u32,
    rate: u64,
    allowance: u32,
    refilled_at: u64,
    /// Bytes written for which no WINDOW_UPDATE has come.
    unanswered: u32,
}

/// What the frames read so far show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// A frame other than DATA, or a list of headers, has begun and not ended.
    pub(super) waiting: bool,
    /// A frame or header list ended, so the time limit starts anew.
    pub(super) progress: bool,
    /// There were too many empty frames; hyper gets so many of the bytes, up to the end of a frame.
    pub(super) flood: Option<usize>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

const END_STREAM_OR_ACK: u8 = 1;
const END_HEADERS: u8 = 4;

impl Frames {
    pub(super) fn new(options: &Connections) -> Self {
        let (burst, rate) = (options.flood_burst, u64::from(options.flood_rate));
        Frames {
            burst,
            rate,
            preface: super::preface::HTTP2_PREFACE.len(),
            header: [0; HEADER],
            have: 0,
            payload_left: 0,
            open_headers: false,
            settled: false,
            allowance: burst,
            refilled_at: 0,
            unanswered: 0,
        }
    }

    /// This many bytes were written to the client.
    pub(super) fn wrote(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(MAX_UNANSWERED);
        self.unanswered = self.unanswered.saturating_add(bytes).min(MAX_UNANSWERED);
    }

    /// Examines the next bytes; `now` is in milliseconds.
    pub(super) fn feed(&mut self, bytes: &[u8], now: u64) -> Seen {
        let (mut at, mut progress) = (self.preface.min(bytes.len()), false);
        self.preface -= at;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if self.have < HEADER {
                let taken = rest.len().min(HEADER - self.have);
                self.header[self.have..self.have + taken].copy_from_slice(&rest[..taken]);
                self.have += taken;
                at += taken;
                if self.have < HEADER {
                    break;
                }
                self.payload_left = u32::from_be_bytes([0, self.header[0], self.header[1], self.header[2]]);
            } else {
                let taken = rest.len().min(self.payload_left as usize);
                self.payload_left -= taken as u32;
                at += taken;
            }
            if self.payload_left == 0 {
                progress |= self.ended();
                if self.is_empty_frame() && !self.allow(now) {
                    return Seen { waiting: false, progress, flood: Some(at) };
                }
            }
        }
        Seen { waiting: self.is_waiting(), progress, flood: None }
    }

    fn kind(&self) -> u8 {
        self.header[3]
    }

    fn flags(&self) -> u8 {
        self.header[4]
    }

    /// A frame is complete. True if no header list is open after it.
    fn ended(&mut self) -> bool {
        self.have = 0;
        match self.kind() {
            SETTINGS => self.settled = true,
            HEADERS | CONTINUATION | PUSH_PROMISE => self.open_headers = self.flags() & END_HEADERS == 0,
            _ => {}
        }
        !self.open_headers
    }

    fn is_waiting(&self) -> bool {
        let in_frame = self.have == HEADER && self.kind() != DATA || (1..HEADER).contains(&self.have);
        self.open_headers || !self.settled || in_frame
    }

    /// The frame that just ended carries no request and no data, and does not acknowledge data.
    fn is_empty_frame(&mut self) -> bool {
        let length = u32::from_be_bytes([0, self.header[0], self.header[1], self.header[2]]);
        match self.kind() {
            DATA => length == 0 && self.flags() & END_STREAM_OR_ACK == 0,
            HEADERS => false,
            WINDOW_UPDATE => match self.unanswered.checked_sub(BYTES_PER_WINDOW_UPDATE) {
                Some(left) => {
                    self.unanswered = left;
                    false
                }
                None => true,
            },
            // A header list in many small frames.
            CONTINUATION => self.flags() & END_HEADERS == 0,
            // PING and SETTINGS, also acknowledgements (we send few of them), resets, priorities, and unknown frames.
            _ => true,
        }
    }

    fn allow(&mut self, now: u64) -> bool {
        let refill = now.saturating_sub(self.refilled_at) * self.rate / 1000;
        if refill > 0 {
            let refill = u32::try_from(refill).unwrap_or(self.burst);
            self.allowance = self.allowance.saturating_add(refill).min(self.burst);
            self.refilled_at = now;
        }
        match self.allowance.checked_sub(1) {
            Some(left) => {
                self.allowance = left;
                true
            }
            None => false,
        }
    }
}

/// A PING without its payload. The h2 crate answers it with GOAWAY, which tells the client why the connection ends.
pub(super) const MALFORMED: &[u8] = &[0, 0, 0, PING, 0, 0, 0, 0, 0];

#[cfg(test)]
mod tests {
    use super::super::preface::HTTP2_PREFACE;
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = (payload as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER + payload, 7);
        frame
    }

    /// The defaults.
    const BURST: u32 = 2_000;
    const RATE: u32 = 500;

    fn settled() -> Frames {
        let mut frames = Frames::new(&Connections::default());
        let seen = frames.feed(&[HTTP2_PREFACE, &frame(SETTINGS, 0, 18)].concat(), 1);
        assert_eq!(seen, Seen { waiting: false, progress: true, flood: None });
        frames
    }

    #[test]
    fn a_client_that_owes_its_settings_is_waited_for() {
        let mut frames = Frames::new(&Connections::default());
        assert!(frames.feed(HTTP2_PREFACE, 1).waiting);
        assert!(frames.feed(&frame(SETTINGS, 0, 6)[..12], 1).waiting);
        assert!(!frames.feed(&frame(SETTINGS, 0, 6)[12..], 1).waiting);
    }

    #[test]
    fn a_frame_in_parts_is_waited_for_unless_it_is_data() {
        for (kind, flags, waits) in
            [(HEADERS, END_HEADERS, true), (PING, 1, true), (WINDOW_UPDATE, 0, true), (DATA, 0, false)]
        {
            let (mut frames, whole) = (settled(), frame(kind, flags, 8));
            for byte in 0..whole.len() - 1 {
                let seen = frames.feed(&whole[byte..=byte], 1);
                // The kind is known with the whole header only.
                assert_eq!(seen.waiting, waits || byte < HEADER - 1, "{kind} {byte}");
                assert!(!seen.progress);
            }
            let seen = frames.feed(&whole[whole.len() - 1..], 1);
            assert_eq!((seen.waiting, seen.progress), (false, true), "{kind}");
        }
    }

    #[test]
    fn headers_end_with_their_last_frame() {
        let mut frames = settled();
        let seen = frames.feed(&[frame(HEADERS, 0, 5), frame(CONTINUATION, 0, 5)].concat(), 1);
        assert_eq!((seen.waiting, seen.progress), (true, false));
        let seen = frames.feed(&frame(CONTINUATION, END_HEADERS, 5), 1);
        assert_eq!((seen.waiting, seen.progress), (false, true));
    }

    #[test]
    fn idle_talk_is_a_flood_beyond_its_allowance() {
        const RST: u8 = 3;
        for talk in [
            frame(PING, 0, 8),
            frame(PING, END_STREAM_OR_ACK, 8),
            frame(SETTINGS, 0, 0),
            frame(SETTINGS, END_STREAM_OR_ACK, 0),
            frame(WINDOW_UPDATE, 0, 4),
            frame(RST, 0, 4),
            frame(DATA, 0, 0),
            frame(99, 0, 1),
        ] {
            let mut frames = settled();
            let seen = frames.feed(&talk.repeat(BURST as usize - 1), 1);
            assert_eq!(seen.flood, None);
            let seen = frames.feed(&talk.repeat(3), 2);
            assert_eq!(seen.flood, Some(2 * talk.len()), "one more is allowed by now, then it is enough");
            let mut slower = settled();
            for second in 1..100 {
                let some = talk.repeat(RATE as usize);
                assert_eq!(slower.feed(&some, second * 1000).flood, None, "{second}");
            }
        }
        for useful in [frame(DATA, 0, 1), frame(DATA, 1, 0), frame(HEADERS, 4, 20)] {
            assert_eq!(settled().feed(&useful.repeat(10_000), 1).flood, None);
        }
    }

    #[test]
    fn window_updates_are_fine_for_those_who_read() {
        let (mut frames, update) = (settled(), frame(WINDOW_UPDATE, 0, 4));
        // Twice for each of many small events, all at the same time.
        for _ in 0..10_000 {
            frames.wrote(150);
            assert_eq!(frames.feed(&update.repeat(2), 1).flood, None);
        }
        // What was read once is no pretext for ever.
        frames.wrote(usize::MAX);
        let most = (MAX_UNANSWERED / BYTES_PER_WINDOW_UPDATE + BURST - 1) as usize;
        assert_eq!(frames.feed(&update.repeat(most), 1).flood, None);
        assert!(frames.feed(&update, 1).flood.is_some());
    }
}
