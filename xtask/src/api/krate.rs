//! A crate's modules and their items, read from its sources. What only tests or fuzzers compile is left out.

use syn::{Attribute, Item};

use super::text;
use crate::tidy::Tree;

pub struct Crate {
    /// As `use` spells it: `baton_server`.
    pub name: String,
    /// The first is the root.
    pub modules: Vec<Module>,
}

pub struct Module {
    /// The root is its own parent.
    pub parent: usize,
    /// From the documentation, as is everything below it.
    pub hidden: bool,
    pub items: Vec<Entry>,
}

pub struct Entry {
    pub item: Item,
    /// The module it is, for `mod`.
    pub module: Option<usize>,
}

impl Crate {
    pub fn read(tree: &Tree, package: &str) -> Result<Self, String> {
        let mut krate = Self { name: package.replace('-', "_"), modules: Vec::new() };
        let source = format!("crates/{package}/src");
        let root =
            parse(tree, &format!("{source}/lib.rs"))?.ok_or(format!("{source}/lib.rs is not there"))?;
        krate.add(tree, (0, false), &source, root.items)?;
        Ok(krate)
    }

    /// `folder` is where the files of its child modules are.
    fn add(
        &mut self,
        tree: &Tree,
        (parent, hidden): (usize, bool),
        folder: &str,
        items: Vec<Item>,
    ) -> Result<usize, String> {
        let this = self.modules.len();
        self.modules.push(Module { parent, hidden, items: Vec::new() });
        for mut item in items {
            if text::only_for_tests(text::attributes(&item)) {
                continue;
            }
            let mut module = None;
            if let Item::Mod(child) = &mut item {
                let below = format!("{folder}/{}", child.ident);
                let (attributes, items) = match child.content.take() {
                    Some((_, items)) => (Vec::new(), items),
                    None => from_file(tree, &below)?,
                };
                if text::only_for_tests(&attributes) {
                    continue;
                }
                let hidden = hidden || text::is_hidden(&child.attrs);
                module = Some(self.add(tree, (this, hidden), &below, items)?);
            }
            self.modules[this].items.push(Entry { item, module });
        }
        Ok(this)
    }
}

/// `store.rs` or `store/mod.rs`, given `store`.
fn from_file(tree: &Tree, path: &str) -> Result<(Vec<Attribute>, Vec<Item>), String> {
    for path in [format!("{path}.rs"), format!("{path}/mod.rs")] {
        if let Some(file) = parse(tree, &path)? {
            return Ok((file.attrs, file.items));
        }
    }
    Err(format!("neither {path}.rs nor {path}/mod.rs is there"))
}

fn parse(tree: &Tree, path: &str) -> Result<Option<syn::File>, String> {
    let Some(file) = tree.files.iter().find(|file| file.path == path) else { return Ok(None) };
    syn::parse_file(&file.text).map(Some).map_err(|e| format!("{path}:{}: {e}", e.span().start().line))
}
