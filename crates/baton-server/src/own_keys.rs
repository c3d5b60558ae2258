//! Maps by keys of our own making: numbers we count up, names from the configuration. Nobody outside can choose them to
//! collide, so a quick hash will do. Whatever a client may choose (ids, tenants) stays with the standard library's.

use std::collections::HashMap;

pub(crate) type OwnKeys<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
