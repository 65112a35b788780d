//! No thread inherits its state: a job of the idle class starts threads of every kind, and the test
//! reads their states in `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};

use super::*;
use crate::pool::state::current::current_worker;
use crate::thread::class::KernelClass;
use crate::thread::kernel;
use crate::{Lane, SignalDelivery, crew, start_detached};

#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadState {
    policy: u32,
    nice: i32,
    processors: String,
    blocked: u64,
}

const OTHER: u32 = 0;
const IDLE: u32 = 5;

/// SIGINT and SIGTERM, in the mask of blocked signals.
const SENT_TO_PROCESSES: u64 = 1 << (2 - 1) | 1 << (15 - 1);
/// SIGSEGV and SIGBUS.
const FAULTS: u64 = 1 << (11 - 1) | 1 << (7 - 1);

fn state_of(task: &str) -> ThreadState {
    let task = format!("/proc/self/task/{task}");
    let stat = fs::read_to_string(format!("{task}/stat")).unwrap();
    // The name, in parentheses, may contain spaces. The fields after it are numbered from 3.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let status = fs::read_to_string(format!("{task}/status")).unwrap();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    ThreadState {
        policy: fields[41 - 3].parse().unwrap(),
        nice: fields[19 - 3].parse().unwrap(),
        processors: line("Cpus_allowed:"),
        blocked: u64::from_str_radix(&line("SigBlk:"), 16).unwrap(),
    }
}

fn this_state() -> ThreadState {
    state_of(&kernel::this_thread().to_string())
}

type States = Arc<Mutex<BTreeMap<String, ThreadState>>>;

/// A function that records the state of the calling thread under the name of the thread.
fn recorder(states: &States) -> impl Fn() + Clone + Send + Sync + 'static {
    let states = Arc::clone(states);
    move || {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        states.lock().unwrap().insert(name, this_state());
    }
}

/// Gives the calling thread a state that differs from the process's as much as possible.
fn change_state() {
    let this = kernel::this_thread();
    let is_privileged = kernel::set_class(this, KernelClass::Normal);
    assert!(kernel::set_class(this, KernelClass::Idle));
    let this = this.to_string();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        let _ = command
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .status();
    };
    run("taskset", &["-pc", "0", &this]);
    if is_privileged {
        // Otherwise the threads that it starts could not return to the process's nice value.
        run("renice", &["-n", "19", "-p", &this]);
    }
}

fn start_everything(pool: &Pool, record: &(impl Fn() + Clone + Send + Sync + 'static)) {
    let (sender, receiver) = channel();
    // Both normal workers at once, so that the second one starts.
    let barrier = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (record, barrier, sender) = (record.clone(), Arc::clone(&barrier), sender.clone());
        urgent(pool).submit(move || {
            assert!(current_worker().is_some());
            barrier.wait();
            record();
            sender.send(()).unwrap();
        });
    }
    (0..2).for_each(|_| receiver.recv().unwrap());

    for (name, signals) in [
        ("detached", SignalDelivery::OwnFaults),
        ("handler", SignalDelivery::All),
    ] {
        let (record, sender) = (record.clone(), sender.clone());
        assert!(start_detached(name, signals, move || {
            record();
            sender.send(()).unwrap();
        }));
        receiver.recv().unwrap();
    }

    crew(1, |crew| {
        crew.submit(Lane::Input, record.clone());
        crew.next().unwrap().unwrap();
    });
}

#[test]
fn threads_started_by_an_idle_job_have_the_state_of_the_process() {
    let process = state_of(&std::process::id().to_string());
    let states = States::default();
    let record = recorder(&states);
    let pool = Arc::new(pool(2));
    let idle = pool.flow(Entity::new(Class::Idle));
    let (inner, in_job) = (Arc::clone(&pool), record.clone());
    let job = idle.spawn(move || {
        in_job();
        change_state();
        start_everything(&inner, &in_job);
    });
    job.wait().unwrap();

    let states = states.lock().unwrap();
    // Either of the two idle workers may have run the job.
    let names: Vec<String> = states
        .keys()
        .map(|name| name.replace("idle-1", "idle-0"))
        .collect();
    let expected = [
        "detached", "handler", "idle-0", "input", "worker-0", "worker-1",
    ];
    assert_eq!(names, expected);
    for (name, state) in states.iter() {
        // A crew runs in the class of the thread that begins it; so does the idle worker itself.
        let is_idle = ["idle-0", "idle-1", "input"].contains(&name.as_str());
        assert_eq!(state.policy, if is_idle { IDLE } else { OTHER }, "{name}");
        assert_eq!(state.nice, process.nice, "{name}");
        assert_eq!(state.processors, process.processors, "{name}");
        let expected = if name == "handler" { 0 } else { SENT_TO_PROCESSES };
        assert_eq!(state.blocked & SENT_TO_PROCESSES, expected, "{name}");
        assert_eq!(state.blocked & FAULTS, 0, "{name}");
    }
}
