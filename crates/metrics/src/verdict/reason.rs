//! The parts of a verdict: findings with their evidence, and the limiting factor of the run.

use serde::{Deserialize, Serialize};

/// The validity of a run's numbers, with the reasons against it.
///
/// The default is that of a run which has not been judged: not valid, and without a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// `true` if the numbers can be believed.
    pub valid: bool,
    /// Reasons why it is not; empty if valid.
    pub reasons: Vec<Reason>,
    /// Findings that do not make the run invalid, but should be known.
    pub warnings: Vec<Reason>,
    /// The factor that kept the run from its rate or from flat response times (open model), or from a higher
    /// throughput (closed model).
    pub limited_by: Limitation,
}

impl Verdict {
    /// The codes of the reasons, each once.
    pub fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for name in self.reasons.iter().map(|reason| reason.code.name()) {
            if !codes.iter().any(|code| code == name) {
                codes.push(name.to_owned());
            }
        }
        codes
    }
}

/// The limiting factor of a run, as far as the run itself and the machine show it. A judgement makes one of a
/// [`Claim`], whose test it has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limitation {
    /// The claim that the sentence makes.
    #[serde(default)]
    pub claim: Claim,
    /// Kind of the limit.
    pub what: LimitedBy,
    /// One sentence with figures.
    pub evidence: String,
    /// Advice on the remedy; empty if there is nothing to change.
    pub hint: String,
}

macro_rules! claims {
    ($($(#[$doc:meta])* $variant:ident is $what:ident,)+) => {
        /// Claims that a verdict may make about the limit of a run, each of which has a test of its own.
        ///
        /// A table of situations has each of them with the sentence that an expert would write (`situations`
        /// among the tests of the engine), and a test fails for one that is missing there.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Claim {
            /// None was made: the run has not been judged, or by a version that did not note it.
            #[default]
            NotJudged,
            $($(#[$doc])* $variant,)+
        }

        impl Claim {
            /// Every claim that a judgement makes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The limiting factor that it names.
            pub const fn limited_by(self) -> LimitedBy {
                match self {
                    Self::NotJudged => LimitedBy::Unknown,
                    $(Self::$variant => LimitedBy::$what,)+
                }
            }
        }
    };
}

claims! {
    /// Most requests failed in a script or a scenario of the plan.
    PlanFails is Unknown,
    /// The generator itself was late, or had no CPU time.
    Generator is Generator,
    /// The control group of the generator had used up its CPU time.
    GeneratorThrottled is Generator,
    /// The target allows no streams.
    NoStreams is Target,
    /// The target took no connections.
    NoConnections is Target,
    /// The target gave no answer for a while, and then did again.
    StoodStill is Target,
    /// The target gave no answer any more to the end of the run.
    StoppedAnswering is Target,
    /// Answers of the target came to take longer than they were waited for.
    Outgrown is Target,
    /// The target turned requests away with 429 or 503.
    Refused is Target,
    /// Requests failed by the target's doing.
    NotServed is Target,
    /// Requests were never answered, though the run waited for them.
    NeverAnswered is Target,
    /// The target's own accept queue was full.
    AcceptQueue is Target,
    /// Segments of our own connections were lost.
    Loss is Network,
    /// The control group of the target had used up its CPU time.
    TargetThrottled is Target,
    /// The target was ready to run and had no processor.
    TargetStarved is Target,
    /// A thread of the target used its core up.
    BusyThread is Target,
    /// The target used the machine up.
    BusyMachine is Target,
    /// Requests without an answer held the connections.
    HeldConnections is Target,
    /// Arrivals waited for connections as long as the target once stood still.
    OneFreeze is Target,
    /// Responses took their time between their first and their last byte, on the way or in the target.
    Transfer is Unknown,
    /// Responses of a target on this machine took their time between their first and their last byte.
    SlowSending is Target,
    /// Requests waited for one another in the target.
    Queue is Target,
    /// Requests may have waited for one another, or times vary.
    PerhapsQueue is Unknown,
    /// There were fewer connections than the rate needs.
    FewConnections is ConnectionLimit,
    /// The server allowed fewer streams than the plan asks for.
    FewStreams is ConnectionLimit,
    /// More users would have been answered as fast.
    FewUsers is ConnectionLimit,
    /// Requests in flight grew to the end.
    Overload is Target,
    /// Requests in flight grew for a while, and fell again.
    OverloadForAWhile is Target,
    /// Some intervals were many times slower than usual.
    SlowIntervals is Target,
    /// No request was answered, and none failed.
    NothingAnswered is Unknown,
    /// No request ended well.
    NothingSucceeded is Unknown,
    /// The run got less than it asked for, and the cause does not show.
    LessThanAsked is Unknown,
    /// The load was delivered, and the run does not show whether requests in flight grew.
    GrowthUnknown is Unknown,
    /// The load was delivered, and requests in flight did not grow.
    Delivered is None,
}

impl Claim {
    /// The claim with the figures of its test, as a sentence, and the advice that follows.
    pub(super) fn by(self, evidence: impl Into<String>, hint: impl Into<String>) -> Limitation {
        Limitation { claim: self, what: self.limited_by(), evidence: evidence.into(), hint: hint.into() }
    }

    /// Returns `true` if the target is why arrivals that waited for a connection started late: that no
    /// connection was free [follows](Self::explains) from this claim.
    pub(super) const fn delays_starts(self) -> bool {
        self.explains(ReasonCode::ConnectionLimit)
    }

    /// Returns `true` if a finding follows from this claim, so that advice of its own would contradict the
    /// claim's: a target that stands still is not to be asked for less, nor by a better generator.
    pub(super) const fn explains(self, code: ReasonCode) -> bool {
        let late = matches!(code, ReasonCode::RateNotMet | ReasonCode::StartLag);
        let course = matches!(code, ReasonCode::Overloaded | ReasonCode::NotSteady);
        match self {
            Self::NoStreams
            | Self::NoConnections
            | Self::StoodStill
            | Self::StoppedAnswering
            | Self::Outgrown
            | Self::NeverAnswered
            | Self::HeldConnections
            | Self::OneFreeze => late || course || matches!(code, ReasonCode::ConnectionLimit),
            Self::Refused
            | Self::NotServed
            | Self::AcceptQueue
            | Self::Loss
            | Self::TargetThrottled
            | Self::TargetStarved
            | Self::BusyThread
            | Self::BusyMachine
            | Self::Transfer
            | Self::SlowSending
            | Self::OverloadForAWhile
            | Self::SlowIntervals => late || course,
            Self::Queue | Self::FewConnections | Self::FewStreams => late || course,
            Self::Overload => late || matches!(code, ReasonCode::NotSteady),
            Self::PlanFails => late || course,
            Self::NotJudged
            | Self::Generator
            | Self::GeneratorThrottled
            | Self::PerhapsQueue
            | Self::FewUsers
            | Self::NothingAnswered
            | Self::NothingSucceeded
            | Self::LessThanAsked
            | Self::GrowthUnknown
            | Self::Delivered => false,
        }
    }
}

/// Factors that may limit a run. The names are part of the result contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LimitedBy {
    /// The server under load, or the systems behind it.
    Target,
    /// This process or its machine.
    Generator,
    /// Everything between the generator and the server.
    Network,
    /// The number of connections, streams or users that the plan, or the server, allows.
    ConnectionLimit,
    /// Nothing: the target got the load that was asked for and kept up with it.
    None,
    /// Something did, but the cause does not show.
    #[default]
    Unknown,
}

impl LimitedBy {
    /// The name in results, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Generator => "generator",
            Self::Network => "network",
            Self::ConnectionLimit => "connection_limit",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }

    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Target, Self::Generator, Self::Network, Self::ConnectionLimit, Self::None, Self::Unknown];

    /// The one with this name in results.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }

    /// Returns the limiting factor in words for people: `limited by the target`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Target => "limited by the target",
            Self::Generator => "limited by the generator",
            Self::Network => "limited by the network",
            Self::ConnectionLimit => "limited by the number of connections",
            Self::None => "not limited at this rate",
            Self::Unknown => "the limit is unknown",
        }
    }
}

/// One finding about the instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Which rule found it.
    pub code: ReasonCode,
    /// One sentence with figures.
    pub evidence: String,
    /// Advice on the remedy; empty if the finding that names the cause of this one has it.
    pub hint: String,
}

macro_rules! reason_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Reason why a run is invalid or doubtful. The names are part of the result contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ReasonCode { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl ReasonCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in results, in snake case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

reason_codes! {
    /// Requests were started later than they should have been.
    StartLag = "start_lag",
    /// The generator did not run for a while.
    Stall = "stall",
    /// The generator used all of its CPU, or had to share it.
    CpuSaturation = "cpu_saturation",
    /// Fewer iterations were started than the plan asked for.
    RateNotMet = "rate_not_met",
    /// All connections that the plan allows were busy; with HTTP/2, all streams on them, or a server allowed
    /// fewer of these than the plan asks for.
    ConnectionLimit = "connection_limit",
    /// The generator's system had no local port left for a new connection.
    PortsExhausted = "ports_exhausted",
    /// The generator's system had no file descriptor left for a new connection.
    DescriptorsExhausted = "descriptors_exhausted",
    /// No connection could be made to the addresses of one family, and those of the other were used.
    AddressFamily = "address_family",
    /// Arrivals were dealt to scenarios whose data had ended.
    DataEnded = "data_ended",
    /// The load ended before its planned length, by its data or a script.
    EndedEarly = "ended_early",
    /// Requests were sent a second time, since their first attempt had no answer.
    SentAgain = "sent_again",
    /// A worker did not come back after the end of the run.
    WorkerMissing = "worker_missing",
    /// The process of the run ended before the run did.
    Unfinished = "unfinished",
    /// The generator used more than half of the calibrated limit of this machine.
    CalibratedLimit = "calibrated_limit",
    /// Refreshes of values of the setup failed.
    RefreshFailed = "refresh_failed",
    /// The teardown after the load did not come to its end.
    TeardownFailed = "teardown_failed",
    /// Requests came faster than they were answered.
    Overloaded = "overloaded",
    /// The figures changed until the end of the run.
    NotSteady = "not_steady",
    /// No request was started in the measured part.
    TooFewSamples = "too_few_samples",
    /// Responses were read later than they arrived, and the kernel did not say when they did.
    UnstampedCoalescing = "unstamped_coalescing",
    /// Events of streams were read late, and some of them share the time of a later one.
    EventTimeUncertain = "event_time_uncertain",
    /// Events of streams came together, in one segment: gaps between them are not known.
    EventsTogether = "events_together",
    /// The server counted tokens in a way that cannot be.
    UsageNotBelieved = "usage_not_believed",
    /// The generator was interrupted while it sent requests, and does not know when they left.
    SendTimeUncertain = "send_time_uncertain",
    /// Bodies were made when their requests were due, and not ahead.
    BodiesLate = "bodies_late",
    /// Messages were signed when their requests were due, and not ahead.
    SigningLimited = "signing_limited",
    /// The target sent data that no request had asked for.
    UnsolicitedData = "unsolicited_data",
}

impl std::fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
