//! The arguments of `refrain serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use refrain_server::{Address, ClientRule};

use super::generations::GenerationArgs;
use super::opening::OpeningArgs;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use super::tiers::CachingArgs;

/// `refrain serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_TEXT)]
pub struct ServeArgs {
    /// The archive; or several, and directories with archives, which are served under their names
    /// without suffix. NAME=ARCHIVE gives one another name
    #[arg(value_name = "[NAME=]ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Serve block devices to NBD clients at this address: unix:PATH or HOST:PORT; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub nbd: Vec<Address>,
    /// Serve members, their entries and directory pages to HTTP clients at this address; may be
    /// repeated
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub http: Vec<Address>,
    /// Require TLS from all clients: the server's certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// The server's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate from one of these authorities, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_client_authorities: Option<PathBuf>,
    /// The export with the empty name: a member, or MEMBER/PATH; with several archives NAME/MEMBER
    /// (default: the only file)
    #[arg(long, value_name = "NAME")]
    pub export: Option<std::ffi::OsString>,
    /// A name of this machine that HTTP clients may use for a loopback service, in addition to
    /// localhost and its addresses; requests with other names are refused. May be repeated
    #[arg(long, value_name = "NAME", alias = "host-name")]
    pub allow_host: Vec<String>,
    /// Disconnect clients that are silent for this time: 30s, 10m, 2h (default: 60s over HTTP,
    /// never over NBD)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub client_idle: Option<Duration>,
    /// Maximum number of clients; more are told that there are too many
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub clients: usize,
    /// The latency class of some clients (default: 2), from 0 (insensitive) to 3 (exquisitely
    /// sensitive), and who they are: an IP address, a network such as 10.0.0.0/8, unix, or
    /// export:NAME (NBD). May be repeated; the first rule for a client counts
    #[arg(long, value_name = "CLASS=WHO", value_parser = client_rule)]
    pub client_latency: Vec<ClientRule>,
    /// Check the archive in the background, while nothing else is to be done: read everything once
    /// a day and report what is damaged
    #[arg(long)]
    pub scrub: bool,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub caching: CachingArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// How a serving program runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// Return to the shell when the service is ready, print its process ID, and continue in the
    /// background
    #[arg(long)]
    pub daemon: bool,
    /// Exit when there has been no client for this time: 30s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub idle_exit: Option<Duration>,
}

const SERVE_TEXT: &str = "\
Every member that is a file is an NBD export under its name, and a file in a directory member as \
MEMBER/PATH; over HTTP it has the same path. Nothing can be written.
With several archives, a directory or a NAME, exports and paths begin with NAME/, and all archives share memory, clients \
and limits. Each is opened when it is needed. An archive that cannot be opened is named and left out. SIGHUP reads \
the directories again and opens what has changed; what clients have open stays as it is.
A line on standard output says when clients can connect; systemd is told as well (Type=notify). \
Sockets of systemd are used if they are named nbd or http (FileDescriptorName=). SIGTERM ends the \
service when the requests that were received are answered.";

pub fn address(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|error| error.to_string())
}

fn client_rule(text: &str) -> Result<ClientRule, String> {
    ClientRule::parse(text).map_err(|error| error.to_string())
}

/// A number with a unit: milliseconds, seconds, minutes or hours.
pub fn time(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - unit.len()].parse::<u64>().ok();
    let unit_ms = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    match number.and_then(|number| number.checked_mul(unit_ms)) {
        Some(total_ms) if unit_ms > 0 => Ok(Duration::from_millis(total_ms)),
        _ => Err(format!(
            "{text:?} is not a time: a number and ms, s, m or h"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "m", "-1s", "1d", "1.5s", "99999999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
