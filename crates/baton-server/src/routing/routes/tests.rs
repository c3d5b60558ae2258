//! The tables of `docs/routing.md`, row by row, and what no table shows.

use baton_protocol::domain::{JsonObject, JsonText, MessageId, Part, Role};
use proptest::prelude::*;

use super::*;

const DOC: &str = include_str!("../../../../../docs/routing.md");

/// Cells of the rows of the table with that many columns.
fn rows(columns: usize) -> Vec<Vec<&'static str>> {
    let lines = DOC.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    let split = lines.map(|line| line.split(" |").map(str::trim).collect::<Vec<_>>());
    let mut rows: Vec<_> = split.filter(|cells| cells.len() == columns).collect();
    // The names of the columns.
    rows.remove(0);
    rows
}

/// What stands in backticks, with the words before it.
fn quoted(cell: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = cell.split('`').collect();
    assert!(pieces.len() % 2 == 1, "a backtick is missing: {cell}");
    pieces.chunks_exact(2).map(|pair| (pair[0].trim_matches([',', ' ']), pair[1])).collect()
}

fn values(cell: &str) -> Vec<String> {
    quoted(cell).into_iter().map(|(_, value)| value.to_owned()).collect()
}

fn agent(name: &str) -> (AgentCard, Option<String>) {
    let mut card = AgentCard::new(name, name, "1");
    let mut default = None;
    for row in rows(6).into_iter().filter(|row| row[0].split(" (").next() == Some(name)) {
        if let [(_, id)] = quoted(row[0])[..] {
            default = Some(id.to_owned());
        }
        let mut skill = AgentSkill::new(&values(row[1])[0], row[2], "Not compared");
        (skill.tags, skill.examples, skill.input_modes) = (values(row[3]), values(row[4]), values(row[5]));
        card.skills.push(skill);
    }
    assert!(!card.skills.is_empty(), "no agent {name}");
    (card, default)
}

fn of_parts(parts: Vec<Part>) -> Message {
    Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
}

fn message(cell: &str) -> Message {
    let mut message = of_parts(Vec::new());
    for (kind, value) in quoted(cell) {
        match kind {
            "" => message.parts.push(Part::text(value)),
            "skillId" => {
                message.metadata = Some(JsonObject::parse(&format!("{{\"skillId\":{value}}}")).unwrap());
            }
            "file" => {
                let mut part = Part::raw(Vec::new(), value, "file");
                part.media_type = part.media_type.filter(|media_type| !media_type.is_empty());
                message.parts.push(part);
            }
            "data" => message.parts.push(Part::data(JsonText::parse(value).unwrap())),
            times => {
                let times = times.strip_suffix(" ×").and_then(|times| times.parse().ok());
                let times: usize = times.unwrap_or_else(|| panic!("what is this: {cell}"));
                message.parts.push(Part::text(value.repeat(times)));
            }
        }
    }
    message
}

#[test]
fn s08_every_example_of_the_documentation_goes_where_it_says() {
    let table = rows(4);
    assert!(table.len() >= 40, "only {} rows", table.len());
    let mut wrong = Vec::new();
    for row in table {
        let (card, default) = agent(row[0]);
        let routes = Routes::new(&card, default.as_deref());
        let expected = quoted(row[2]).first().map(|(_, id)| *id);
        let chosen = routes.choose(&message(row[1]));
        if chosen != expected {
            wrong.push(format!("{}: {} goes to {chosen:?}, not {expected:?} ({})", row[0], row[1], row[3]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn s08_accents_may_be_characters_of_their_own() {
    let (card, _) = agent("office");
    let routes = Routes::new(&card, None);
    let text = "Is my re\u{301}sume\u{301} too long?";
    assert_eq!(routes.choose(&of_parts(vec![Part::text(text)])), Some("résumé"));
    assert_eq!(routes.choose(&of_parts(vec![Part::text("re\u{301}sume\u{301}")])), Some("résumé"));
}

#[test]
fn s08_a_reason_names_what_was_asked_for_and_what_there_is() {
    let (card, _) = agent("twins");
    let ids = || card.skills.iter().map(|skill| skill.id.as_str());
    let plain = nothing_fits(&message("`x`"), ids());
    assert!(
        plain.starts_with("No matching skill: ") && plain.contains("`sales-report`, `stock-report`"),
        "{plain}"
    );
    let named = nothing_fits(&message("skillId `\"a\\nb\"`"), ids());
    assert!(named.contains("there is no `a\\nb`") && named.contains("`stock-report`"), "{named}");
    let long = nothing_fits(&message(&format!("skillId `\"{}\"`", "x".repeat(10_000))), ids());
    assert!(long.len() < 300, "{long}");
    let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let long = nothing_fits(&message("`x`"), many.iter().map(String::as_str));
    assert!(long.contains("and 980 more") && long.len() < 600, "{long}");
}

#[test]
fn s08_without_skills_nothing_is_chosen() {
    assert_eq!(Routes::new(&AgentCard::new("a", "b", "1"), None).choose(&message("`x`")), None);
}

proptest! {
    /// Whatever is said: the answer is one of the skills, the same every time, and the same however often the skills'
    /// words are read.
    #[test]
    fn s08_any_text_is_chosen_for_the_same_way_twice(text in "\\PC{0,200}", n in 0..3usize) {
        let (card, default) = agent(["office", "desk", "東京"][n]);
        let message = of_parts(vec![Part::text(text)]);
        let routes = Routes::new(&card, default.as_deref());
        let chosen = routes.choose(&message);
        let again = Routes::new(&card, default.as_deref());
        prop_assert_eq!(chosen, again.choose(&message));
        if let Some(chosen) = chosen {
            prop_assert!(card.skills.iter().any(|skill| skill.id == chosen));
        }
        prop_assert!(chosen.is_some() || default.is_none());
    }

    /// Skills whose cards hold anything at all are compared with anything at all.
    #[test]
    fn s08_any_card_will_do(words in prop::collection::vec("\\PC{0,30}", 0..24), text in "\\PC{0,60}") {
        let mut card = AgentCard::new("a", "b", "1");
        for (at, four) in words.chunks(4).enumerate() {
            let mut skill = AgentSkill::new(&format!("{at}{}", four[0]), four.last().unwrap(), "");
            skill.tags = four.to_vec();
            skill.examples = four.to_vec();
            card.skills.push(skill);
        }
        let routes = Routes::new(&card, None);
        routes.choose(&of_parts(vec![Part::text(text)]));
        // Each example goes to a skill that has it.
        for word in words.iter().filter(|word| !word.trim().is_empty()) {
            let chosen = routes.choose(&of_parts(vec![Part::text(word.as_str())]));
            prop_assert!(chosen.is_some(), "{:?} goes nowhere", word);
        }
    }
}
