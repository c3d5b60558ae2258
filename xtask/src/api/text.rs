//! Source text as the listing shows it, and what attributes mean for it.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Item, Meta, Visibility};

/// From one token to another as it is written, on one line.
pub fn between(first: Span, last: Span) -> String {
    let source = first.join(last).and_then(|span| span.source_text()).unwrap_or_default();
    let words: Vec<&str> = source.split_whitespace().collect();
    let mut line = words.join(" ");
    // What rustfmt writes only when it breaks a line, and a `mut` that is the function's own business.
    for (broken, whole) in [
        ("( ", "("),
        (", )", ")"),
        (" )", ")"),
        ("< ", "<"),
        (", >", ">"),
        (" .", "."),
        (", }", " }"),
        ("(mut self", "(self"),
    ] {
        line = line.replace(broken, whole);
    }
    line.trim_end_matches(',').to_owned()
}

pub fn of(tokens: &impl Spanned) -> String {
    between(tokens.span(), tokens.span())
}

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]`, `#[cfg(any(test, fuzzing))]`; but not what a feature brings as well.
pub fn only_for_tests(attributes: &[Attribute]) -> bool {
    cfgs(attributes).any(|cfg| has_word(&cfg, "test") && !cfg.contains("feature") && !cfg.contains("not("))
}

pub fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| of(attribute) == "#[doc(hidden)]")
}

pub fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// What the line of an item begins with.
pub fn marks(attributes: &[Attribute]) -> String {
    let mut marks: String = cfgs(attributes).map(|cfg| format!("#[cfg({cfg})] ")).collect();
    if has(attributes, "non_exhaustive") {
        marks.push_str("#[non_exhaustive] ");
    }
    marks
}

/// The names in `#[derive(…)]`.
pub fn derived(attributes: &[Attribute]) -> Vec<String> {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let lists = derives.filter_map(|attribute| attribute.meta.require_list().ok());
    lists
        .flat_map(|list| {
            list.tokens.to_string().split(',').map(|name| name.replace(' ', "")).collect::<Vec<_>>()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

fn cfgs(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).filter_map(|attribute| {
        let Meta::List(list) = &attribute.meta else { return None };
        Some(of(&list.tokens))
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}
