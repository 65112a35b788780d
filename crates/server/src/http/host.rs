//! The host names that requests may use.
//!
//! A page of any site can let its own name resolve to 127.0.0.1 (DNS rebinding), and then read this
//! server's responses as if they came from that site. The browser still sends the name that it
//! used.

use std::net::{IpAddr, Ipv6Addr};

use super::head::RequestHead;
use super::target::authority;

/// The response to requests with another name.
pub(super) const REFUSED: &str = "this service is for programs on this machine: its name must be localhost, an address of \
     127.0.0.0/8 or [::1], or one that was given with --allow-host";

/// Whether a request to a loopback address uses a name of this machine, or one of `names`.
pub(super) fn is_local_name(head: &RequestHead, names: &[String]) -> bool {
    // HTTP/1.0 requests may have none; no browser that could be misled speaks it.
    let host = head.host.as_deref().unwrap_or(b"localhost");
    let in_target = authority(&head.target).unwrap_or(b"localhost");
    [host, in_target]
        .into_iter()
        .all(|text| is_local(text, names))
}

fn is_local(text: &[u8], names: &[String]) -> bool {
    let Some(name) = str::from_utf8(text).ok().and_then(without_port) else {
        return false;
    };
    let address = match name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::from),
        None => name.parse::<std::net::Ipv4Addr>().map(IpAddr::from),
    };
    match address {
        Ok(address) if address.to_canonical().is_loopback() => true,
        _ => {
            let is_it = |known: &str| known.eq_ignore_ascii_case(name);
            is_it("localhost") || names.iter().any(|known| is_it(known))
        }
    }
}

/// Removes a port and the dot of the root from a name.
fn without_port(text: &str) -> Option<&str> {
    let name = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => port
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(name)?,
        _ => text,
    };
    Some(name.strip_suffix('.').unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::super::head::parse_head;
    use super::*;

    fn is_answered(target: &str, host: &str) -> bool {
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let (head, _) = parse_head(text.as_bytes()).unwrap().unwrap();
        is_local_name(&head, &["archive.example".to_owned()])
    }

    #[test]
    fn names_of_this_machine_and_given_ones_are_answered() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.9.8.7",
            "[::1]",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:1",
            "archive.example",
            "Archive.Example:99",
        ] {
            assert!(is_answered("/", host), "{host}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "notlocalhost",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]:80",
            "::1",
            "127.0.0.1@evil.example",
            "localhost:80@evil.example",
            "localhost:x",
            "evil.example:localhost",
            "",
            "2130706433",
            "archive.example.evil",
            "[::1].evil.example",
            "localhost evil.example",
        ] {
            assert!(!is_answered("/", host), "{host}");
        }
        assert!(is_answered("http://127.0.0.1/x", "localhost"));
        assert!(!is_answered("http://evil.example/x", "localhost"));
        assert!(!is_answered("http://evil.example", "localhost"));
        assert!(!is_answered("http://localhost/x", "evil.example"));
    }
}
