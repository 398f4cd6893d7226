//! `genus serve` and `genus token`: a collection as a service, and who may use it.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Subcommand;
use genus::text::{plural, thousands};
use genus_collection::{Role, Tokens};
use genus_serve::{Options, ServeError, Stop};

use crate::args::Arguments;
use crate::args::shared::ranged;
use crate::failure::Failure;
use crate::say::{self, Terminal};

/// Serve a collection over HTTP
///
/// On 127.0.0.1 no token is needed as long as the collection has none. On any other address the server refuses to start without
/// one; `genus token create` makes one. docs/serve.md describes the API and the web page.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  genus serve birds
  genus serve birds --address 127.0.0.1:8080
  genus serve birds --address 0.0.0.0:7878 --host birds.example.org")]
pub(crate) struct ServeArgs {
    /// The folder of the collection
    #[arg(value_name = "COLLECTION")]
    folder: PathBuf,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    address: SocketAddr,
    /// An additional host name to accept, such as that of a proxy; can be given several times
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The author recorded in the log for requests without a token; by default the current user
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Maximum number of requests per second and client
    #[arg(long, value_parser = ranged::<NonZeroU32>("rate"), default_value = "20000", value_name = "N")]
    rate: NonZeroU32,
}

/// Create, list and revoke the access tokens of a collection
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  genus token create birds --name Anna --role label\n  genus token list birds\n  \
                        genus token revoke birds Anna"
)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is shown only once
    #[command(after_help = "Examples:\n  genus token create birds --name Anna --role label")]
    Create {
        /// The folder of the collection
        #[arg(value_name = "COLLECTION")]
        folder: PathBuf,
        /// The name of its owner, recorded in the log
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What it permits: read, label or admin
        #[arg(long, default_value = "label", value_name = "ROLE")]
        role: Role,
    },
    /// List the tokens of a collection
    #[command(after_help = "Examples:\n  genus token list birds")]
    List {
        /// The folder of the collection
        #[arg(value_name = "COLLECTION")]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, by its name or as #2
    #[command(after_help = "Examples:\n  genus token revoke birds Anna")]
    Revoke {
        /// The folder of the collection
        #[arg(value_name = "COLLECTION")]
        folder: PathBuf,
        /// The token
        #[arg(value_name = "TOKEN")]
        token: String,
    },
}

/// What ends the service, while there is one.
static STOP: Mutex<Option<Stop>> = Mutex::new(None);

/// Ends the service, if there is one: requests under way are answered first.
pub(crate) fn interrupt() -> bool {
    let stop = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    stop.as_ref().map(Stop::stop).is_some()
}

impl Arguments for ServeArgs {
    type Options = Options;

    fn options(self, _seed: u64) -> Result<Options, Failure> {
        let mut options = Options::new(&self.folder, self.address);
        options.hosts = self.host;
        options.author = self.author.unwrap_or_else(crate::collection::user);
        options.limits.rate = self.rate.get();
        Ok(options)
    }

    fn run(options: Options, terminal: Terminal) -> Result<(), Failure> {
        serve(&options, terminal)
    }
}

impl Arguments for TokenArgs {
    type Options = TokenCommand;

    fn options(self, _seed: u64) -> Result<TokenCommand, Failure> {
        Ok(self.command)
    }

    fn run(command: TokenCommand, terminal: Terminal) -> Result<(), Failure> {
        token(&command, terminal)
    }
}

fn serve(options: &Options, terminal: Terminal) -> Result<(), Failure> {
    let stop = Stop::default();
    *STOP.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop.clone());
    let served = genus_serve::serve(options, &stop, |address| {
        if !terminal.quiet {
            say!("Open http://{address} in a browser; Ctrl-C ends the service");
        }
    });
    *STOP.lock().unwrap_or_else(PoisonError::into_inner) = None;
    served.map_err(|error| match error {
        ServeError::Collection(error) => error.into(),
        ServeError::NoToken { .. } => Failure::failed(format!(
            "{error}; `genus token create {} --name NAME` makes one, or serve on 127.0.0.1",
            options.folder.display()
        )),
        error => Failure::failed(error.to_string()),
    })
}

fn token(command: &TokenCommand, terminal: Terminal) -> Result<(), Failure> {
    match command {
        TokenCommand::Create { folder, name, role } => {
            let secret = Tokens::open(folder)?.create(name, *role)?;
            if !terminal.quiet {
                say!("A token for {name} with the role {role}. It is not kept: note it now");
            }
            say::print(&format!("{secret}\n"))
        }
        TokenCommand::List { folder, json } => {
            let tokens = Tokens::open(folder)?.list()?;
            if *json {
                let value = serde_json::to_value(&tokens).unwrap_or_default();
                return say::print(&format!("{value:#}\n"));
            }
            let lines = tokens.iter().map(|token| {
                let state = if token.revoked.is_some() { "  revoked" } else { "" };
                format!("#{}  {:<5}  {}{state}\n", token.id, token.role.to_string(), token.name)
            });
            say::print(&lines.collect::<String>())
        }
        TokenCommand::Revoke { folder, token } => {
            let count = Tokens::open(folder)?.revoke(token)? as u64;
            if count == 0 {
                return Err(Failure::failed(format!(
                    "there is no token \"{token}\"; `genus token list {}` lists them",
                    folder.display()
                )));
            }
            if !terminal.quiet {
                say!("Revoked {} {}", thousands(count), plural(count, "token", "tokens"));
            }
            Ok(())
        }
    }
}
