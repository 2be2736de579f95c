//! One cause, one hint: a finding that follows from another one has no remedy of its own, and the processes
//! that compete for the processors are named.

use plimsoll_core::{Nanos, figure};

use super::connections::Blocking;
use super::{Judge, Reason, ReasonCode, ratio, worst};
use crate::{OtherUse, WorkerRecord};

/// Findings that explain others, the surest first.
const CAUSES: [ReasonCode; 6] = [
    ReasonCode::CpuSaturation,
    ReasonCode::SigningLimited,
    ReasonCode::Stall,
    ReasonCode::PortsExhausted,
    ReasonCode::DescriptorsExhausted,
    ReasonCode::ConnectionLimit,
];
/// Findings that may follow from any of them: the generator was late, or started too little.
const CONSEQUENCES: [ReasonCode; 5] = [
    ReasonCode::Stall,
    ReasonCode::RateNotMet,
    ReasonCode::StartLag,
    ReasonCode::SendTimeUncertain,
    ReasonCode::BodiesLate,
];
/// Share of a core from which another process is named.
const WORTH_NAMING: f64 = 0.05;
/// Processes that are named.
const NAMED: usize = 3;
/// Share of its core from which a worker may be late for lack of CPU time, though it is not used up.
const BUSY_SHARE: f64 = 0.7;
/// Share of all processors' time from which a machine has none left for a generator that has to be on time.
const CROWDED_SHARE: f64 = 0.9;
/// Share of its core that a worker may poll away before it is said what sharing wake-ups would save.
const POLLED_SHARE: f64 = 0.1;
/// Share of all processors' time that a hypervisor may take away before that is named.
const STEAL_SHARE: f64 = 0.05;

impl Judge<'_> {
    /// The finding that explains the others, if there is one: a reason rather than a warning.
    pub(super) fn cause(&self) -> Option<&Reason> {
        let first =
            |found: &'_ [Reason], code: ReasonCode| found.iter().position(|reason| reason.code == code);
        let of = |found| CAUSES.iter().find_map(|code| first(found, *code));
        let reason = of(&self.reasons).map(|at| &self.reasons[at]);
        reason.or_else(|| of(&self.warnings).map(|at| &self.warnings[at]))
    }

    /// Leaves the hint to the finding that names the cause. Without one, late or missing requests have a hint
    /// that depends on the processors.
    pub(super) fn settle_hints(&mut self) {
        let cause = self.cause().map(|cause| (cause.code, cause.evidence.clone()));
        let late = self.late_hint();
        // Too few connections are a separate cause beside any other, unless more of them would not help; slow
        // moments may follow from another cause.
        let saturated = cause.as_ref().is_some_and(|(code, _)| *code == ReasonCode::CpuSaturation);
        let connections_follow = match self.blocking() {
            Blocking::SlowMoments => true,
            Blocking::TooFew => saturated && self.needs_too_many(),
            Blocking::None | Blocking::Target | Blocking::Generator => false,
        };
        for reason in self.reasons.iter_mut().chain(&mut self.warnings) {
            let follows = CONSEQUENCES.contains(&reason.code)
                || (reason.code == ReasonCode::ConnectionLimit && connections_follow)
                || cause.as_ref().is_some_and(|(code, _)| *code == reason.code);
            match &cause {
                Some((_, evidence)) if follows && reason.evidence != *evidence => reason.hint.clear(),
                None if matches!(reason.code, ReasonCode::RateNotMet | ReasonCode::StartLag) => {
                    reason.hint.clone_from(&late);
                }
                _ => {}
            }
        }
    }

    /// Returns the advice for a generator that was late without being short of CPU time, connections or
    /// anything else.
    fn late_hint(&self) -> String {
        let used = |worker: &WorkerRecord| ratio(worker.needed_cpu().0, worker.wall.0).unwrap_or(0.0);
        let busiest = worst(&self.record.workers, used).map_or(0.0, |(_, share)| share);
        let machine_busy = self.machine.as_ref().map_or(0.0, |machine| machine.cores_share(|core| core.busy));
        let sharing = self.sharing();
        if machine_busy >= CROWDED_SHARE && self.crowd().is_some() {
            let (who, hint) = self.competition();
            return format!("{who}: {hint}, or use a lower rate{sharing}");
        }
        if self.record.pacing_budget > Nanos::ZERO {
            return "leave out --pacing shared, which shares wake-ups on purpose".to_owned();
        }
        if busiest >= BUSY_SHARE && self.has_free_cores() != Some(false) {
            return format!("use more threads (-t) or a lower rate{sharing}");
        }
        let precise = if self.record.precise { "" } else { "; --precise paces more exactly" };
        format!("use a lower rate, or an idle machine{precise}")
    }

    /// The words that a hint ends with where a worker polls much of a core away to start requests on time:
    /// what shared pacing gives back, and for which lag. Empty elsewhere.
    pub(super) fn sharing(&self) -> String {
        let polled = |worker: &WorkerRecord| ratio(worker.polled.0, worker.wall.0).unwrap_or(0.0);
        match worst(&self.record.workers, polled) {
            Some((_, share)) if share >= POLLED_SHARE && !self.record.precise => format!(
                "; --pacing shared gives back {} of a core, polled away to start requests on time, for a start lag of \
                 up to 1 ms",
                figure::share(share),
            ),
            _ => String::new(),
        }
    }

    /// The hint that gives the generator more CPU time.
    pub(super) fn more_cpu(&self) -> String {
        match self.has_free_cores() {
            Some(false) => "use another machine, or one with more CPUs, for the generator",
            Some(true) | None => "use more threads (-t) or another machine for the generator",
        }
        .to_owned()
    }

    /// The processes that competed with the generator, and the hint against that.
    pub(super) fn competition(&self) -> (String, String) {
        let workers = self.record.workers.len();
        let cores = self.machine.as_ref().map_or(0, |machine| machine.cores.len());
        if cores > 0 && workers > cores {
            let who = format!("{workers} threads share {cores} CPUs");
            let most = most_threads(cores);
            let threads = if most == 1 { "thread" } else { "threads" };
            return (who, format!("use at most {most} {threads} (-t), or a machine with more CPUs"));
        }
        if let Some(stolen) = self.stolen() {
            let who = format!("the hypervisor took {} of all CPU time away", figure::share(stolen));
            return (who, "use a machine whose CPUs are its own".to_owned());
        }
        let others = self.others();
        let target = self.target_share();
        let target_most =
            others.first().is_none_or(|(_, share)| target.as_ref().is_some_and(|(_, t)| t > share));
        match (self.crowd(), target) {
            (Some(crowd), Some((target, _))) if target_most => {
                (crowd, format!("put the target ({target}) on another machine"))
            }
            (Some(crowd), _) => {
                let names: Vec<&str> = others.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
                let names = names.join(" and ");
                (crowd, format!("stop {names}, or use a machine of its own for the generator"))
            }
            (None, _) => (
                "another process competes for it".to_owned(),
                "stop other work on this machine, or put the target on another one".to_owned(),
            ),
        }
    }

    /// The processes that use the processors beside the generator: `cargo (pid 123) used 1.40 cores, sh (pid
    /// 9) 0.20`; `None` if none was seen.
    fn crowd(&self) -> Option<String> {
        let target = self.target_share().map(|(name, share)| (format!("the target ({name})"), share));
        let mut named = self.others();
        named.extend(target);
        named.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let mut words = String::new();
        for (name, share) in named.iter().take(NAMED) {
            words.push_str(&match words.as_str() {
                "" => format!("{name} used {share:.2} cores"),
                _ => format!(", {name} {share:.2}"),
            });
        }
        (!words.is_empty()).then_some(words)
    }

    /// The other processes that are worth naming, with the cores that they used.
    fn others(&self) -> Vec<(String, f64)> {
        let Some(machine) = &self.machine else { return Vec::new() };
        let share = |other: &OtherUse| machine.share(other.cpu);
        let name = |other: &OtherUse| match other.processes {
            0 | 1 => format!("{} (pid {})", other.name, other.pid),
            several => format!("{} ({several} processes)", other.name),
        };
        let others = machine.others.iter().map(|other| (name(other), share(other)));
        others.filter(|(_, share)| *share >= WORTH_NAMING).collect()
    }

    /// The target's process on this machine, if it is worth naming.
    fn target_share(&self) -> Option<(String, f64)> {
        let machine = self.machine.as_ref()?;
        let share = machine.share(machine.target?.cpu);
        let name = self.record.machine.facts.target.as_ref().map_or("", |target| &target.name);
        (share >= WORTH_NAMING).then(|| (name.to_owned(), share))
    }

    /// The share of the processors that the hypervisor took away, if that is much.
    fn stolen(&self) -> Option<f64> {
        let stolen = self.machine.as_ref()?.cores_share(|core| core.steal);
        (stolen >= STEAL_SHARE).then_some(stolen)
    }

    /// Returns `true` if there are processors that no worker has yet; `None` where they are not known.
    fn has_free_cores(&self) -> Option<bool> {
        let machine = self.machine.as_ref().filter(|machine| !machine.cores.is_empty())?;
        let limit = self.record.machine.facts.limits.cpus.unwrap_or(f64::INFINITY);
        let cores = (machine.cores.len() as f64).min(limit);
        Some((self.record.workers.len() as f64) < cores)
    }
}

/// Threads that leave a processor to others, where there are several.
const fn most_threads(cores: usize) -> usize {
    if cores > 1 { cores - 1 } else { 1 }
}
