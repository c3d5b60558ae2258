//! All tasks, by their keys. Keys are consecutive, so sixteen tasks share a page, which is one item in the table.

use super::entry::Entry;
use super::table::Table;
use crate::store::TaskKey;

/// Tasks per page. Few, so that a page with a single old task wastes little memory.
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

/// Page numbers are consecutive and not chosen by clients, so a multiplication is enough to spread them.
fn hash(page: u64) -> u64 {
    page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The page of a key, and its index on the page.
fn slot(key: TaskKey) -> (u64, usize) {
    (key.0 / PAGE, (key.0 % PAGE) as usize)
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The task with this key, which must exist.
    pub(super) fn get(&self, key: TaskKey) -> &Entry {
        let (number, at) = slot(key);
        let page = self.pages.find(hash(number), |page| page.number == number);
        page.and_then(|page| page.tasks[at].as_deref()).expect("indexes name only tasks that are there")
    }

    /// The same, mutable.
    pub(super) fn get_mut(&mut self, key: TaskKey) -> &mut Entry {
        let (number, at) = slot(key);
        let page = self.pages.find_mut(hash(number), |page| page.number == number);
        page.and_then(|page| page.tasks[at].as_deref_mut()).expect("indexes name only tasks that are there")
    }

    /// Adds a task with a new key.
    pub(super) fn insert(&mut self, entry: Box<Entry>) {
        let (number, at) = slot(entry.head.key);
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
        let (number, at) = slot(key);
        let page = self.pages.find_mut(hash(number), |page| page.number == number)?;
        let entry = page.tasks[at].take()?;
        self.len -= 1;
        if page.tasks.iter().all(Option::is_none) {
            self.pages.remove(hash(number), |page| page.number == number);
        }
        Some(entry)
    }
}
