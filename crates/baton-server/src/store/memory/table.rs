//! A hash table that grows a little at a time. One that doubles moves everything at once, and with a million tasks
//! nobody is answered meanwhile; this one is made of parts, and now and then one of them is split (linear hashing).
//!
//! Items are found by a hash and a question. The hash is kept with the item, so that a split asks nobody.

use hashbrown::HashTable;

/// Items for which there is one part. A part holds up to twice as many before its turn to be split comes.
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

    /// Whatever has this hash, and perhaps more.
    pub(super) fn near(&self, hash: u64) -> impl Iterator<Item = &T> {
        self.parts[part_of(hash, self.parts.len())].iter_hash(hash).map(|slot| &slot.item)
    }

    /// Takes in what is not there yet.
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

    /// One part more, with half of what is in the one whose turn it is.
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

/// The part for a hash, of so many. Within a part its lowest and highest bits are used, so here those between.
fn part_of(hash: u64, parts: usize) -> usize {
    let bits = (hash >> 20) as usize;
    let at = bits & (parts.next_power_of_two() - 1);
    // A part that is not there yet: its things are still with the one that it will be split from.
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

        /// As the standard library's does, also where all hashes are alike.
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
                prop_assert_eq!(table.len(), model.len());
            }
            for (key, at) in model {
                prop_assert!(table.near(hash(key, spread)).any(|item| *item == (key, at)));
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
