//! Applies the lines of a specification to an experiment.

use refrain_policy::topology::{CpuId, CpuMask, Locality, Sharing, Topology, parse_list};
use refrain_policy::{
    Base, Bfs, Class, Entity, Interactive, Latency, Nice, PreferredStripe, Scheme, TENANTS_MAX,
    TenantId, Tenants, Ule,
};

use super::experiment::{Contender, Experiment};
use super::values::{distribution, format_ns, time_ns};
use crate::costs::{Costs, Governor};
use crate::random::Distribution;
use crate::workload::{Arrivals, FLOWS_MAX, Group};

type Outcome = Result<(), String>;

/// Applies a line: its first word and the others.
pub(super) fn apply<'a>(
    experiment: &mut Experiment,
    kind: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Outcome {
    let simulation = &mut experiment.simulation;
    let mut first = |what: &str| {
        words
            .next()
            .ok_or_else(|| format!("{kind}: {what} is missing"))
    };
    match kind {
        "machine" => {
            simulation.topology =
                Topology::from_spec(first("the topology")?).map_err(|error| error.to_string())?;
        }
        "seed" => simulation.seed = value("seed", first("the number")?, |text| text.parse().ok())?,
        "run" => {
            let is_long = |text: &str| time_ns(text).filter(|&span| span > 0);
            simulation.span_ns = value("run", first("the time")?, is_long)?;
        }
        "policy" => experiment.policy = policy(first("the name")?, &mut words)?,
        "costs" => {
            for word in words.by_ref() {
                cost(&mut simulation.costs, word)?;
            }
        }
        "flows" => {
            let name = first("the name")?;
            let is_count = |text: &str| {
                text.parse()
                    .ok()
                    .filter(|count| (1..=FLOWS_MAX).contains(count))
            };
            let count = value("count", first("the count")?, is_count)?;
            let mut group = Group::cpu_bound(name, Entity::new(Class::Normal)).times(count);
            for word in words.by_ref() {
                flow(&mut group, word)?;
            }
            simulation.groups.push(group);
        }
        _ => {
            return Err(format!(
                "unknown line '{kind}'; expected machine, policy, costs, seed, run or flows"
            ));
        }
    }
    words
        .next()
        .map_or(Ok(()), |rest| Err(format!("unexpected '{rest}'")))
}

/// Parses `text` with `parse`; the error names the setting.
fn value<T>(name: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, String> {
    parse(text).ok_or_else(|| format!("{name}: invalid value '{text}'"))
}

fn policy<'a>(name: &str, words: &mut impl Iterator<Item = &'a str>) -> Result<Contender, String> {
    match name {
        "ule" => {
            let mut ule = Ule::default();
            for word in words {
                let (key, text) = word.split_once('=').unwrap_or((word, ""));
                match key {
                    "slice" => ule.slice_ns = value(key, text, time_ns)?,
                    "balance" => ule.balance_ns = value(key, text, time_ns)?,
                    "tick" => ule.tick_ns = value(key, text, time_ns)?,
                    _ => return Err(format!("policy ule has no setting '{key}'")),
                }
            }
            Ok(Contender::Pool(Scheme::Ule(ule)))
        }
        "bfs" => {
            let mut bfs = Bfs::default();
            for word in words {
                bfs_setting(&mut bfs, word)?;
            }
            Ok(Contender::Pool(Scheme::Bfs(bfs)))
        }
        "eevdf" => {
            let mut slice_ns = Contender::EEVDF_SLICE_NS;
            for word in words {
                slice_ns = match word.split_once('=') {
                    Some((key @ "slice", text)) => value(key, text, time_ns)?,
                    _ => return Err(format!("policy eevdf has no setting '{word}'")),
                };
            }
            Ok(Contender::Eevdf { slice_ns })
        }
        _ => Err(format!(
            "unknown policy '{name}'; expected bfs, ule or eevdf"
        )),
    }
}

fn bfs_setting(bfs: &mut Bfs, word: &str) -> Outcome {
    let (key, text) = word.split_once('=').unwrap_or((word, ""));
    match key {
        "published" => *bfs = Bfs::published(),
        "interval" => {
            bfs.interval_ns = value(key, text, |text| time_ns(text).filter(|&time| time > 0))?
        }
        "base" => {
            bfs.base = value(key, text, |text| match text {
                "now" => Some(Base::Now),
                "carry" => Some(Bfs::default().base),
                _ => None,
            })?;
        }
        "lag" => {
            let lag_max_ns = value(key, text, time_ns)?;
            bfs.base = Base::Carry { lag_max_ns };
        }
        "interactive" => {
            let number = |text: &str| text.parse().ok().filter(|number| *number <= 2);
            bfs.interactive = Interactive::from_number(value(key, text, number)?);
        }
        "prefer" => {
            bfs.preferred_stripe = value(key, text, |text| match text {
                "own" => Some(PreferredStripe::Own),
                "earliest" => Some(PreferredStripe::Earliest),
                _ => None,
            })?;
        }
        "sharing" => bfs.sharing = value(key, text, sharing)?,
        "tenants" => {
            bfs.tenants = value(key, text, |text| match text {
                "on" => Some(Tenants::Exact),
                "off" => Some(Tenants::Ignored),
                _ => None,
            })?;
        }
        "group_by_uid" => {
            let flows_min = value(key, text, |text| text.parse().ok())?;
            bfs.tenants = Tenants::ByOffset { flows_min };
        }
        "iso" => bfs.iso_limit_permille = value(key, text, permille)?,
        _ => return Err(format!("policy bfs has no setting '{key}'")),
    }
    Ok(())
}

fn sharing(text: &str) -> Option<Sharing> {
    match text {
        "cpu" => Some(Sharing::Cpu),
        "core" => Some(Sharing::Core),
        "cache" => Some(Sharing::Cache),
        "node" => Some(Sharing::Node),
        "all" => Some(Sharing::All),
        _ => None,
    }
}

fn permille(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|permille| (1..=1000).contains(permille))
}

fn cost(costs: &mut Costs, word: &str) -> Outcome {
    let (key, text) = word.split_once('=').unwrap_or((word, ""));
    match key {
        "none" => *costs = Costs::none(),
        "switch" => costs.switch = value(key, text, distribution)?,
        "spinning" => costs.wake_spinning = value(key, text, distribution)?,
        "napping" => costs.wake_napping = value(key, text, distribution)?,
        "nap" => costs.nap_ns = value(key, text, time_ns)?,
        "dozing" => costs.wake_dozing = value(key, text, distribution)?,
        "doze" => costs.doze_ns = value(key, text, time_ns)?,
        "park" => costs.wake_parked = value(key, text, distribution)?,
        "spin" => costs.spin_ns = value(key, text, time_ns)?,
        "queue" => costs.queue_ns = value(key, text, time_ns)?,
        "smt" => costs.sibling_permille = value(key, text, permille)?,
        "move" => {
            let (level, time_ns) = value(key, text, by_level)?;
            costs.move_ns[level] = time_ns;
        }
        "reload" => {
            let (level, time_ns) = value(key, text, by_level)?;
            costs.reload_ns_per_kib[level] = time_ns;
        }
        "governor" => costs.governor = Some(value(key, text, governor)?),
        _ => return Err(format!("costs have no setting '{key}'")),
    }
    Ok(())
}

/// Parses `3:2us`: a level of [`Locality`] and a time.
fn by_level(text: &str) -> Option<(usize, u64)> {
    let (level, time) = text.split_once(':')?;
    let level = level
        .parse()
        .ok()
        .filter(|&level: &usize| level < Locality::COUNT)?;
    Some((level, time_ns(time)?))
}

/// Parses `10ms/800/500`.
fn governor(text: &str) -> Option<Governor> {
    let mut parts = text.splitn(3, '/');
    Some(Governor {
        sample_ns: time_ns(parts.next()?).filter(|&time| time > 0)?,
        up_threshold_permille: permille(parts.next()?)?,
        slowest_permille: permille(parts.next()?)?,
    })
}

fn cpus(text: &str) -> Option<CpuMask> {
    let numbers = Some(parse_list(text)).filter(|list| !list.is_empty())?;
    let cpu = |number| CpuId::new(number as usize);
    Some(numbers.into_iter().map(cpu).collect())
}

fn flow(group: &mut Group, word: &str) -> Outcome {
    let (key, text) = word.split_once('=').unwrap_or((word, ""));
    let entity = &mut group.entity;
    match key {
        "always" => group.arrivals = Arrivals::Always,
        "every" => group.arrivals = Arrivals::Every(value(key, text, distribution)?),
        "after" => group.arrivals = Arrivals::After(value(key, text, distribution)?),
        "ring" => group.arrivals = Arrivals::Ring(value(key, text, |text| text.parse().ok())?),
        "work" => {
            let is_work = |text: &str| distribution(text).filter(|work| work.typical_ns() > 0);
            group.work = value(key, text, is_work)?;
        }
        "checkpoint" if text == "none" => group.checkpoint_ns = u64::MAX,
        "checkpoint" => group.checkpoint_ns = value(key, text, time_ns)?,
        "whole" => group.is_whole = true,
        "cache" => group.working_set_kib = value(key, text, |text| text.parse().ok())?,
        "nice" => entity.nice = value(key, text, |text| text.parse().ok().map(Nice::new))?,
        "latnice" => {
            let number = |text: &str| text.parse().ok().filter(|number| *number <= 3);
            entity.latency = Latency::from_latnice(value(key, text, number)?);
        }
        "tenant" => {
            let is_tenant = |text: &str| text.parse().ok().filter(|&tenant| tenant < TENANTS_MAX);
            entity.tenant = TenantId::new(value(key, text, is_tenant)?);
        }
        "class" => {
            entity.class = value(key, text, |text| match text {
                "iso" => Some(Class::Iso),
                "normal" => Some(Class::Normal),
                "idle" => Some(Class::Idle),
                _ => None,
            })?;
        }
        "cpus" => {
            entity.allowed = value(key, text, cpus)?;
        }
        "confine" => {
            let at_and_cpus = |text: &str| {
                let (at, list) = text.split_once(':')?;
                Some((time_ns(at)?, cpus(list)?))
            };
            group.confinements.push(value(key, text, at_and_cpus)?);
        }
        _ => return Err(format!("flows have no setting '{key}'")),
    }
    Ok(())
}

pub(super) fn format_costs(costs: &Costs) -> String {
    let format = |distribution: &Distribution| match *distribution {
        Distribution::Fixed(time_ns) => format_ns(time_ns),
        Distribution::Uniform(first_ns, last_ns) => {
            format!("{}..{}", format_ns(first_ns), format_ns(last_ns))
        }
        Distribution::Exponential(mean_ns) => format!("exp:{}", format_ns(mean_ns)),
        Distribution::Skewed { median_ns, p99_ns } => {
            format!("{}~{}", format_ns(median_ns), format_ns(p99_ns))
        }
        Distribution::Measured(values_ns) => values_ns.map(format_ns).join("/"),
    };
    let mut line = format!(
        "costs none switch={} spinning={} napping={} dozing={} park={} spin={} nap={} doze={} queue={} smt={}",
        format(&costs.switch),
        format(&costs.wake_spinning),
        format(&costs.wake_napping),
        format(&costs.wake_dozing),
        format(&costs.wake_parked),
        format_ns(costs.spin_ns),
        format_ns(costs.nap_ns),
        format_ns(costs.doze_ns),
        format_ns(costs.queue_ns),
        costs.sibling_permille
    );
    for (name, by_level) in [
        ("move", &costs.move_ns),
        ("reload", &costs.reload_ns_per_kib),
    ] {
        for (level, &time_ns) in by_level
            .iter()
            .enumerate()
            .filter(|(_, time_ns)| **time_ns > 0)
        {
            line += &format!(" {name}={level}:{}", format_ns(time_ns));
        }
    }
    if let Some(governor) = &costs.governor {
        let sample = format_ns(governor.sample_ns);
        line += &format!(
            " governor={sample}/{}/{}",
            governor.up_threshold_permille, governor.slowest_permille
        );
    }
    line
}
