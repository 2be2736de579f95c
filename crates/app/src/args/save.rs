//! Flags of the history: where runs are saved, and what they are called.

use std::path::PathBuf;

use clap::Args;
use plimsoll_document::{Problem, Problems};
use plimsoll_store::{Labels, Origin, Tag, check_name};

use crate::base::environment;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "History")]
pub(crate) struct SaveArgs {
    /// Save the run in the history, for `runs`, `show` and `compare`
    ///
    /// It is written once per second while it goes on. PLIMSOLL_SAVE=true saves every run.
    #[arg(long, hide_short_help = true)]
    save: bool,
    /// Save the run under this name, which several runs may have
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, help_heading = "Output")]
    name: Option<String>,
    /// Save the run with this tag: a word, or WORD=VALUE; repeatable
    #[arg(long = "tag", value_name = "TAG", hide_short_help = true, allow_hyphen_values = true)]
    tags: Vec<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The place of the history.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// File of the history [default: PLIMSOLL_STORE, or history.db in the user's data folder]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    store: Option<PathBuf>,
}

/// The place and the names of saved runs.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) labels: Labels,
    pub(crate) quiet: bool,
}

impl SaveArgs {
    /// Returns the name that the flags give the run.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns `true` if flags ask to save the run.
    pub(crate) fn is_given(&self) -> bool {
        self.save || self.name.is_some() || !self.tags.is_empty()
    }

    /// Returns where and how to save the run, as flags or the environment ask for; `None` if it is not to be
    /// saved.
    ///
    /// # Errors
    /// Every problem with these settings.
    pub(crate) fn to_saving(&self, quiet: bool) -> Result<Option<Saving>, Problems> {
        let mut problems = Problems::default();
        let always = environment::save().unwrap_or_else(|problem| {
            problems.push(problem);
            false
        });
        let wanted = self.save || always || self.name.is_some() || !self.tags.is_empty();
        if let Some(name) = &self.name
            && let Err(bad) = check_name(name)
        {
            problems.push(Problem::new(format!("--name: {bad}")));
        }
        let mut tags: Vec<Tag> = Vec::new();
        for text in &self.tags {
            match text.parse::<Tag>() {
                Ok(tag) if tags.iter().any(|other| other.name == tag.name) => {
                    problems
                        .push(Problem::new(format!("--tag: `{}` is given twice", tag.name.escape_debug())));
                }
                Ok(tag) => tags.push(tag),
                Err(bad) => problems.push(Problem::new(format!("--tag: {bad}"))),
            }
        }
        if self.place.store.is_some() && !wanted {
            let problem = Problem::new("--store says where to save a run, but this one is not saved");
            problems.push(problem.with_hint("add --save, or leave out --store"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        if !wanted {
            return Ok(None);
        }
        let (path, origin) = self.place.file()?;
        Ok(Some(Saving { path, origin, labels: Labels { name: self.name.clone(), tags }, quiet }))
    }
}

impl PlaceArgs {
    /// The file of the history, and who named it.
    ///
    /// # Errors
    /// No setting names one, and there is no folder for it.
    pub(crate) fn file(&self) -> Result<(PathBuf, Origin), Problem> {
        if let Some(path) = self.store.clone().or_else(environment::store) {
            return Ok((path, Origin::Named));
        }
        let usual = environment::data_folder().map(|folder| (folder.join(FILE), Origin::Usual));
        usual.ok_or_else(|| {
            Problem::new("no folder for the history: neither XDG_DATA_HOME nor HOME names one")
                .with_hint("name a file: --store FILE")
        })
    }
}

/// Name of the history in the folder of data.
const FILE: &str = "history.db";
