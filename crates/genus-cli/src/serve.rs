//! `genus serve` and `genus token`: a collection as a service, and who may use it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Subcommand;
use genus::text::{plural, thousands};
use genus_collection::{Role, Tokens};
use genus_serve::{Options, ServeError, Stop};

use crate::args::Arguments;
use crate::failure::Failure;
use crate::say::{self, Terminal};

/// Serve a collection over HTTP: items in, decisions out, and a page to answer on
///
/// On this machine's own address (127.0.0.1) it needs no token, as long as the collection has none. On any other it does not start
/// without one: `genus token create` makes it. docs/serve.md has the interface.
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
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    address: SocketAddr,
    /// A further name that the service is asked by, such as that of a proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Who the log says it was where nobody has a token; by default who is logged in
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Requests of one client that are answered in a second
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    rate: u32,
}

/// Make, list and revoke tokens: who may use a collection that is served
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
    /// Make a token and print it; it cannot be printed again
    #[command(after_help = "Examples:\n  genus token create birds --name Anna --role label")]
    Create {
        /// The folder of the collection
        #[arg(value_name = "COLLECTION")]
        folder: PathBuf,
        /// Whose it is; the log says so
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What its holder may do: read, label or admin
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
        options.limits.rate = self.rate.max(1);
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
