//! Tokens, databases, and facts about the server.

use serde_json::{Map, Value, json};

use super::super::options::Permissions;
use super::queries::timestamp;
use super::{Api, ParsedRequest, denied, is_database, problem, refused};
use crate::http_reply::HttpReply;

/// Names that no database may have.
const RESERVED: [&str; 3] = ["system", "internal", "_internal"];

impl Api {
    /// `GET /api/v1/auth/verify`, which needs no token.
    pub(super) fn verify(&self, asked: &ParsedRequest<'_>) -> HttpReply {
        match self.setup.tokens.permissions(asked.request, asked.query) {
            Ok(permissions) => {
                let permissions = names(permissions);
                let info = json!({"permissions": permissions});
                let body = json!({"permissions": permissions, "token_info": info, "valid": true});
                HttpReply::json(200, &body)
            }
            Err(stranger) => {
                let why = match stranger.told() {
                    "Authentication required" => "No token provided",
                    other => other,
                };
                HttpReply::json(401, &json!({"error": why, "valid": false}))
            }
        }
    }

    /// `POST /api/v1/auth/tokens`.
    pub(super) fn create_token(&self, asked: &ParsedRequest<'_>) -> HttpReply {
        if !asked.may.admin {
            return denied("admin");
        }
        let fields = match object(asked.body) {
            Ok(fields) => fields,
            Err(why) => return refused(400, &format!("Invalid request body: {why}")),
        };
        if fields.get("name").and_then(Value::as_str).is_none_or(str::is_empty) {
            return refused(400, "Token name is required");
        }
        let mut permissions = Permissions::default();
        match fields.get("permissions") {
            None | Some(Value::Null) => (permissions.read, permissions.write) = (true, true),
            Some(Value::Array(given)) => {
                for one in given {
                    match one.as_str().unwrap_or_default() {
                        "read" => permissions.read = true,
                        "write" => permissions.write = true,
                        "delete" => permissions.delete = true,
                        "admin" => permissions = Permissions::ALL,
                        other => {
                            let valid = "Valid permissions are: read, write, delete, admin";
                            return refused(400, &format!("Invalid permission: {other}. {valid}"));
                        }
                    }
                }
            }
            Some(_) => return refused(400, "Invalid request body: permissions are a list"),
        }
        if fields.get("expires_in").is_some_and(|time| !time.is_null() && time != "") {
            return refused(400, "this target's tokens do not expire: leave out expires_in");
        }
        match self.setup.tokens.make(permissions) {
            Some(token) => {
                let message =
                    "Token created successfully. Store this token securely - it cannot be retrieved again.";
                HttpReply::json(201, &json!({"message": message, "success": true, "token": token}))
            }
            None => refused(500, "this target has as many tokens as it takes"),
        }
    }

    /// `GET /api/v1/databases`.
    pub(super) fn databases(&self, asked: &ParsedRequest<'_>) -> HttpReply {
        let names = self.setup.store.names(asked.moment.at);
        let databases: Vec<_> = names.iter().map(|(name, of)| described(name, of.len())).collect();
        HttpReply::json(200, &json!({"databases": databases, "count": names.len()}))
    }

    /// `GET /api/v1/databases/NAME`.
    pub(super) fn database(&self, asked: &ParsedRequest<'_>, name: &str) -> HttpReply {
        let names = self.setup.store.names(asked.moment.at);
        match names.iter().find(|(known, _)| known == name) {
            Some((name, of)) => HttpReply::json(200, &described(name, of.len())),
            None => unknown(name),
        }
    }

    /// `GET /api/v1/databases/NAME/measurements`.
    pub(super) fn measurements_of(&self, asked: &ParsedRequest<'_>, name: &str) -> HttpReply {
        let names = self.setup.store.names(asked.moment.at);
        let Some((database, of)) = names.iter().find(|(known, _)| known == name) else {
            return unknown(name);
        };
        let measurements: Vec<_> = of.iter().map(|name| json!({"name": name})).collect();
        HttpReply::json(200, &json!({"database": database, "measurements": measurements, "count": of.len()}))
    }

    /// `POST /api/v1/databases`.
    pub(super) fn create_database(&self, asked: &ParsedRequest<'_>) -> HttpReply {
        if !asked.may.admin {
            return denied("admin");
        }
        let fields = match object(asked.body) {
            Ok(fields) => fields,
            Err(why) => return problem(400, &format!("Invalid request body: {why}")),
        };
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return problem(400, "Database name is required");
        }
        if !is_database(name) {
            let names = "must start with a letter and contain only alphanumeric characters, underscores, or \
                         hyphens (max 64 characters)";
            return problem(400, &format!("Invalid database name: {names}"));
        }
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return problem(400, &format!("Database name '{name}' is reserved"));
        }
        match self.setup.store.create(name) {
            Ok(true) => {}
            Ok(false) => return problem(409, &format!("Database '{name}' already exists")),
            Err(why) => return problem(500, &why),
        }
        let created = json!({"name": name, "measurement_count": 0, "created_at": timestamp(asked)});
        HttpReply::json(201, &created)
    }

    /// `GET /api/v1/measurements`.
    pub(super) fn measurements(&mut self, asked: &ParsedRequest<'_>) -> HttpReply {
        let wanted = asked.parameter("database");
        let mut all = Vec::new();
        for (database, measurements) in self.setup.store.names(asked.moment.at) {
            if wanted.as_ref().is_none_or(|wanted| *wanted == database) {
                all.extend(
                    measurements.iter().map(|name| json!({"database": database, "measurement": name})),
                );
            }
        }
        let count = all.len();
        HttpReply::json(200, &json!({"count": count, "measurements": all, "success": true}))
    }

    /// `GET /plimsoll/acknowledged`: the truth.
    pub(super) fn acknowledged(&mut self, asked: &ParsedRequest<'_>) -> HttpReply {
        let all = self.setup.store.acknowledged(asked.moment.at);
        let all = all.iter().map(|of| {
            json!({
                "database": of.database, "measurement": of.measurement, "batches": of.batches,
                "rows": of.rows, "visible": of.visible, "buffered": of.buffered, "kept": of.kept,
                "lost": of.lost, "duplicated": of.duplicated, "late": of.late,
                "unacknowledged": of.unacknowledged,
            })
        });
        HttpReply::json(200, &json!({"acknowledged": all.collect::<Vec<_>>()}))
    }
}

fn described(name: &str, measurements: usize) -> Value {
    json!({"name": name, "measurement_count": measurements})
}

fn unknown(name: &str) -> HttpReply {
    problem(404, &format!("Database '{name}' not found"))
}

fn names(permissions: Permissions) -> Vec<&'static str> {
    let Permissions { read, write, delete, admin } = permissions;
    let all = [(read, "read"), (write, "write"), (delete, "delete"), (admin, "admin")];
    all.into_iter().filter_map(|(may, name)| may.then_some(name)).collect()
}

fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
