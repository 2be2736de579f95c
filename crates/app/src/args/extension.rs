//! Additions to the program by other crates: each an [`Extension`] in the list that [`main`](crate::main) is
//! given.
//!
//! Commands, formats and services are values. Each names a type with its flags, which clap reads as those of
//! the program itself, and a trait says what the flags stand for.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use plimsoll_document::{Files, MadeDocument, Problem, Problems};
use plimsoll_driver::KernelBackend;
use plimsoll_import::Unchecked;
use plimsoll_plan::{BackendChoice, PlanParts, PlanPatch, Resolved};
use plimsoll_report::RunResult;
use plimsoll_targets::{Faults, Service, Stopper};
use plimsoll_web::Example;

use crate::args::imported_file::NamingFileArgs;
use crate::args::run::RunArgs;
use crate::args::server::sink_values::Reader;
use crate::base::advice::{self, Advice};
use crate::base::failure::Failure;
use crate::base::plan_parts;

/// A feature in a crate of its own.
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// Name of the feature, as of its folder.
    pub name: &'static str,
    /// Keys of plan files.
    pub plan: PlanParts,
    /// Commands that put a load on a server.
    pub loads: &'static [LoadCommand],
    /// Formats of `plimsoll import`.
    pub importers: &'static [Importer],
    /// Services of `plimsoll sink`.
    pub services: &'static [SinkService],
    /// Servers of `plimsoll target`.
    pub servers: &'static [TargetServer],
    /// Hints for users of other load generators.
    pub advice: Advice,
    /// Examples that the page of `plimsoll ui` offers.
    pub examples: &'static [Example],
}

impl Extension {
    /// An extension that adds nothing, for the fields that another one leaves out.
    pub const NONE: Self = Self {
        name: "",
        plan: PlanParts::NONE,
        loads: &[],
        importers: &[],
        services: &[],
        servers: &[],
        advice: Advice::NONE,
        examples: &[],
    };
}

/// Extensions of this process.
static INSTALLED: OnceLock<&'static [Extension]> = OnceLock::new();

/// Adds extensions to the program. The first call counts; before it, and without one, there are none.
pub fn install(extensions: &'static [Extension]) {
    // Tests of one process install the same ones.
    let _ = INSTALLED.set(extensions);
    advice::install(installed().iter().map(|extension| &extension.advice));
    let importers = installed().iter().flat_map(|extension| extension.importers);
    advice::install_formats(importers.map(|importer| importer.name));
    plan_parts::install(installed().iter().map(|extension| extension.plan));
    plimsoll_web::add_examples(installed().iter().flat_map(|extension| extension.examples));
}

/// The extensions of this process.
pub(crate) fn installed() -> &'static [Extension] {
    INSTALLED.get().copied().unwrap_or_default()
}

/// The codes of failures of services that extensions add.
pub(crate) fn service_codes() -> impl Iterator<Item = ServiceCodes> {
    installed().iter().flat_map(|extension| extension.services).filter_map(|service| service.codes)
}

/// The servers of extensions.
pub(crate) fn servers() -> impl Iterator<Item = &'static TargetServer> {
    installed().iter().flat_map(|extension| extension.servers)
}

/// The commands of extensions.
pub(crate) fn loads() -> impl Iterator<Item = &'static LoadCommand> {
    installed().iter().flat_map(|extension| extension.loads)
}

/// A command that puts a load on a server: the plan that its flags make.
#[derive(Clone, Copy)]
pub struct LoadCommand {
    pub(crate) name: &'static str,
    pub(crate) note: fn(&[&str]) -> Option<&'static str>,
    pub(crate) group: LoadGroup,
    page: Page,
    read: fn(&mut ArgMatches) -> Result<Box<dyn LoadArgs>, clap::Error>,
}

/// Place of a [`LoadCommand`] in the list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadGroup {
    /// Among loads of other protocols.
    Protocol,
    /// Among the requests of other load generators.
    ReadyMade,
}

/// Flags of a [`LoadCommand`].
pub trait LoadArgs: fmt::Debug {
    /// Returns the flags of the run.
    fn run(&self) -> &RunArgs;

    /// Returns `true` if the plan is to be printed, and not run.
    fn print_plan(&self) -> bool;

    /// Makes the plan. This may ask the server, if the flags leave something open.
    ///
    /// # Errors
    /// A value that no load can have, a combination of flags that is refused, or a server that does not
    /// answer.
    fn plan(&self) -> Result<MadeDocument, Failure>;

    /// Makes the plan anew with what the server said, if the flags leave something to it that a plan without
    /// its word is right about. Called before a load alone. `resolve` puts the [plan](Self::plan) and the
    /// flags of the run together, with all problems of either.
    ///
    /// # Errors
    /// A plan that is wrong, or a server that does not answer.
    fn asked(
        &self,
        resolve: &mut dyn FnMut() -> Result<Resolved, Failure>,
    ) -> Result<Option<MadeDocument>, Failure> {
        let _ = resolve;
        Ok(None)
    }

    /// Changes the flags of the run that have another meaning in this command.
    ///
    /// # Errors
    /// A flag that is wrong.
    fn amend(&self, flags: &mut PlanPatch) -> Result<(), Problem> {
        let _ = flags;
        Ok(())
    }

    /// Returns the flags that no plan can say, and whether each is given.
    fn beside_plans(&self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    /// Returns another way to make the load, if the flags ask for a comparison with it.
    ///
    /// # Errors
    /// A value that is wrong.
    fn alternative(&self) -> Result<Option<Alternative>, Failure> {
        Ok(None)
    }

    /// Prepares the server, before the first request of the load; returns notes about the load. `resolve`
    /// puts the plan and the flags of the run together, for a look at them. `alternative` is the other side
    /// of a comparison.
    ///
    /// # Errors
    /// A flag that the load cannot have, or a server that is not ready.
    fn before(
        &self,
        resolve: &mut dyn FnMut() -> Result<Resolved, Failure>,
        alternative: Option<&Resolved>,
    ) -> Result<Vec<String>, Failure> {
        let _ = (resolve, alternative);
        Ok(Vec::new())
    }

    /// Returns notes for the result.
    fn notes(&self, result: &RunResult) -> Vec<Note> {
        let _ = result;
        Vec::new()
    }
}

/// A load in another way, which is made in turn with the load as it is, and compared with it.
pub struct Alternative {
    /// Flag that asks for it.
    pub flag: &'static str,
    /// Names of the load as it is, and of the load in the other way.
    pub names: [&'static str; 2],
    /// The plan of the other way.
    pub plan: MadeDocument,
    /// Changes of the flags of the run for either side.
    pub amend: [Amend; 2],
    /// Number of runs of each side, unless the flags have one.
    pub rounds: u32,
}

/// Changes of the flags of a run.
pub type Amend = Box<dyn Fn(&mut PlanPatch)>;

impl fmt::Debug for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alternative").field("flag", &self.flag).finish_non_exhaustive()
    }
}

/// A note of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Code, in snake case.
    pub code: &'static str,
    /// Text for people.
    pub text: String,
    /// `true` if it is told where the report has another form than text.
    pub is_told: bool,
}

impl LoadCommand {
    /// A command with the flags of `A`. The summary is a line of the list of commands, the details stand
    /// below it on the page of the command.
    pub const fn of<A: LoadArgs + Args + 'static>(
        name: &'static str,
        summary: &'static str,
        details: &'static str,
    ) -> Self {
        Self {
            name,
            note: |_| None,
            group: LoadGroup::Protocol,
            page: Page::of::<A>(summary, details),
            read: |matches| Ok(Box::new(A::from_arg_matches_mut(matches)?)),
        }
    }

    /// Returns the word of the command line.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The command in this group of the list of commands.
    #[must_use]
    pub const fn within(self, group: LoadGroup) -> Self {
        Self { group, ..self }
    }

    /// The command with a note about words of a command line that mean something else here than in another
    /// program.
    #[must_use]
    pub const fn with_note(self, note: fn(&[&str]) -> Option<&'static str>) -> Self {
        Self { note, ..self }
    }
}

impl fmt::Debug for LoadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadCommand").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A format of `plimsoll import`.
#[derive(Clone, Copy)]
pub struct Importer {
    name: &'static str,
    page: Page,
    read: fn(&mut ArgMatches) -> Result<Box<dyn ImporterArgs>, clap::Error>,
}

/// Flags of an [`Importer`].
pub trait ImporterArgs: fmt::Debug {
    /// Returns the flags that name the file.
    fn file(&self) -> &NamingFileArgs;

    /// Converts the file to a plan.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    fn import(&self, source: &ImportSource<'_>) -> Result<Unchecked, Problems>;
}

/// The file that is imported.
pub struct ImportSource<'a> {
    /// Name of the file without its folder; empty for the standard input.
    pub name: &'a str,
    /// Folder that the plan will be in, beside the files that the source names.
    pub folder: &'a Path,
    /// Files that the source may name.
    pub files: &'a dyn Files,
    pub(crate) content: &'a dyn Fn() -> Result<Vec<u8>, Problems>,
}

impl ImportSource<'_> {
    /// Reads the content.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn content(&self) -> Result<Vec<u8>, Problems> {
        (self.content)()
    }
}

impl fmt::Debug for ImportSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Importer {
    /// A format with the flags of `A`.
    pub const fn of<A: ImporterArgs + Args + 'static>(
        name: &'static str,
        summary: &'static str,
        details: &'static str,
    ) -> Self {
        Self {
            name,
            page: Page::of::<A>(summary, details),
            read: |matches| Ok(Box::new(A::from_arg_matches_mut(matches)?)),
        }
    }
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A service of `plimsoll sink`, which a flag asks for. The flag belongs to the group [`SERVICE_GROUP`], so
/// that a sink has one service.
#[derive(Clone, Copy)]
pub struct SinkService {
    pub(crate) codes: Option<ServiceCodes>,
    augment: fn(Command) -> Command,
    read: fn(&mut ArgMatches) -> Result<Box<dyn SinkServiceArgs>, clap::Error>,
}

/// Names for the codes of failures of a [`SinkService`].
#[derive(Clone, Copy, Debug)]
pub struct ServiceCodes {
    /// The names, by code, as [`AddedService::codes`](plimsoll_targets::sink::service::AddedService::codes)
    /// gives them.
    pub names: &'static [&'static str],
    /// Problem of a sink that is to fail with one of them, and has another service.
    pub elsewhere: &'static str,
}

/// Group of the flags that ask for a service of the sink.
pub const SERVICE_GROUP: &str = "service";

/// Flags of a [`SinkService`].
pub trait SinkServiceArgs: fmt::Debug {
    /// Returns the service if the flags ask for it. Problems go to the reader; faults that the flags ask for
    /// are added.
    fn read(&self, reader: &mut Reader, faults: &mut Faults) -> Option<Service>;
}

impl SinkService {
    /// A service with the flags of `A`.
    pub const fn of<A: SinkServiceArgs + Args + 'static>() -> Self {
        Self {
            codes: None,
            augment: A::augment_args,
            read: |matches| Ok(Box::new(A::from_arg_matches_mut(matches)?)),
        }
    }

    /// The service with names for the codes of its failures, which `--fail` takes in place of a status.
    #[must_use]
    pub const fn with_codes(self, codes: ServiceCodes) -> Self {
        Self { codes: Some(codes), ..self }
    }
}

impl fmt::Debug for SinkService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkService").finish_non_exhaustive()
    }
}

/// A server of `plimsoll target`, for others to test against.
#[derive(Clone, Copy)]
pub struct TargetServer {
    pub(crate) name: &'static str,
    pub(crate) page: Page,
    pub(crate) read: fn(&mut ArgMatches) -> Result<Box<dyn TargetServerArgs>, clap::Error>,
}

/// Flags of a [`TargetServer`].
pub trait TargetServerArgs: fmt::Debug {
    /// Returns the server that the flags ask for.
    ///
    /// # Errors
    /// Everything that is wrong with the flags.
    fn server(&self) -> Result<ServerSpec, Problems>;
}

/// A server that was asked for, and can be started.
pub struct ServerSpec {
    /// System interface.
    pub backend: BackendChoice,
    /// `true`: it says nothing on stderr.
    pub quiet: bool,
    /// Starts it. A failure that another address would mend has the hint that names its flag.
    pub start: Box<StartServer>,
}

/// Function that starts a server.
pub type StartServer = dyn FnOnce(KernelBackend) -> Result<Box<dyn RunningServer>, Failure>;

/// A server that listens.
pub trait RunningServer {
    /// Returns something that can stop it.
    fn stopper(&self) -> Stopper;

    /// Returns what it says when it listens, in lines: its addresses, and faults, lest their errors surprise
    /// anyone.
    fn opening(&self) -> Vec<String>;

    /// Waits until it stops. Returns what it says at the end, in lines.
    fn wait(self: Box<Self>) -> Vec<String>;
}

impl TargetServer {
    /// Returns the word of the command line behind `target`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A server with the flags of `A`. The summary is a line of the list of targets, the details stand below
    /// it on the page of the server.
    pub const fn of<A: TargetServerArgs + Args + 'static>(
        name: &'static str,
        summary: &'static str,
        details: &'static str,
    ) -> Self {
        Self {
            name,
            page: Page::of::<A>(summary, details),
            read: |matches| Ok(Box::new(A::from_arg_matches_mut(matches)?)),
        }
    }
}

impl fmt::Debug for TargetServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, quiet, start: _ } = self;
        f.debug_struct("ServerSpec").field("backend", backend).field("quiet", quiet).finish_non_exhaustive()
    }
}

/// Page of help of a command.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    summary: &'static str,
    details: &'static str,
    augment: fn(Command) -> Command,
}

impl Page {
    const fn of<A: Args>(summary: &'static str, details: &'static str) -> Self {
        Self { summary, details, augment: A::augment_args }
    }

    pub(crate) fn command(self, name: &'static str) -> Command {
        let command = (self.augment)(Command::new(name));
        command.about(self.summary).long_about(format!("{}\n\n{}", self.summary, self.details))
    }
}

/// A load that a command of an extension asks for.
#[derive(Debug)]
pub(crate) struct AddedLoad(pub(crate) Box<dyn LoadArgs>);

/// A file that a format of an extension imports.
#[derive(Debug)]
pub(crate) struct AddedImport(pub(crate) Box<dyn ImporterArgs>);

/// Implements subcommands that are values, from their table.
macro_rules! subcommands {
    ($name:ident: $table:expr, $made:expr) => {
        impl Subcommand for $name {
            fn augment_subcommands(command: Command) -> Command {
                $table.fold(command, |command, added| command.subcommand(added.page.command(added.name)))
            }

            fn augment_subcommands_for_update(command: Command) -> Command {
                Self::augment_subcommands(command)
            }

            fn has_subcommand(name: &str) -> bool {
                $table.any(|added| added.name == name)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Self::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
                let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
                let (name, mut matches) = matches.remove_subcommand().ok_or_else(missing)?;
                let added = $table.find(|added| added.name == name).ok_or_else(missing)?;
                (added.read)(&mut matches).map(|args| $made(added.name, args))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

pub(crate) use subcommands;

subcommands!(AddedLoad: loads(), |_, args| Self(args));
subcommands!(AddedImport: installed().iter().flat_map(|extension| extension.importers), |_, args| Self(args));

/// Services of the sink that extensions add.
#[derive(Debug, Default)]
pub(crate) struct AddedServices(Vec<Box<dyn SinkServiceArgs>>);

impl AddedServices {
    fn table() -> impl Iterator<Item = &'static SinkService> {
        installed().iter().flat_map(|extension| extension.services)
    }

    /// The one that is asked for, if one is.
    pub(crate) fn read(&self, reader: &mut Reader, faults: &mut Faults) -> Option<Service> {
        self.0.iter().find_map(|service| service.read(reader, faults))
    }
}

impl Args for AddedServices {
    fn augment_args(command: Command) -> Command {
        Self::table().fold(command, |command, service| (service.augment)(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AddedServices {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        Self::table().map(|service| (service.read)(matches)).collect::<Result<_, _>>().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
