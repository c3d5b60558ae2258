//! The listing of one crate: every item that a path of public modules leads to, with what can be done with it.

use std::collections::{BTreeMap, HashMap, HashSet};

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Field, Fields, ImplItem, Item, ItemImpl, ItemMacro, TraitItem, Type};

use super::krate::Crate;
use super::names::{ItemId, Meaning, Names, imports, name_of};
use super::text;

const HEAD: &str = "\
# What this crate offers: every public item, by its shortest path. Written by `cargo xtask api --write`, checked by
# `cargo xtask tidy`. A line that changes or goes breaks the users that rely on it.
";

pub fn of(krate: &Crate) -> String {
    let names = Names::of(krate);
    let mut walk =
        Walk { krate, names: &names, paths: HashMap::new(), other: Vec::new(), seen: HashSet::new() };
    walk.module(0, &krate.name);
    let Walk { paths, mut other, .. } = walk;

    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    let mut shortest: HashMap<ItemId, String> = HashMap::new();
    for (id, mut found) in paths {
        found.sort_by_key(|path| (path.matches("::").count(), path.clone()));
        let mut found = found.into_iter();
        let path = found.next().unwrap_or_default();
        other.extend(found.map(|again| (again.clone(), format!("pub use {again} = {path}"))));
        shortest.insert(id, path);
    }
    let bodies = bodies(krate, &names, &shortest);
    for (id, path) in &shortest {
        let item = &krate.modules[id.0].items[id.1].item;
        let mut body = vec![head(item, path)];
        body.extend(members(item));
        body.extend(bodies.get(id).into_iter().flatten().cloned());
        lines.push((path.clone(), body));
    }
    lines.extend(other.into_iter().map(|(path, line)| (path, vec![line])));
    lines.sort();
    lines.extend(made_by_macros(krate).into_iter().map(|body| (String::new(), body)));

    let mut listing = HEAD.to_owned();
    let mut block = true;
    for (_, body) in lines {
        // Single lines stand together.
        if block || body.len() > 1 {
            listing.push('\n');
        }
        block = body.len() > 1;
        for (number, line) in body.iter().enumerate() {
            listing.push_str(if number == 0 { "" } else { "    " });
            listing.push_str(line);
            listing.push('\n');
        }
    }
    listing
}

/// Finds the public paths of all items.
struct Walk<'a> {
    krate: &'a Crate,
    names: &'a Names,
    paths: HashMap<ItemId, Vec<String>>,
    /// Lines that are no items of this crate: modules, and what other crates or macros make.
    other: Vec<(String, String)>,
    seen: HashSet<(usize, String)>,
}

impl Walk<'_> {
    fn module(&mut self, module: usize, path: &str) {
        if !self.seen.insert((module, path.to_owned())) {
            return;
        }
        for (place, entry) in self.krate.modules[module].items.iter().enumerate() {
            let attributes = text::attributes(&entry.item);
            match &entry.item {
                Item::Use(it) if text::is_public(&it.vis) => {
                    for import in imports(&it.tree) {
                        let path = format!("{path}::{}", import.name);
                        let marks = text::marks(attributes);
                        match self.names.meaning(module, &import.path) {
                            Meaning::Item(id) => self.paths.entry(id).or_default().push(path),
                            Meaning::Module(found) => self.public_module(found, &path, &marks, false),
                            Meaning::Elsewhere(from) => {
                                let from = from.trim_start_matches("crate::").trim_start_matches("self::");
                                let line = format!("{marks}pub use {path} = {from}");
                                self.other.push((path, line));
                            }
                        }
                    }
                }
                Item::Mod(it) if text::is_public(&it.vis) => {
                    let path = format!("{path}::{}", it.ident);
                    let hidden = text::is_hidden(attributes);
                    if let Some(found) = entry.module {
                        self.public_module(found, &path, &text::marks(attributes), hidden);
                    }
                }
                Item::Macro(it) if text::has(attributes, "macro_export") => {
                    let path = format!(
                        "{}::{}",
                        self.krate.name,
                        it.ident.as_ref().map_or(String::new(), ToString::to_string)
                    );
                    self.other.push((path.clone(), format!("{}macro {path}!", text::marks(attributes))));
                }
                item if is_public(item) && !text::is_hidden(attributes) => {
                    if let Some(name) = name_of(item) {
                        self.paths.entry((module, place)).or_default().push(format!("{path}::{name}"));
                    }
                }
                _ => {}
            }
        }
    }

    /// What is hidden from the documentation is nobody's to rely on: it is named, and no more.
    fn public_module(&mut self, module: usize, path: &str, marks: &str, hidden: bool) {
        let hidden_mark = if hidden { "#[doc(hidden)] " } else { "" };
        self.other.push((path.to_owned(), format!("{hidden_mark}{marks}pub mod {path}")));
        if !hidden {
            self.module(module, path);
        }
    }
}

fn is_public(item: &Item) -> bool {
    match item {
        Item::Const(it) => text::is_public(&it.vis),
        Item::Enum(it) => text::is_public(&it.vis),
        Item::Fn(it) => text::is_public(&it.vis),
        Item::Static(it) => text::is_public(&it.vis),
        Item::Struct(it) => text::is_public(&it.vis),
        Item::Trait(it) => text::is_public(&it.vis),
        Item::Type(it) => text::is_public(&it.vis),
        Item::Union(it) => text::is_public(&it.vis),
        _ => false,
    }
}

/// The item's first line, with its path in place of its name.
fn head(item: &Item, path: &str) -> String {
    let marks = text::marks(text::attributes(item));
    let (kind, rest) = match item {
        Item::Const(it) => ("const", format!(": {}", text::of(&it.ty))),
        Item::Static(it) => ("static", format!(": {}", text::of(&it.ty))),
        Item::Enum(it) => ("enum", generics(&it.generics)),
        Item::Struct(it) => ("struct", generics(&it.generics)),
        Item::Union(it) => ("union", generics(&it.generics)),
        Item::Type(it) => ("type", format!("{} = {}", generics(&it.generics), text::of(&it.ty))),
        Item::Trait(it) => {
            let bounds = if it.supertraits.is_empty() {
                String::new()
            } else {
                format!(": {}", text::of(&it.supertraits))
            };
            ("trait", format!("{}{bounds}", generics(&it.generics)))
        }
        Item::Fn(it) => return format!("{marks}pub {}", signature(&it.sig, path)),
        _ => ("item", String::new()),
    };
    format!("{marks}pub {kind} {path}{rest}")
}

fn generics(generics: &syn::Generics) -> String {
    let params =
        if generics.params.is_empty() { String::new() } else { format!("<{}>", text::of(&generics.params)) };
    let bounds = generics.where_clause.as_ref().map_or(String::new(), |it| format!(" {}", text::of(it)));
    format!("{params}{bounds}")
}

/// As written, with another name.
fn signature(signature: &syn::Signature, name: &str) -> String {
    let whole = text::of(signature);
    whole.replacen(&format!("fn {}", signature.ident), &format!("fn {name}"), 1)
}

/// Fields, variants, the functions of a trait; then what is derived.
fn members(item: &Item) -> Vec<String> {
    let mut lines = match item {
        Item::Struct(it) => fields(&it.fields),
        Item::Enum(it) => it.variants.iter().map(variant).collect(),
        Item::Trait(it) => it.items.iter().filter_map(trait_item).collect(),
        _ => Vec::new(),
    };
    let mut derived = text::derived(text::attributes(item));
    derived.sort();
    if !derived.is_empty() {
        lines.push(format!("derive {}", derived.join(", ")));
    }
    lines
}

fn fields(fields: &Fields) -> Vec<String> {
    let shown = |list: &Punctuated<Field, _>| {
        let public = list.iter().filter(|field| text::is_public(&field.vis));
        let mut lines: Vec<String> = public
            .map(|field| {
                let marks = text::marks(&field.attrs);
                let name = field.ident.as_ref().map_or(String::new(), |name| format!("{name}: "));
                format!("{marks}pub {name}{}", text::of(&field.ty))
            })
            .collect();
        if lines.len() < list.len() {
            lines.push("private fields".to_owned());
        }
        lines
    };
    match fields {
        Fields::Named(it) => shown(&it.named),
        Fields::Unnamed(it) => shown(&it.unnamed),
        Fields::Unit => Vec::new(),
    }
}

fn variant(variant: &syn::Variant) -> String {
    let list = |fields: &Punctuated<Field, _>| {
        let shown = fields.iter().map(|field| match &field.ident {
            Some(name) => format!("{name}: {}", text::of(&field.ty)),
            None => text::of(&field.ty),
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    let fields = match &variant.fields {
        Fields::Named(it) => format!(" {{ {} }}", list(&it.named)),
        Fields::Unnamed(it) => format!("({})", list(&it.unnamed)),
        Fields::Unit => String::new(),
    };
    format!("{}{}{fields}", text::marks(&variant.attrs), variant.ident)
}

fn trait_item(item: &TraitItem) -> Option<String> {
    Some(match item {
        TraitItem::Fn(it) => {
            let provided = if it.default.is_some() { " (provided)" } else { "" };
            format!("{}{provided}", text::of(&it.sig))
        }
        TraitItem::Type(it) => format!("type {}", it.ident),
        TraitItem::Const(it) => format!("const {}: {}", it.ident, text::of(&it.ty)),
        _ => return None,
    })
}

/// What `impl` blocks add to public items, wherever in the crate they are.
fn bodies(krate: &Crate, names: &Names, public: &HashMap<ItemId, String>) -> HashMap<ItemId, Vec<String>> {
    let mut found: HashMap<ItemId, Vec<String>> = HashMap::new();
    for (module, it) in impls(krate) {
        let path_of = |path: &syn::Path| -> Vec<String> {
            path.segments.iter().map(|segment| segment.ident.to_string()).collect()
        };
        let item_of = |path: &syn::Path| match names.meaning(module, &path_of(path)) {
            Meaning::Item(id) => Some(id),
            _ => None,
        };
        let of_type = match &*it.self_ty {
            Type::Path(path) => item_of(&path.path),
            _ => None,
        };
        match &it.trait_ {
            None => {
                if let Some(id) = of_type.filter(|id| public.contains_key(id)) {
                    found.entry(id).or_default().extend(inherent(it));
                }
            }
            Some((path, _)) => {
                let of_trait = item_of(path);
                // A private trait of ours is nobody's business.
                if of_trait.is_some_and(|id| !public.contains_key(&id)) {
                    continue;
                }
                let owner =
                    of_type.filter(|id| public.contains_key(id)).or(of_trait.filter(|_| of_type.is_none()));
                if let Some(id) = owner {
                    let mut header = text::between(it.impl_token.span, it.self_ty.span());
                    if let Some(bounds) = &it.generics.where_clause {
                        header.push_str(&format!(" {}", text::of(bounds)));
                    }
                    found.entry(id).or_default().push(format!("{}{header}", text::marks(&it.attrs)));
                }
            }
        }
    }
    for lines in found.values_mut() {
        lines.sort_by_key(|line| (line.starts_with("impl"), line.clone()));
    }
    found
}

fn impls(krate: &Crate) -> impl Iterator<Item = (usize, &ItemImpl)> {
    krate.modules.iter().enumerate().flat_map(|(module, found)| {
        found.items.iter().filter_map(move |entry| match &entry.item {
            Item::Impl(it) => Some((module, it)),
            _ => None,
        })
    })
}

fn inherent(block: &ItemImpl) -> Vec<String> {
    let block_marks = text::marks(&block.attrs);
    let shown = |item: &ImplItem| match item {
        ImplItem::Fn(it)
            if text::is_public(&it.vis)
                && !text::is_hidden(&it.attrs)
                && !text::only_for_tests(&it.attrs) =>
        {
            Some(format!("{block_marks}{}pub {}", text::marks(&it.attrs), text::of(&it.sig)))
        }
        ImplItem::Const(it) if text::is_public(&it.vis) => {
            Some(format!("{block_marks}pub const {}: {}", it.ident, text::of(&it.ty)))
        }
        _ => None,
    };
    block.items.iter().filter_map(shown).collect()
}

/// For each macro whose text has a `pub`: those lines of it, and what it is called with.
fn made_by_macros(krate: &Crate) -> Vec<Vec<String>> {
    let items = || krate.modules.iter().filter(|module| !module.hidden).flat_map(|module| &module.items);
    let macros = || {
        items().filter_map(|entry| match &entry.item {
            Item::Macro(it) => Some(it),
            _ => None,
        })
    };
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for definition in macros() {
        let Some(name) = &definition.ident else { continue };
        let public: Vec<String> = code_lines(definition).filter(|line| line.starts_with("pub ")).collect();
        if !public.is_empty() {
            let mut lines = vec![format!("macro {name}! makes")];
            lines.extend(public.iter().map(|line| line.trim_end_matches(" {").to_owned()));
            found.insert(name.to_string(), lines);
        }
    }
    for call in macros().filter(|it| it.ident.is_none()) {
        if let Some(lines) = found.get_mut(&text::of(&call.mac.path)) {
            lines.push("of".to_owned());
            lines.extend(code_lines(call).map(|line| format!("    {line}")));
        }
    }
    found.into_values().collect()
}

/// Without comments.
fn code_lines(it: &ItemMacro) -> impl Iterator<Item = String> {
    let source = it.mac.tokens.span().source_text().unwrap_or_default();
    let lines: Vec<String> = source
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect();
    lines.into_iter()
}
