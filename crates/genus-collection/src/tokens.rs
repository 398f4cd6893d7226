//! Who may use a collection through the service: tokens, of which only the hash is kept.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::Store;

/// How a token begins, so that it is recognised wherever it leaks to.
const PREFIX: &str = "genus_";

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Look.
    Read,
    /// Look, add items, and say what they are.
    Label,
    /// All of it, sorting everything anew too.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Read => "read",
            Role::Label => "label",
            Role::Admin => "admin",
        })
    }
}

/// A text that is no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a role is read, label or admin")]
pub struct NoRole;

impl FromStr for Role {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        match text {
            "read" => Ok(Role::Read),
            "label" => Ok(Role::Label),
            "admin" => Ok(Role::Admin),
            _ => Err(NoRole),
        }
    }
}

/// A token, but for its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// Whose it is; the log says so.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// When it was made, in milliseconds since 1970.
    pub made: i64,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<i64>,
    #[serde(skip)]
    hash: TokenHash,
}

/// The hash of a secret.
pub type TokenHash = [u8; 32];

impl Token {
    /// The hash of the secret that a client shows. Secrets are 256 random bits, so one round is enough.
    pub fn hash_of(secret: &str) -> TokenHash {
        *blake3::hash(secret.as_bytes()).as_bytes()
    }

    /// The hash of its secret.
    pub fn hash(&self) -> &TokenHash {
        &self.hash
    }
}

/// The tokens of a collection. They may be made and revoked while another process writes the collection.
pub struct Tokens {
    store: Store,
}

impl Tokens {
    /// Opens the tokens of a collection.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            store: Store::open(folder, true)?,
        })
    }

    /// Makes a token and gives its secret, which is not kept anywhere.
    pub fn create(&self, name: &str, role: Role) -> Result<String, Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|e| Error::Io {
            path: self.store.path().to_owned(),
            source: std::io::Error::other(e.to_string()),
        })?;
        let secret = random
            .iter()
            .fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}"));
        let hash = Token::hash_of(&secret);
        self.store
            .transaction(|store| store.insert_token(name, &role.to_string(), &hash))?;
        Ok(secret)
    }

    /// All tokens that ever were.
    pub fn list(&self) -> Result<Vec<Token>, Error> {
        let mut tokens = Vec::new();
        for found in self.store.tokens()? {
            let damaged = || Error::Damaged {
                path: self.store.path().to_owned(),
                problem: format!("token {}", found.id),
            };
            tokens.push(Token {
                id: found.id,
                role: found.role.parse().map_err(|_| damaged())?,
                hash: found.hash.as_slice().try_into().map_err(|_| damaged())?,
                name: found.name,
                made: found.made,
                revoked: found.revoked,
            });
        }
        Ok(tokens)
    }

    /// Revokes a token, by its number or its name; several of one name all at once. Gives how many there were.
    pub fn revoke(&self, which: &str) -> Result<usize, Error> {
        self.store.transaction(|store| {
            let number: Option<i64> = which.trim_start_matches('#').parse().ok();
            let mut count = 0;
            for token in store.tokens()? {
                if token.revoked.is_none() && (token.name == which || Some(token.id) == number) {
                    store.revoke_token(token.id)?;
                    count += 1;
                }
            }
            Ok(count)
        })
    }
}
