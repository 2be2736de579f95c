//! The cases of the closed model: every connection sends its next request when the last one was answered.

use std::process::Command;

use super::Case;
use crate::command;
use crate::duel::{Duel, Figure, Limit, Pairs};
use crate::failure::{Failure, Result};
use crate::options::Peer;
use crate::report::{Finding, Section, cell};
use crate::run::{Load, Tool};
use crate::server::{Server, Serves};
use crate::session::Session;
use crate::statistic::Spread;

/// Connections of every case but `h1`.
const CONNECTIONS: u32 = 64;

/// The most that the turnaround may be of a cycle, in percent.
const TURNAROUND_PERCENT: f64 = 3.0;

/// The body of the case `post`: about 300 bytes, and no two alike. `scripts/post.lua` makes the same.
const POST_BODY: &str = "{\"id\":${sequence},\"user\":\"user-${sequence}\",\
    \"email\":\"user-${sequence}@example.com\",\"amount\":${random_int(1,100000)},\
    \"created_ms\":${timestamp_ms},\"currency\":\"EUR\",\"status\":\"new\",\"note\":\"\
    A note of the length that people write under an order: leave it with the neighbours, please, \
    and ring twice, for the bell is not loud at all, really\"}";

/// wrk's script for the case `post`.
const POST_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/post.lua");

/// Carries out one of the closed cases.
pub(crate) fn measure(session: &Session, case: Case) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for duel in duels(session, case)? {
        let (mut section, pairs) = duel.fight(session)?;
        if case == Case::Post {
            section.note(request_size(&pairs));
        }
        // The sink answers as fast as the generator asks, so that its users wait for each of the two.
        if matches!(case, Case::Slow | Case::Nginx) {
            section.findings.push(turnaround(&duel, &pairs));
        }
        if case == Case::Tls {
            tls_notes(session, &duel, &pairs, &mut section)?;
        }
        sections.push(section);
    }
    Ok(sections)
}

fn duels(session: &Session, case: Case) -> Result<Vec<Duel>> {
    let peer = session.options.vs.unwrap_or(Peer::Wrk);
    let total = |ratio| Limit::at_most(Figure::Total, ratio);
    let user = |ratio| Limit::at_most(Figure::User, ratio);
    // The limits were set for wrk.
    let against_wrk = |limits: Vec<Limit>| if peer == Peer::Wrk { limits } else { Vec::new() };
    let get = |case: &str, title: String, serves: Serves, connections: u32, limits| {
        let count = connections.to_string();
        let mut args = vec!["-c", &count];
        // No authority signed the certificate; wrk and h2load never verify one.
        if matches!(serves, Serves::SinkTls | Serves::NginxTls) {
            args.push("-k");
        }
        let subject = Load::plimsoll(session, &args);
        let (case, limits) = (case.to_owned(), against_wrk(limits));
        Duel { case, title, serves, subject, peer: closed_get(peer, connections), limits }
    };
    Ok(match case {
        Case::H1 => session
            .options
            .connections
            .iter()
            .map(|&connections| {
                let limits = match connections {
                    1 => vec![total(1.0)],
                    64 => vec![total(0.75), user(0.4), Limit::at_least(Figure::Rate, 1.25)],
                    1000 => vec![total(0.7)],
                    10_000 => vec![total(0.65)],
                    _ => Vec::new(),
                };
                let title = format!("GET, closed, {}, against the sink", counted(connections));
                get(&format!("h1 -c {connections}"), title, Serves::Sink(Vec::new()), connections, limits)
            })
            .collect(),
        Case::Slow => {
            let title = "GET, closed, 64 connections, against a server that needs 20 µs of CPU per request";
            let sink = Serves::Sink(vec!["--work".to_owned(), "20us".to_owned()]);
            vec![get("slow", title.to_owned(), sink, CONNECTIONS, vec![total(0.6)])]
        }
        Case::Nginx => {
            let title = "GET, closed, 64 connections, against nginx".to_owned();
            vec![get("nginx", title, Serves::Nginx, CONNECTIONS, vec![total(0.85)])]
        }
        Case::Tls => {
            let title = |server: &str| format!("GET over TLS 1.3, closed, 64 connections, against {server}");
            vec![
                get("tls", title("the sink"), Serves::SinkTls, CONNECTIONS, vec![total(0.8)]),
                get("tls nginx", title("nginx"), Serves::NginxTls, CONNECTIONS, Vec::new()),
            ]
        }
        Case::Post => vec![post(session, peer)?],
        // Measured elsewhere.
        _ => Vec::new(),
    })
}

fn counted(connections: u32) -> String {
    format!("{connections} connection{}", if connections == 1 { "" } else { "s" })
}

fn closed_get(peer: Peer, connections: u32) -> Load {
    let connections = format!("-c{connections}");
    let tool = Tool::Peer(peer);
    match peer {
        Peer::Wrk => Load::new(tool, &["-t1", &connections, "-d{seconds}s", "--latency", "{url}"]),
        Peer::H2load => Load::new(tool, &["--h1", "-t1", &connections, "-m1", "-D", "{seconds}", "{url}"]),
    }
}

fn post(session: &Session, peer: Peer) -> Result<Duel> {
    if peer != Peer::Wrk {
        return Err(Failure::new("only wrk can make a body per request: leave out --vs for post"));
    }
    let connections = CONNECTIONS.to_string();
    Ok(Duel {
        case: "post".to_owned(),
        title: "POST with a unique body of 300 bytes per request, closed, 64 connections, against the sink"
            .to_owned(),
        serves: Serves::Sink(Vec::new()),
        subject: Load::plimsoll(
            session,
            &["-c", &connections, "-H", "Content-Type: application/json", "-b", POST_BODY],
        ),
        peer: Load::new(
            Tool::Peer(peer),
            &["-t1", "-c64", "-d{seconds}s", "--latency", "-s", POST_SCRIPT, "{url}"],
        ),
        limits: vec![Limit::at_most(Figure::User, 0.25)],
    })
}

/// Share of a user's cycle between the arrival of a response and the sending of the next request, which no
/// server answers for.
fn turnaround(duel: &Duel, pairs: &Pairs) -> Finding {
    let shares = pairs.subject.iter().filter_map(|run| run.reading.detail.turnaround_share);
    let share = Spread::of(shares.map(|share| share * 100.0));
    Finding {
        case: duel.case.clone(),
        figure: "turnaround, % of a cycle".to_owned(),
        measured: cell(share, 1),
        limit: format!("≤ {TURNAROUND_PERCENT}"),
        met: share.is_some_and(|share| share.median <= TURNAROUND_PERCENT),
    }
}

fn request_size(pairs: &Pairs) -> String {
    let (bytes, requests) = pairs.subject.iter().fold((0, 0), |(bytes, requests), run| {
        (bytes + run.reading.detail.bytes_sent, requests + run.reading.detail.started)
    });
    format!("Plimsoll's requests had {} bytes on average, the head included.", bytes / requests.max(1))
}

/// Notes the TLS version and cipher suite that each side negotiated. wrk does not report its own, so the note
/// uses what the system's OpenSSL negotiates with its defaults, which wrk also uses.
fn tls_notes(session: &Session, duel: &Duel, pairs: &Pairs, section: &mut Section) -> Result<()> {
    let versions: Vec<&str> = pairs.subject.iter().filter_map(|run| run.reading.tls.as_deref()).collect();
    if versions.len() < pairs.subject.len() || versions.iter().any(|tls| !tls.starts_with("TLSv1.3 ")) {
        return Err(Failure::new(format!("plimsoll did not speak TLS 1.3 throughout: {versions:?}")));
    }
    section.note(format!("Plimsoll negotiated {}.", versions.first().unwrap_or(&"nothing")));
    let server = Server::start(session, &duel.serves)?;
    let probe = Command::new(command::find("openssl")?)
        .args(["s_client", "-brief", "-connect", server.authority()])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| Failure::because("cannot start openssl", error))?;
    let said = String::from_utf8_lossy(&probe.stderr).into_owned();
    let value =
        |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown").trim();
    let (version, suite) = (value("Protocol version:"), value("Ciphersuite:"));
    if version != "TLSv1.3" {
        return Err(Failure::new(format!("OpenSSL negotiated {version} instead of TLS 1.3 here")));
    }
    section.note(format!("OpenSSL with its defaults, as wrk uses it, negotiates {version} {suite}."));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_post_the_same_document() {
        let script = std::fs::read_to_string(POST_SCRIPT).unwrap();
        // The script's format string, put together from its pieces, with our slots for its verbs.
        let literal = script.split_once("local template = ").unwrap().1.split_once("\n\n").unwrap().0;
        let mut format: String = literal.split('\'').skip(1).step_by(2).collect();
        let slots =
            ["${sequence}", "${sequence}", "${sequence}", "${random_int(1,100000)}", "${timestamp_ms}"];
        for (verb, slot) in ["%d", "%d", "%d", "%d", "%d000"].iter().zip(slots) {
            format = format.replacen(verb, slot, 1);
        }
        assert_eq!(format, POST_BODY);
    }

    #[test]
    fn the_posted_document_has_300_bytes() {
        // Six digits of sequence, as in the middle of a run of a few seconds.
        let body = POST_BODY
            .replace("${sequence}", "123456")
            .replace("${random_int(1,100000)}", "12345")
            .replace("${timestamp_ms}", "1790000000000");
        assert!((295..=305).contains(&body.len()), "{}", body.len());
    }
}
