//! Keys and values, and the answers to commands.

use std::collections::HashMap;

use plimsoll_core::Nanos;

/// Memory that a key takes beside its bytes and those of its value.
const PER_KEY: u64 = 64;

/// The content of a server.
#[derive(Debug, Default)]
pub(crate) struct Store {
    values: HashMap<Vec<u8>, Entry>,
    bytes: u64,
    max_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    value: Vec<u8>,
    /// When it is forgotten.
    until: Nanos,
}

/// An answer that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(&'static str),
    Number(i64),
    Value(Option<Vec<u8>>),
    Values(Vec<Option<Vec<u8>>>),
}

/// An error, as it is sent.
pub(crate) type Refusal = String;

const SYNTAX: &str = "ERR syntax error";
const NO_NUMBER: &str = "ERR value is not an integer or out of range";

impl Store {
    /// A store without content, of at most so many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Carries out a command at this time.
    ///
    /// # Errors
    /// The command is refused.
    pub(crate) fn carry_out(&mut self, now: Nanos, words: &[&[u8]]) -> Result<Answer, Refusal> {
        let (name, rest) = words.split_first().ok_or(SYNTAX)?;
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        match (name.as_str(), rest) {
            ("PING", []) => Ok(Answer::Status("PONG")),
            ("PING" | "ECHO", [text]) => Ok(Answer::Value(Some(text.to_vec()))),
            ("GET", [key]) => Ok(Answer::Value(self.get(now, key).map(<[u8]>::to_vec))),
            ("MGET", keys @ [_, ..]) => {
                Ok(Answer::Values(keys.iter().map(|key| self.get(now, key).map(<[u8]>::to_vec)).collect()))
            }
            ("EXISTS", keys @ [_, ..]) => {
                Ok(Answer::Number(keys.iter().filter(|key| self.get(now, key).is_some()).count() as i64))
            }
            ("SET", [key, value, options @ ..]) => self.set(now, key, value, options),
            ("INCR", [key]) => self.add(now, key, 1),
            ("DECR", [key]) => self.add(now, key, -1),
            ("INCRBY", [key, by]) => self.add(now, key, number(by)?),
            ("DEL", keys @ [_, ..]) => {
                Ok(Answer::Number(keys.iter().filter(|key| self.remove(now, key)).count() as i64))
            }
            ("FLUSHALL", _) => {
                self.values.clear();
                self.bytes = 0;
                Ok(Answer::Status("OK"))
            }
            ("PING" | "ECHO" | "GET" | "MGET" | "EXISTS" | "SET", _)
            | ("INCR" | "DECR" | "INCRBY" | "DEL" | "AUTH" | "SELECT", _) => {
                Err(format!("ERR wrong number of arguments for '{}' command", name.to_ascii_lowercase()))
            }
            (name, _) => {
                let shown: String = name.chars().take(128).filter(|sign| !sign.is_control()).collect();
                Err(format!("ERR unknown command '{shown}'"))
            }
        }
    }

    /// The entry of a key that is not forgotten yet.
    fn live(&mut self, now: Nanos, key: &[u8]) -> Option<&Entry> {
        if self.values.get(key).is_some_and(|entry| entry.until <= now) {
            self.remove(now, key);
        }
        self.values.get(key)
    }

    fn get(&mut self, now: Nanos, key: &[u8]) -> Option<&[u8]> {
        self.live(now, key).map(|entry| entry.value.as_slice())
    }

    /// Removes a key. Returns `true` if it was not forgotten yet.
    fn remove(&mut self, now: Nanos, key: &[u8]) -> bool {
        let Some(Entry { value, until }) = self.values.remove(key) else { return false };
        self.bytes -= size(key, &value);
        until > now
    }

    fn put(&mut self, key: &[u8], value: Vec<u8>, until: Nanos) -> Result<(), Refusal> {
        let before = self.values.get(key).map_or(0, |entry| size(key, &entry.value));
        let bytes = self.bytes - before + size(key, &value);
        if bytes > self.max_bytes {
            return Err("OOM command not allowed when used memory > 'maxmemory'.".to_owned());
        }
        self.bytes = bytes;
        self.values.insert(key.to_vec(), Entry { value, until });
        Ok(())
    }

    fn set(
        &mut self,
        now: Nanos,
        key: &[u8],
        value: &[u8],
        mut options: &[&[u8]],
    ) -> Result<Answer, Refusal> {
        let (mut until, mut condition) = (Nanos::MAX, None);
        while let [option, rest @ ..] = options {
            match (option.to_ascii_uppercase().as_slice(), rest) {
                (b"EX", [time, rest @ ..]) => {
                    (until, options) = (now + lifetime(time, 1_000_000_000)?, rest);
                }
                (b"PX", [time, rest @ ..]) => (until, options) = (now + lifetime(time, 1_000_000)?, rest),
                (b"NX", rest) if condition.is_none() => (condition, options) = (Some(false), rest),
                (b"XX", rest) if condition.is_none() => (condition, options) = (Some(true), rest),
                _ => return Err(SYNTAX.to_owned()),
            }
        }
        if condition.is_some_and(|there| self.get(now, key).is_some() != there) {
            return Ok(Answer::Value(None));
        }
        self.put(key, value.to_vec(), until).map(|()| Answer::Status("OK"))
    }

    fn add(&mut self, now: Nanos, key: &[u8], by: i64) -> Result<Answer, Refusal> {
        let (before, until) = match self.live(now, key) {
            Some(entry) => (number(&entry.value)?, entry.until),
            None => (0, Nanos::MAX),
        };
        let sum = before.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
        self.put(key, sum.to_string().into_bytes(), until).map(|()| Answer::Number(sum))
    }
}

fn size(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + PER_KEY
}

fn number(text: &[u8]) -> Result<i64, Refusal> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| NO_NUMBER.to_owned())
}

/// A time above 0, in units of so many nanoseconds.
fn lifetime(text: &[u8], unit: u64) -> Result<Nanos, Refusal> {
    let number = u64::try_from(number(text)?).ok().filter(|number| *number > 0);
    let nanos = number.and_then(|number| number.checked_mul(unit));
    nanos.map(Nanos).ok_or_else(|| "ERR invalid expire time".to_owned())
}

/// Appends an answer as the protocol writes it.
pub(crate) fn write(answer: &Result<Answer, Refusal>, out: &mut Vec<u8>) {
    let value = |value: &Option<Vec<u8>>, out: &mut Vec<u8>| match value {
        None => out.extend_from_slice(b"$-1\r\n"),
        Some(value) => {
            out.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    };
    match answer {
        Ok(Answer::Status(status)) => out.extend_from_slice(format!("+{status}\r\n").as_bytes()),
        Ok(Answer::Number(number)) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Ok(Answer::Value(one)) => value(one, out),
        Ok(Answer::Values(all)) => {
            out.extend_from_slice(format!("*{}\r\n", all.len()).as_bytes());
            all.iter().for_each(|one| value(one, out));
        }
        Err(refusal) => out.extend_from_slice(format!("-{refusal}\r\n").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to commands, one a second, as they are sent.
    fn answers(store: &mut Store, commands: &[&str]) -> Vec<String> {
        let mut now = Nanos::ZERO;
        let answer = |command: &&str| {
            now += Nanos::from_secs(1);
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            let mut out = Vec::new();
            write(&store.carry_out(now, &words), &mut out);
            String::from_utf8(out).unwrap()
        };
        commands.iter().map(answer).collect()
    }

    #[test]
    fn commands_have_the_answers_of_redis() {
        let mut store = Store::new(1 << 20);
        for (command, expected) in [
            ("PING", "+PONG\r\n"),
            ("get a", "$-1\r\n"),
            ("SET a 1", "+OK\r\n"),
            ("GET a", "$1\r\n1\r\n"),
            ("INCR a", ":2\r\n"),
            ("INCRBY a -5", ":-3\r\n"),
            ("SET b x", "+OK\r\n"),
            ("INCR b", "-ERR value is not an integer or out of range\r\n"),
            ("SET b y NX", "$-1\r\n"),
            ("SET c y XX", "$-1\r\n"),
            ("SET c y NX", "+OK\r\n"),
            ("SET c y NX XX", "-ERR syntax error\r\n"),
            ("SET c y EX 0", "-ERR invalid expire time\r\n"),
            ("MGET a nothing b", "*3\r\n$2\r\n-3\r\n$-1\r\n$1\r\nx\r\n"),
            ("EXISTS a b nothing", ":2\r\n"),
            ("DEL a b nothing", ":2\r\n"),
            ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
            ("NOPE a", "-ERR unknown command 'NOPE'\r\n"),
            ("FLUSHALL", "+OK\r\n"),
            ("EXISTS c", ":0\r\n"),
        ] {
            assert_eq!(answers(&mut store, &[command]), [expected], "{command}");
        }
    }

    #[test]
    fn values_are_forgotten_in_time_and_memory_is_bounded() {
        let mut store = Store::new(1_000);
        let said = answers(
            &mut store,
            &["SET a 1 EX 2", "GET a", "GET a", "SET b x PX 1500", "INCR c", "GET b", "DEL c"],
        );
        assert_eq!(said, ["+OK\r\n", "$1\r\n1\r\n", "$-1\r\n", "+OK\r\n", ":1\r\n", "$-1\r\n", ":1\r\n"]);
        assert_eq!(store.bytes, 0, "nothing is left of what is forgotten");
        let large = format!("SET a {}", "x".repeat(900));
        let said = answers(&mut store, &[&large, &large, &large.replace("SET a", "SET b"), "DEL a", &large]);
        assert_eq!(said[..2], ["+OK\r\n", "+OK\r\n"]);
        assert!(said[2].starts_with("-OOM"), "{}", said[2]);
        assert_eq!(said[3..], [":1\r\n", "+OK\r\n"]);
    }
}
