//! Rules that give clients their latency classes.

use std::net::IpAddr;

use refrain_policy::Latency;

use crate::error::{Error, Result};
use crate::socket::Socket;

/// What [`ClientRule::parse`] takes, for its errors.
const FORM: &str = "a rule is CLASS=WHO: a class from 0 to 3, and an IP address, ADDRESS/BITS, unix or export:NAME";

/// The latency class of some clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRule {
    latency: Latency,
    clients: Who,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    /// At an address with the same first bits.
    Network(IpAddr, u32),
    /// At Unix sockets.
    Unix,
    /// Who have taken this NBD export.
    Export(Vec<u8>),
}

impl ClientRule {
    /// Parses `CLASS=WHO`: a latency class from 0 to 3, and an IP address, a network
    /// (`10.0.0.0/8`), `unix`, or `export:NAME`.
    ///
    /// # Errors
    /// `Refused` if it is malformed.
    pub fn parse(text: &str) -> Result<ClientRule> {
        let refused = |why: &str| Error::Refused(format!("{text:?} {why}: {FORM}"));
        let (class, who) = text
            .split_once('=')
            .ok_or_else(|| refused("has no class"))?;
        let latency = match class.parse() {
            Ok(class @ 0..=3) => Latency::from_latnice(class),
            _ => return Err(refused("has no class from 0 to 3")),
        };
        let clients = match who.split_once(':') {
            _ if who == "unix" => Who::Unix,
            Some(("export", name)) => Who::Export(name.as_bytes().to_vec()),
            _ => network(who).ok_or_else(|| refused("names no address"))?,
        };
        Ok(ClientRule { latency, clients })
    }

    /// Whether the rule is for those who take an NBD export.
    pub fn names_export(&self) -> bool {
        matches!(self.clients, Who::Export(_))
    }

    /// Whether the rule is for the client at `address` (`None`: a Unix socket) that has taken
    /// `export` (`None`: it has taken none yet).
    fn applies(&self, address: Option<IpAddr>, export: Option<&[u8]>) -> bool {
        match (&self.clients, address) {
            (Who::Network(network, bits), Some(address)) => {
                is_in_network(address.to_canonical(), *network, *bits)
            }
            (Who::Unix, None) => true,
            (Who::Export(name), _) => export == Some(name),
            _ => false,
        }
    }
}

/// The latency class of a client: that of the first rule for it, or that of one who waits.
pub(crate) fn latency_of(rules: &[ClientRule], socket: &Socket, export: Option<&[u8]>) -> Latency {
    let address = socket.peer_address();
    let rule = rules.iter().find(|rule| rule.applies(address, export));
    rule.map_or(Latency::Sensitive, |rule| rule.latency)
}

fn network(text: &str) -> Option<Who> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(bits_max);
    (bits <= bits_max).then_some(Who::Network(address, bits))
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (differing, length) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits() ^ other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits(), 128),
        _ => return false,
    };
    differing.checked_shr(length - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applies(rule: &str, address: Option<&str>, export: Option<&str>) -> bool {
        let address = address.map(|address| address.parse().unwrap());
        let rule = ClientRule::parse(rule).unwrap();
        rule.applies(address, export.map(str::as_bytes))
    }

    #[test]
    fn a_rule_is_for_a_network_unix_sockets_or_an_export() {
        assert!(applies("2=10.0.0.0/8", Some("10.255.0.1"), None));
        assert!(applies("2=10.0.0.0/8", Some("::ffff:10.1.2.3"), None));
        assert!(!applies("2=10.0.0.0/8", Some("11.0.0.1"), None));
        assert!(!applies("2=10.0.0.0/8", None, None));
        assert!(applies("0=::/0", Some("fe80::1"), None));
        assert!(!applies("0=::/0", Some("1.2.3.4"), None));
        assert!(applies("3=fe80::1", Some("fe80::1"), None));
        assert!(!applies("3=fe80::1", Some("fe80::2"), None));
        assert!(applies("1=unix", None, Some("a")));
        assert!(!applies("1=unix", Some("127.0.0.1"), Some("a")));
        assert!(applies("0=export:a:b=c", None, Some("a:b=c")));
        assert!(!applies("0=export:", Some("::1"), None));
        assert!(applies("0=export:", Some("::1"), Some("")));
    }

    #[test]
    fn malformed_rules_are_refused_with_the_reason() {
        for (wrong, why) in [
            ("", "has no class"),
            ("10.0.0.0/8", "has no class"),
            ("4=unix", "has no class from 0 to 3"),
            ("x=unix", "has no class from 0 to 3"),
            ("2=", "names no address"),
            ("2=host.example", "names no address"),
            ("2=10.0.0.0/33", "names no address"),
            ("2=::1/129", "names no address"),
            ("2=10.0.0.0/", "names no address"),
        ] {
            let message = ClientRule::parse(wrong).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
    }
}
