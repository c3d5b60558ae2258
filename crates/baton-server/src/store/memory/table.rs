//! A hash table that grows a little at a time (linear hashing). A table that doubles moves all items at once, and with a
//! million tasks no call is answered meanwhile; this one consists of parts, and grows by splitting one part. p99 of
//! SendMessage at 32 connections is 9 to 13 ms instead of 22 to 28 (row `send`).
//!
//! Items are found by a hash and a predicate. The hash is stored with the item, so a split need not compute it.

use hashbrown::HashTable;

/// Average number of items per part. A part may hold up to twice as many until its turn to be split comes.
const PER_PART: usize = 850;

#[derive(Debug)]
pub(super) struct Table<T> {
    parts: Vec<HashTable<Slot<T>>>,
    len: usize,
}

#[derive(Debug)]
struct Slot<T> {
    hash: u64,
    item: T,
}

fn hash_of<T>(slot: &Slot<T>) -> u64 {
    slot.hash
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { parts: vec![HashTable::new()], len: 0 }
    }
}

impl<T> Table<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let part = &self.parts[part_of(hash, self.parts.len())];
        part.find(hash, |slot| is_it(&slot.item)).map(|slot| &slot.item)
    }

    pub(super) fn find_mut(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        let at = part_of(hash, self.parts.len());
        self.parts[at].find_mut(hash, |slot| is_it(&slot.item)).map(|slot| &mut slot.item)
    }

    /// All items with this hash, and perhaps some with other hashes.
    pub(super) fn with_hash(&self, hash: u64) -> impl Iterator<Item = &T> {
        self.parts[part_of(hash, self.parts.len())].iter_hash(hash).map(|slot| &slot.item)
    }

    /// Adds an item that is not in the table.
    pub(super) fn insert(&mut self, hash: u64, item: T) {
        if self.len >= PER_PART * self.parts.len() {
            self.split();
        }
        self.len += 1;
        let at = part_of(hash, self.parts.len());
        self.parts[at].insert_unique(hash, Slot { hash, item }, hash_of);
    }

    pub(super) fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let at = part_of(hash, self.parts.len());
        let found = self.parts[at].find_entry(hash, |slot| is_it(&slot.item)).ok()?;
        self.len -= 1;
        Some(found.remove().0.item)
    }

    /// Adds a part, with half of the items of the part whose turn it is.
    fn split(&mut self) {
        let (new, count) = (self.parts.len(), self.parts.len() + 1);
        let old = &mut self.parts[new - (1 << new.ilog2())];
        let mut part = HashTable::with_capacity(old.len().div_ceil(2));
        for slot in old.extract_if(|slot| part_of(slot.hash, count) == new) {
            part.insert_unique(slot.hash, slot, hash_of);
        }
        old.shrink_to_fit(hash_of);
        self.parts.push(part);
    }
}

/// The part for a hash, of `parts`. Each part's own table uses the lowest and highest bits, so this uses those between.
fn part_of(hash: u64, parts: usize) -> usize {
    let bits = (hash >> 20) as usize;
    let at = bits & (parts.next_power_of_two() - 1);
    // The part does not exist yet: its items are still in the part that it will be split from.
    if at < parts { at } else { at & (parts.next_power_of_two() / 2 - 1) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn hash(item: u64, spread: bool) -> u64 {
        if spread { item.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { item % 7 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Compared with the standard library's map, also with many equal hashes.
        #[test]
        fn it_finds_what_was_put_in(
            steps in prop::collection::vec((0..3000_u64, prop::bool::weighted(0.2)), 0..6000), spread in any::<bool>()
        ) {
            let (mut table, mut model) = (Table::default(), HashMap::new());
            for (at, (key, remove)) in steps.into_iter().enumerate() {
                let (hash, is_it) = (hash(key, spread), |item: &(u64, usize)| item.0 == key);
                prop_assert_eq!(table.find(hash, is_it).map(|item| item.1), model.get(&key).copied());
                if remove {
                    prop_assert_eq!(table.remove(hash, is_it).map(|item| item.1), model.remove(&key));
                } else if let Some(item) = table.find_mut(hash, is_it) {
                    item.1 = at;
                    model.insert(key, at);
                } else {
                    table.insert(hash, (key, at));
                    model.insert(key, at);
                }
                prop_assert_eq!(table.len, model.len());
            }
            for (key, at) in model {
                prop_assert!(table.with_hash(hash(key, spread)).any(|item| *item == (key, at)));
            }
        }
    }

    #[test]
    fn no_insert_moves_more_than_one_part() {
        let mut table = Table::default();
        for item in 0..200_000 {
            table.insert(hash(item, true), item);
        }
        let largest = table.parts.iter().map(HashTable::len).max();
        assert!(largest < Some(3 * PER_PART), "{largest:?}");
        assert!(table.parts.iter().all(|part| part.capacity() <= 4 * PER_PART));
        assert!((0..200_000).all(|item| table.find(hash(item, true), |other| *other == item).is_some()));
    }
}
