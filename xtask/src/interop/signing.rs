//! Signed cards with the official SDKs: they verify those of our server, and `baton card verify` those that they sign.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::checks::{SIGNING_CHECKS, unexpected};
use super::clients::{CLIENTS, Client};
use super::{environments, page};
use crate::agent::{Agent, Build};
use crate::workspace::Workspace;

/// Clients with their scripts, and how the files that they write begin.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("python-1.3.0", "interop/python/signing_1_3.py", "python"),
    ("js-1.3.0", "interop/js/signing_1_3.mjs", "js"),
];

/// The check that is made after a script.
const OURS: &str = "p09_verifies_cards_that_an_sdk_signed";

/// What `baton card verify` says of a card that was changed after it was signed.
const REFUSED: &str = "is wrong";

/// The example keys of RFC 7515 (A.3) and RFC 8037 (A.1).
const P256: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#;
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

/// An agent that authenticates its callers: its card has requirements without scopes, which the SDKs drop before they
/// verify.
const LOCKED: &str = "[auth.api_key]\nsecret = \"a-key-that-is-long-enough\"\n";

/// With text that is not ASCII.
const FOREIGN: &str = "[card]\nname = \"Zoë ✍ 😀\"\ndescription = \"Zählt bis 3 – “genau”\"\n\
                       [[skill]]\nid = \"count\"\ntags = [\"zähle\", \"ñ\"]\nbuiltin = \"echo\"\n";

pub fn clients() -> Vec<&'static Client> {
    let has_script = |client: &&Client| SCRIPTS.iter().any(|(name, ..)| *name == client.name);
    CLIENTS.iter().filter(has_script).collect()
}

/// The file with the output of a run.
pub fn results(folder: &Path, client: &Client) -> PathBuf {
    folder.join(format!("signing.{}.txt", client.name))
}

pub fn run(workspace: &Workspace, folder: &Path, build: Build) -> Result<(), String> {
    let folder = &folder.join("signing");
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let agent = |name: &str, key: &str, more: &str| {
        let (config, key_file) = (folder.join(format!("{name}.toml")), folder.join(format!("{name}.jwk")));
        save(&key_file, key)?;
        let signing = format!("[signing]\nkey = \"@{}\"\nkey_id = \"{name}\"\n", key_file.display());
        // All publish all keys: the scripts ask one agent for them.
        save(&config, &format!("public_url = \"https://{name}.example/\"\n{signing}{more}"))?;
        let config = config.to_str().ok_or("the path of the repository is not text")?;
        Agent::start_with(workspace, folder, build, name, &["--config", config])
    };
    let keys = folder.join("published.json");
    save(
        &keys,
        &format!(r#"{{"keys":[{}]}}"#, [with_id(ED25519, "locked"), with_id(P256, "foreign")].join(",")),
    )?;
    let published = format!("published_keys = \"{}\"\n", keys.display());
    let plain = agent("plain", P256, &published)?;
    let others = [agent("locked", ED25519, LOCKED)?, agent("foreign", P256, FOREIGN)?];
    let mut surprises = Vec::new();
    for client in clients() {
        let (_, script, prefix) =
            SCRIPTS.iter().find(|(name, ..)| *name == client.name).ok_or("a client without script")?;
        let results = results(folder.parent().unwrap_or(folder), client);
        let log = results.with_extension("log");
        let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let done = environments::command_for(workspace, client, &workspace.root.join(script))
            .args([&plain.url(), "cards"])
            .env("OTHER_AGENTS", others.each_ref().map(Agent::url).join(" "))
            .env("SIGNED_CARDS", folder)
            .stdin(Stdio::null())
            .stderr(stderr)
            .output()
            .map_err(|e| format!("{script}: {e}"))?;
        let mut output = String::from_utf8_lossy(&done.stdout).into_owned();
        output += &match verify(workspace, folder, build, prefix) {
            Ok(()) => format!("ok {OURS}\n"),
            Err(reason) => format!("FAIL {OURS}: {reason}\n"),
        };
        save(&results, &output)?;
        println!("\n{}, signed cards\n{}", client.package, output.trim_end());
        surprises.extend(unexpected(client, SIGNING_CHECKS, &output));
    }
    if surprises.is_empty() {
        return Ok(());
    }
    println!("\n-- the last lines of a server's log --\n{}", plain.log_tail(40));
    Err(format!("signed cards, not as expected:\n  {}", surprises.join("\n  ")))
}

/// Every card that the script wrote verifies with its key, and with nothing else on it.
fn verify(workspace: &Workspace, folder: &Path, build: Build, prefix: &str) -> Result<(), String> {
    for algorithm in ["ES256", "EdDSA"] {
        let keys = folder.join(format!("{prefix}.{algorithm}.keys.json"));
        for text in ["ascii", "other", "empty"] {
            let card = folder.join(format!("{prefix}.{text}.{algorithm}.json"));
            let verified = |card: &Path| {
                let mut command = build.command(workspace);
                command.args(["card", "verify"]).args([card.as_os_str(), "--jwks".as_ref()]).arg(&keys);
                let done = command.stdin(Stdio::null()).output().map_err(|e| format!("baton: {e}"))?;
                Ok::<_, String>((done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned()))
            };
            let (good, told) = verified(&card)?;
            if !good {
                return Err(format!("{}: {}", card.display(), told.trim().replace('\n', "; ")));
            }
            let written = fs::read_to_string(&card).map_err(|e| format!("{}: {e}", card.display()))?;
            for (what, text) in changes(&written)? {
                let changed = card.with_extension(format!("{what}.json"));
                save(&changed, &text)?;
                let (good, told) = verified(&changed)?;
                if good {
                    return Err(format!("{} was changed, and is verified", changed.display()));
                }
                if !told.contains(REFUSED) {
                    return Err(format!("{} was refused for something else: {told}", changed.display()));
                }
            }
        }
    }
    Ok(())
}

/// The card with one value changed, or with one member more.
fn changes(card: &str) -> Result<[(&'static str, String); 4], String> {
    let skills = card.find("\"skills\"").ok_or("the card has no skills")?;
    Ok([
        ("name", longer(card, 0, "name")?),
        ("url", longer(card, 0, "url")?),
        ("skill", longer(card, skills, "id")?),
        ("more", card.replacen("\"version\"", "\"iconUrl\":\"https://evil.example/\",\"version\"", 1)),
    ])
}

/// The card with one letter more at the end of the first text that a member of this name has after `start`.
fn longer(card: &str, start: usize, member: &str) -> Result<String, String> {
    let name = format!("\"{member}\"");
    let value = card[start..].find(&name).map(|at| start + at + name.len());
    let opened = value.and_then(|value| card[value..].find('"').map(|at| value + at + 1));
    let closed = opened.and_then(|opened| card[opened..].find('"').map(|at| opened + at));
    let end = closed.ok_or_else(|| format!("the card has no {member}"))?;
    Ok(format!("{}x{}", &card[..end], &card[end..]))
}

/// The section of `docs/interop.md`.
pub fn render(page: &mut String, folder: &Path) {
    page.push_str(
        "\n\nBaton's cards, signed with ES256 and EdDSA, and the SDKs' functions that verify and sign: of an agent for \
         everybody, of one\nwith an API key, and of one with text that is not ASCII. [How](card-signing.md); \
         `cargo xtask interop --signing --write` writes\nthis part alone.\n\n",
    );
    let columns: Vec<&str> = SIGNING_CHECKS.iter().map(|check| check.shown).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(page, "| SDK | {} |", columns.join(" | "));
    let _ = writeln!(page, "|---|{}", ":-:|".repeat(columns.len()));
    for client in clients() {
        let output = fs::read_to_string(results(folder, client)).unwrap_or_default();
        let cells: Vec<&str> = SIGNING_CHECKS.iter().map(|check| page::cell(&output, check.name)).collect();
        let _ = writeln!(page, "| **{}** | {} |", client.package, cells.join(" | "));
    }
    page.push('\n');
    page::legend(page, SIGNING_CHECKS);
    page.push('\n');
    page.push_str(LIMITS);
}

/// What the checks above know, in words.
const LIMITS: &str = "\
- @a2a-js/sdk 1.3.0 verifies a card with security schemes only as JSON: of a card that its resolver has read, it drops the
  schemes before. The check fails when that is mended.
- Both SDKs leave out what is empty before they verify; Baton's cards have a signature for that form, too.
- a2a-sdk 0.3.26 for Python signs a form of its own and not that of RFC 8785: what is not ASCII is escaped, and members with
  default values are left out. It runs in no check; cards of 0.3 have no rule for it.
";

fn with_id(key: &str, id: &str) -> String {
    key.replacen('{', &format!(r#"{{"kid":"{id}","#), 1)
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_changes_one_value() {
        let card = r#"{"name": "A", "u": [{"url":"https://a/"}], "version": "1", "skills": [{"id": "s", "name": "S"}]}"#;
        let changed = changes(card).unwrap().map(|(_, text)| text);
        let expected = [
            card.replacen("\"A\"", "\"Ax\"", 1),
            card.replacen("https://a/", "https://a/x", 1),
            card.replacen("\"s\"", "\"sx\"", 1),
            card.replacen("\"version\"", "\"iconUrl\":\"https://evil.example/\",\"version\"", 1),
        ];
        assert_eq!(changed, expected);
        assert!(longer(card, 0, "tags").is_err());
    }

    #[test]
    fn a_check_that_fails_or_does_not_run_is_told() {
        let client = clients()[0];
        let good: String = SIGNING_CHECKS.iter().map(|check| format!("ok {}\n", check.name)).collect();
        assert_eq!(unexpected(client, SIGNING_CHECKS, &good), [""; 0]);
        let bad = good
            .replace("ok s02_verifies_signed_cards\n", "")
            .replace(&format!("ok {OURS}"), &format!("FAIL {OURS}: why"));
        let expected = [
            "python-1.3.0: s02_verifies_signed_cards did not run",
            "python-1.3.0: p09_verifies_cards_that_an_sdk_signed: why",
        ];
        assert_eq!(unexpected(client, SIGNING_CHECKS, &bad), expected);
    }
}
