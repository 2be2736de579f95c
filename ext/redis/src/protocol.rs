//! The protocol as one of targets.

use plimsoll_document::Problem;
use plimsoll_plan::{InTurnProtocol, Opening, Protocol, ProtocolRow, ServerUrl};

use crate::frame::write_command;
use crate::reply::ReplyClient;

/// The protocol of Redis, RESP2.
pub static PROTOCOL: InTurnProtocol = InTurnProtocol {
    name: "redis",
    rows: &[&PLAIN, &SECURE],
    client: || Box::<ReplyClient>::default(),
    opening,
    content_hint: "check the body: it is the reply",
};

static PLAIN: ProtocolRow = row("redis", false);
static SECURE: ProtocolRow = row("rediss", true);

const fn row(scheme: &'static str, is_secure: bool) -> ProtocolRow {
    ProtocolRow {
        name: "redis",
        title: "the protocol of Redis",
        server_command: "plimsoll target redis",
        scheme,
        port: 6379,
        is_secure,
        protocol: Some(Protocol::InTurn(&PROTOCOL)),
        noun: "a Redis server",
        target_hint: "give the target a URL like redis://127.0.0.1:6379 or redis://user:password@host/2",
        step_hint: "write `redis: GET key`",
        command_hint: "write `plimsoll redis`, or a plan whose steps are written `redis: GET key`",
        check,
    }
}

/// The number of the database that a URL names; `Err` if it names something else.
fn database(url: &ServerUrl<'_>) -> Result<Option<u32>, ()> {
    match url.path.trim_matches('/') {
        "" => Ok(None),
        number => number.parse().map(Some).map_err(drop),
    }
}

/// Reports a URL that names more than a user and a database.
fn check(url: &ServerUrl<'_>) -> Result<(), Problem> {
    match database(url) {
        Ok(_) => Ok(()),
        Err(()) => {
            let problem = Problem::new(format!("`{}` is not a database", url.path.trim_matches('/')));
            Err(problem.with_hint("write its number: redis://127.0.0.1:6379/2"))
        }
    }
}

/// The commands that each connection begins with.
fn opening(url: &ServerUrl<'_>) -> Option<Opening> {
    let (mut bytes, mut answers) = (Vec::new(), 0);
    if let Some(user_info) = url.user_info {
        // `redis://:password@host` is the password of the default user.
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        match user {
            "" => write_command(&[b"AUTH", password.as_bytes()], &mut bytes),
            user => write_command(&[b"AUTH", user.as_bytes(), password.as_bytes()], &mut bytes),
        }
        answers += 1;
    }
    if let Ok(Some(database)) = database(url) {
        write_command(&[b"SELECT", database.to_string().as_bytes()], &mut bytes);
        answers += 1;
    }
    (answers > 0).then(|| Opening { bytes: bytes.into(), answers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_begin_with_what_their_url_says() {
        let of = |path, user_info| {
            let opening = opening(&ServerUrl { path, user_info });
            opening.map(|opening| (String::from_utf8_lossy(&opening.bytes).into_owned(), opening.answers))
        };
        assert_eq!(of("/", None), None);
        assert_eq!(of("/2", None), Some(("*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n".to_owned(), 1)));
        let auth = "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n";
        assert_eq!(of("/", Some(":pw")), Some((auth.to_owned(), 1)));
        let both = "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n";
        assert_eq!(of("/15", Some("me:pw")), Some((both.to_owned(), 2)));
        assert!(check(&ServerUrl { path: "/two", user_info: None }).is_err());
    }
}
