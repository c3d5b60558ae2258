//! Which item a path means: through modules, `use` and `pub use`, within one crate.

use std::collections::HashMap;

use syn::{Item, UseTree};

use super::krate::Crate;

/// An item, by module and place in it.
pub type ItemId = (usize, usize);

#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    Item(ItemId),
    Module(usize),
    /// Of another crate, made by a macro, or a primitive: the path as far as it is known.
    Elsewhere(String),
}

/// What each module calls things.
pub struct Names {
    by_module: Vec<HashMap<String, Named>>,
    parents: Vec<usize>,
}

enum Named {
    Item(ItemId),
    Module(usize),
    Imported(Vec<String>),
}

/// One name that a `use` brings.
pub struct Import {
    pub path: Vec<String>,
    pub name: String,
}

impl Names {
    pub fn of(krate: &Crate) -> Self {
        let by_module = krate.modules.iter().enumerate().map(|(module, found)| {
            let mut names = HashMap::new();
            for (place, entry) in found.items.iter().enumerate() {
                let named = entry.module.map_or(Named::Item((module, place)), Named::Module);
                if let Some(name) = name_of(&entry.item) {
                    names.insert(name, named);
                } else if let Item::Use(it) = &entry.item {
                    for import in imports(&it.tree) {
                        names.entry(import.name).or_insert(Named::Imported(import.path));
                    }
                }
            }
            names
        });
        let parents = krate.modules.iter().map(|module| module.parent).collect();
        Self { by_module: by_module.collect(), parents }
    }

    pub fn meaning(&self, from: usize, path: &[String]) -> Meaning {
        self.follow(from, path, 0)
    }

    fn follow(&self, from: usize, path: &[String], depth: usize) -> Meaning {
        let elsewhere = || Meaning::Elsewhere(path.join("::"));
        let Some((first, rest)) = path.split_first() else { return Meaning::Module(from) };
        let known = match first.as_str() {
            "crate" => Meaning::Module(0),
            "self" => Meaning::Module(from),
            "super" => Meaning::Module(self.parents[from]),
            _ if depth > 16 => return elsewhere(),
            name => match self.by_module[from].get(name) {
                // A `use` whose path begins with its own name is of another crate (`use bytes;`,
                // `use async_trait::async_trait;`).
                Some(Named::Imported(import)) if import[0] == name => {
                    let whole = if rest.is_empty() { import } else { path };
                    return Meaning::Elsewhere(whole.join("::"));
                }
                Some(Named::Item(id)) => Meaning::Item(*id),
                Some(Named::Module(module)) => Meaning::Module(*module),
                Some(Named::Imported(path)) => self.follow(from, path, depth + 1),
                None => return elsewhere(),
            },
        };
        match known {
            Meaning::Module(module) => match self.follow(module, rest, depth + 1) {
                Meaning::Elsewhere(_) => elsewhere(),
                found => found,
            },
            // A variant or an associated item belongs to its type.
            Meaning::Item(id) => Meaning::Item(id),
            Meaning::Elsewhere(begin) => {
                let whole: Vec<&str> =
                    std::iter::once(begin.as_str()).chain(rest.iter().map(String::as_str)).collect();
                Meaning::Elsewhere(whole.join("::"))
            }
        }
    }
}

pub fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Mod(it) => &it.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(name.to_string())
}

pub fn imports(tree: &UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, found);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, before, found)),
        UseTree::Name(it) => found.push(import(before, it.ident.to_string(), None)),
        UseTree::Rename(it) => found.push(import(before, it.ident.to_string(), Some(it.rename.to_string()))),
        // Not in our `pub use` (tidy), and of no weight for the names of types otherwise.
        UseTree::Glob(_) => {}
    }
}

fn import(before: &[String], last: String, renamed: Option<String>) -> Import {
    let mut path = before.to_vec();
    // `use a::b::{self}` is `b`.
    if last != "self" || path.is_empty() {
        path.push(last);
    }
    let name = renamed.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
    Import { path, name }
}
