//! Values that are one of a few words.

use super::{Refused, Shown, Value, quoted};
use crate::config::problem::did_you_mean;

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $first:ident = $first_word:literal $(, $variant:ident = $word:literal)* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
        pub(crate) enum $name { $first $(, $variant)* }

        impl $name {
            const WORDS: &'static [(&'static str, $name)] =
                &[($first_word, $name::$first) $(, ($word, $name::$variant))*];
        }

        impl Value for $name {
            fn expected() -> String {
                let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                words.join(" or ")
            }

            fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
                let known = Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
                known.ok_or_else(|| {
                    let near = did_you_mean(text, Self::WORDS.iter().map(|(word, _)| *word));
                    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    Self::refused(&format!("{}{near}", quoted(text)))
                })
            }

            fn show(&self) -> Shown {
                let word = Self::WORDS.iter().find(|(_, choice)| choice == self).map(|(word, _)| *word);
                Shown::text(word.expect("every choice has its word"))
            }
        }
    };
}

choice! {
    /// The format of the log.
    LogFormat { Text = "text", Json = "json" }
}

choice! {
    /// Whether clients show a certificate.
    ClientCerts { Off = "off", Optional = "optional", Required = "required" }
}

choice! {
    /// The oldest version of TLS that is spoken.
    MinTls { V1_2 = "1.2", V1_3 = "1.3" }
}

choice! {
    /// How a card tells the address of gRPC.
    CardGrpc { HostPort = "hostport", Url = "url", Off = "off" }
}

choice! {
    /// What a skill answers with.
    Replies { Task = "task", Message = "message" }
}

choice! {
    /// Logic that comes with the binary.
    Builtin { Demo = "demo", Echo = "echo" }
}

choice! {
    /// What a program gets on its standard input.
    ExecInput { Text = "text", Json = "json" }
}

choice! {
    /// What clients send to a proxy that authenticates them.
    AtProxy { Bearer = "bearer", Basic = "basic", Digest = "digest", OpenId = "openid", Certificate = "certificate" }
}

choice! {
    /// A name in a certificate.
    CertName { Uri = "uri", Dns = "dns", Email = "email", CommonName = "common_name" }
}

choice! {
    /// How the server shows its secret to an issuer: in a header or in the form.
    ClientSecret { Basic = "basic", Post = "post" }
}

choice! {
    /// How a client gets a token.
    GrantType {
        ClientCredentials = "client_credentials", AuthorizationCode = "authorization_code", DeviceCode = "device_code",
    }
}

choice! {
    /// What a program writes to its standard output.
    ExecOutput { Text = "text", JsonLines = "jsonl" }
}

choice! {
    /// Where callers send an API key.
    KeyLocation { Header = "header", Query = "query", Cookie = "cookie" }
}
