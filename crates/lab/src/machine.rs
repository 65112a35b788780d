//! Identifies the machine, for a profile and for reading the results.

use std::fs;

use refrain_page::binary_text;

/// A cache as reported by the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedCache {
    /// 1, 2, 3.
    pub level: u32,
    /// The size in bytes.
    pub bytes: u64,
}

/// A description of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processors that this process may use.
    pub processors: usize,
    /// The model of the processor, as the system names it.
    pub model: String,
    /// The caches for data of the first processor, by level.
    pub caches: Vec<StatedCache>,
    /// The setting of transparent huge pages.
    pub huge_pages: String,
}

impl Machine {
    /// Describes this machine, of which the process may use `processors`.
    pub fn this(processors: usize) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            processors,
            model: model_of(&read("/proc/cpuinfo")),
            caches: (0..8).filter_map(stated_cache).collect(),
            huge_pages: chosen_of(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }

    /// A description in one line.
    pub fn text(&self) -> String {
        let caches: Vec<String> = self
            .caches
            .iter()
            .map(|cache| format!("L{} {}", cache.level, binary_text(cache.bytes)))
            .collect();
        let caches = if caches.is_empty() {
            "caches not stated".to_owned()
        } else {
            caches.join(", ")
        };
        let processors = match self.processors {
            1 => "1 processor".to_owned(),
            count => format!("{count} processors"),
        };
        format!(
            "{}, {processors}, {caches}, transparent huge pages: {}",
            self.model, self.huge_pages
        )
    }
}

/// The model in `/proc/cpuinfo`.
fn model_of(cpuinfo: &str) -> String {
    let named = |key: &str| {
        let mut lines = cpuinfo.lines();
        lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    // Arm reports numbers instead of a name.
    named("model name")
        .or_else(|| named("CPU part").map(|part| format!("CPU part {part}")))
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The word in brackets, as in `always [madvise] never`.
fn chosen_of(setting: &str) -> String {
    let chosen = setting
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or("not available", |(word, _)| word).to_owned()
}

fn stated_cache(index: u32) -> Option<StatedCache> {
    let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
    let read = |name: &str| fs::read_to_string(format!("{directory}/{name}")).ok();
    cache_of(&read("type")?, &read("level")?, &read("size")?)
}

fn cache_of(kind: &str, level: &str, size: &str) -> Option<StatedCache> {
    if kind.trim() == "Instruction" {
        return None;
    }
    let size = size.trim();
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    Some(StatedCache {
        level: level.trim().parse().ok()?,
        bytes: digits.parse::<u64>().ok()?.checked_mul(unit)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_understood() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A Chip 7\nflags\t: fpu\n";
        assert_eq!(model_of(cpuinfo), "A Chip 7");
        assert_eq!(model_of("CPU part\t: 0xd0c\n"), "CPU part 0xd0c");
        assert_eq!(model_of(""), std::env::consts::ARCH);
        assert_eq!(chosen_of("always [madvise] never\n"), "madvise");
        assert_eq!(chosen_of(""), "not available");
        let cache = cache_of("Data\n", "1\n", "32K\n").unwrap();
        assert_eq!((cache.level, cache.bytes), (1, 32 << 10));
        for (kind, level, size) in [
            ("Instruction", "1", "32K"),
            ("Data", "x", "32K"),
            ("Unified", "2", "K"),
            ("Unified", "2", "9Q"),
            ("Unified", "2", "99999999999999999999K"),
        ] {
            assert_eq!(cache_of(kind, level, size), None, "{kind} {level} {size}");
        }
    }

    #[test]
    fn this_machine_has_a_name() {
        let machine = Machine::this(3);
        assert!(!machine.model.is_empty());
        assert!(machine.text().contains("3 processors"));
    }
}
