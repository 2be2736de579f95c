//! Writes: payloads of several protocols, which all go to the same store.

use std::sync::atomic::Ordering;

use plimsoll_core::Nanos;
use serde_json::json;

use super::super::batch::{self, Decoded};
use super::super::fault_injector::Fate;
use super::super::line_protocol::{self, Precision};
use super::super::payload::{Compression, Damage};
use super::foreign::Foreign;
use super::{Answer, Api, ParsedRequest, is_database, is_measurement, problem};
use crate::http_reply::HttpReply;
use crate::sink::Intent;

/// The rules for names of databases, in the words of the real server.
const DATABASE_NAMES: &str = "must start with a letter and contain only alphanumeric characters, \
                              underscores, or hyphens (max 64 characters)";
const MEASUREMENT_NAMES: &str =
    "must start with a letter and contain only alphanumeric characters, underscores, or hyphens";

/// The format of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFormat {
    /// MessagePack, columnar or in rows.
    MessagePack,
    /// InfluxDB's line protocol, with the parameter that names the database; `None`: only the field does.
    Lines(Option<&'static str>),
    /// As other servers take it.
    Foreign(Foreign),
}

/// A decoded payload with its database.
pub(crate) struct Taken {
    pub(crate) database: String,
    pub(crate) decoded: Decoded,
    /// Reply to send when it is stored.
    pub(crate) accepted: HttpReply,
}

impl WriteFormat {
    /// Returns the format of the writes that go to this path.
    pub(crate) fn of(path: &[u8]) -> Option<Self> {
        Some(match path {
            b"/api/v1/write/msgpack" => Self::MessagePack,
            b"/api/v1/write/line-protocol" => Self::Lines(None),
            b"/api/v2/write" => Self::Lines(Some("bucket")),
            b"/write" => Self::Lines(Some("db")),
            other => return Foreign::of(other).map(Self::Foreign),
        })
    }

    /// The reply to a write that cannot be stored.
    fn failed(self, why: &str) -> HttpReply {
        match self {
            Self::MessagePack => problem(500, &format!("Failed to write records: {why}")),
            Self::Lines(_) => problem(500, &format!("Write failed: {why}")),
            Self::Foreign(form) => form.failed(why),
        }
    }
}

impl Api {
    /// Takes a payload, unless it is one of those that fail on purpose.
    pub(super) fn write(&mut self, form: WriteFormat, asked: &ParsedRequest<'_>) -> Answer {
        let mut service = Nanos::ZERO;
        if let Some(law) = &self.setup.law {
            // Relaxed: numbers have to be unique, nothing else is published by them.
            let fate = law.fate(self.setup.number.fetch_add(1, Ordering::Relaxed));
            service = fate.service;
            match fate.intent {
                // The last two are faults of other services.
                Intent::Reply | Intent::Reject | Intent::Garbage => {}
                Intent::Status(status) => {
                    self.counts.failures += 1;
                    return Answer::Reply(problem(status, "refused on purpose"), service);
                }
                Intent::Drop | Intent::Reset | Intent::Refuse => {
                    self.counts.failures += 1;
                    return Answer::Reset;
                }
            }
        }
        match self.take(form, asked) {
            Ok(Some(accepted)) => Answer::Reply(accepted, service),
            // The batch is stored, and on purpose not acknowledged.
            Ok(None) => Answer::Reset,
            Err(reply) => {
                self.counts.refusals += 1;
                Answer::Reply(reply, service)
            }
        }
    }

    /// Stores the rows of a payload, all of them or none.
    fn take(&mut self, form: WriteFormat, asked: &ParsedRequest<'_>) -> Result<Option<HttpReply>, HttpReply> {
        let (bytes, Taken { database, decoded, accepted }) = self.read(form, asked)?;
        if let Some(conflict) = decoded.conflict {
            return Err(form.failed(&conflict));
        }
        let fate = self.setup.injector.fate();
        let stored = self.setup.store.write(&database, decoded.batches, bytes, fate, asked.moment.at);
        stored.map_err(|why| form.failed(&why))?;
        self.counts.skipped += decoded.skipped;
        if fate == Fate::Unacknowledged {
            return Ok(None);
        }
        self.counts.writes += 1;
        self.counts.bytes += bytes;
        Ok(Some(accepted))
    }

    /// Reads a payload; with its bytes without compression.
    fn read(&mut self, form: WriteFormat, asked: &ParsedRequest<'_>) -> Result<(u64, Taken), HttpReply> {
        match form {
            WriteFormat::MessagePack => self.message_pack(asked),
            WriteFormat::Lines(parameter) => self.lines(asked, parameter),
            WriteFormat::Foreign(form) => self.foreign(form, asked),
        }
    }

    fn message_pack(&mut self, asked: &ParsedRequest<'_>) -> Result<(u64, Taken), HttpReply> {
        if asked.body.is_empty() {
            return Err(problem(400, "Empty payload"));
        }
        let payload = self.plain(asked.body, |compression, damage| {
            problem(400, &format!("Invalid {} compression: {damage}", compression.name()))
        })?;
        let decoded = batch::decode(payload, asked.moment.micros())
            .map_err(|why| problem(400, &format!("Invalid MessagePack payload: {why}")))?;
        let bytes = payload.len() as u64;
        let database = asked.field("x-arc-database").unwrap_or_else(|| "default".to_owned());
        check_database(&database)?;
        check_measurements(&decoded)?;
        Ok((bytes, Taken { database, decoded, accepted: HttpReply::empty(204) }))
    }

    fn lines(
        &mut self,
        asked: &ParsedRequest<'_>,
        parameter: Option<&str>,
    ) -> Result<(u64, Taken), HttpReply> {
        let named = asked.field("x-arc-database");
        let database = named.or_else(|| asked.parameter(parameter?)).unwrap_or_else(|| "default".to_owned());
        check_database(&database)?;
        let given = asked.parameter("precision").unwrap_or_else(|| "ns".to_owned());
        let Some(precision) = Precision::named(&given) else {
            let why = format!("invalid precision {given:?}: must be ns, us, ms, or s");
            return Err(problem(400, &why));
        };
        let payload = self.plain(asked.body, |compression, damage| {
            problem(400, &format!("Failed to decompress {} data: {damage}", compression.name()))
        })?;
        if payload.is_empty() {
            return Err(problem(400, "Empty request body"));
        }
        let decoded = line_protocol::decode(payload, precision, asked.moment.micros());
        if decoded.batches.is_empty() {
            return Err(problem(400, "No valid records in request"));
        }
        let bytes = payload.len() as u64;
        check_measurements(&decoded)?;
        Ok((bytes, Taken { database, decoded, accepted: HttpReply::empty(204) }))
    }

    /// A payload without its compression.
    pub(super) fn plain<'a>(
        &'a mut self,
        body: &'a [u8],
        refused: impl FnOnce(Compression, &Damage) -> HttpReply,
    ) -> Result<&'a [u8], HttpReply> {
        let compression = Compression::of(body);
        let most = self.setup.options.max_payload;
        self.decompressor.plain(compression, body, most).map_err(|damage| refused(compression, &damage))
    }

    pub(super) fn flush(&self, asked: &ParsedRequest<'_>) -> HttpReply {
        if !asked.may.admin {
            return super::denied("admin");
        }
        self.setup.store.flush();
        HttpReply::json(200, &json!({"message": "All buffers flushed", "status": "success"}))
    }
}

pub(super) fn check_database(name: &str) -> Result<(), HttpReply> {
    if is_database(name) {
        return Ok(());
    }
    Err(problem(400, &format!("invalid database name: {DATABASE_NAMES}")))
}

fn check_measurements(decoded: &Decoded) -> Result<(), HttpReply> {
    match decoded.measurements.iter().find(|name| !is_measurement(name)) {
        None => Ok(()),
        Some(name) => Err(problem(400, &format!("invalid measurement name {name:?}: {MEASUREMENT_NAMES}"))),
    }
}
