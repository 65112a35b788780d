//! `refrain serve`: serves archives to many clients.

mod archive_set;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use refrain::{Archive, Timestamp};
use refrain_cache::Tiers;
use refrain_server::http::{HttpHandler, HttpSettings};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::scrub::Scrub;
use refrain_server::statistics::{Metric, MetricSource};
use refrain_server::tree::TreeOptions;
use refrain_server::{
    Archives, Clients, Handler, Listener, Reporter, Service, StopSignal, TlsSettings,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use self::archive_set::ArchiveSet;
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
use crate::plan::{
    SeekableInput, ServePlan, ServedInput, SeveralInputs, check_serve, tree_options,
};
use crate::report::{DataTo, Meter, Outcome, Report, place_lines};
use crate::service::{self, Woken};
use crate::session::Session;
use crate::text::{counted, printable};
use crate::urls;

/// How long clients may take to receive pending replies after a signal.
const GRACE: Duration = Duration::from_millis(1500);

/// Answers that are being sent may take 1/16 of the memory.
const ANSWER_SHARE: u64 = 16;

/// How much content the HTTP handler decodes at once for each client.
const HTTP_CHUNK_BYTES_MIN: u64 = 64 << 10;
const HTTP_CHUNK_BYTES_MAX: u64 = 1 << 20;

/// An archive that nobody has asked for in this time is closed, if it is one of several.
const UNUSED_TIME_MAX: Duration = Duration::from_secs(60);

/// Runs the verb.
pub fn run(args: &ServeArgs, session: &Session) -> Exit {
    let mut report = Report::new("serve", &args.report, session, DataTo::Stdout);
    if args.service.daemon
        && let Some(exit) = service::go_behind(&mut report)
    {
        return exit;
    }
    let result = ServePlan::new(args).and_then(|plan| serve(args, &plan, &mut report));
    let is_done = result.is_ok();
    report.add(result);
    if is_done { report.finish_service() } else { report.finish() }
}

fn serve(args: &ServeArgs, plan: &ServePlan, report: &mut Report) -> Result<Outcome> {
    // Before anything is opened: what cannot be used is refused at once.
    let listeners = Listeners::bind(args)?;
    match &plan.served {
        ServedInput::One(input) => serve_one(args, plan, input, listeners, report),
        ServedInput::Several(inputs) => serve_several(args, plan, inputs, listeners, report),
    }
}

/// Serves one archive, whose members are at the root.
fn serve_one(
    args: &ServeArgs,
    plan: &ServePlan,
    input: &SeekableInput,
    listeners: Listeners,
    report: &Report,
) -> Result<Outcome> {
    let (session, label) = (report.session(), &input.label);
    let program = session.program;
    let meter = report.meter(label);
    let archive = open(input, args, plan, &meter, report)?;
    let service = Service::new(archive, reporter(session));
    let archive = Arc::clone(service.archive());
    tell_unread(Arc::clone(&archive), label, move |text: &str| {
        messages::tell(program, text)
    });
    let archives = Archives::from(service);
    let door = Door {
        archives: archives.clone(),
        tree: tree_options(
            plan.options.memory_bytes,
            names::of_member(&input.path, b""),
        ),
        name: shown_name(&input.open_path),
        label: label.clone(),
        tiers: plan.tiers.clone(),
    };
    let mut file = ServedFile::of(input);
    let mut read_again = || match file.if_changed(args, plan, &meter, report) {
        Ok(Some(archive)) => {
            archives.replace(archive);
            messages::tell(program, &format!("{}: opened anew", printable(label)));
        }
        Ok(None) => {}
        Err(failure) => messages::tell(program, &failure.to_string()),
    };
    meter.erase();
    let json = json!({ "file": label });
    let mut outcome = run_door(args, &door, listeners, session, &mut read_again, json)?;
    Damaged::in_archive(&archive).report(&mut outcome);
    Ok(outcome)
}

/// Opens the only archive.
fn open(
    input: &SeekableInput,
    args: &ServeArgs,
    plan: &ServePlan,
    meter: &Meter,
    report: &Report,
) -> Result<Archive> {
    let mut archive = open_for_service(input, &args.opening, &plan.options, meter, report)?;
    archive.share_memory(&plan.memory);
    archive.use_memory_for_serving();
    Ok(archive)
}

/// Serves archives under their names.
fn serve_several(
    args: &ServeArgs,
    plan: &ServePlan,
    inputs: &SeveralInputs,
    listeners: Listeners,
    report: &mut Report,
) -> Result<Outcome> {
    let session = report.session();
    allow_many_files();
    let mut set = ArchiveSet::new(inputs, plan, reporter(session));
    let findings = set.read();
    findings.remarks.iter().for_each(|text| report.remark(text));
    if let Some(at) = findings.failures.iter().position(is_usage) {
        return Err(findings
            .failures
            .into_iter()
            .nth(at)
            .unwrap_or_else(nothing_left));
    }
    findings
        .failures
        .into_iter()
        .for_each(|failure| report.add(Err(failure)));
    let archives = set.archives().clone();
    if archives.count() == 0 && !set.has_directory() {
        return Err(nothing_left());
    }
    let door = Door {
        archives: archives.clone(),
        tree: tree_options(plan.options.memory_bytes, vec![]),
        name: "archives".to_owned(),
        label: counted(archives.count() as u64, "archive"),
        tiers: plan.tiers.clone(),
    };
    let mut read_again = || {
        let findings = set.read();
        let failures = findings.failures.iter().map(ToString::to_string);
        for line in findings.remarks.iter().cloned().chain(failures) {
            messages::tell(session.program, &line);
        }
        let count = counted(set.archives().count() as u64, "archive");
        messages::tell(session.program, &format!("read again: {count}"));
    };
    let json = json!({ "archives": archives.count() });
    let mut outcome = run_door(args, &door, listeners, session, &mut read_again, json)?;
    for (label, places) in archives.damaged_places() {
        for line in place_lines(&label, &places) {
            outcome.add_loss(Exit::Damaged, &line);
        }
    }
    Ok(outcome)
}

fn is_usage(failure: &Failure) -> bool {
    matches!(failure, Failure::Usage { .. })
}

fn nothing_left() -> Failure {
    Failure::usage("", "no archive is left to serve")
}

/// Each archive of many is a descriptor. Without more of them some are not served.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// What is behind the sockets.
struct Door {
    archives: Archives,
    tree: TreeOptions,
    /// The name of all that is served, for people.
    name: String,
    /// What lines about the service begin with.
    label: String,
    /// What is asked before the archives.
    tiers: Option<Arc<Tiers>>,
}

/// Serves until the end. `json` describes what is served.
fn run_door(
    args: &ServeArgs,
    door: &Door,
    listeners: Listeners,
    session: &Session,
    read_again: &mut dyn FnMut(),
    mut json: Value,
) -> Result<Outcome> {
    let scrub = start_scrub(args.scrub, &door.archives)?;
    let clients = Clients::with_rules(args.clients.max(1), args.client_latency.clone());
    let addresses = listeners.addresses();
    let signals = listeners.start(args, door, &clients, scrub.as_ref())?;
    service::announce(&format!(
        "{}: ready at {}",
        door.label,
        addresses.join(", ")
    ))?;
    let (idle_exit, idle_time) = (args.service.idle_exit, || clients.idle_time());
    service::wait_for_end(
        session,
        idle_exit,
        &idle_time,
        UNUSED_TIME_MAX,
        &mut |woken| match woken {
            Woken::Hangup => {
                service::notify("RELOADING=1");
                read_again();
                service::notify("READY=1");
            }
            Woken::Time => door.archives.close_unused(UNUSED_TIME_MAX),
        },
    );
    service::notify("STOPPING=1");
    drop(signals);
    clients.stop();
    let is_clean = clients.wait_until_none(GRACE);
    clients.disconnect();
    json["clients"] = json!(clients.count_since_start());
    json["all_replies_sent"] = json!(is_clean);
    Ok(Outcome::new(&door.label, String::new(), json))
}

/// The file of the only archive.
struct ServedFile<'a> {
    input: &'a SeekableInput,
    version: Option<FileIdentity>,
}

type FileIdentity = (u64, u64, u64, Option<Timestamp>, i64, i64);

impl<'a> ServedFile<'a> {
    fn of(input: &'a SeekableInput) -> ServedFile<'a> {
        ServedFile {
            version: version_at(&input.open_path),
            input,
        }
    }

    /// Opens the archive at the same path if that has changed.
    fn if_changed(
        &mut self,
        args: &ServeArgs,
        plan: &ServePlan,
        meter: &Meter,
        report: &Report,
    ) -> Result<Option<Archive>> {
        let path = &self.input.open_path;
        let version = version_at(path);
        if paths::is_dash(path) || urls::is_url(path) || version == self.version {
            return Ok(None);
        }
        let input = SeekableInput::new(path, &plan.options, &args.secrets)?;
        let input = input.behind(plan.tiers.clone());
        let archive = open(&input, args, plan, meter, report)?;
        self.version = version;
        Ok(Some(archive))
    }
}

fn version_at(path: &Path) -> Option<FileIdentity> {
    Some(paths::identity(&fs::metadata(path).ok()?))
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
        door: &Door,
        clients: &Clients,
        scrub: Option<&Scrub>,
    ) -> Result<Vec<StopSignal>> {
        let archives = &door.archives;
        let memory_bytes = args.resources.read_options().memory_bytes;
        let mut signals = vec![];
        let tls = tls_settings(args)?;
        if !self.nbd.is_empty() {
            let exports = Exports::new(archives.clone())?;
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
                    listener.start(Arc::clone(&handler), clients.clone(), archives.reporter());
                signals.push(signal?);
            }
        }
        if !self.http.is_empty() {
            let tiers = door.tiers.as_ref();
            let settings = http_settings(args.clients, memory_bytes, clients, scrub, tiers);
            let settings = HttpSettings {
                archive_name: door.name.clone(),
                tree: door.tree.clone(),
                host_names: args.allow_host.clone(),
                idle_timeout: args.client_idle.unwrap_or(settings.idle_timeout),
                ..settings
            };
            let mut handler = HttpHandler::new(archives.clone(), settings)?;
            if let Some(tls) = tls {
                handler = handler.with_tls(tls);
            }
            for listener in self.http {
                let handler = Arc::new(handler.at(&listener));
                let signal = listener.start(handler, clients.clone(), archives.reporter());
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
pub fn shown_name(archive: &Path) -> String {
    let label = paths::label(archive);
    let name = label.rsplit('/').next().unwrap_or_default();
    let name = name.split('?').next().unwrap_or_default();
    if name.is_empty() { label } else { name.to_owned() }
}

/// Starts checking archives in the background, if that is wanted.
pub fn start_scrub(is_wanted: bool, archives: &Archives) -> Result<Option<Scrub>> {
    Ok(is_wanted
        .then(|| Scrub::start(archives.clone()))
        .transpose()?)
}

/// The settings of an HTTP handler, whose statistics count the clients of all handlers.
pub fn http_settings(
    clients_max: usize,
    memory_bytes: u64,
    clients: &Clients,
    scrub: Option<&Scrub>,
    tiers: Option<&Arc<Tiers>>,
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
            Metric {
                name: "clients_slow_total",
                help: "Clients that were disconnected because they took too little of their replies.",
                value: counted.slow_since_start() as f64,
            },
            Metric {
                name: "clients_silent_total",
                help: "Clients that were disconnected because they were silent.",
                value: counted.silent_since_start() as f64,
            },
        ]
    };
    let answer_bytes = memory_bytes / ANSWER_SHARE;
    let chunk_bytes = answer_bytes / clients_max.max(1) as u64;
    let chunk_bytes = chunk_bytes.clamp(HTTP_CHUNK_BYTES_MIN, HTTP_CHUNK_BYTES_MAX);
    HttpSettings {
        chunk_bytes: usize::try_from(chunk_bytes).unwrap_or(usize::MAX),
        answer_bytes,
        working_bytes: memory_bytes / 8 * 3,
        metrics: [Arc::new(metrics) as Arc<dyn MetricSource>]
            .into_iter()
            .chain(scrub.map(Scrub::metrics))
            .collect(),
        tiers: tiers.map(Arc::clone),
        ..HttpSettings::default()
    }
}
