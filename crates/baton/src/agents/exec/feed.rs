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
}

impl Feed {
    /// Begins with `first`; then the program sees the end of its input, unless answers may follow.
    pub(super) fn new(pipe: Option<Sender>, first: Vec<u8>, answers: bool) -> Self {
        let mut feed = Feed { pipe, waiting: first, written: 0, open: answers };
        feed.settle();
        feed
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
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
            Err(_) => self.close(),
        }
        self.settle();
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
