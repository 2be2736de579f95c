//! Fleets: the agents of a broker, and the flags of a run that they carry out.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use plimsoll_fleet::OnLoss;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::{Json, Posted};
use crate::folder::Folder;
use crate::program::Call;
use crate::refusal::Refusal;
use crate::router::{Ui, blocking};

/// A broker, and the files that it knows us by: names from the folder on.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Broker {
    nats: String,
    creds: Option<String>,
    ca: Option<String>,
}

/// The agents that a run is carried out by.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FleetChoice {
    broker: Broker,
    /// A number, or names with commas between; all that are free if it is missing.
    agents: Option<String>,
    /// Policy after the loss of an agent.
    #[serde(default)]
    on_loss: OnLoss,
}

impl Broker {
    /// Returns the flags for the broker, by the names that a command has for them: address, credentials,
    /// authorities.
    fn words(&self, folder: &Folder, names: [&str; 3]) -> Result<Vec<String>, Refusal> {
        let [nats, creds, ca] = names;
        let mut words = vec![format!("{nats}={}", self.nats.trim())];
        for (flag, file) in [(creds, &self.creds), (ca, &self.ca)] {
            let Some(file) = file.as_deref().filter(|file| !file.is_empty()) else { continue };
            words.push(format!("{flag}={}", shown(&folder.key(file)?, file)?));
        }
        Ok(words)
    }
}

/// A path as a word of a command line.
fn shown<'p>(path: &'p Path, name: &str) -> Result<&'p str, Refusal> {
    path.to_str().ok_or_else(|| {
        Refusal::unprocessable(format!("{} is not text in UTF-8", name.escape_debug()), "rename its folder")
    })
}

impl FleetChoice {
    /// The flags of a run on this fleet.
    ///
    /// # Errors
    /// A file of its broker is not in the folder.
    pub(crate) fn words(&self, folder: &Folder) -> Result<Vec<String>, Refusal> {
        let mut words = self.broker.words(folder, ["--fleet", "--fleet-creds", "--fleet-ca"])?;
        let agents = self.agents.as_deref().map(str::trim).filter(|agents| !agents.is_empty());
        words.extend(agents.map(|agents| format!("--agents={agents}")));
        if self.on_loss != OnLoss::default() {
            words.push(format!("--on-loss={}", self.on_loss.name()));
        }
        Ok(words)
    }
}

/// `POST /api/fleet`: the agents of a broker.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    Posted(broker): Posted<Broker>,
) -> Result<Json<Value>, Refusal> {
    let folder = ui.folder.clone();
    let words = blocking(move || broker.words(&folder, ["--nats", "--creds", "--ca"])).await?;
    let command = ["fleet", "list", "-o", "json"].map(str::to_owned);
    let call = Call::new(command.into_iter().chain(words), ui.folder.root());
    let finished = ui.program.call(call).await?;
    if finished.code != Some(0) {
        return Err(finished.refusal());
    }
    let listed = serde_json::from_slice(&finished.output);
    listed.map(Json).map_err(|error| Refusal::failed(error.to_string(), "try it again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_named_by_flags_and_its_files_are_in_the_folder() {
        let place = std::env::temp_dir().join(format!("plimsoll-web-fleet-{}", std::process::id()));
        std::fs::create_dir_all(place.join("fleet")).unwrap();
        std::fs::write(place.join("fleet/coordinator.key"), "k").unwrap();
        let folder = Folder::open(&place).unwrap();
        let broker = |creds: Option<&str>| Broker {
            nats: " nats://127.0.0.1:4222".to_owned(),
            creds: creds.map(str::to_owned),
            ca: Some(String::new()),
        };
        let choice = |creds, agents: Option<&str>| FleetChoice {
            broker: broker(creds),
            agents: agents.map(str::to_owned),
            on_loss: if agents.is_some() { OnLoss::Takeover } else { OnLoss::Abort },
        };
        assert_eq!(choice(None, None).words(&folder).unwrap(), ["--fleet=nats://127.0.0.1:4222"]);
        let all = choice(Some("fleet/coordinator.key"), Some("a,b")).words(&folder).unwrap();
        assert!(
            all[1].starts_with("--fleet-creds=/") && all[1].ends_with("fleet/coordinator.key"),
            "{all:?}"
        );
        assert_eq!(all[2..], ["--agents=a,b", "--on-loss=takeover"]);
        for elsewhere in ["/etc/passwd", "../x.key", "fleet/none.key", "fleet/.x.key", "plan.yaml"] {
            assert!(choice(Some(elsewhere), None).words(&folder).is_err(), "{elsewhere}");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
}
