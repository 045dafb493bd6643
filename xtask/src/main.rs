//! `cargo xtask`: everything a developer or a build machine does with tidegate, in one program.
//!
//! Start with `demo` (talk to it) and `test` (all that a change must pass). Every command works on a fresh clone
//! and brings what it needs from the package registries; everything it writes lies in the target folder.

#![expect(
    clippy::print_stdout,
    reason = "these commands talk to the person at the terminal"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "developer commands run programs, read the environment and write files; none of it is in the daemon"
)]

mod audit;
mod bench;
mod corpus;
mod daemon;
mod demo;
mod eval;
mod http;
mod model;
mod process;
mod routing;
mod scenarios;
mod scripted;
mod suites;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of tidegate")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the release, start it with a model, ask a first question and keep serving
    Demo {
        /// End after the first answer
        #[arg(long)]
        once: bool,
        /// The port to serve on; 0 takes a free one
        #[arg(long, default_value_t = 8088)]
        port: u16,
    },
    /// Run everything that a change must pass
    Test {
        /// Also what takes longer: licences, sources, unused dependencies
        #[arg(long)]
        all: bool,
        /// Only these suites, by name
        #[arg(long = "only", value_name = "SUITE")]
        only: Vec<String>,
    },
    /// Format, lints and documentation
    Check,
    /// Measure what tidegate adds to a model call
    Bench {
        /// A short run that only shows that it works
        #[arg(long)]
        smoke: bool,
    },
    /// Put files of hostile and harmless input to what tools and clients go through
    Corpus {
        /// One JSON object a line, such as tests/corpora/shell.jsonl
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The world of shell lines; `fixture.json` beside each file where it is not given
        #[arg(long)]
        fixture: Option<PathBuf>,
        /// Where a daemon runs already, such as http://127.0.0.1:8088, for lines of HTTP
        #[arg(long, requires = "key")]
        url: Option<String>,
        /// A key of that daemon
        #[arg(long, env = "TIDEGATE_KEY", hide_env_values = true)]
        key: Option<String>,
    },
    /// Put prompts with known labels to the routing gate and show how often it is right
    Routing {
        /// One {"text","label"} a line [default: the development data of this repository]
        files: Vec<PathBuf>,
        /// Turns of conversation, one {"query"} a line
        #[arg(long, value_name = "FILE")]
        chat: Vec<PathBuf>,
        /// A threshold to try, instead of the measured one
        #[arg(long)]
        threshold: Option<f64>,
        /// Show each wrong decision
        #[arg(long)]
        misses: bool,
        /// The folder of a local embedding model, instead of the built-in one
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
    },
    /// Measure how well documents are found, and fail where a figure has fallen
    Eval {
        /// Development data, with collections in its folder `retrieval` [default: what lies beside the repository]
        #[arg(long)]
        data: Option<PathBuf>,
        /// The folder of a local embedding model, instead of the built-in one
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
        /// Write the figures down as what is to be reached
        #[arg(long)]
        bless: bool,
        /// Measure how long a search takes instead
        #[arg(long, conflicts_with_all = ["data", "model", "bless"])]
        speed: bool,
    },
    /// Measure the order of documents on collections
    Retrieval {
        /// Folders with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// The folder of a local embedding model, instead of the built-in one
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
    },
    /// Measure whether sources stand before what is said of them
    Authority {
        /// A folder of the same kind, whose documents have an authority and whose queries a class
        folder: PathBuf,
        /// The folder of a local embedding model, instead of the built-in one
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
    },
    /// Play what people say over many days, and look at what is remembered of them
    Scenarios {
        /// One scenario a line [default: tests/memory/scenarios.jsonl]
        files: Vec<PathBuf>,
        /// Measure instead: what is kept of genuine and of hostile words, volume, and how well notes are found
        #[arg(long, conflicts_with = "files")]
        figures: bool,
        /// A daemon that was built with the feature `testing`, instead of building one
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Licences, sources and unused dependencies
    Audit,
    /// The real small model
    Model {
        /// What to do with it
        #[arg(value_enum)]
        action: Action,
    },
    /// Serve the scripted model server until interrupted
    Upstream {
        /// The port to listen on; 0 takes a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    Start,
    Stop,
    Status,
    Install,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all went well.
fn run(command: Command) -> Result<bool> {
    match command {
        Command::Demo { once, port } => demo::run(once, port).map(|()| true),
        Command::Test { all, only } => suites::test(all, &only),
        Command::Check => suites::check(),
        Command::Bench { smoke } => {
            suites::build_release()?;
            bench::run(smoke)
        }
        Command::Corpus {
            files,
            fixture,
            url,
            key,
        } => {
            let place = url.zip(key).map(|(url, key)| corpus::Place { url, key });
            let order = corpus::Order {
                files,
                fixture,
                place,
            };
            if corpus::needs_daemon(&order)? {
                suites::build_release()?;
            }
            corpus::run(&order).map(|count| count.failed == 0)
        }
        Command::Routing {
            files,
            chat,
            threshold,
            misses,
            model,
        } => {
            let order = routing::Order {
                files: if files.is_empty() && chat.is_empty() {
                    routing::own()
                } else {
                    files
                },
                chat,
                threshold,
                misses,
                model,
            };
            routing::run(&order)
        }
        Command::Eval {
            data,
            model,
            bless,
            speed,
        } => {
            let everything = eval::What::Everything { data, bless };
            let what = if speed { eval::What::Speed } else { everything };
            eval::run(what, model.as_deref())
        }
        Command::Retrieval { folders, model } => eval::run(eval::What::Retrieval(folders), model.as_deref()),
        Command::Authority { folder, model } => eval::run(eval::What::Authority(folder), model.as_deref()),
        Command::Scenarios {
            files,
            figures,
            binary,
        } => {
            let played = if figures {
                scenarios::figures(binary)
            } else {
                scenarios::run(&files, binary)
            };
            played.map(|count| count.failed == 0)
        }
        Command::Audit => audit::run().map(|count| count.failed == 0),
        Command::Model { action } => model(action).map(|()| true),
        Command::Upstream { port } => upstream(port).map(|()| true),
    }
}

fn model(action: Action) -> Result<()> {
    match action {
        Action::Start => {
            let model = model::start()?;
            println!("OPENAI_BASE_URL={}\nmodel {}", model.base_url, model::NAME);
        }
        Action::Stop => println!(
            "{}",
            if model::stop()? {
                "stopped"
            } else {
                "it was not running"
            }
        ),
        Action::Status => match model::status() {
            Some(model) => println!("{} serves {}", model.base_url, model::NAME),
            None => println!("it is not running"),
        },
        Action::Install => model::install()?,
    }
    Ok(())
}

fn upstream(port: u16) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let upstream = scripted::start(port).await?;
        println!("OPENAI_BASE_URL={}", upstream.base_url());
        tokio::signal::ctrl_c().await?;
        upstream.stop().await;
        Ok(())
    })
}
