//! Shares and addresses in messages.

use plimsoll_core::text;
use plimsoll_driver::Endpoint;

/// Writes a share as it is typed, in percent; the division by 100 is not to show.
pub fn percent(share: f64) -> String {
    format!("{}%", text::percent(share, 6))
}

/// The URL of an API that listens there.
pub fn url(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(address) => format!("http://{address}"),
        Endpoint::Unix(_) => endpoint.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_as_they_were_typed() {
        for (share, text) in [(0.0, "0%"), (0.03, "3%"), (0.000_015, "0.0015%"), (1.0 / 3.0, "33.333333%")] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn addresses_of_tcp_are_urls() {
        assert_eq!(url(&Endpoint::Tcp("[::1]:80".parse().unwrap())), "http://[::1]:80");
        assert_eq!(url(&Endpoint::Unix("/run/x".into())), "unix:/run/x");
    }
}
