//! Where settings come from: defaults, below the plan file, below the environment, below flags.
//!
//! A setting of a higher layer replaces the same setting of the layers below. A choice of a higher layer can
//! also make other settings of a lower one pointless: `--rate` beside the plan's `stages`. Within one layer
//! that is a contradiction and refused; between layers the lower one gives way ([`GIVES_WAY`]). Headers are
//! replaced by name, and names of secrets add up.

use std::sync::Arc;

use plimsoll_core::suggest;
use plimsoll_document::settings::VARIABLE_PREFIX;
use plimsoll_document::{LoadedDocument, Problem, Problems, RawValue, Setting, SettingKind, SettingLayers};

use crate::{PlanPatch, Switch};

/// If a higher layer has one of the first settings, the second ones of lower layers give way.
const GIVES_WAY: &[(&[&str], &[&str])] = &[
    (&LOADS, &LOADS),
    // Stages fix the length of the run. The reverse would be a contradiction: a duration does not say how to
    // scale the stages.
    (&["stages", "user_stages"], &["duration"]),
    // Settings of arrivals do not apply to users.
    (&["users", "user_stages"], &["arrival", "overload", "rate_of"]),
    (&PROTOCOL, &PROTOCOL),
    (&["http1"], &OF_HTTP2),
    (&["http2", "http2_prior_knowledge"], &["pipeline", "disable_keepalive"]),
    (&["basic", "bearer"], &CREDENTIALS),
    (&["jwt_key"], &["basic", "bearer"]),
    // Other names of the same limit, which only flags have.
    (&["stream_timeout", "stream_timeout_interval_ms"], &["timeout"]),
    (&["insecure"], &["cacert"]),
    (&["cacert"], &["insecure"]),
    // The certificate's file may hold its key, and another certificate has another key.
    (&["cert"], &["key"]),
    (&["unix_socket"], &["connect_to", "resolve", "source_ip", "proxy"]),
    (&["connect_to", "resolve", "source_ip", "proxy"], &["unix_socket"]),
    (&["ipv4", "ipv6", "source_ip"], &["ipv4", "ipv6"]),
    (&["ipv4", "ipv6"], &["source_ip"]),
    (&["precise", "pacing"], &["precise", "pacing"]),
    (&["disable_keepalive"], &["pipeline", "max_requests_per_connection"]),
    (&["pipeline", "max_requests_per_connection"], &["disable_keepalive"]),
];

const CREDENTIALS: [&str; 7] =
    ["basic", "bearer", "auth", "jwt_key", "jwt_alg", "jwt_claims", "jwt_lifetime"];

const LOADS: [&str; 5] = ["rate", "rps", "stages", "users", "user_stages"];

const PROTOCOL: [&str; 4] = ["http1", "http2", "http2_prior_knowledge", "alpn"];

const OF_HTTP2: [&str; 7] = [
    "max_concurrent_streams",
    "window_bits",
    "connection_window_bits",
    "header_table_size",
    "encoder_header_table_size",
    "max_frame_size",
    "ping_interval",
];

/// The layers of a run, put together.
#[derive(Clone, Debug, Default)]
pub struct Layered {
    /// Settings in force.
    pub patch: PlanPatch,
    /// Settings overridden by a higher layer.
    pub gave_way: Vec<GaveWay>,
}

/// A setting of a lower layer that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaveWay {
    /// The name of the setting.
    pub name: &'static str,
    /// Value of the setting.
    pub value: RawValue,
    /// The setting that overrode it.
    pub to: RawValue,
}

impl Layered {
    /// Puts the layers together. `environment` are variables by name; those that are not settings are left
    /// alone, unless their name is nearly that of one: plans may read variables of their own by
    /// `${env(NAME)}`.
    ///
    /// Flags may name URLs beside a plan; [`Plan::resolve`](crate::Plan::resolve) says when that makes sense.
    pub fn new(
        document: Option<Arc<LoadedDocument>>,
        environment: &[(String, String)],
        flags: PlanPatch,
        problems: &mut Problems,
    ) -> Self {
        let mut gave_way = Vec::new();
        let file = document.as_deref().map(of_document).unwrap_or_default();
        let variables = of_environment(environment, problems);
        let mut patch = over(variables, file, &mut gave_way);
        patch = over(flags, patch, &mut gave_way);
        patch.document = document;
        Self { patch, gave_way }
    }
}

/// The settings of a plan file.
fn of_document(loaded: &LoadedDocument) -> PlanPatch {
    let mut patch = PlanPatch::default();
    let Some(settings) = loaded.document.run.get() else { return patch };
    let values = settings.values();
    for (Setting { name, .. }, slot) in patch.slots() {
        let Some((_, values)) = values.iter().find(|(known, _)| known == name) else { continue };
        let given = values.iter().map(|value| {
            let given = RawValue::new(format!("run.{name}"), value.text.clone().unwrap_or_default());
            RawValue { reported: value.text.is_none(), ..given.at(value.place) }
        });
        slot.fill(given.collect());
    }
    patch
}

/// The settings of environment variables. Empty ones count as not there; lists have one value per line.
fn of_environment(environment: &[(String, String)], problems: &mut Problems) -> PlanPatch {
    let mut patch = PlanPatch::default();
    for (variable, text) in environment {
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX).filter(|_| !text.is_empty()) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        let slots = patch.slots().into_iter();
        let mut slots = slots.filter(|(setting, _)| setting.layers == SettingLayers::All);
        let Some((_, slot)) = slots.find(|(setting, _)| setting.name == name) else {
            let names = Setting::in_plan_files().map(|setting| setting.name);
            if let Some(near) = suggest::closest(&name, names).and_then(Setting::by_name) {
                let problem = Problem::new(format!("the variable {variable} is not a setting"));
                problems.push(problem.with_hint(format!("did you mean {}?", near.variable())));
            }
            continue;
        };
        let given = |text: &str| RawValue::new(variable.clone(), text);
        match slot {
            Slot::Switch(switch) if text == "true" || text == "false" => *switch = Switch(Some(given(text))),
            Slot::Switch(_) => {
                let problem =
                    Problem::new(format!("{variable}: `{}` is not true or false", text.escape_debug()));
                problems.push(problem);
            }
            Slot::One(one) => *one = Some(given(text)),
            Slot::Many(many) => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                *many = lines.map(given).collect();
            }
        }
    }
    patch
}

/// The settings of `upper`, and those of `lower` where that has none and does not give way. Other fields are
/// those of the upper layer.
fn over(mut upper: PlanPatch, mut lower: PlanPatch, gave_way: &mut Vec<GaveWay>) -> PlanPatch {
    let chosen = upper.settings().into_iter().filter_map(|(setting, values)| {
        let chosen = values.into_iter().find(|given| chooses(given, setting))?;
        Some((setting.name, chosen.clone()))
    });
    let chosen: Vec<(&'static str, RawValue)> = chosen.collect();
    for ((setting, above), (_, below)) in upper.slots().into_iter().zip(lower.slots()) {
        let name = setting.name;
        let rival = chosen.iter().find(|(other, _)| {
            let rules = GIVES_WAY.iter().filter(|(winners, _)| winners.contains(other));
            *other != name && rules.clone().any(|(_, losers)| losers.contains(&name))
        });
        let mut below = below.take();
        let to = match (above.first(), rival) {
            (Some(same), _) => Some(same.clone()),
            (None, Some((_, rival))) => Some(rival.clone()),
            (None, None) => None,
        };
        let replaced = match (&to, &above) {
            (None, _) => Vec::new(),
            (Some(_), Slot::Many(headers)) if name == "headers" => {
                let names: Vec<&str> = headers.iter().map(|given| header_name(&given.text)).collect();
                let is_named = |given: &mut RawValue| {
                    names.iter().any(|name| name.eq_ignore_ascii_case(header_name(&given.text)))
                };
                below.extract_if(.., is_named).collect()
            }
            // No layer reveals a value that another one redacts.
            (Some(_), _) if name == "redact" => Vec::new(),
            (Some(_), _) => std::mem::take(&mut below),
        };
        if let Some(to) = to {
            let values =
                replaced.into_iter().filter(|given| chooses(given, setting) || given.text != to.text);
            gave_way.extend(values.map(|value| GaveWay { name, value, to: to.clone() }));
        }
        above.prepend(below);
    }
    upper
}

/// The name of a header `Name: value`.
fn header_name(text: &str) -> &str {
    text.split(':').next().unwrap_or_default().trim()
}

/// Returns `true` if a value chooses something: a switch that is off does not.
fn chooses(given: &RawValue, setting: &Setting) -> bool {
    !(setting.kind == SettingKind::Switch && given.text == "false")
}

/// The place of a setting's values in a patch.
pub(crate) enum Slot<'p> {
    One(&'p mut Option<RawValue>),
    Many(&'p mut Vec<RawValue>),
    Switch(&'p mut Switch),
}

impl Slot<'_> {
    /// Puts these values in place of those that are there.
    pub(crate) fn fill(self, mut values: Vec<RawValue>) {
        match self {
            Self::One(one) => *one = values.pop(),
            Self::Switch(switch) => switch.0 = values.pop(),
            // Wrong items of a list are left out: the others are still checked.
            Self::Many(many) => *many = values.into_iter().filter(|value| !value.reported).collect(),
        }
    }

    fn first(&self) -> Option<&RawValue> {
        match self {
            Self::One(one) => one.as_ref(),
            Self::Switch(switch) => switch.0.as_ref(),
            Self::Many(many) => many.first(),
        }
    }

    fn take(self) -> Vec<RawValue> {
        match self {
            Self::One(one) => one.take().into_iter().collect(),
            Self::Switch(switch) => switch.0.take().into_iter().collect(),
            Self::Many(many) => std::mem::take(many),
        }
    }

    /// Puts values of a lower layer in front.
    fn prepend(self, values: Vec<RawValue>) {
        match self {
            Self::One(one) if one.is_none() => *one = values.into_iter().next(),
            Self::Switch(switch) if switch.0.is_none() => switch.0 = values.into_iter().next(),
            Self::One(_) | Self::Switch(_) => {}
            Self::Many(many) => {
                many.splice(..0, values);
            }
        }
    }
}

impl<'p> From<&'p mut Option<RawValue>> for Slot<'p> {
    fn from(one: &'p mut Option<RawValue>) -> Self {
        Self::One(one)
    }
}

impl<'p> From<&'p mut Vec<RawValue>> for Slot<'p> {
    fn from(many: &'p mut Vec<RawValue>) -> Self {
        Self::Many(many)
    }
}

impl<'p> From<&'p mut Switch> for Slot<'p> {
    fn from(switch: &'p mut Switch) -> Self {
        Self::Switch(switch)
    }
}

/// Values of a setting in a patch.
pub(crate) trait PatchValues {
    /// The values that were given.
    fn values(&self) -> Vec<&RawValue>;
}

impl PatchValues for Option<RawValue> {
    fn values(&self) -> Vec<&RawValue> {
        self.iter().collect()
    }
}

impl PatchValues for Vec<RawValue> {
    fn values(&self) -> Vec<&RawValue> {
        self.iter().collect()
    }
}

impl PatchValues for Switch {
    fn values(&self) -> Vec<&RawValue> {
        self.0.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_settings() {
        let names = GIVES_WAY.iter().flat_map(|(winners, losers)| winners.iter().chain(*losers));
        for name in names {
            assert!(Setting::by_name(name).is_some(), "{name} is not a setting");
        }
    }

    #[test]
    fn a_limit_in_milliseconds_replaces_the_limit_of_a_lower_layer() {
        let given = |by: &'static str, text: &str| Some(RawValue::new(by, text));
        let lower = PlanPatch { timeout: given("run.timeout", "5s"), ..PlanPatch::default() };
        let stream_timeout_interval_ms = given("--stream-timeout-interval-ms", "7000");
        let upper = PlanPatch { stream_timeout_interval_ms, ..PlanPatch::default() };
        let mut gave_way = Vec::new();
        let patch = over(upper, lower, &mut gave_way);
        assert_eq!(patch.timeout, None);
        assert_eq!(gave_way.len(), 1);
        assert_eq!((gave_way[0].name, &*gave_way[0].to.text), ("timeout", "7000"));
    }
}
