//! Checks of 0.1, one file per area. Each is named in a document of `suites/v0_1`.
