//! What goes into the program's stdin, as fast as it reads and no faster.

use std::io;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

pub(super) struct Feed {
    /// `None` once it is closed.
    pipe: Option<Sender>,
    waiting: Vec<u8>,
    written: usize,
    /// More may come: the pipe stays open.
    open: bool,
    /// Length of the latest answer, if there was one.
    answer: Option<usize>,
    /// The program closed its end before it had everything.
    refused: bool,
}

impl Feed {
    /// Begins with `first`; then the program sees the end of its input, unless answers may follow.
    pub(super) fn new(pipe: Option<Sender>, first: Vec<u8>, answers: bool) -> Self {
        let mut feed = Feed { pipe, waiting: first, written: 0, open: answers, answer: None, refused: false };
        feed.settle();
        feed
    }

    pub(super) fn answer(&mut self, bytes: &[u8]) {
        self.answer = Some(bytes.len());
        self.waiting.drain(..self.written);
        self.written = 0;
        self.waiting.extend_from_slice(bytes);
    }

    /// Nothing more is sent, not even what waits.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    pub(super) fn has_work(&self) -> bool {
        self.pipe.is_some() && self.written < self.waiting.len()
    }

    /// Writes a bit. May be dropped at any point without losing or repeating anything.
    pub(super) async fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.waiting[self.written..]).await {
            Ok(count) => self.written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A program need not read what it is sent.
            Err(_) => {
                self.refused = true;
                self.close();
            }
        }
        self.settle();
    }

    /// Did the program, which has ended, leave the latest answer unread? One that asks and ends may be answered while
    /// it is still about to end.
    pub(super) fn answer_was_left(&self) -> bool {
        let Some(length) = self.answer else { return false };
        let in_pipe = self.pipe.as_ref().and_then(|pipe| rustix::io::ioctl_fionread(pipe).ok());
        self.refused || self.has_work() || in_pipe.is_some_and(|unread| unread >= length as u64)
    }

    fn settle(&mut self) {
        if self.written == self.waiting.len() {
            self.waiting = Vec::new();
            self.written = 0;
            if !self.open {
                self.close();
            }
        }
    }
}
