//! The flags of `plimsoll sink` that make it a replica of the Internet Computer.

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_ic::BadPrincipal;
use plimsoll_targets::Faults;
use plimsoll_targets::sink::service::Canister;

use crate::args::extension::SERVICE_GROUP;
use crate::args::server::sink_values::{Reader, parse_positive, parse_share};

#[derive(Debug, Args)]
#[command(next_help_heading = "Canister")]
pub(crate) struct CanisterServiceArgs {
    /// Act as a replica of the Internet Computer, with canisters that count
    ///
    /// Answers /api/v2/status, query, call and read_state of all versions, with certificates of a test root
    /// key. The method `read` gives the counter as 4 bytes, `write` increases it, any other gives its
    /// argument back.
    #[arg(
        long,
        conflicts_with_all = ["status", "body", "body_size", "content_type", "slow_data"],
        group = SERVICE_GROUP
    )]
    canister: bool,
    /// Know this canister only, and reject calls of others
    #[arg(long, value_name = "PRINCIPAL", requires = "canister")]
    canister_id: Option<String>,
    /// Reject methods other than `read` and `write`
    #[arg(long, requires = "canister")]
    strict: bool,
    /// Verify signatures of messages, and refuse wrong ones (costs time)
    #[arg(long, requires = "canister")]
    check_signatures: bool,
    /// Sign answers to queries as a node does, which costs time, too
    #[arg(long, requires = "canister")]
    sign_queries: bool,
    /// Share of the synchronous calls that get 202 and have to be polled
    #[arg(long, value_name = "SHARE", requires = "canister")]
    accepted: Option<String>,
    /// Time for which a call is processing after its 202
    #[arg(long, value_name = "TIME", requires = "canister", allow_negative_numbers = true)]
    processing: Option<String>,
    /// Time after the start until the status is healthy
    #[arg(long, value_name = "TIME", requires = "canister", allow_negative_numbers = true)]
    unhealthy_for: Option<String>,
    /// Share of queries and updates that are rejected, with code 4
    #[arg(long, value_name = "SHARE", requires = "canister")]
    reject: Option<String>,
    /// Share of requests that are answered with bytes that are not CBOR
    #[arg(long, value_name = "SHARE", requires = "canister")]
    garbage: Option<String>,
}

impl CanisterServiceArgs {
    /// The canister, if there is to be one, and what is to go wrong with it.
    pub(crate) fn read(&self, reader: &mut Reader, faults: &mut Faults) -> Option<Canister> {
        let id = reader.maybe("--canister-id", self.canister_id.as_ref(), |text| {
            text.parse().map_err(|BadPrincipal { problem, hint }| format!("{problem}; {hint}"))
        });
        let mut share = |flag, text: Option<&String>| reader.maybe(flag, text, parse_share).unwrap_or(0.0);
        faults.reject = share("--reject", self.reject.as_ref());
        faults.garbage = share("--garbage", self.garbage.as_ref());
        let accepted = share("--accepted", self.accepted.as_ref());
        let mut time = |flag, text: Option<&String>| reader.maybe(flag, text, parse_positive);
        let canister = Canister {
            id,
            strict: self.strict,
            check_signatures: self.check_signatures,
            sign_queries: self.sign_queries,
            accepted,
            processing: time("--processing", self.processing.as_ref()).unwrap_or(Nanos::ZERO),
            unhealthy_for: time("--unhealthy-for", self.unhealthy_for.as_ref()).unwrap_or(Nanos::ZERO),
            ..Canister::default()
        };
        self.canister.then_some(canister)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::Problems;
    use plimsoll_targets::{Service, SinkOptions};

    use super::*;
    use crate::args::server::sink::tests::spec;

    fn read(args: &[&str]) -> Result<SinkOptions, Problems> {
        spec(args).map(|spec| spec.options)
    }

    #[test]
    fn canisters() {
        assert_eq!(read(&["--canister"]).unwrap().service, Service::Canister(Canister::default()));
        let options = read(&[
            "--canister",
            "--canister-id",
            "aaaaa-aa",
            "--strict",
            "--check-signatures",
            "--sign-queries",
            "--accepted",
            "10%",
            "--processing",
            "2s",
            "--unhealthy-for",
            "3s",
            "--reject",
            "4%",
            "--garbage",
            "5%",
        ])
        .unwrap();
        let canister = Canister {
            id: Some(plimsoll_ic::Principal::management()),
            strict: true,
            check_signatures: true,
            sign_queries: true,
            accepted: 0.1,
            processing: Nanos::from_secs(2),
            unhealthy_for: Nanos::from_secs(3),
            ..Canister::default()
        };
        assert_eq!(options.service, Service::Canister(canister));
        assert_eq!((options.faults.reject, options.faults.garbage), (0.04, 0.05));
        let problems = read(&["--canister", "--canister-id", "aaaaa", "--reject", "2"]).unwrap_err();
        assert_eq!(problems.iter().count(), 2, "{problems}");
        let problems = read(&["--canister", "--work", "1ms"]).unwrap_err();
        assert!(problems.to_string().contains("certified together"), "{problems}");
    }
}
