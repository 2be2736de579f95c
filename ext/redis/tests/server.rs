//! A simulated server: SET, GET, INCR, DEL and AUTH.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_testkit::Speaks;
use plimsoll_testkit::protocol::{Exchange, NotARequest, Order, Saying, SimProtocol};

type Values = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

/// A server, of which clones share the content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redis {
    values: Values,
    /// Set once the client has said its password.
    is_known: bool,
    wants_password: bool,
}

impl Redis {
    /// An empty server for all of its connections.
    pub(crate) fn speaks() -> Speaks {
        let server = Self::default();
        Speaks::new(move || server.clone())
    }

    /// An empty server that wants the password `pw` first.
    pub(crate) fn wants_password() -> Speaks {
        let server = Self { wants_password: true, ..Self::default() };
        Speaks::new(move || server.clone())
    }

    fn answer(&self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        match words {
            _ if self.wants_password && !self.is_known => b"-NOAUTH Authentication required.\r\n".to_vec(),
            [name, key, value] if name == b"SET" => {
                values.insert(key.clone(), value.clone());
                b"+OK\r\n".to_vec()
            }
            [name, key] if name == b"GET" => match values.get(key) {
                Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
                None => b"$-1\r\n".to_vec(),
            },
            [name, key] if name == b"DEL" => {
                format!(":{}\r\n", u8::from(values.remove(key).is_some())).into_bytes()
            }
            [name, key] if name == b"INCR" => {
                let value = values.entry(key.clone()).or_insert_with(|| b"0".to_vec());
                let next = String::from_utf8_lossy(value).parse::<i64>().unwrap_or_default() + 1;
                *value = next.to_string().into_bytes();
                format!(":{next}\r\n").into_bytes()
            }
            _ => b"-ERR unknown command\r\n".to_vec(),
        }
    }
}

/// Takes a line out of the input.
fn line(input: &mut &[u8], first: u8) -> Option<Result<usize, NotARequest>> {
    let end = input.windows(2).position(|two| two == b"\r\n")?;
    let (text, rest) = (&input[..end], &input[end + 2..]);
    *input = rest;
    let number = text.strip_prefix(&[first]).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    Some(number.ok_or(NotARequest))
}

/// Words of a command, and the bytes that it has.
type Taken = (Vec<Vec<u8>>, usize);

/// Takes a whole command out of the input.
fn command(input: &[u8]) -> Option<Result<Taken, NotARequest>> {
    let mut rest = input;
    let count = match line(&mut rest, b'*')? {
        Ok(count) => count,
        Err(wrong) => return Some(Err(wrong)),
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = match line(&mut rest, b'$')? {
            Ok(length) => length,
            Err(wrong) => return Some(Err(wrong)),
        };
        let (word, after) = rest.split_at_checked(length)?;
        if after.len() < 2 {
            return None;
        }
        words.push(word.to_vec());
        rest = &after[2..];
    }
    Some(Ok((words, input.len() - rest.len())))
}

impl SimProtocol for Redis {
    fn receive(&mut self, input: &mut Vec<u8>, orders: &mut Vec<Order>) -> Result<(), NotARequest> {
        while let Some(next) = command(input) {
            let (words, length) = next?;
            let request: Vec<u8> = input.drain(..length).collect();
            if words[0] == b"AUTH" {
                self.is_known = words[1] == b"pw";
                let said = if self.is_known { &b"+OK\r\n"[..] } else { b"-WRONGPASS no\r\n" };
                orders.push(Order::Say(Saying::Bytes(said.to_vec())));
                continue;
            }
            let refusal = b"-LOADING the dataset\r\n".to_vec();
            orders.push(Order::Answer(Exchange {
                request,
                answer: self.answer(&words),
                refusal,
                then: Vec::new(),
            }));
        }
        Ok(())
    }
}
