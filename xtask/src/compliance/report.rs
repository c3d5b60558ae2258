//! The report, in the form of the specification's template.

use std::fmt::Write as _;

use super::evidence::{Evidence, Requirement};

/// The revision of the specification that is measured against.
const SPEC_VERSION: &str = "0.2";
const SPEC_REVISION: &str = "2026-08-17";

const AGENTS: &str =
    "Baton's demo agent, scripted agents of the tests, a2a-sdk 1.3.0 (Python) and @a2a-js/sdk 1.3.0";

/// The keys of the breakdown; a test is named after each.
const DEFAULTS: &[&str] = &[
    "transport_server_preference_order",
    "task_completion_wait_by_default",
    "output_human_readable_text",
    "detail_level_concise",
    "protocol_version_highest_mutual",
    "transport_security_tls_on",
];

/// A test is named after each, in lower case.
const ERROR_CODES: &[&str] = &[
    "A2ACLI_ERR_USAGE",
    "A2ACLI_ERR_CARD_NOT_FOUND",
    "A2ACLI_ERR_CARD_INVALID",
    "A2ACLI_ERR_UNREACHABLE",
    "A2ACLI_ERR_CREDENTIALS_MISSING",
    "A2ACLI_ERR_AUTH_FAILED",
    "A2ACLI_ERR_TIMEOUT",
    "A2ACLI_ERR_INTERNAL",
];

const TIERS: [(usize, &str); 3] = [(1, "Core"), (2, "Standard"), (3, "Advanced")];

pub struct Report {
    pub requirements: Vec<Requirement>,
    pub evidence: Evidence,
    /// Of the tool.
    pub version: String,
}

/// The date of a report that was written before.
pub fn date_of(page: &str) -> Option<&str> {
    page.lines().find_map(|line| line.strip_prefix("  report_date: "))
}

impl Report {
    fn passes(&self, requirement: &Requirement) -> bool {
        let defaults = || DEFAULTS.iter().all(|key| self.has_default(key));
        self.evidence.is_shown(&requirement.id) && (requirement.id != "DEFAULT_001" || defaults())
    }

    fn has_default(&self, key: &str) -> bool {
        self.evidence.names(&format!("cli_default_001_{key}"))
            || self.evidence.names(&format!("cli_default_001_auth_003_{key}"))
    }

    fn in_tier(&self, tier: usize) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().filter(move |requirement| requirement.tier == tier)
    }

    fn is_satisfied(&self, tier: usize) -> bool {
        self.in_tier(tier).count() > 0 && self.in_tier(tier).all(|requirement| self.passes(requirement))
    }

    /// The highest tier that is satisfied with all below it.
    fn tier(&self) -> usize {
        TIERS.iter().take_while(|(tier, _)| self.is_satisfied(*tier)).count()
    }

    pub fn summary(&self) -> String {
        let met = self.requirements.iter().filter(|requirement| self.passes(requirement)).count();
        format!(
            "{met} of {} requirements are met, tier {} is satisfied",
            self.requirements.len(),
            self.tier()
        )
    }

    /// What must not be: a requirement that is neither shown nor open, or open and shown.
    pub fn problems(&self) -> Option<String> {
        let wrong = |requirement: &Requirement| match (self.passes(requirement), requirement.is_open) {
            (false, false) => Some(format!("{}: no test that ran and passed shows it", requirement.id)),
            (true, true) => Some(format!("{}: listed as open, but tests show it", requirement.id)),
            _ => None,
        };
        let missing = ERROR_CODES.iter().filter(|code| !self.emits(code));
        let missing = missing.map(|code| format!("{code}: no test that ran and passed emits it"));
        let all: Vec<String> = self.requirements.iter().filter_map(wrong).chain(missing).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    fn emits(&self, code: &str) -> bool {
        self.evidence.names(&code.to_ascii_lowercase())
    }

    pub fn render(&self, date: &str) -> String {
        let mut page = format!(
            "# How far `baton` meets the A2A CLI specification, in the form of its compliance report.\n\
             # Generated from test results by `cargo xtask compliance --write`; `cargo xtask test` fails when it is out of date.\n\
             # Evidence: tests by their binary and name, and checks of `cargo xtask interop --client` with the agents they passed with.\n\n\
             report:\n  tool: baton\n  tool_version: {}\n  language: Rust\n  repository: this one\n  \
             maintainer: the Baton project\n  report_date: {date}\n  spec_version: \"{SPEC_VERSION}\"\n  \
             spec_revision: {SPEC_REVISION}\n  a2a_versions: [\"1.0\"]\n  agent_tested: {}\n  \
             agent_tck_conformant: unknown\n  transports_covered: [HTTP+JSON, JSON-RPC, gRPC]\n  tier_claimed: {}\n\nsummary:\n",
            self.version,
            quoted(AGENTS),
            self.tier()
        );
        for (tier, _) in TIERS {
            let total = self.in_tier(tier).count();
            let pass = self.in_tier(tier).filter(|requirement| self.passes(requirement)).count();
            // Writing to a String cannot fail.
            let _ = writeln!(
                page,
                "  tier_{tier}: {{total: {total}, pass: {pass}, partial: 0, fail: {}, not_measured: 0, na: 0, satisfied: {}}}",
                total - pass,
                self.is_satisfied(tier)
            );
        }
        page.push_str("\nrequirements:\n");
        for (tier, name) in TIERS {
            let _ = writeln!(page, "\n  # Tier {tier}: {name}");
            self.in_tier(tier).for_each(|requirement| self.requirement(&mut page, requirement));
        }
        page.push_str("\ndefault_001_breakdown:\n");
        for key in DEFAULTS {
            let word = yes(self.has_default(key));
            let _ = writeln!(page, "  {key}: {{shipped: {word}, overridable: {word}, note: null}}");
        }
        page.push_str("\nerror_codes:\n");
        for code in ERROR_CODES {
            let _ = writeln!(page, "  {code}: {{emitted: {}, note: null}}", yes(self.emits(code)));
        }
        let _ = write!(
            page,
            "\nattestation:\n  reported_by: cargo xtask compliance\n  date: {date}\n  \
             statement: \"The tier claimed reflects the evidence recorded above.\"\n"
        );
        page
    }

    fn requirement(&self, page: &mut String, requirement: &Requirement) {
        let Requirement { id, tier, spec, text, note, is_open: _ } = requirement;
        let passes = self.passes(requirement);
        let missing = (!passes && note.is_none()).then_some("no test that ran and passed shows it");
        let note = note.as_deref().or(missing).map_or("null".to_owned(), quoted);
        let status = if passes { "pass" } else { "fail" };
        let _ = write!(
            page,
            "  A2ACLI_{id}:\n    tier: {tier}\n    area: {}\n    spec: {}\n    requirement: {}\n    status: {status}\n    \
             note: {note}\n",
            requirement.area(),
            quoted(spec),
            quoted(text)
        );
        let evidence: Vec<&str> = self.evidence.of(id).collect();
        match evidence.is_empty() {
            true => page.push_str("    evidence: null\n"),
            false => {
                page.push_str("    evidence:\n");
                evidence.iter().for_each(|name| {
                    let _ = writeln!(page, "      - {}", quoted(name));
                });
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The word of the template.
fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::parse_registry;
    use super::*;

    fn report(tests: &[&str]) -> Report {
        let registry = "SEND_001\t1\t§10.2\tA message \"opens\" it\nDEFAULT_001\t1\t§6.5\tdefaults\nOUT_007\t2\t§7.2\tdebug\tour own\n\
                        TX_005\t3\t§13.1\tgRPC\topen: not built yet\n";
        let requirements = parse_registry(registry, "r").unwrap();
        let tests: Vec<String> = tests.iter().map(|test| format!("baton::it {test}")).collect();
        let evidence = Evidence::collect(&requirements, &tests, &[]).unwrap();
        Report { requirements, evidence, version: "0.1.0".to_owned() }
    }

    #[test]
    fn what_is_not_shown_fails_and_is_a_problem() {
        let problems = report(&["p09_cli_out_007_x"]).problems().unwrap();
        assert!(
            problems.contains("SEND_001: no test") && problems.contains("DEFAULT_001: no test"),
            "{problems}"
        );
        assert!(problems.contains("A2ACLI_ERR_TIMEOUT: no test"), "{problems}");
        assert!(!problems.contains("TX_005") && !problems.contains("OUT_007"), "{problems}");
        let problems = report(&["p09_cli_tx_005_x"]).problems().unwrap();
        assert!(problems.contains("TX_005: listed as open, but tests show it"), "{problems}");
    }

    /// A tier is satisfied only with those below it, and the six defaults are shown one by one.
    #[test]
    fn a_claim_needs_everything_below_it() {
        let mut tests = vec!["p09_cli_send_001_x", "p09_cli_out_007_x", "p09_cli_default_001_x"];
        let without = report(&tests);
        assert_eq!(without.tier(), 0, "{}", without.render("2026-01-01"));
        let named: Vec<String> = DEFAULTS.iter().map(|key| format!("p09_cli_default_001_{key}")).collect();
        tests.extend(named.iter().map(String::as_str));
        let with = report(&tests);
        assert_eq!(with.tier(), 2);
        let page = with.render("2026-01-01");
        assert_eq!(date_of(&page), Some("2026-01-01"));
        for words in [
            "  tier_claimed: 2\n",
            "  tier_1: {total: 2, pass: 2, partial: 0, fail: 0, not_measured: 0, na: 0, satisfied: true}\n",
            "  tier_3: {total: 1, pass: 0, partial: 0, fail: 1, not_measured: 0, na: 0, satisfied: false}\n",
            "    requirement: \"A message \\\"opens\\\" it\"\n    status: pass\n    note: null\n    evidence:\n      - \"baton::it p09_cli_send_001_x\"\n",
            "  A2ACLI_TX_005:\n    tier: 3\n    area: TX\n    spec: \"§13.1\"\n    requirement: \"gRPC\"\n    status: fail\n    note: \"not built yet\"\n    evidence: null\n",
            "  detail_level_concise: {shipped: yes, overridable: yes, note: null}\n",
            "  A2ACLI_ERR_USAGE: {emitted: no, note: null}\n",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
    }
}
