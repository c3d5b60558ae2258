//! All tasks, by their keys. Keys are counted up, so tasks that follow each other share a page: a page for sixteen of them
//! is one item in the table.

use super::entry::Entry;
use super::table::Table;
use crate::store::TaskKey;

/// Few enough that a page on which one old task is left over is no great loss.
const PAGE: u64 = 16;

#[derive(Default)]
pub(super) struct Tasks {
    pages: Table<Box<Page>>,
    len: usize,
}

struct Page {
    number: u64,
    tasks: [Option<Box<Entry>>; PAGE as usize],
}

/// Numbers of pages are counted up, so they need no more than to be spread.
fn hash(page: u64) -> u64 {
    page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The page of a key, and the place on it.
fn place(key: TaskKey) -> (u64, usize) {
    (key.0 / PAGE, (key.0 % PAGE) as usize)
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The task that an index names.
    pub(super) fn named(&self, key: TaskKey) -> &Entry {
        let (number, at) = place(key);
        let page = self.pages.find(hash(number), |page| page.number == number);
        page.and_then(|page| page.tasks[at].as_deref()).expect("indexes name only tasks that are there")
    }

    /// The same, to be changed.
    pub(super) fn named_mut(&mut self, key: TaskKey) -> &mut Entry {
        let (number, at) = place(key);
        let page = self.pages.find_mut(hash(number), |page| page.number == number);
        page.and_then(|page| page.tasks[at].as_deref_mut()).expect("indexes name only tasks that are there")
    }

    /// Takes in a task under a key that is not there.
    pub(super) fn insert(&mut self, entry: Box<Entry>) {
        let (number, at) = place(entry.head.key);
        self.len += 1;
        if let Some(page) = self.pages.find_mut(hash(number), |page| page.number == number) {
            page.tasks[at] = Some(entry);
            return;
        }
        let mut page = Box::new(Page { number, tasks: [const { None }; PAGE as usize] });
        page.tasks[at] = Some(entry);
        self.pages.insert(hash(number), page);
    }

    pub(super) fn remove(&mut self, key: TaskKey) -> Option<Box<Entry>> {
        let (number, at) = place(key);
        let page = self.pages.find_mut(hash(number), |page| page.number == number)?;
        let entry = page.tasks[at].take()?;
        self.len -= 1;
        if page.tasks.iter().all(Option::is_none) {
            self.pages.remove(hash(number), |page| page.number == number);
        }
        Some(entry)
    }
}
