//! Measures clients of a shared cache on this machine, while something is done to its nodes.
//!
//! | file | what |
//! |---|---|
//! | `nodes` | processes of memcached or Redis |
//! | `origin` | what the values are, in a file |
//! | `links` | slow links to nodes |
//! | `load` | readers that begin at given times, driven by one thread |
//! | `trouble` | what is done to whom, and when |
//! | `settings` | what is measured |
//! | `report` | numbers, table and JSON |
//! | `picture` | latency over time |

mod links;
mod load;
mod nodes;
mod origin;
mod picture;
mod report;
mod settings;
mod trouble;

use std::time::Instant;

use refrain_cache::policy::Rules;
use refrain_cache::{Client, Node};

use crate::args::CacheClient;
use crate::failure::{Failure, Result};
use links::{Links, Slowness};
use load::Load;
use nodes::Nodes;
use origin::Origin;
pub use picture::as_svg;
use report::Measured;
pub use report::{as_json, as_text, name};
pub use settings::{Settings, VALUE_BYTES_MAX, settings_json};
use trouble::Trouble;

/// After how long a client with a timeout reads the origin; one without waits so long that no run
/// sees the end.
const TIMEOUT_NS: u64 = 50_000_000;
const FOR_EVER_NS: u64 = 3_600_000_000_000;

/// Measures the clients, one after the other, each with its own nodes.
///
/// # Errors
/// `Usage` if there is no memcached; `Io`.
pub fn measure(settings: &Settings<'_>) -> Result<Vec<Measured>> {
    let all = [
        CacheClient::Policy,
        CacheClient::Timeout,
        CacheClient::Naive,
    ];
    let asked = &settings.args.client;
    let clients = if asked.is_empty() { &all[..] } else { &asked[..] };
    let origin = Origin::create(settings.args)?;
    let mut measured = Vec::new();
    for client in clients {
        measured.push(measure_one(settings, *client, &origin)?);
    }
    Ok(measured)
}

/// What a client does.
pub fn rules(kind: CacheClient) -> Rules {
    match kind {
        CacheClient::Policy => Rules::default(),
        CacheClient::Timeout => Rules::patient(TIMEOUT_NS),
        CacheClient::Naive => Rules::patient(FOR_EVER_NS),
    }
}

fn measure_one(settings: &Settings<'_>, kind: CacheClient, origin: &Origin) -> Result<Measured> {
    let args = settings.args;
    let mut nodes = match &args.at {
        Some(list) => Nodes::given(list)?,
        None => Nodes::start(args.engine.into(), args.nodes, origin.bytes())?,
    };
    let engine = nodes.engine();
    let rules = rules(kind);
    let mut addresses = nodes.addresses();
    let first_slow = usize::from(args.stop) + usize::from(args.kill);
    let slow = addresses.iter_mut().skip(first_slow);
    let slow: Vec<_> = slow.take(usize::from(args.slow)).collect();
    let behind: Vec<_> = slow.iter().map(|address| **address).collect();
    let slowness = Slowness {
        delay: args.slow_delay,
        bytes_per_second: args.slow_rate.map(|rate| rate.bytes),
    };
    let links = Links::start(&behind, slowness)?;
    for (address, link) in slow.into_iter().zip(links.addresses()) {
        *address = *link;
    }
    let listed: Vec<_> = addresses
        .into_iter()
        .map(|address| Node {
            name: address.to_string(),
            address: Some(address),
        })
        .collect();
    if !args.cold {
        // By another client, which the measured one knows nothing of.
        let filler = Client::new(engine, listed.clone(), rules);
        load::fill(&filler, origin, &Instant::now(), settings)?;
    }
    let client = Client::new(engine, listed, rules);
    let before = nodes.reads_served()?;
    let trouble = Trouble::new(args, engine, nodes.len(), links);
    let samples = Load::new(settings, &client, origin).run(&mut nodes, trouble)?;
    if settings.cancellation.is_cancelled() {
        return Err(Failure::Storage(std::io::ErrorKind::Interrupted.into()));
    }
    Ok(Measured {
        kind,
        samples,
        counts: client.counts(),
        nodes: client.nodes(),
        served: nodes.reads_served()?.saturating_sub(before),
        well: args.well,
        sick: args.sick,
    })
}
