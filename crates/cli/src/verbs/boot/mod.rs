//! `refrain boot`: a virtual machine from a disk image in an archive.

mod overlay;
mod print;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain::{Archive, ReadControl};
use refrain_pool::{Lock, SignalDelivery, start_detached};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::trace::{Recorder, Trace, replay};
use refrain_server::{
    Address, BlockSource, Clients, FileOfArchive, Listener, Service, SourceWaits,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::json;

use self::overlay::Scratch;
use super::input::open_for_service;
use super::serve::reporter;
use crate::args::BootArgs;
use crate::child::ends_with_this_thread;
use crate::disk_image::{IMAGE_HEAD_BYTES, ImageFormat};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files;
use crate::plan::{BootPlan, Guest};
use crate::report::{DataTo, Outcome, Report};
use crate::session::Session;

/// The clients of the socket: QEMU, and the program that creates the overlay.
const CLIENTS_MAX: usize = 8;

/// The suffix that turns an image's name into its trace's.
const TRACE_SUFFIX: &[u8] = b".trace";

const TRACE_BYTES_MAX: u64 = 64 << 20;

/// Runs the verb.
pub fn run(args: &BootArgs, session: &Session) -> Exit {
    let mut report = Report::new("boot", &args.report, session, DataTo::Stdout);
    let result = BootPlan::new(args).and_then(|plan| boot(args, &plan, &report));
    report.add(result);
    report.finish()
}

fn boot(args: &BootArgs, plan: &BootPlan, report: &Report) -> Result<Outcome> {
    let label = &plan.archive.label;
    let meter = report.meter(label);
    let archive = open_for_service(&plan.archive, &args.opening, &plan.options, &meter, report)?;
    archive.use_memory_for_serving();
    meter.erase();
    let service = Service::new(archive, reporter(report.session()));
    let name = image_name(args, &service, label)?;
    let image = find_image(&service, &name, label)?;
    let directory = tempfile::Builder::new().prefix("refrain-boot-").tempdir();
    let directory = directory.map_err(|error| Failure::Io {
        file: "a temporary directory".to_owned(),
        action: "make",
        error,
    })?;
    let socket = args.socket.clone();
    let socket = socket.unwrap_or_else(|| directory.path().join("image.sock"));
    let format = checked_format(args, &image, label)?;
    let origin = origin_of(&image, format, label)?;
    if let Some(overlay) = &args.overlay {
        overlay::check(overlay, origin.as_deref(), report)?;
    }
    let is_discarded = args.overlay.is_none() && !args.print;
    let scratch = is_discarded.then(|| Scratch::new(args.resources.temporary.as_deref()));
    let scratch = scratch.transpose()?;
    let overlay = scratch.as_ref().map(Scratch::path).or(args.overlay.clone());
    let guest = Guest {
        qemu: &args.qemu,
        socket: &socket,
        overlay: overlay.unwrap_or_else(|| directory.path().join("overlay.qcow2")),
        format,
        arguments: &args.arguments,
    };
    if args.print {
        // The first of the printed lines creates it, perhaps before this process ends.
        let path = directory.path().to_owned();
        drop(directory);
        return print::print(args, &guest, &name, (&path, label));
    }
    let trace = find_trace(args, &service, &name)?;
    run_guest(
        args,
        plan,
        report,
        Machine {
            service,
            name,
            image,
            guest,
            origin,
            trace,
        },
    )
}

/// What is recorded in overlays of the image: its format and content, if the archive has a hash.
fn origin_of(image: &FileOfArchive, format: ImageFormat, label: &str) -> Result<Option<Vec<u8>>> {
    let tag = image.content_tag();
    let tag = tag.map_err(|error| Failure::engine(label, error))?;
    Ok(tag.map(|tag| format!("{} {tag}", format.name()).into_bytes()))
}

/// The image's format, if QEMU opens no other file for it.
fn checked_format(args: &BootArgs, image: &FileOfArchive, label: &str) -> Result<ImageFormat> {
    let read = |offset: u64, length: u64| {
        let rest_bytes = image.size_bytes().saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(length.min(rest_bytes)).unwrap_or(0)];
        (image.read(offset, &mut bytes, &ReadControl::default()))
            .map_err(|error| Failure::engine(label, error))?;
        Ok::<_, Failure>(bytes)
    };
    let head = read(0, IMAGE_HEAD_BYTES as u64)?;
    let format = args
        .image_format
        .unwrap_or_else(|| ImageFormat::from_head(&head));
    match format.foreign_file(&head, read)? {
        None => Ok(format),
        Some(what) => {
            let name = format.name();
            let text = format!(
                "the {name} image names {what}, which would be opened on this machine and shown to \
                 the guest; compress one image that has everything (qemu-img convert -O {name})"
            );
            Err(Failure::refused(label, text))
        }
    }
}

/// A guest and what it boots from.
struct Machine<'a> {
    service: Service,
    name: Vec<u8>,
    image: FileOfArchive,
    guest: Guest<'a>,
    origin: Option<Vec<u8>>,
    trace: Option<Trace>,
}

fn run_guest(
    args: &BootArgs,
    plan: &BootPlan,
    report: &Report,
    machine: Machine,
) -> Result<Outcome> {
    let Machine {
        service,
        name,
        image,
        guest,
        origin,
        trace,
    } = machine;
    let recorder = args.record.is_some().then(Recorder::new);
    let mut exports = Exports::new(service.clone())?;
    exports = exports
        .with_default(name)
        .with_readahead(plan.options.threads);
    if let Some(recorder) = recorder.clone() {
        exports = exports.wrapped(Box::new(move |source| recorder.wrap(source)));
    }
    let memory_bytes = plan.options.memory_bytes;
    let handler = Arc::new(NbdHandler::new(exports, memory_bytes, CLIENTS_MAX));
    let clients = Clients::new(CLIENTS_MAX);
    let listener = Listener::bind(&Address::Unix(guest.socket.to_path_buf()))?;
    let _signal = listener.start(handler, clients.clone(), service.reporter())?;
    let has_ended = Arc::new(AtomicBool::new(false));
    if let Some(trace) = trace {
        let waits = Arc::clone(&plan.archive.waits);
        start_replay(
            trace,
            (image, waits),
            memory_bytes / 2,
            &has_ended,
            &service,
        );
    }
    // If this program is killed, the guest has no disk left. QEMU completes an overlay that is kept
    // when it is told to end.
    let is_kept = args.overlay.is_some();
    let death = if is_kept { Signal::TERM } else { Signal::KILL };
    if !is_kept || !guest.overlay.exists() {
        let status = spawn(&guest.make_overlay(), death)?.wait();
        check(&guest.make_overlay(), status)?;
        if let Some(origin) = &origin {
            overlay::record(&guest.overlay, origin)?;
        }
    }
    let command = guest.run();
    let ended = wait(spawn(&command, death)?, report.session());
    has_ended.store(true, Ordering::Relaxed);
    clients.stop();
    // What the guest has read is useful even if it ended badly.
    let recorded = recorder.map(|recorder| recorder.trace());
    if let (Some(path), Some(trace)) = (&args.record, &recorded) {
        files::write_file(path, true, trace.to_text().as_bytes())?;
    }
    check(&command, ended)?;
    Ok(Outcome::complete(
        String::new(),
        json!({
            "file": plan.archive.label,
            "recorded_bytes": recorded.as_ref().map(Trace::bytes),
        }),
    ))
}

/// The name of the image, as given, or of the only file.
fn image_name(args: &BootArgs, service: &Service, label: &str) -> Result<Vec<u8>> {
    if let Some(name) = &args.name {
        return Ok(name.as_bytes().to_vec());
    }
    let mut names = vec![];
    let archive: &Archive = service.archive();
    for member in 0..archive.member_count() {
        let file = FileOfArchive::from_member(service, member);
        if file
            .map_err(|error| Failure::engine(label, error))?
            .is_some()
        {
            let found = archive.member(member);
            names.push(found.map_err(|error| Failure::engine(label, error))?.name);
        }
    }
    names.retain(|name| !name.ends_with(TRACE_SUFFIX));
    match names.len() {
        1 => Ok(names.swap_remove(0)),
        count => {
            let text = format!("holds {count} files: name the image (see `refrain list`)");
            Err(Failure::usage(label, text))
        }
    }
}

fn find_image(service: &Service, name: &[u8], label: &str) -> Result<FileOfArchive> {
    let found = FileOfArchive::find(service, name);
    let found = found.map_err(|error| Failure::engine(label, error))?;
    found.ok_or_else(|| {
        let text = format!("holds no file {:?}", String::from_utf8_lossy(name));
        Failure::usage(label, text)
    })
}

/// The given trace, or the one in the archive.
fn find_trace(args: &BootArgs, service: &Service, name: &[u8]) -> Result<Option<Trace>> {
    if args.no_replay {
        return Ok(None);
    }
    let (file, text) = match &args.replay {
        Some(path) => {
            let text = fs::read(path).map_err(|error| Failure::Io {
                file: path.display().to_string(),
                action: "read",
                error,
            })?;
            (path.display().to_string(), text)
        }
        None => {
            let name = [name, TRACE_SUFFIX].concat();
            let found = FileOfArchive::find(service, &name).map_err(Failure::Engine)?;
            let Some(found) = found.filter(|found| found.size_bytes() <= TRACE_BYTES_MAX) else {
                return Ok(None);
            };
            let mut text = vec![0; found.size_bytes() as usize];
            (found.read(0, &mut text, &ReadControl::default())).map_err(Failure::Engine)?;
            (String::from_utf8_lossy(&name).into_owned(), text)
        }
    };
    let trace = Trace::parse(&String::from_utf8_lossy(&text));
    let trace = trace.map_err(|error| Failure::refused(file, error.to_string()))?;
    Ok(Some(trace))
}

/// Prefetches alongside the guest.
fn start_replay(
    trace: Trace,
    (image, waits): (FileOfArchive, Arc<SourceWaits>),
    bytes_max: u64,
    has_ended: &Arc<AtomicBool>,
    service: &Service,
) {
    let control = ReadControl {
        cancelled: Some(Arc::clone(has_ended)),
        ..ReadControl::default()
    };
    let service = service.clone();
    let run = move || {
        if let Err(error) = replay(&trace, &image, &waits, bytes_max, &control)
            && !control.is_cancelled()
        {
            service.report(&format!("reading ahead by the trace has ended: {error}"));
        }
    };
    // Without a thread nothing is read ahead.
    let _ = start_detached("replay", SignalDelivery::OwnFaults, run);
}

/// Starts a command, which gets a signal when this program is killed.
fn spawn(words: &[OsString], death: Signal) -> Result<Child> {
    let mut words = words.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words);
    ends_with_this_thread(&mut command, death);
    command.spawn().map_err(|error| Failure::Io {
        file: PathBuf::from(program).display().to_string(),
        action: "start",
        error,
    })
}

/// Waits for the guest. A signal that ends this program ends the guest.
fn wait(mut guest: Child, session: &Session) -> io::Result<ExitStatus> {
    let process = Pid::from_child(&guest);
    let has_ended = Arc::new(Lock::new(false));
    let ends = Arc::clone(&has_ended);
    session.at_signal(move || {
        let has_ended = ends.lock();
        if !*has_ended {
            // It may be ending already.
            let _ = kill_process(process, Signal::TERM);
        }
    });
    // Its number remains in use until it is collected, so nothing else is killed.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(process), options) {}
    *has_ended.lock() = true;
    guest.wait()
}

/// Whether a command succeeded.
fn check(command: &[OsString], status: io::Result<ExitStatus>) -> Result<()> {
    let program = command.first().cloned().unwrap_or_default();
    let program = PathBuf::from(program).display().to_string();
    let error = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => io::Error::other(format!("it ended with code {code}")),
            (_, signal) => io::Error::other(format!("signal {} ended it", signal.unwrap_or(0))),
        },
        Err(error) => error,
    };
    Err(Failure::Io {
        file: program,
        action: "run",
        error,
    })
}
