//! SOCKS5: its version 5 (RFC 1928), and user and password (RFC 1929).

use core::net::IpAddr;

use super::{Credentials, Destination, TunnelError};

/// The version of all messages but those about user and password.
const VERSION: u8 = 5;
/// The version of the messages about user and password (RFC 1929 section 2).
const PASSWORD_VERSION: u8 = 1;

/// Methods of authentication (RFC 1928 section 3).
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;

/// The command CONNECT, and types of addresses (RFC 1928 sections 4 and 5).
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Meanings of the codes of a reply, from 1 on (RFC 1928 section 6).
const REFUSALS: [&str; 8] = [
    "general SOCKS server failure",
    "connection not allowed by ruleset",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "TTL expired",
    "command not supported",
    "address type not supported",
];

/// The messages of a client.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Messages {
    /// User and password, if they are offered.
    password: Option<Vec<u8>>,
    connect: Vec<u8>,
}

impl Messages {
    /// The messages for this destination.
    ///
    /// # Errors
    /// The text that is too long, in words.
    pub(super) fn new(
        destination: &Destination,
        credentials: Option<&Credentials>,
    ) -> Result<Self, &'static str> {
        let password = match credentials {
            None => None,
            Some(Credentials { user, password }) => {
                let mut message = vec![PASSWORD_VERSION];
                push_text(user, &mut message).ok_or("the user is too long for SOCKS5")?;
                push_text(password, &mut message).ok_or("the password is too long for SOCKS5")?;
                Some(message)
            }
        };
        let mut connect = vec![VERSION, CONNECT, 0];
        let port = match destination {
            Destination::Address(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => {
                        connect.push(IPV4);
                        connect.extend_from_slice(&ip.octets());
                    }
                    IpAddr::V6(ip) => {
                        connect.push(IPV6);
                        connect.extend_from_slice(&ip.octets());
                    }
                }
                address.port()
            }
            Destination::Name(host, port) => {
                connect.push(NAME);
                push_text(host, &mut connect).ok_or("the name of the host is too long for SOCKS5")?;
                *port
            }
        };
        connect.extend_from_slice(&port.to_be_bytes());
        Ok(Self { password, connect })
    }

    /// The first message: the methods of authentication that are offered.
    pub(super) const fn greeting(&self) -> &'static [u8] {
        match self.password {
            None => &[VERSION, 1, NO_AUTHENTICATION],
            Some(_) => &[VERSION, 2, NO_AUTHENTICATION, PASSWORD],
        }
    }
}

/// Appends a text behind its length; `None` if it is too long.
fn push_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::try_from(text.len()).ok()?);
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// The proxy's next message.
#[derive(Clone, Copy, Debug, Default)]
enum Awaited {
    /// The chosen method.
    #[default]
    Method,
    /// The answer to user and password.
    Password,
    /// The reply to CONNECT.
    Reply,
}

/// Reads the proxy's messages, each of which may come in pieces.
#[derive(Debug, Default)]
pub(super) struct Socks5 {
    awaited: Awaited,
    /// The part of the message that has come.
    message: Vec<u8>,
}

impl Socks5 {
    pub(super) fn receive(
        &mut self,
        messages: &Messages,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, TunnelError> {
        loop {
            let missing = self.missing(messages)?;
            if missing == 0 {
                if !self.answer(messages, out) {
                    return Ok(true);
                }
                continue;
            }
            if input.is_empty() {
                return Ok(false);
            }
            let (taken, rest) = input.split_at(missing.min(input.len()));
            self.message.extend_from_slice(taken);
            *input = rest;
        }
    }

    /// Answers a message that is whole and good; `false` if it was the last one.
    fn answer(&mut self, messages: &Messages, out: &mut Vec<u8>) -> bool {
        let password = messages.password.as_ref().filter(|_| self.message.get(1) == Some(&PASSWORD));
        let (answer, next) = match (self.awaited, password) {
            (Awaited::Method, Some(password)) => (password, Awaited::Password),
            (Awaited::Method | Awaited::Password, _) => (&messages.connect, Awaited::Reply),
            (Awaited::Reply, _) => return false,
        };
        out.extend_from_slice(answer);
        self.awaited = next;
        self.message.clear();
        true
    }

    /// Bytes of the message that are still to come, as far as is known. A byte that is wrong is an error at
    /// once, and the rest is not waited for.
    fn missing(&self, messages: &Messages) -> Result<usize, TunnelError> {
        let invalid = |reason: String| Err(TunnelError::Invalid(reason));
        let length = match (self.awaited, self.message.as_slice()) {
            (Awaited::Method | Awaited::Reply, [version, ..]) if *version != VERSION => {
                return invalid(format!("it does not speak SOCKS5: its first byte is {version}"));
            }
            (Awaited::Method, [_, method]) => match *method {
                NO_AUTHENTICATION => 2,
                PASSWORD if messages.password.is_some() => 2,
                NONE_ACCEPTABLE if messages.password.is_none() => {
                    return refused("it wants credentials, and the proxy's URL has none".to_owned());
                }
                NONE_ACCEPTABLE => return refused("it takes no user and password".to_owned()),
                other => {
                    return invalid(format!(
                        "it chose the authentication method {other}, which was not offered"
                    ));
                }
            },
            (Awaited::Password, [_, status]) if *status != 0 => {
                return refused(format!("the user or the password is wrong (status {status})"));
            }
            (Awaited::Method | Awaited::Password, _) => 2,
            (Awaited::Reply, [_, code, ..]) if *code != 0 => {
                let meaning = REFUSALS.get(usize::from(*code) - 1).copied().unwrap_or("unassigned code");
                return refused(format!("{meaning} (SOCKS reply {code})"));
            }
            (Awaited::Reply, [_, _, _, IPV4, ..]) => 4 + 4 + 2,
            (Awaited::Reply, [_, _, _, IPV6, ..]) => 4 + 16 + 2,
            (Awaited::Reply, [_, _, _, NAME, length, ..]) => 4 + 1 + usize::from(*length) + 2,
            (Awaited::Reply, [_, _, _, NAME]) => 5,
            (Awaited::Reply, [_, _, _, other, ..]) => {
                return invalid(format!("{other} is not a type of address of SOCKS5"));
            }
            // Up to the type of the address. No more: what follows may be the peer's.
            (Awaited::Reply, _) => 4,
        };
        Ok(length - self.message.len())
    }
}

fn refused<T>(reason: String) -> Result<T, TunnelError> {
    Err(TunnelError::Refused(reason))
}
