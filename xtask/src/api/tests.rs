use super::*;

/// Without the comment at the top.
fn listed(files: &[(&str, &str)]) -> String {
    let text = listing(&Tree::of(files), "one").unwrap();
    text.lines().skip_while(|line| !line.is_empty()).skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_private_modules_hold_is_listed_where_it_is_reexported() {
    let lib = "mod inner;\npub mod outer;\npub use inner::deep::Thing;\npub use bytes::Bytes;";
    let inner = "pub mod deep;\npub struct Unreachable;";
    let deep = "use super::Hidden;
        #[derive(Debug, Clone)] #[non_exhaustive] pub struct Thing { pub name: String, count: u32 }
        impl Thing { pub fn new(mut name: String) -> Self {} fn private(&self) {} }
        impl From<Thing> for String { fn from(it: Thing) -> Self { it.name } }
        impl Default for Thing { fn default() -> Self {} }
        impl Hidden for Thing {}";
    let outer = "pub use crate::Thing as Renamed;
        pub enum Kind { One, Two(u8), Three { at: u64 } }
        pub trait Does: Send { fn it(&self); fn more(&self) {} }
        impl<T: Send> Does for Vec<T> { fn it(&self) {} }
        pub fn free(
            first: &str,
            second: u32,
        ) -> u32 { second }";
    let files = [
        ("crates/one/src/lib.rs", lib),
        ("crates/one/src/inner.rs", &format!("{inner}\ntrait Hidden {{}}")),
        ("crates/one/src/inner/deep.rs", deep),
        ("crates/one/src/outer/mod.rs", outer),
    ];
    let expected = "\
pub use one::Bytes = bytes::Bytes

#[non_exhaustive] pub struct one::Thing
    pub name: String
    private fields
    derive Clone, Debug
    pub fn new(mut name: String) -> Self
    impl Default for Thing

pub mod one::outer

pub trait one::outer::Does: Send
    fn it(&self)
    fn more(&self) (provided)
    impl<T: Send> Does for Vec<T>

pub enum one::outer::Kind
    One
    Two(u8)
    Three { at: u64 }

pub use one::outer::Renamed = one::Thing
pub fn one::outer::free(first: &str, second: u32) -> u32";
    assert_eq!(listed(&files), expected);
}

#[test]
fn tests_are_left_out_and_features_are_shown() {
    let lib = "#[cfg(test)] pub mod tests { pub fn a() {} }
        #[cfg(any(test, fuzzing))] pub mod fuzz;
        #[cfg(any(test, feature = \"suite\"))] pub mod suite { pub fn b() {} }
        #[doc(hidden)] pub mod inside { pub fn c() {} }";
    let expected = "\
#[doc(hidden)] pub mod one::inside
#[cfg(any(test, feature = \"suite\"))] pub mod one::suite
pub fn one::suite::b()";
    assert_eq!(listed(&[("crates/one/src/lib.rs", lib)]), expected);
}

#[test]
fn macros_show_their_public_lines_and_what_they_are_called_with() {
    let lib = "macro_rules! id_type {
            ($name:ident) => {
                /// An id.
                pub struct $name(u64);
                struct Private;
            };
        }
        id_type! { TaskId }";
    assert_eq!(
        listed(&[("crates/one/src/lib.rs", lib)]),
        "macro id_type! makes\n    pub struct $name(u64);\n    of\n        TaskId"
    );
}

#[test]
fn a_difference_names_the_line_and_the_remedy() {
    let lib = "pub fn a() {}\npub fn c() {}";
    let same = listing(&Tree::of(&[("crates/one/src/lib.rs", lib)]), "one").unwrap();
    let faults_with = |snapshot: &str| {
        let mut faults = Vec::new();
        let files = [("crates/one/src/lib.rs", lib), ("crates/one/public-api.txt", snapshot)];
        is_as_written(&Tree::of(&files), &mut faults);
        faults
    };
    assert!(faults_with(&same).is_empty());
    let faults = faults_with(&same.replace("one::c", "one::b"));
    assert_eq!(faults.len(), 1);
    let message = faults[0].to_string();
    assert!(message.starts_with("crates/one/public-api.txt:5:"), "{message}");
    assert!(message.contains("`pub fn one::b()` is written, `pub fn one::c()` is found"), "{message}");
    assert!(message.contains("cargo xtask api --write"), "{message}");
}
