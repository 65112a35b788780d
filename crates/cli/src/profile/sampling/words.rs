//! Describes profiles in words.

use std::collections::BTreeMap;
use std::time::Duration;

use refrain_sampler::tables::{by_function, by_origin, by_stage};
use refrain_sampler::{FunctionNumber, Profile};

use super::super::columns::time_text;

/// Origins of functions that work for others.
const SERVANTS: [&str; 4] = ["libc", "std", "kernel", "unknown"];

/// The name of a stage; also for no stage.
pub(super) fn stage_name(stage: Option<&'static str>) -> &'static str {
    stage.unwrap_or("(no stage)")
}

/// A function without its module path and without type arguments: `Encoder::block` for
/// `refrain_codec::zstd::Encoder<T>::block`.
pub(super) fn short_function(name: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for character in name.chars() {
        match character {
            '<' if plain.is_empty() => {}
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    // In `Type as Trait::method`, the trait's path is between the two.
    let (kind, method) = match plain.split_once(" as ") {
        Some((kind, rest)) => (kind.to_owned(), rest.rsplit("::").next().map(str::to_owned)),
        None => (plain, None),
    };
    let parts: Vec<&str> = kind.split("::").filter(|part| !part.is_empty()).collect();
    let from = parts
        .len()
        .saturating_sub(if method.is_some() { 1 } else { 2 });
    let mut short = parts[from..].join("::");
    if let Some(method) = method {
        short.push_str("::");
        short.push_str(&method);
    }
    short
}

/// Where most of the time went, in sentences. Empty without samples.
pub(super) fn findings(profile: &Profile) -> Vec<String> {
    let total = profile.total();
    let share = |samples: u64| format!("{:.0} %", samples as f64 * 100.0 / total.cpu as f64);
    let (stages, origins) = (by_stage(profile), by_origin(profile));
    let functions = by_function(profile);
    let (Some((stage, in_stage)), Some(origin), Some(function)) =
        (stages.first(), origins.first(), functions.first())
    else {
        return vec![];
    };
    if total.cpu == 0 {
        return vec![];
    }
    let name = |number: FunctionNumber| {
        let function = profile.functions.get(number as usize);
        function.map_or_else(String::new, |function| {
            format!("{} ({})", short_function(&function.name), function.origin)
        })
    };
    let stage = match stage {
        Some(stage) => format!("stage {stage} takes {}", share(in_stage.cpu)),
        None => format!("{} is in no stage", share(in_stage.cpu)),
    };
    let mut found = vec![format!(
        "Of the CPU time, {stage}. The code of {} takes {}, the function {} {}.",
        origin.key,
        share(origin.own.cpu),
        name(function.key),
        share(function.own.cpu),
    )];
    let mut faulting: BTreeMap<FunctionNumber, u64> = BTreeMap::new();
    for row in &profile.rows {
        // Who requested the memory says more than who copied into it.
        if let Some(function) = profile.functions_of(row.path).find(|&function| {
            let function = profile.functions.get(function as usize);
            function.is_some_and(|function| !SERVANTS.contains(&function.origin.as_str()))
        }) {
            *faulting.entry(function).or_default() += row.count.faults;
        }
    }
    let most = faulting.into_iter().max_by_key(|(_, faults)| *faults);
    if let Some((function, faults)) = most.filter(|(_, faults)| *faults > 0) {
        found.push(format!(
            "Of the page faults, {:.0} % are in {} or what it calls of the system.",
            faults as f64 * 100.0 / total.faults as f64,
            name(function),
        ));
    }
    found
}

/// How much was sampled and how completely, in two lines.
pub(super) fn about_samples(profile: &Profile) -> [String; 2] {
    let total = profile.total();
    let time = |ns| time_text(Duration::from_nanos(ns));
    let kernel = if profile.with_kernel {
        ""
    } else {
        "; time in the kernel is not included: it is not permitted"
    };
    let lost = match profile.lost {
        0 => "none lost".to_owned(),
        lost => format!("{lost} lost"),
    };
    [
        format!(
            "{} samples of {} CPU time in {}; {lost}{kernel}",
            total.cpu,
            time(profile.cpu_ns),
            time(profile.elapsed_ns),
        ),
        format!(
            "{} page faults; {} of {} stacks cut off",
            profile.faults,
            profile.cut,
            total.cpu + total.faults,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_have_type_and_function() {
        for (name, expected) in [
            ("refrain_codec::zstd::Encoder<T>::block", "Encoder::block"),
            (
                "<refrain_codec::Block as core::fmt::Debug>::fmt",
                "Block::fmt",
            ),
            ("ZSTD_compressBlock_fast", "ZSTD_compressBlock_fast"),
            ("a::b::c::{{closure}}", "c::{{closure}}"),
            ("core::ptr::drop_in_place<a::b::C<D>>", "ptr::drop_in_place"),
            ("[kernel]", "[kernel]"),
        ] {
            assert_eq!(short_function(name), expected, "{name}");
        }
    }
}
