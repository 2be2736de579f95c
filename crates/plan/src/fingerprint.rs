//! Fingerprints that tell plans apart.

use std::fmt::Write as _;

use plimsoll_core::Nanos;
use plimsoll_metrics::RateUnit;
use plimsoll_schedule::{Population, Process};

use crate::connections::RESOLVE_EVERY;
use crate::{Connections, Dealing, Fingerprint, Load, Plan, Step, Target};

impl Plan {
    /// A stable hash over the whole plan, except the seed, the values of secret headers, and settings that
    /// only judge or report (thresholds, statistics): two runs of the same load have the same one.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::EMPTY.with(self.canonical().as_bytes())
    }

    /// The plan as text, one line per part. The first line is the version of this format: change it together
    /// with any change below, so that stored hashes never agree by accident.
    fn canonical(&self) -> String {
        let mut text = String::from("plimsoll plan 3\n");
        self.write_requests(&mut text);
        self.write_load(&mut text);
        self.write_connections(&mut text);
        let refresh = self.refresh.as_ref();
        let again = refresh.map(|refresh| format!("refresh {}", refresh.every.0)).unwrap_or_default();
        let parts = [
            ("setup", self.setup.as_ref()),
            (&*again, refresh.map(|refresh| &refresh.steps)),
            ("teardown", self.teardown.as_ref()),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                let _ = writeln!(text, "{name}");
                part.write_requests(&mut text);
            }
        }
        text
    }

    fn write_requests(&self, text: &mut String) {
        for scenario in &self.scenarios {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "scenario {:?}", scenario.steps);
            if (scenario.weight, scenario.start_after) != (1, Nanos::ZERO) {
                let _ = writeln!(text, "weight {} after {}", scenario.weight, scenario.start_after.0);
            }
        }
        if self.dealing != Dealing::Even {
            let _ = writeln!(text, "dealing {:?}", self.dealing);
        }
        // Properties that only plan files have are written only if present, so that other plans keep their
        // hashes.
        if self.logic != Fingerprint::EMPTY {
            let _ = writeln!(text, "logic {}", self.logic);
        }
        for feed in &self.feeds {
            let _ = writeln!(text, "feed {feed:?}");
        }
        for signer in &self.tokens {
            let _ = writeln!(text, "token {:?}", signer.spec());
        }
        for step in &self.steps {
            let Step { target, request, logic, timeout, goes_on, make_script, check_script, .. } = step;
            let (request, timeout) = (request.fingerprint(), timeout.map(|timeout| timeout.0));
            let _ = writeln!(
                text,
                "step {target} {request} {logic} timeout {timeout:?} scripts {make_script:?} {check_script:?}"
            );
            if *goes_on {
                let _ = writeln!(text, "goes on");
            }
        }
        if let Some(script) = &self.wrk {
            let _ = writeln!(text, "script {}", script.fingerprint());
        }
        for target in &self.targets {
            let tls = target.tls.as_ref().map(|tls| (tls.server_name.as_str(), tls.settings));
            let Target { authority, address, protocol, pool, fail_over, fail_back, .. } = target;
            let _ = writeln!(text, "target {authority:?} {address:?} tls {tls:?} {protocol:?}");
            if let Some(proxy) = &target.proxy {
                let _ = writeln!(text, "proxy {:?} {:?}", proxy.kind, proxy.authority);
            }
            if !pool.is_empty() {
                let _ = writeln!(text, "pool {pool:?} over {fail_over} back {fail_back}");
            }
        }
    }

    /// The load and the use of connections as text, one line per part: plans in which these are the same ask
    /// for the same load.
    pub(crate) fn canonical_load(&self) -> String {
        let mut text = String::new();
        self.write_load(&mut text);
        self.write_connections(&mut text);
        text
    }

    fn write_load(&self, text: &mut String) {
        match &self.load {
            Load::Closed => {
                text.push_str("closed\n");
                for stage in self.users.iter().flat_map(Population::stages) {
                    let _ = writeln!(text, "users {} from {} to {}", stage.duration.0, stage.from, stage.to);
                }
            }
            Load::Open { profile, process, rate_of, overload } => {
                let process = match process {
                    Process::Uniform => "uniform",
                    Process::Poisson => "poisson",
                };
                let _ = writeln!(text, "open {process} {overload:?}");
                if *rate_of == RateUnit::Requests {
                    let _ = writeln!(text, "of requests");
                }
                for stage in profile.stages() {
                    let (from, to) = (stage.from, stage.to);
                    let _ = writeln!(
                        text,
                        "stage {} from {}/{} to {}/{}",
                        stage.duration.0,
                        from.count(),
                        from.period().0,
                        to.count(),
                        to.period().0
                    );
                }
            }
        }
        let duration = self.end.duration.map(|duration| duration.0);
        let _ = writeln!(text, "end {duration:?} {:?}", self.end.iterations);
        let _ = writeln!(text, "warmup {} drain {}", self.warmup.0, self.drain.0);
        let _ = writeln!(text, "timeout {} connect {}", self.timeout.0, self.connect_timeout.0);
        let _ = writeln!(text, "redirects {}", self.redirects);
        if !self.resend {
            let _ = writeln!(text, "no resend");
        }
        if let Some(faults) = &self.client_faults {
            let _ = writeln!(text, "client {faults:?}");
        }
    }

    fn write_connections(&self, text: &mut String) {
        let connections = &self.connections;
        let _ = writeln!(
            text,
            "connections {} {} depth {} streams {} keep_alive {} max_requests {:?} sources {:?} family {:?}",
            connections.initial,
            connections.max,
            connections.depth,
            connections.streams,
            connections.keep_alive,
            connections.max_requests,
            connections.sources,
            connections.family
        );
        let Connections { lifetime, inactivity, rate, .. } = connections;
        let nanos = |time: &Option<Nanos>| time.map(|time| time.0);
        let rate = rate.map(|rate| (rate.count(), rate.period().0));
        let _ = writeln!(text, "lifetime {:?} idle {:?} rate {rate:?}", nanos(lifetime), nanos(inactivity));
        if connections.resolve_every != Some(RESOLVE_EVERY) {
            let _ = writeln!(text, "resolve every {:?}", nanos(&connections.resolve_every));
        }
        let http2 = &self.http2;
        let _ = writeln!(
            text,
            "http2 tables {} {} windows {} {} frame {} ping {:?}",
            http2.header_table_size,
            http2.encoder_table_size,
            http2.stream_window,
            http2.connection_window,
            http2.max_frame_size,
            nanos(&self.ping_interval)
        );
        // Threads of one shard: processes with several shards of a load have the plan of a process with one.
        let threads = self.threads / self.held.max(1);
        let _ = writeln!(text, "threads {threads} {:?} {:?}", self.pacing, self.backend);
        let _ = writeln!(text, "head {} preflight {}", self.limits.head_bytes, self.preflight);
    }
}
