//! Writes to the program's stdin, as fast as the program reads.

use std::io;

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

pub(super) struct Feed {
    /// `None` after it was closed.
    pipe: Option<Sender>,
    waiting: Vec<u8>,
    written: usize,
    /// More input may follow: the pipe stays open.
    open: bool,
    /// Length of the latest answer, if there was one.
    answer: Option<usize>,
    /// The program closed its stdin before it had read everything.
    refused: bool,
}

impl Feed {
    /// Writes `first`; then closes stdin, unless answers may follow.
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

    /// Closes stdin; input that was not written yet is dropped.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    pub(super) fn has_work(&self) -> bool {
        self.pipe.is_some() && self.written < self.waiting.len()
    }

    /// Writes some of the input. Cancel safe: no byte is lost or repeated.
    pub(super) async fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.waiting[self.written..]).await {
            Ok(count) => self.written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A program need not read its input.
            Err(_) => {
                self.refused = true;
                self.close();
            }
        }
        self.settle();
    }

    /// True if the program has ended without reading the latest answer. This happens if the answer arrives while the
    /// program is exiting after its question.
    pub(super) fn answer_unread(&self) -> bool {
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
