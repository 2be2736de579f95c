//! Settings as they were typed: a field for each entry of the table of settings.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_document::{LoadedDocument, RawValue, Setting};

use crate::layers::{PatchValues as _, Slot};
use crate::{Confinement, PlanParts, ScriptHost};

/// A setting without a value, which may be on, off or left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch(pub Option<RawValue>);

impl Switch {
    /// Switched on by the flag `by`.
    pub fn on(by: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self(Some(RawValue::new(by, "true")))
    }

    /// Returns the value that switched it on, if it is on.
    pub fn given(&self) -> Option<&RawValue> {
        self.0.as_ref().filter(|given| given.text == "true" && !given.reported)
    }

    /// Returns `true` if it is on.
    pub fn is_on(&self) -> bool {
        self.given().is_some()
    }
}

/// Types of the kinds in patches.
mod in_patch {
    use plimsoll_document::RawValue;

    pub(super) type Value = Option<RawValue>;
    pub(super) type Repeatable = Vec<RawValue>;
    pub(super) type List = Vec<RawValue>;
    pub(super) type Switch = super::Switch;
}

macro_rules! patch {
    ($($layers:ident { $($heading:literal {
        $($(#[doc = $doc:literal])* $name:ident: $kind:ident = $flag:expr,)+
    })+ })+) => {
        /// Values as they were typed, before anything is parsed. Absent fields take their defaults.
        ///
        /// The formats are those of the command line; `plimsoll run --help` describes them.
        // Settings are documented by the help of their flags, in which brackets are no links.
        #[allow(rustdoc::broken_intra_doc_links)]
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct PlanPatch {
            /// The URLs; the load is shared evenly.
            pub urls: Vec<RawValue>,
            /// The plan file. Its scenarios take the place of URLs.
            pub document: Option<Arc<LoadedDocument>>,
            /// The seed if none is given; the caller draws it.
            pub default_seed: u64,
            /// File that TLS secrets are appended to.
            pub key_log: Option<PathBuf>,
            /// Arguments of a script's `init`.
            pub script_arguments: Vec<String>,
            /// The value of `LUA_PATH`.
            pub lua_path: Option<String>,
            /// Clocks, name service and output of scripts. Without it, no script can be loaded.
            pub script_host: Option<ScriptHost>,
            /// `true` if scripts are only read: the command shows a plan, and carries nothing out.
            pub only_read_scripts: bool,
            /// `true` if the plan was made from flags: its files are those of the person who typed them.
            pub is_plan_of_flags: bool,
            /// Where files that flags name have to lie, as those of a plan: the flags are those of somebody
            /// else. `None`: anywhere.
            pub confined_to: Option<Confinement>,
            /// Keys of plan files beside those that this crate has. A plan with another one is wrong.
            pub parts: PlanParts,
            /// `true` if another process carries out setup, refresh and teardown, and hands the values over:
            /// the plan has none of them. What they name in the environment may be missing, but for whole
            /// URLs.
            pub is_set_up_elsewhere: bool,
            $($($($(#[doc = $doc])* pub $name: in_patch::$kind,)+)+)+
        }

        impl PlanPatch {
            /// The settings with the places of their values, in the order of [`Setting::ALL`].
            pub(crate) fn slots(&mut self) -> Vec<(&'static Setting, Slot<'_>)> {
                let slots = [$($($(Slot::from(&mut self.$name),)+)+)+];
                Setting::ALL.iter().zip(slots).collect()
            }

            /// The settings with the values that were given, in the order of [`Setting::ALL`].
            pub fn settings(&self) -> Vec<(&'static Setting, Vec<&RawValue>)> {
                let values = [$($($(self.$name.values(),)+)+)+];
                Setting::ALL.iter().zip(values).collect()
            }
        }
    };
}

plimsoll_document::with_settings!(patch);
