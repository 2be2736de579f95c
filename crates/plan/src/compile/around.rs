//! Steps around the load: the setup, the refresh and the teardown, each compiled as a plan of one scenario.

use std::borrow::Cow;

use plimsoll_core::Nanos;
use plimsoll_document::{Document, Field, LoadedDocument, Problem, ScenarioSpec, StepSpec, Text};
use plimsoll_scenario::{Op, PoolSpec};
use plimsoll_schedule::parse_duration;

use super::Compiler;
use crate::draft::ScenarioDraft;
use crate::targets::Servers;

/// The part of a plan file that is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    Setup,
    #[default]
    Load,
    Refresh,
    Teardown,
}

/// Results of the parts that were compiled before this one.
#[derive(Default)]
pub(super) struct Around {
    /// The part that is compiled now.
    pub(super) role: Role,
    /// The variables that the setup sets for certain.
    pub(super) given: Vec<String>,
    /// Time from one refresh to the next.
    pub(super) every: Option<Nanos>,
    /// All variables that one of the steps of the setup sets.
    pub(super) named: Vec<String>,
    /// The data sources that setup and teardown take rows of.
    pub(super) drawn: Vec<String>,
    /// `true` if one of their steps has a script.
    pub(super) has_scripts: bool,
    /// `true` if another process carries them out.
    pub(super) is_elsewhere: bool,
    /// The servers of all parts so far.
    pub(super) servers: Servers,
}

impl Around {
    /// The value of a name that is missing from the environment, if the part is not carried out here. It can
    /// be a host and a part of a path.
    pub(super) fn unset(&self) -> Option<String> {
        (self.is_elsewhere && self.role != Role::Load).then(|| "unset".to_owned())
    }
}

/// The parts of a plan in the order in which they are compiled: each needs what those before it set and use.
pub(super) fn parts(loaded: &LoadedDocument) -> Vec<(Role, Cow<'_, LoadedDocument>)> {
    let Document { setup, teardown, .. } = &loaded.document;
    let once = [
        (Role::Setup, "setup", &**setup),
        (Role::Refresh, "refresh", loaded.document.refresh_steps()),
        (Role::Teardown, "teardown", teardown),
    ];
    let once = once.into_iter().filter(|(.., steps)| !steps.is_empty());
    let mut all: Vec<_> =
        once.map(|(role, name, steps)| (role, Cow::Owned(alone(loaded, name, steps)))).collect();
    all.push((Role::Load, Cow::Borrowed(loaded)));
    all
}

/// The plan whose only scenario has these steps. They keep cookies among themselves, as a browser does.
fn alone(loaded: &LoadedDocument, name: &str, steps: &[Field<StepSpec>]) -> LoadedDocument {
    let place = steps.first().and_then(Field::place).unwrap_or_default();
    let mut scenario = ScenarioSpec::default();
    scenario.name = Field::Given(Text::from(name), place);
    scenario.cookies = Field::Given(true, place);
    scenario.steps = steps.to_vec();
    let mut alone = loaded.clone();
    alone.document.scenarios = vec![Field::Given(scenario, place)];
    alone
}

impl Compiler<'_, '_> {
    /// Reads how often the values of the setup are refreshed; the steps of the refresh set these variables.
    pub(super) fn note_refresh(&mut self, set: &[String]) {
        let refresh = &self.loaded.document.refresh;
        let place = refresh.place();
        let Some(spec) = refresh.get() else { return };
        if !set.iter().any(|name| self.around.given.contains(name)) {
            let problem = Problem::new("the refresh replaces no value of the setup");
            let hint = "set or extract a variable in it that `setup` sets, too, on every way through both";
            self.report(place, problem.with_hint(hint));
        }
        if spec.every.is_absent() {
            let problem = Problem::new("`refresh` does not say how often");
            self.report(place, problem.with_hint("write `refresh: {every: 4m}`"));
        }
        self.around.every = self.read(&spec.every, parse_every).flatten();
    }

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
            Role::Refresh => "refresh",
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

/// Shortest time from one refresh to the next.
const SHORTEST: Nanos = Nanos::from_secs(1);

fn parse_every(text: &str) -> Result<Nanos, String> {
    let every = parse_duration(text).map_err(|error| error.to_string())?;
    if every < SHORTEST {
        return Err(format!("`{text}` is too short for a refresh: it can be a second or longer"));
    }
    Ok(every)
}
