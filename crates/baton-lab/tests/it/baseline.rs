//! Failures that are expected, and those that are not.

use std::collections::BTreeSet;

use baton_lab::baseline::Baseline;

use crate::fixed;

#[test]
fn t08_a_baseline_is_strict_in_both_directions() {
    let outcomes = fixed::run().outcomes;
    let compare = |text: &str| Baseline::parse(text).unwrap().compare(&outcomes);
    let whole =
        "# known\nV1-LIFE-902   # on both bindings\nV1-ERR-901 1.0 jsonrpc\nV1-ERR-902\nJSONRPC-ERR-003\n";
    let compared = compare(whole);
    assert!(compared.holds(), "{compared:?}");
    assert_eq!(compared.expected.len(), 5);

    let compared = compare("V1-LIFE-902 rest\nV1-ERR-901\nV1-ERR-902\nJSONRPC-ERR-003\n");
    assert_eq!(compared.unexpected, ["V1-LIFE-902 1.0 jsonrpc"], "a failure that is not listed");

    let compared = compare(&format!("{whole}V1-CARD-901\n"));
    assert_eq!(compared.mended, ["V1-CARD-901 1.0 jsonrpc"], "listed, but passed");
    assert!(!compared.holds());

    let compared = compare(&format!("{whole}V1-IOP-901\n"));
    assert!(compared.holds() && compared.unseen == ["V1-IOP-901"], "skipped: neither");
}

#[test]
fn a_baseline_can_be_made_from_a_run() {
    let outcomes = fixed::run().outcomes;
    let text = Baseline::of(&outcomes);
    assert!(Baseline::parse(&text).unwrap().compare(&outcomes).holds(), "{text}");
    assert!(text.lines().skip(2).all(|line| line.contains("  # ")), "each says why: {text}");
}

#[test]
fn a_bad_baseline_is_said_with_its_line() {
    let said = Baseline::parse("V1-LIFE-902\nV1-ERR-901 1.0 carrier-pigeon\n").unwrap_err();
    assert!(said.starts_with("line 2: ") && said.contains("carrier-pigeon"), "{said}");
    let known = BTreeSet::from(["V1-LIFE-902"]);
    let unknown = Baseline::parse("\nV1-LIFE-920\n").unwrap().unknown(&known);
    assert_eq!(unknown, [(2, "V1-LIFE-920".to_owned())]);
}
