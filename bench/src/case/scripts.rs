//! wrk's scripts, in Plimsoll and in wrk: the same file for both.

use crate::duel::{Duel, Figure, Limit};
use crate::failure::{Failure, Result};
use crate::options::Peer;
use crate::report::Section;
use crate::run::{Load, Tool};
use crate::server::Serves;
use crate::session::Session;

/// Folder of the scripts, which do the same as wrk's own.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/script/tests/wrk");

/// Scripts that cost something per request, each with a description of its work. The others wait, stop or
/// look up names.
const SCRIPTS: [(&str, &str); 6] = [
    ("counter", "path and header made for each request"),
    ("auth", "a request made and a response read, with its headers, each time"),
    ("post", "another method and body, set once"),
    ("pipeline", "three requests at once, made before the run"),
    ("setup", "variables of threads, counted in `request` and `response`"),
    ("report", "percentiles in `done`"),
];

/// Carries out the case.
pub(crate) fn measure(session: &Session) -> Result<Vec<Section>> {
    if session.options.vs.is_some_and(|peer| peer != Peer::Wrk) {
        return Err(Failure::new("only wrk runs wrk's scripts: leave out --vs for scripts"));
    }
    SCRIPTS
        .iter()
        .map(|(name, what)| Ok(duel(session, name, what).fight(session)?.0))
        .collect::<Result<Vec<Section>>>()
}

fn duel(session: &Session, name: &str, what: &str) -> Duel {
    let script = format!("{FOLDER}/{name}.lua");
    let limit = |figure| Limit::at_most(figure, 1.0);
    Duel {
        case: format!("scripts, {name}"),
        title: format!("wrk's scripts, {name}.lua ({what}), closed, 64 connections, against the sink"),
        serves: Serves::Sink(Vec::new()),
        subject: Load::plimsoll(session, &["-c", "64", "--script", &script]),
        peer: Load::new(
            Tool::Peer(Peer::Wrk),
            &["-t1", "-c64", "-d{seconds}s", "--latency", "-s", &script, "{url}"],
        ),
        limits: vec![limit(Figure::Total), limit(Figure::User)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_there() {
        for (name, _) in SCRIPTS {
            assert!(std::path::Path::new(&format!("{FOLDER}/{name}.lua")).is_file(), "{name}");
        }
    }
}
