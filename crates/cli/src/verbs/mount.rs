//! `refrain mount`: shows an archive as a directory, until it is unmounted.

use std::sync::Arc;

use refrain_cache::Tiers;
use refrain_server::fuse::Mount;
use refrain_server::http::{HttpHandler, HttpSettings};
use refrain_server::scrub::Scrub;
use refrain_server::{Archives, Clients, Listener, Service, StopSignal};
use serde_json::json;

use super::damaged::Damaged;
use super::entries::tell_unread;
use super::input::open_for_service;
use super::serve::{http_settings, shown_name, start_scrub};
use crate::args::MountArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::messages;
use crate::names;
use crate::plan::{MountPlan, tree_options};
use crate::report::{DataTo, Outcome, Report};
use crate::service;
use crate::session::Session;
use crate::text::{counted, printable};

/// The maximum number of HTTP clients at once.
const CLIENTS_MAX: usize = 16;

/// Runs the verb.
pub fn run(args: &MountArgs, session: &Session) -> Exit {
    let mut report = Report::new("mount", &args.report, session, DataTo::Elsewhere);
    if args.daemon
        && let Some(exit) = service::go_behind(&mut report)
    {
        return exit;
    }
    let result = MountPlan::new(args).and_then(|plan| mount(args, plan, &report));
    let is_unmounted = result.is_ok();
    report.add(result);
    if is_unmounted { report.finish_service() } else { report.finish() }
}

fn mount(args: &MountArgs, plan: MountPlan, report: &Report) -> Result<Outcome> {
    let label = plan.archive.label.clone();
    let meter = report.meter(&label);
    let archive = open_for_service(&plan.archive, &args.opening, &plan.options, &meter, report)?;
    if args.generations && archive.is_scanned() {
        let text = "the archive is damaged, so its generations are not known: leave out \
                    --generations to see what is left";
        return Err(Failure::usage(&label, text));
    }
    archive.use_memory_for_serving();
    meter.erase();
    let options = plan.mount;
    let (program, shown) = (report.session().program, printable(&label));
    let reporter = move |text: &str| {
        messages::tell(program, &format!("{shown}: {}", printable(text)));
    };
    let service = Service::new(archive, Arc::new(reporter));
    let failed = |error| failure(&label, error);
    let memory_bytes = plan.options.memory_bytes;
    let archive = Arc::clone(service.archive());
    let scrub = start_scrub(args.scrub, &Archives::from(service.clone()))?;
    let tiers = plan.archive.tiers.as_ref();
    let _listening = listen(args, &service, memory_bytes, scrub.as_ref(), tiers)?;
    let mount = Mount::new(service, &plan.directory, &options).map_err(failed)?;
    if mount.hidden_members() > 0 {
        let members = counted(mount.hidden_members(), "member");
        report.remark(&format!(
            "{members} cannot be shown: a name is unsafe, or another member has it"
        ));
    }
    let directory = plan.directory.display().to_string();
    tell_unread(Arc::clone(&archive), &label, move |text: &str| {
        messages::tell(program, text)
    });
    let (shown, on) = (printable(&label), printable(&directory));
    service::announce(&format!("mounted {shown} on {on}"))?;
    let unmounter = mount.unmounter();
    report.session().at_signal(move || {
        if let Err(error) = unmounter.unmount() {
            messages::tell(program, &error.to_string());
        }
    });
    mount.serve().map_err(failed)?;
    let json = json!({ "file": label, "directory": directory });
    let mut outcome = Outcome::new(&label, String::new(), json);
    Damaged::in_archive(&archive).report(&mut outcome);
    Ok(outcome)
}

/// Also serves the archive over HTTP, until the result is dropped.
fn listen(
    args: &MountArgs,
    service: &Service,
    memory_bytes: u64,
    scrub: Option<&Scrub>,
    tiers: Option<&Arc<Tiers>>,
) -> Result<Option<StopSignal>> {
    let Some(address) = &args.http else {
        return Ok(None);
    };
    let clients = Clients::new(CLIENTS_MAX);
    let listener = Listener::bind(address)?;
    let settings = http_settings(CLIENTS_MAX, memory_bytes, &clients, scrub, tiers);
    let settings = HttpSettings {
        archive_name: shown_name(&args.archive),
        tree: tree_options(memory_bytes, names::of_member(&args.archive, b"")),
        host_names: args.allow_host.clone(),
        ..settings
    };
    let handler = HttpHandler::new(service.clone(), settings)?.at(&listener);
    let signal = listener.start(Arc::new(handler), clients, service.reporter())?;
    Ok(Some(signal))
}

fn failure(label: &str, error: refrain_server::Error) -> Failure {
    match error {
        refrain_server::Error::Archive(error) => Failure::engine(label, error),
        refrain_server::Error::System(file, error) => Failure::Io {
            file,
            action: "mount",
            error,
        },
        other => Failure::usage("", other.to_string()),
    }
}
