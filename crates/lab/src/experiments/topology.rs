//! The machine as the runtime sees it. Nothing is measured.

use refrain_policy::topology::{CAPACITY_MAX, Machine, Sharing};
use refrain_pool::pool::Options;

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::outcome::{Cell, Findings, Measured, Outcome, Section, Unit};

pub(super) struct Topology;

impl Experiment for Topology {
    fn name(&self) -> &'static str {
        "topology"
    }

    fn measures(&self) -> &'static str {
        "which processors the workers of the pool use, and which of them share a queue"
    }

    fn explains(&self) -> &'static str {
        "The pool of the process has a worker for each processor that the process may use. Those \
         behind one last-level cache share a queue, and each stays behind its cache, because moving \
         work to another cache is what costs most. Processors that are off-line or not allowed are \
         left out; below a quota of processor time there are fewer workers, which the kernel places."
    }

    fn seconds(&self, _is_quick: bool) -> f64 {
        0.1
    }

    fn run(&self, _context: &Context) -> Result<Outcome> {
        Ok(described(&Machine::discover()))
    }
}

fn described(machine: &Machine) -> Outcome {
    let columns = [
        ("worker", Unit::Count),
        ("processor", Unit::Text),
        ("core", Unit::Text),
        ("cache", Unit::Text),
        ("node", Unit::Text),
        ("speed", Unit::Times),
        ("queue", Unit::Count),
    ];
    let mut section = Section::new("Workers of the pool", &columns);
    let topology = Options::on_machine(machine).topology;
    let is_placed = topology == machine.topology;
    let queues = topology.stripes(Sharing::Cache);
    for (worker, (cpu, queue)) in topology.cpus().iter().zip(&queues).enumerate() {
        let placed = |number: u32| -> Cell {
            if is_placed { number.to_string().into() } else { "any".into() }
        };
        section.push([
            worker.into(),
            placed(cpu.os_number),
            placed(cpu.core.into()),
            placed(cpu.cache.into()),
            placed(cpu.node.into()),
            (f64::from(cpu.capacity) / f64::from(CAPACITY_MAX)).into(),
            queue.index().into(),
        ]);
    }
    Outcome {
        sections: vec![section],
        findings: findings(machine),
        measured: Measured::default(),
    }
}

fn findings(machine: &Machine) -> Findings {
    let topology = &machine.topology;
    let count = |sharing| {
        let groups = topology.stripes(sharing);
        groups
            .iter()
            .map(|group| group.index() + 1)
            .max()
            .unwrap_or(1)
    };
    let mut findings = vec![format!(
        "{} on {}, {} and {}.",
        counted(topology.len(), "processor"),
        counted(count(Sharing::Core), "core"),
        counted(count(Sharing::Cache), "last-level cache"),
        counted(count(Sharing::Node), "memory node"),
    )];
    if let Some(permille) = machine.quota_permille {
        findings.push(format!(
            "The control groups allow the time of {}.{:03} processors: {}.",
            permille / 1000,
            permille % 1000,
            counted(machine.workers(), "worker"),
        ));
    }
    findings
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use refrain_policy::topology::Topology;

    use super::*;

    #[test]
    fn a_machine_of_two_caches_has_two_queues_and_a_quota_has_fewer_workers() {
        let topology = Topology::from_spec("2n2c4t").unwrap();
        let mut machine = Machine {
            topology,
            quota_permille: None,
        };
        let whole = described(&machine);
        let queues = |outcome: &Outcome| -> Vec<f64> {
            let rows = outcome.sections[0].rows.iter();
            rows.filter_map(|row| row[6].number()).collect()
        };
        assert_eq!(queues(&whole).len(), machine.topology.len());
        machine.quota_permille = Some(1500);
        let limited = described(&machine);
        assert_eq!(queues(&limited), [0.0, 0.0]);
        assert_eq!(limited.sections[0].rows[1][1], "any".into());
        assert!(limited.findings[1].contains("1.500 processors: 2 workers"));
    }
}
