//! `refrain serve`: serves an archive to many clients.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use refrain_server::http::{HttpHandler, HttpSettings};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::scrub::Scrub;
use refrain_server::statistics::{Metric, MetricSource};
use refrain_server::{Clients, Handler, Listener, Reporter, Service, StopSignal, TlsSettings};
use serde_json::json;

use super::damaged::Damaged;
use super::entries::tell_unread;
use super::input::open_for_service;
use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::inherited_sockets::{self, InheritedSocket};
use crate::messages;
use crate::names;
use crate::paths;
use crate::plan::{ServePlan, check_serve, tree_options};
use crate::report::{DataTo, Outcome, Report};
use crate::service;
use crate::session::Session;
use crate::text::printable;

/// How long clients may take to receive pending replies after a signal.
const GRACE: Duration = Duration::from_millis(1500);

/// Answers that are being sent may take 1/16 of the memory.
const ANSWER_SHARE: u64 = 16;

/// How much content the HTTP handler decodes at once for each client.
const HTTP_CHUNK_BYTES_MIN: u64 = 64 << 10;
const HTTP_CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Runs the verb.
pub fn run(args: &ServeArgs, session: &Session) -> Exit {
    let mut report = Report::new("serve", &args.report, session, DataTo::Stdout);
    if args.service.daemon
        && let Some(exit) = service::go_behind(&mut report)
    {
        return exit;
    }
    let result = ServePlan::new(args).and_then(|plan| serve(args, &plan, &report));
    let is_done = result.is_ok();
    report.add(result);
    if is_done { report.finish_service() } else { report.finish() }
}

fn serve(args: &ServeArgs, plan: &ServePlan, report: &Report) -> Result<Outcome> {
    let session = report.session();
    let label = &plan.archive.label;
    let listeners = Listeners::bind(args)?;
    let meter = report.meter(label);
    let archive = open_for_service(&plan.archive, &args.opening, &plan.options, &meter, report)?;
    archive.use_memory_for_serving();
    let service = Service::new(archive, reporter(session));
    let program = session.program;
    let archive = Arc::clone(service.archive());
    tell_unread(Arc::clone(&archive), label, move |text: &str| {
        messages::tell(program, text)
    });
    let scrub = start_scrub(args.scrub, &service)?;
    let clients = Clients::with_rules(args.clients.max(1), args.client_latency.clone());
    let memory_bytes = plan.options.memory_bytes;
    let addresses = listeners.addresses();
    let signals = listeners.start(args, &service, memory_bytes, &clients, scrub.as_ref())?;
    meter.erase();
    service::announce(&format!("{label}: ready at {}", addresses.join(", ")))?;
    service::wait_for_end(session, args.service.idle_exit, &|| clients.idle_time());
    service::notify("STOPPING=1");
    drop(signals);
    clients.stop();
    let is_clean = clients.wait_until_none(GRACE);
    clients.disconnect();
    let json = json!({
        "file": label,
        "clients": clients.count_since_start(),
        "all_replies_sent": is_clean,
    });
    let mut outcome = Outcome::new(label, String::new(), json);
    Damaged::in_archive(&archive).report(&mut outcome);
    Ok(outcome)
}

/// Prints lines about the service.
pub fn reporter(session: &Session) -> Arc<Reporter> {
    let program = session.program;
    Arc::new(move |line: &str| messages::tell(program, &printable(line)))
}

/// The sockets of the handlers.
struct Listeners {
    nbd: Vec<Listener>,
    http: Vec<Listener>,
}

impl Listeners {
    /// Creates the sockets, or takes those created by systemd.
    fn bind(args: &ServeArgs) -> Result<Listeners> {
        let mut listeners = Listeners {
            nbd: vec![],
            http: vec![],
        };
        for address in &args.nbd {
            listeners.nbd.push(Listener::bind(address)?);
        }
        for address in &args.http {
            listeners.http.push(Listener::bind(address)?);
        }
        listeners.take_inherited()?;
        let has_nbd = !listeners.nbd.is_empty();
        check_serve(args, has_nbd, !listeners.http.is_empty())?;
        if listeners.nbd.is_empty() && listeners.http.is_empty() {
            Err(Failure::usage(
                "",
                "say where clients connect: --nbd or --http with unix:PATH or HOST:PORT",
            ))
        } else {
            Ok(listeners)
        }
    }

    /// systemd names its sockets; any not named `http` are for NBD.
    fn take_inherited(&mut self) -> Result<()> {
        for inherited in inherited_sockets::take() {
            let InheritedSocket { number, name, .. } = &inherited;
            let file = format!("socket {number} ({name})");
            let listeners = if name == "http" { &mut self.http } else { &mut self.nbd };
            listeners.push(inherited.listener.map_err(|error| Failure::Io {
                file,
                action: "take over",
                error,
            })?);
        }
        Ok(())
    }

    fn addresses(&self) -> Vec<String> {
        let of = |kind: &'static str, listeners: &[Listener]| -> Vec<String> {
            let address = |listener: &Listener| format!("{kind} {}", listener.address());
            listeners.iter().map(address).collect()
        };
        [of("nbd", &self.nbd), of("http", &self.http)].concat()
    }

    /// Starts accepting clients.
    fn start(
        self,
        args: &ServeArgs,
        service: &Service,
        memory_bytes: u64,
        clients: &Clients,
        scrub: Option<&Scrub>,
    ) -> Result<Vec<StopSignal>> {
        let mut signals = vec![];
        let tls = tls_settings(args)?;
        if !self.nbd.is_empty() {
            let exports = Exports::new(service.clone()).map_err(Failure::Engine)?;
            let mut exports = exports.with_readahead(args.resources.thread_count());
            if let Some(name) = &args.export {
                exports = exports.with_default(name.as_bytes().to_vec());
            }
            let handler = NbdHandler::new(exports, memory_bytes, args.clients);
            let mut handler = handler.with_idle_limit(args.client_idle);
            if let Some(tls) = &tls {
                handler = handler.with_tls(tls.clone());
            }
            let handler: Arc<dyn Handler> = Arc::new(handler);
            for listener in self.nbd {
                let signal =
                    listener.start(Arc::clone(&handler), clients.clone(), service.reporter());
                signals.push(signal?);
            }
        }
        if !self.http.is_empty() {
            let settings = http_settings(&args.archive, args.clients, memory_bytes, clients, scrub);
            let settings = HttpSettings {
                host_names: args.allow_host.clone(),
                idle_timeout: args.client_idle.unwrap_or(settings.idle_timeout),
                ..settings
            };
            let mut handler = HttpHandler::new(service.clone(), settings)?;
            if let Some(tls) = tls {
                handler = handler.with_tls(tls);
            }
            for listener in self.http {
                let handler = Arc::new(handler.at(&listener));
                let signal = listener.start(handler, clients.clone(), service.reporter());
                signals.push(signal?);
            }
        }
        Ok(signals)
    }
}

/// What clients need for TLS, if it is required.
fn tls_settings(args: &ServeArgs) -> Result<Option<TlsSettings>> {
    let (Some(certificate), Some(key)) = (&args.tls_certificate, &args.tls_key) else {
        return Ok(None);
    };
    let authorities = args.tls_client_authorities.as_deref();
    Ok(Some(TlsSettings::read(certificate, key, authorities)?))
}

/// The name of an archive without its directory.
fn archive_name(archive: &Path) -> String {
    let label = paths::label(archive);
    let name = label.rsplit('/').next().unwrap_or_default();
    let name = name.split('?').next().unwrap_or_default();
    if name.is_empty() { label } else { name.to_owned() }
}

/// Starts checking an archive in the background, if that is wanted.
pub fn start_scrub(is_wanted: bool, service: &Service) -> Result<Option<Scrub>> {
    Ok(is_wanted.then(|| Scrub::start(service)).transpose()?)
}

/// The settings of an HTTP handler, whose statistics count the clients of all handlers.
pub fn http_settings(
    archive: &Path,
    clients_max: usize,
    memory_bytes: u64,
    clients: &Clients,
    scrub: Option<&Scrub>,
) -> HttpSettings {
    let counted = clients.clone();
    let metrics = move || {
        vec![
            Metric {
                name: "clients",
                help: "Clients that are connected.",
                value: counted.count() as f64,
            },
            Metric {
                name: "clients_total",
                help: "Clients that have connected.",
                value: counted.count_since_start() as f64,
            },
            Metric {
                name: "clients_refused_total",
                help: "Clients that were refused because there were too many.",
                value: counted.refused_since_start() as f64,
            },
        ]
    };
    let answer_bytes = memory_bytes / ANSWER_SHARE;
    let chunk_bytes = answer_bytes / clients_max.max(1) as u64;
    let chunk_bytes = chunk_bytes.clamp(HTTP_CHUNK_BYTES_MIN, HTTP_CHUNK_BYTES_MAX);
    HttpSettings {
        chunk_bytes: usize::try_from(chunk_bytes).unwrap_or(usize::MAX),
        archive_name: archive_name(archive),
        tree: tree_options(memory_bytes, names::of_member(archive, b"")),
        answer_bytes,
        metrics: [Arc::new(metrics) as Arc<dyn MetricSource>]
            .into_iter()
            .chain(scrub.map(Scrub::metrics))
            .collect(),
        ..HttpSettings::default()
    }
}
