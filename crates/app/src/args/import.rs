//! The flags of `plimsoll import`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use plimsoll_import::har::{self, Server};

use crate::args::document::DocumentFormat;
use crate::args::extension::AddedImport;
use crate::args::imported_file::{FileArgs, NamingFileArgs, Reach, Strictness};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) format: ImportFormat,
    /// Format on stdout; in JSON, the parts that could not be converted are beside the plan
    #[arg(short, long, global = true, value_enum, default_value_t = DocumentFormat::Text)]
    #[arg(value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: DocumentFormat,
}

/// Formats that can be imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportFormat {
    /// A JSON configuration of h2loadrunner
    ///
    /// `plimsoll run --h2loadrunner FILE` runs it at once.
    #[command(name = "h2loadrunner")]
    H2loadrunner(NamingFileArgs),
    /// A curl command: as one quoted text, or its words after `--`
    ///
    /// Several URLs become several steps.
    Curl(CurlArgs),
    /// A recording of a browser or proxy (HAR 1.2)
    ///
    /// The requests become steps, page by page, with the gaps between them as think time.
    Har(HarArgs),
    /// A description of an interface (OpenAPI 3.0 or 3.1, YAML or JSON)
    ///
    /// Every operation becomes a step, with the examples of the description as values.
    Openapi(OpenapiArgs),
    /// Targets of vegeta, in its HTTP or its JSON format
    ///
    /// Each target becomes a scenario of its own, as vegeta sends them: in turn, independent of each other.
    Vegeta(VegetaArgs),
    /// A collection of Postman (v2.1 or v2.0)
    ///
    /// Each folder of the outermost level becomes a scenario. The usual forms of its scripts become
    /// expectations and extractions; the rest of them is noted.
    Postman(PostmanArgs),
    /// A script of Artillery, in YAML or JSON
    ///
    /// Its phases become phases of the open model, and each flow a scenario.
    Artillery(NamingFileArgs),
    /// A test plan of JMeter (.jmx)
    ///
    /// Thread groups become scenarios, and their threads users.
    #[command(name = "jmeter")]
    Jmeter(NamingFileArgs),
    /// A script of k6, in JavaScript or TypeScript
    ///
    /// The script is read and not carried out: the requests of its functions become steps, and what needs a
    /// program is an error with its line.
    #[command(name = "k6")]
    K6(K6Args),
    /// A simulation of Gatling, in Java, Scala, JavaScript or TypeScript
    ///
    /// It is read and not carried out: its populations become scenarios, their injection profiles the load,
    /// what needs a program is noted with its line.
    Gatling(NamingFileArgs),
    /// A locustfile, in Python
    ///
    /// The file is read and not carried out: each task becomes a scenario, and what needs a program is an
    /// error with its line.
    Locust(LocustArgs),
    #[command(flatten)]
    Added(AddedImport),
}

#[derive(Debug, Args)]
pub(crate) struct CurlArgs {
    /// The command, or the file that it is in; - reads it from stdin
    ///
    /// A command that is typed may name files anywhere. One from a file names files below its folder, one
    /// from stdin below the current one, unless --allow-files permits others.
    #[arg(value_name = "COMMAND", required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, Args)]
pub(crate) struct HarArgs {
    #[command(flatten)]
    pub(crate) from: FileArgs,
    #[command(flatten)]
    pub(crate) reading: RecordingArgs,
}

/// Conversion of a recording into a plan.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// No think time between the requests
    #[arg(long)]
    no_think: bool,
    /// Only requests to this host
    #[arg(long, value_name = "HOST")]
    only: Option<String>,
    /// Expect the statuses of the recording
    #[arg(long)]
    expect_status: bool,
    /// Send values and cookies of the recording as they are
    ///
    /// Without it, a value of a response that later requests send is extracted and sent as a variable, and
    /// cookies that responses set are kept for each iteration.
    #[arg(long)]
    no_correlate: bool,
    /// Send one request after another
    ///
    /// Without it, requests that were sent before the first of them was answered are sent at once.
    #[arg(long)]
    no_parallel: bool,
    /// Server in the place of that of the recording, or of HOST alone; repeatable
    #[arg(long, value_name = "[HOST=]URL", value_parser = Server::parse)]
    server: Vec<Server>,
}

impl RecordingArgs {
    pub(crate) fn to_options(&self) -> har::Options {
        har::Options {
            think: !self.no_think,
            only: self.only.clone(),
            expect_status: self.expect_status,
            correlate: !self.no_correlate,
            parallel: !self.no_parallel,
            servers: self.server.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct OpenapiArgs {
    #[command(flatten)]
    pub(crate) from: FileArgs,
    /// The server to ask, instead of the first one of the description
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PostmanArgs {
    #[command(flatten)]
    pub(crate) from: NamingFileArgs,
    /// An environment of Postman, whose variables win over those of the collection
    #[arg(long, value_name = "FILE")]
    pub(crate) environment: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct K6Args {
    #[command(flatten)]
    pub(crate) from: NamingFileArgs,
    /// A value of `__ENV`; may be given several times
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Only this one of the script's scenarios
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LocustArgs {
    #[command(flatten)]
    pub(crate) from: NamingFileArgs,
    /// The server, in the place of the `host` of the classes
    #[arg(short = 'H', long, value_name = "URL")]
    pub(crate) host: Option<String>,
    /// Number of users
    #[arg(short, long, value_name = "N")]
    pub(crate) users: Option<u64>,
    /// Users that start per second
    #[arg(short = 'r', long, value_name = "N")]
    pub(crate) spawn_rate: Option<f64>,
    /// Length of the run: 300s, 20m, 1h30m, or seconds
    #[arg(short = 't', long, value_name = "TIME")]
    pub(crate) run_time: Option<String>,
    /// Tasks of an iteration, in files whose `on_start` or `on_stop` makes requests
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) tasks: NonZeroU64,
    /// A value of the environment; may be given several times
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VegetaArgs {
    #[command(flatten)]
    pub(crate) from: FileArgs,
    /// Make the targets the steps of one scenario, one after the other
    #[arg(long)]
    pub(crate) steps: bool,
}
