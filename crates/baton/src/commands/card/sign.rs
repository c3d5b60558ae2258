//! `baton card sign`: signs a card that is a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use baton_protocol::signature::card::CardDocument;
use baton_server::card::SigningKey;

use crate::client::error::{CallError, Code};
use crate::client::options::Options;
use crate::client::{self, Call};
use crate::exit::Failure;

/// Below the help of the command.
const KEYS_HELP: &str = "\
A key: `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem`, and its public part, which others verify
with: `openssl pkey -in key.pem -pubout -out public.pem`.

Exit status: 0 done; 1 failed; 2 usage; 3 no such file.";

#[derive(Debug, clap::Args)]
#[command(after_help = KEYS_HELP)]
pub(crate) struct CardSign {
    /// The card's file, or `-` for the standard input. The signed card goes to the standard output.
    #[arg(value_name = "FILE")]
    card: PathBuf,

    /// A file with the private key, of P-256 (ES256) or Ed25519 (EdDSA): PEM, or a JSON Web Key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// The id by which others find the public key [default: the `kid` of a JSON Web Key, else the thumbprint].
    #[arg(long, value_name = "ID")]
    key_id: Option<String>,

    /// The address of the key set with the public key. Others fetch it only if they trust that server.
    #[arg(long, value_name = "URL")]
    key_url: Option<String>,

    /// Drop the signatures that the card has [default: they are kept].
    #[arg(long)]
    replace: bool,
}

pub(crate) async fn run(args: CardSign) -> Result<(), Failure> {
    client::run(&Options::default(), async |call| sign(call, &args)).await
}

fn sign(call: &Call, args: &CardSign) -> Result<(), CallError> {
    let text = text_of(&args.card)?;
    let document = CardDocument::read(&text).map_err(|error| {
        let error = CallError::new(Code::CardInvalid, format!("{}: {error}", args.card.display()));
        error.with_hint("`baton card lint` says what is wrong with a card")
    })?;
    let wrong =
        |error: &dyn std::fmt::Display| CallError::usage(format!("--key {}: {error}", args.key.display()));
    let key = std::fs::read_to_string(&args.key).map_err(|error| wrong(&error))?;
    let key = SigningKey::read(&key, args.key_id.as_deref()).map_err(|error| wrong(&error))?;
    let made = key.sign(&document, args.key_url.as_deref());
    let mut signatures = if args.replace { Vec::new() } else { document.card.signatures.clone() };
    signatures.extend(made.map_err(|error| CallError::internal(error.to_string()))?);
    call.output.json(&document.with_signatures(&signatures))
}

fn text_of(path: &Path) -> Result<String, CallError> {
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.map_err(|error| CallError::new(Code::CardNotFound, format!("{}: {error}", path.display())))?;
    Ok(text)
}
