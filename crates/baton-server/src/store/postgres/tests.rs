//! What only this backend can get wrong. The contract itself is in `suite`.

use super::{Options, PostgresStore};

/// A store in a fresh schema of the server that `cargo xtask test --only stores` starts.
pub(in crate::store) async fn open() -> PostgresStore {
    let schema = format!("test_{}", uuid::Uuid::new_v4().simple());
    let options = Options { schema, connections: 8, ..Options::default() };
    PostgresStore::connect(&address(), options).await.unwrap()
}

fn address() -> String {
    std::env::var("BATON_TEST_POSTGRES").expect(
        "BATON_TEST_POSTGRES must name a running PostgreSQL; `cargo xtask test --only stores` starts one",
    )
}
