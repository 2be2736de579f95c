//! Steps around the load: the setup and the teardown, each compiled as a plan of one scenario.

use std::borrow::Cow;

use plimsoll_scenario::{Op, PoolSpec};

use super::Compiler;
use crate::document::{Document, Field, LoadedDocument, ScenarioSpec, StepSpec, Text};
use crate::draft::ScenarioDraft;
use crate::targets::Servers;

/// The part of a plan file that is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    Setup,
    #[default]
    Load,
    Teardown,
}

/// Results of the parts that were compiled before this one.
#[derive(Default)]
pub(super) struct Around {
    /// The part that is compiled now.
    pub(super) role: Role,
    /// The variables that the setup sets for certain.
    pub(super) given: Vec<String>,
    /// All variables that one of its steps sets.
    pub(super) named: Vec<String>,
    /// The data sources that setup and teardown take rows of.
    pub(super) drawn: Vec<String>,
    /// `true` if one of their steps has a script.
    pub(super) has_scripts: bool,
    /// The servers of all parts so far.
    pub(super) servers: Servers,
}

/// The parts of a plan in the order in which they are compiled: each needs what those before it set and use.
pub(super) fn parts(loaded: &LoadedDocument) -> Vec<(Role, Cow<'_, LoadedDocument>)> {
    let Document { setup, teardown, .. } = &loaded.document;
    let once = [(Role::Setup, "setup", setup), (Role::Teardown, "teardown", teardown)];
    let once = once.into_iter().filter(|(.., steps)| !steps.is_empty());
    let mut all: Vec<_> =
        once.map(|(role, name, steps)| (role, Cow::Owned(alone(loaded, name, steps)))).collect();
    all.push((Role::Load, Cow::Borrowed(loaded)));
    all
}

/// The plan whose only scenario has these steps. They keep cookies among themselves, as a browser does.
fn alone(loaded: &LoadedDocument, name: &str, steps: &[Field<StepSpec>]) -> LoadedDocument {
    let place = steps.first().and_then(Field::place).unwrap_or_default();
    let scenario = ScenarioSpec {
        name: Field::Given(Text::from(name), place),
        cookies: Field::Given(true, place),
        steps: steps.to_vec(),
        ..ScenarioSpec::default()
    };
    let document = Document { scenarios: vec![Field::Given(scenario, place)], ..loaded.document.clone() };
    LoadedDocument { document, ..loaded.clone() }
}

impl Compiler<'_, '_> {
    /// Lets a part around the load end with a row of the values that it has set: that there is one shows that
    /// it came to its end. Returns the number of its pool.
    pub(super) fn leaving(
        &mut self,
        scenarios: &mut [ScenarioDraft],
        pools: &mut Vec<PoolSpec>,
    ) -> Option<u16> {
        let name = match self.around.role {
            Role::Load => return None,
            Role::Setup => "setup",
            Role::Teardown => "teardown",
        };
        let number = u16::try_from(pools.len()).ok()?;
        let columns = scenarios.first_mut().map(|scenario| {
            scenario.ops.push(Op::Keep(number));
            std::mem::take(&mut scenario.set)
        });
        pools.push(PoolSpec { name: name.to_owned(), columns: columns?, rows: [].into() });
        Some(number)
    }
}
