//! `plimsoll target llm`: a server of completions until it is stopped.

use plimsoll_core::{Nanos, figure};
use plimsoll_driver::KernelBackend;
use plimsoll_histogram::Histogram;
use plimsoll_targets::llm::{LlmCounts, LlmOptions, LlmServer, StreamFaults};

use super::{ServerMessages, Watch, raise_descriptors, stop};
use crate::args::server::llm::LlmTargetSpec;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::wording::{percent, url};
use crate::session::backend;
use crate::session::built_in_sink::ANOTHER_PORT;

pub(crate) fn command(spec: LlmTargetSpec) -> Result<Exit, Failure> {
    let LlmTargetSpec { options, backend, quiet } = spec;
    let (model, faults, secure) = (options.model.clone(), faults(&options), options.tls.is_some());
    raise_descriptors();
    let server = start(options, backend::chosen(backend)?)?;
    let voice = ServerMessages { name: "target llm", quiet };
    let watch = Watch::new(stop(server.stopper()))?;
    let url = url(server.endpoint());
    let url = if secure { url.replacen("http:", "https:", 1) } else { url };
    voice.say(format!("listening on {url}"));
    voice.say(format!("model {model}, at /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /api/chat and /api/generate"));
    // What spoils a run is not to be a surprise.
    if !faults.is_empty() {
        voice.say(format!("faults: {faults}"));
    }
    let report = server.wait();
    watch.end();
    if let Some(failure) = &report.truth_failure {
        voice.say(format!("the truth log is not complete: {failure}"));
    }
    voice.say(summary(&report.counts));
    if let Some(late) = lateness(&report.lateness) {
        voice.say(late);
    }
    Ok(Exit::Success)
}

fn start(options: LlmOptions, backend: KernelBackend) -> Result<LlmServer, Failure> {
    LlmServer::start(options, backend).map_err(|error| Failure::start(&error, ANOTHER_PORT))
}

/// The faults in force, in words; empty if there are none.
fn faults(options: &LlmOptions) -> String {
    let StreamFaults { error, cut, stall } = options.faults;
    let all = [(error, "end with an error"), (cut, "are cut off"), (stall, "stand still")];
    let found = all.iter().filter(|(share, _)| *share > 0.0);
    let found: Vec<String> =
        found.map(|(share, what)| format!("{} of the streams {what}", percent(*share))).collect();
    found.join(", ")
}

fn summary(counts: &LlmCounts) -> String {
    let LlmCounts { completions, whole, faults, refused, abandoned, tokens, others, connections, .. } =
        *counts;
    let [completions, whole, faults, refused, abandoned, tokens, others, connections] =
        [completions, whole, faults, refused, abandoned, tokens, others, connections].map(figure::count);
    format!(
        "{completions} completions = {whole} whole + {faults} wrong on purpose + {refused} refused + \
         {abandoned} abandoned; {tokens} tokens; {others} other requests; {connections} connections"
    )
}

/// The time by which chunks left late, in words: what a server that cannot keep its own laws adds to the gaps
/// that its clients see. `None` without chunks.
fn lateness(lateness: &Histogram) -> Option<String> {
    let at = |p: f64| lateness.percentile(p).map(|late| figure::nanos(Nanos(late)));
    let (p50, p99, most) = (at(50.0)?, at(99.0)?, figure::nanos(Nanos(lateness.max()?)));
    Some(format!("chunks left {p50} (p50), {p99} (p99), {most} (max) after they were due"))
}

#[cfg(test)]
mod tests {
    use plimsoll_driver::Endpoint;

    use super::*;

    #[test]
    fn faults_and_counts_are_told() {
        let mut options = LlmOptions::new(Endpoint::Unix("s".into()));
        assert_eq!(faults(&options), "");
        options.faults = StreamFaults { error: 0.01, cut: 0.0, stall: 0.5 };
        assert_eq!(faults(&options), "1% of the streams end with an error, 50% of the streams stand still");
        let counts =
            LlmCounts { completions: 3, whole: 2, abandoned: 1, tokens: 1_234, ..Default::default() };
        assert_eq!(lateness(&Histogram::default()), None);
        let mut late = Histogram::default();
        (0..100).for_each(|_| late.record(1_000));
        let told = lateness(&late).expect("there are chunks");
        assert!(told.starts_with("chunks left 1") && told.ends_with("after they were due"), "{told}");
        assert!(summary(&counts).starts_with("3 completions = 2 whole + 0 wrong on purpose"));
    }
}
