//! Flags of fleets: the broker, and runs on several machines.

use std::path::PathBuf;

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems};
use plimsoll_fleet::{AgentLimits, Credentials, NatsAddress, OnLoss, check_name};
use plimsoll_plan::{Plan, TrialLoad, named_text};
use plimsoll_schedule::parse_duration;

use crate::base::handed_values::HandedValues;

/// Default address of a broker: that of `plimsoll fleet up`.
const USUAL_BROKER: &str = "nats://127.0.0.1:4222";
/// Shortest allowed value of `--orphan`: a busy machine may be silent for some seconds.
const SHORTEST_ORPHAN: Nanos = Nanos::from_secs(5);
/// Default value of `--orphan`.
const USUAL_ORPHAN: Nanos = Nanos::from_secs(30);

/// The broker of a fleet, and the credentials for it.
#[derive(Clone, Debug, Args)]
pub(crate) struct BrokerArgs {
    /// Address of the NATS broker: nats://HOST:4222, or tls://HOST:4222
    #[arg(long, value_name = "URL", default_value = USUAL_BROKER)]
    nats: String,
    /// File with the key for the broker, as written by `fleet up`
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// Certificates of the authorities to trust for the broker (PEM), in place of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl BrokerArgs {
    /// The address; `name` is the name of the connection.
    ///
    /// # Errors
    /// The credentials cannot be read.
    pub(crate) fn address(&self, name: &str) -> Result<NatsAddress, Problem> {
        address(&self.nats, ("--creds", self.creds.as_ref()), self.ca.as_ref(), name)
    }

    /// Returns `true` if the broker is asked for a key, or for the user and password of its URL.
    pub(crate) fn has_credentials(&self) -> bool {
        let authority = self.nats.split_once("://").map_or(&*self.nats, |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        self.creds.is_some() || authority.contains('@')
    }
}

fn address(
    url: &str,
    (flag, credentials): (&str, Option<&PathBuf>),
    authorities: Option<&PathBuf>,
    name: &str,
) -> Result<NatsAddress, Problem> {
    let read = |path: &PathBuf| {
        let text = named_text(path).map_err(|error| error.to_string());
        let read = text.and_then(|text| Credentials::read(&text).map_err(|error| error.to_string()));
        read.map_err(|error| Problem::new(format!("{flag}: cannot read {}: {error}", path.display())))
    };
    Ok(NatsAddress {
        url: url.to_owned(),
        credentials: credentials.map(read).transpose()?,
        authorities: authorities.cloned(),
        name: name.to_owned(),
    })
}

/// Flags of a run that is carried out by a fleet.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetRunArgs {
    /// Carry the run out on the agents of this NATS broker: nats://HOST:4222, or tls://HOST:4222
    ///
    /// Each agent (`plimsoll agent`) takes a share of the load by its processors, or an equal one with -t.
    /// All begin at one instant, and their results are merged exactly. Rates, users and connections are
    /// those of the whole load.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) fleet: Option<String>,
    /// Number or names of the agents [default: all free agents]
    #[arg(long, value_name = "N|NAMES", hide_short_help = true)]
    agents: Option<String>,
    /// After the loss of an agent: abort (the others stop), continue, or takeover [default: abort]
    ///
    /// With continue the others go on with their own shards. With takeover one of them takes the lost shards
    /// over, from a multiple of five seconds on; a lost agent that is only cut off stops by itself before.
    #[arg(long, value_name = "WHAT", hide_short_help = true)]
    on_loss: Option<String>,
    /// Silence of this command after which agents stop by themselves [default: 30s]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    orphan: Option<String>,
    /// File with the key for the broker, as written by `fleet up`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    fleet_creds: Option<PathBuf>,
    /// Certificates of the authorities to trust for the broker (PEM), in place of the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    fleet_ca: Option<PathBuf>,
}

/// Arguments that agents and coordinators give to the process of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AgentRunArgs {
    /// Limits of the agent that has started this run, as JSON
    #[arg(long, value_name = "JSON", hide = true)]
    agent_limits: Option<String>,
    /// Load of one of several runs of the plan, as JSON
    #[arg(long, value_name = "JSON", hide = true)]
    trial: Option<String>,
    /// File with the values of the setup, which the coordinator has carried out
    #[arg(long, value_name = "FILE", hide = true)]
    setup_values: Option<PathBuf>,
}

impl AgentRunArgs {
    /// Returns `true` if another process carries out the setup of the plan.
    pub(crate) const fn is_set_up(&self) -> bool {
        self.setup_values.is_some()
    }

    /// The values of a setup that another process has carried out.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn to_handed_values(&self) -> Result<Option<HandedValues>, Problem> {
        let read = |file: &PathBuf| {
            let text = named_text(file).map_err(|error| error.to_string());
            let values = text.and_then(|text| HandedValues::read(&text));
            values.map_err(|error| Problem::new(format!("--setup-values: {}: {error}", file.display())))
        };
        self.setup_values.as_ref().map(read).transpose()
    }

    /// Limits of the agent that has started this run; `None` if no agent has.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn to_limits(&self) -> Result<Option<AgentLimits>, Problem> {
        let limits = self.agent_limits.as_deref().map(serde_json::from_str).transpose();
        limits.map_err(|error| Problem::new(format!("--agent-limits: {error}")))
    }

    /// The plan under the load of a trial, if the run is one of several.
    ///
    /// # Errors
    /// It cannot be read, or is no load.
    pub(crate) fn amend(&self, plan: Plan) -> Result<Plan, Problem> {
        let Some(text) = &self.trial else { return Ok(plan) };
        let problem = |error: String| Problem::new(format!("--trial: {error}"));
        let trial: TrialLoad = serde_json::from_str(text).map_err(|error| problem(error.to_string()))?;
        plan.as_trial(&trial).map_err(|error| problem(error.to_string()))
    }
}

/// The choice of agents for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    /// All that are free.
    All,
    /// This number of free agents.
    Count(usize),
    /// These.
    Named(Vec<String>),
}

/// A run on a fleet.
#[derive(Clone, Debug)]
pub(crate) struct FleetSpec {
    pub(crate) address: NatsAddress,
    pub(crate) agents: AgentChoice,
    pub(crate) on_loss: OnLoss,
    pub(crate) orphan: Nanos,
}

impl FleetRunArgs {
    /// These flags with the default broker, if they name none.
    pub(crate) fn or_usual(&self) -> Self {
        Self { fleet: self.fleet.clone().or_else(|| Some(USUAL_BROKER.to_owned())), ..self.clone() }
    }

    /// Returns `true` if they name a broker.
    pub(crate) const fn is_given(&self) -> bool {
        self.fleet.is_some()
    }

    /// Reads the flags; `None` if the run is this machine's alone.
    ///
    /// # Errors
    /// All problems of the flags.
    pub(crate) fn to_spec(&self) -> Result<Option<FleetSpec>, Problems> {
        let mut problems = Problems::default();
        let Some(url) = &self.fleet else {
            let others = [
                ("--agents", self.agents.is_some()),
                ("--on-loss", self.on_loss.is_some()),
                ("--orphan", self.orphan.is_some()),
                ("--fleet-creds", self.fleet_creds.is_some()),
                ("--fleet-ca", self.fleet_ca.is_some()),
            ];
            for (flag, _) in others.iter().filter(|(_, given)| *given) {
                let problem = Problem::new(format!("{flag} has no effect without --fleet"));
                problems.push(problem.with_hint("name a broker: --fleet nats://HOST:4222"));
            }
            return if problems.is_empty() { Ok(None) } else { Err(problems) };
        };
        let mut note = |problem: Problem| problems.push(problem);
        let credentials = ("--fleet-creds", self.fleet_creds.as_ref());
        let address = address(url, credentials, self.fleet_ca.as_ref(), "coordinator").map_err(&mut note);
        let agents = self.agents.as_deref().map_or(Ok(AgentChoice::All), choice).map_err(&mut note);
        let chosen = self.on_loss.as_deref().map_or(Some(OnLoss::default()), |word| {
            OnLoss::ALL.into_iter().find(|on_loss| on_loss.name() == word)
        });
        let on_loss = chosen.unwrap_or_else(|| {
            let word = self.on_loss.as_deref().unwrap_or_default().escape_debug();
            let problem = Problem::new(format!("--on-loss: unknown value `{word}`"));
            note(problem.with_hint("write abort, continue or takeover"));
            OnLoss::default()
        });
        let orphan = match self.orphan.as_deref().map(parse_duration) {
            None => USUAL_ORPHAN,
            Some(Ok(orphan)) if orphan >= SHORTEST_ORPHAN => orphan,
            Some(Ok(_)) => {
                let problem = Problem::new("--orphan: agents would stop whenever this machine is busy");
                note(problem.with_hint("write 5s or more"));
                USUAL_ORPHAN
            }
            Some(Err(error)) => {
                note(Problem::new(format!("--orphan: {error}")));
                USUAL_ORPHAN
            }
        };
        match (address, agents) {
            (Ok(address), Ok(agents)) if problems.is_empty() => {
                Ok(Some(FleetSpec { address, agents, on_loss, orphan }))
            }
            _ => Err(problems),
        }
    }
}

/// `3`, or `a,b`.
fn choice(text: &str) -> Result<AgentChoice, Problem> {
    if let Ok(count) = text.parse::<usize>() {
        return match count {
            0 => Err(Problem::new("--agents: a run without agents makes no load")),
            count => Ok(AgentChoice::Count(count)),
        };
    }
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        check_name(name).map_err(|error| Problem::new(format!("--agents: {error}")))?;
        if names.iter().any(|other| other == name) {
            return Err(Problem::new(format!("--agents: `{name}` is named twice")));
        }
        names.push(name.to_owned());
    }
    Ok(AgentChoice::Named(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_chosen_by_number_or_name() {
        assert_eq!(choice("3").unwrap(), AgentChoice::Count(3));
        let names = ["a", "b-2"].map(str::to_owned).to_vec();
        assert_eq!(choice("a, b-2").unwrap(), AgentChoice::Named(names));
        for wrong in ["0", "", "a,a", "a b", "a,,b", "*"] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_problems_come_at_once() {
        let args = FleetRunArgs {
            fleet: Some(USUAL_BROKER.to_owned()),
            agents: Some("0".to_owned()),
            on_loss: Some("cry".to_owned()),
            orphan: Some("1s".to_owned()),
            fleet_creds: Some(PathBuf::from("/nonexistent/key")),
            fleet_ca: None,
        };
        assert_eq!(args.to_spec().unwrap_err().iter().count(), 4);
        let spec = FleetRunArgs::default().or_usual().to_spec().unwrap().unwrap();
        assert_eq!((spec.agents, spec.on_loss), (AgentChoice::All, OnLoss::Abort));
        assert!(FleetRunArgs::default().to_spec().unwrap().is_none());
        let args = FleetRunArgs { fleet: None, ..args };
        assert_eq!(args.to_spec().unwrap_err().iter().count(), 4);
    }
}
