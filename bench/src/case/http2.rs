//! HTTP/2: many requests at once on each connection, against h2load.
//!
//! h2load runs for a time (`-D`) and not for a count: it then counts exactly the requests that it completed
//! within that time, and the few that are in flight at the end (its "started" less its "done") are those that
//! the server answered beyond them. With a count (`-n`) the two tools would run for different times, so that
//! start-up would weigh differently in their figures.

use super::Case;
use crate::duel::{Duel, Figure, Limit, Pairs};
use crate::failure::{Failure, Result};
use crate::options::Peer;
use crate::report::Section;
use crate::run::{Load, Run, Tool};
use crate::server::Serves;
use crate::session::Session;

/// Connections, and streams on each of them.
type Shape = (u32, u32);

/// The usual shape of a load on HTTP/2.
const USUAL: Shape = (8, 64);
/// One request at a time, and as many as a server allows by default (nghttpd: 100 streams).
const OTHERS: [Shape; 2] = [(1, 1), (100, 100)];

/// Carries out one of the cases.
pub(crate) fn measure(session: &Session, case: Case) -> Result<Vec<Section>> {
    if session.options.vs.is_some_and(|peer| peer != Peer::H2load) {
        return Err(Failure::new("wrk does not speak HTTP/2: leave out --vs"));
    }
    let mut sections = Vec::new();
    for duel in duels(session, case) {
        let (mut section, pairs) = duel.fight(session)?;
        assert_http2(&pairs)?;
        if case == Case::H2tls {
            section.note(tls_note(&pairs)?);
        }
        sections.push(section);
    }
    Ok(sections)
}

fn duels(session: &Session, case: Case) -> Vec<Duel> {
    let against = |server: &str, serves: Serves, shape: Shape, at_most: Option<f64>| {
        duel(session, server, serves, shape, at_most)
    };
    if case == Case::H2tls {
        return vec![against("the sink over TLS 1.3", Serves::SinkTls, USUAL, Some(0.5))];
    }
    let sink = || Serves::Sink(Vec::new());
    let mut duels = vec![
        against("the sink", sink(), USUAL, Some(0.2)),
        against("nghttpd", Serves::Nghttpd, USUAL, Some(0.4)),
        against("nginx", Serves::NginxH2c, USUAL, None),
    ];
    for shape in OTHERS {
        duels.push(against("the sink", sink(), shape, Some(0.8)));
        duels.push(against("nghttpd", Serves::Nghttpd, shape, Some(0.8)));
    }
    duels
}

fn duel(session: &Session, server: &str, serves: Serves, shape: Shape, at_most: Option<f64>) -> Duel {
    let (connections, streams) = shape;
    let title = format!("HTTP/2 GET, closed, {connections} x {streams} streams, against {server}");
    let args = ["--http2", "-c", &connections.to_string(), "-m", &streams.to_string()];
    // No authority signed the certificate; h2load never verifies one.
    let insecure = (serves == Serves::SinkTls).then_some("-k");
    let peer = ["-t1", &format!("-c{connections}"), &format!("-m{streams}"), "-D", "{seconds}", "{url}"];
    Duel {
        case: format!("h2, {connections} x {streams}, {server}"),
        title,
        serves,
        subject: Load::plimsoll(session, &args.into_iter().chain(insecure).collect::<Vec<_>>()),
        peer: Load::new(Tool::Peer(Peer::H2load), &peer),
        limits: at_most.map(|at_most| Limit::at_most(Figure::Total, at_most)).into_iter().collect(),
    }
}

/// A tool that fell back to HTTP/1.1 would compare something else.
fn assert_http2(pairs: &Pairs) -> Result<()> {
    let is_http2 = |run: &&Run| matches!(&run.reading.protocols[..], [only] if only == "h2" || only == "h2c");
    match pairs.subject.iter().chain(&pairs.peer).find(|run| !is_http2(run)) {
        Some(run) => {
            let spoken = run.reading.protocols.join(", ");
            Err(Failure::new(format!("not every run spoke HTTP/2, but one `{spoken}`")))
        }
        None => Ok(()),
    }
}

/// Names the TLS version and cipher suite that each side negotiated. Fails unless every run used TLS 1.3.
fn tls_note(pairs: &Pairs) -> Result<String> {
    let negotiated = |runs: &[Run]| {
        let mut all: Vec<&str> =
            runs.iter().map(|run| run.reading.tls.as_deref().unwrap_or("none")).collect();
        all.sort_unstable();
        all.dedup();
        if all.iter().any(|tls| !tls.starts_with("TLSv1.3 ")) {
            return Err(Failure::new(format!("not every run spoke TLS 1.3: {}", all.join(", "))));
        }
        Ok(all.join(", "))
    };
    let (subject, peer) = (negotiated(&pairs.subject)?, negotiated(&pairs.peer)?);
    Ok(format!("Plimsoll negotiated {subject}, h2load {peer}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;

    fn spoke(protocols: &[&str], tls: Option<&str>) -> Run {
        let protocols = protocols.iter().map(|&name| name.to_owned()).collect();
        Run::undisturbed(1.0, 1.0, Reading { protocols, tls: tls.map(str::to_owned), ..Reading::default() })
    }

    #[test]
    fn a_tool_that_falls_back_is_no_peer() {
        let pairs = |peer| Pairs { subject: vec![spoke(&["h2"], None)], peer: vec![peer] };
        assert!(assert_http2(&pairs(spoke(&["h2c"], None))).is_ok());
        for bad in [&["http/1.1"][..], &["h2", "http/1.1"], &[]] {
            assert!(assert_http2(&pairs(spoke(bad, None))).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn both_sides_say_what_they_negotiated() {
        let pairs = |peer| Pairs {
            subject: vec![spoke(&["h2"], Some("TLSv1.3 A")), spoke(&["h2"], Some("TLSv1.3 A"))],
            peer: vec![spoke(&["h2"], peer)],
        };
        let note = tls_note(&pairs(Some("TLSv1.3 B")));
        assert_eq!(note, Ok("Plimsoll negotiated TLSv1.3 A, h2load TLSv1.3 B.".to_owned()));
        assert!(tls_note(&pairs(Some("TLSv1.2 B"))).is_err() && tls_note(&pairs(None)).is_err());
    }
}
