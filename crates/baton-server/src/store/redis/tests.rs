//! What only this backend can get wrong. The contract itself is in `suite`.

use super::{Options, RedisStore};

/// A store under a fresh prefix of the server that `cargo xtask test --only stores` starts.
pub(in crate::store) async fn open() -> RedisStore {
    let prefix = format!("test_{}", uuid::Uuid::new_v4().simple());
    RedisStore::connect(&address(), Options { prefix, ..Options::default() }).await.unwrap()
}

fn address() -> String {
    std::env::var("BATON_TEST_REDIS")
        .expect("BATON_TEST_REDIS must name a running Redis; `cargo xtask test --only stores` starts one")
}
