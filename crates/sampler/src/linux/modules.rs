//! The program and the libraries in memory: where their code is, how to unwind it, and what its
//! functions are called.
//!
//! They are read once, at the beginning. Code that is loaded later is unknown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use framehop::x86_64::UnwinderX86_64;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// The page in which the kernel provides functions such as the reading of clocks.
const KERNEL_PAGE: &str = "[vdso]";
const PAGE_BYTES: u64 = 4096;

/// A function of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Where it is in memory; never empty.
    range: Range<u64>,
    /// As the linker knows it.
    pub(super) name: String,
    /// The source file or compilation unit, if the linker knows it.
    pub(super) file: Option<Box<str>>,
}

/// A file of code in memory.
#[derive(Debug)]
pub(super) struct CodeModule {
    range: Range<u64>,
    /// The path, or the kernel's name.
    pub(super) name: String,
    pub(super) is_program: bool,
    /// By address.
    symbols: Vec<Symbol>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Modules {
    modules: Vec<CodeModule>,
}

/// Lines of `/proc/self/maps` that belong together.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    /// The first executable part: its address, and where it is in the file.
    code: (u64, u64),
}

impl Modules {
    /// Reads what is in memory now, and tells `unwinder`.
    ///
    /// # Errors
    /// The list of mappings, or the program itself, cannot be read. Libraries that cannot be read
    /// are left out.
    pub(super) fn read(unwinder: &mut UnwinderX86_64<Vec<u8>>) -> io::Result<Modules> {
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        let maps = fs::read_to_string("/proc/self/maps")?;
        let mut modules = vec![];
        for (name, mapping) in mappings(&maps) {
            let is_program = PathBuf::from(&name) == program;
            let content = match name.as_str() {
                KERNEL_PAGE => own_memory(&mapping.range),
                // The file may have been removed or replaced since.
                _ if is_program => fs::read("/proc/self/exe"),
                path => fs::read(path),
            };
            match content {
                Ok(content) => {
                    modules.extend(read_module(name, is_program, &mapping, &content, unwinder));
                }
                Err(error) if is_program => return Err(error),
                Err(_) => {}
            }
        }
        modules.sort_by_key(|module| module.range.start);
        Ok(Modules { modules })
    }

    /// The module and the symbol at an address.
    pub(super) fn at(&self, address: u64) -> Option<(&CodeModule, Option<&Symbol>)> {
        let after = self
            .modules
            .partition_point(|module| module.range.start <= address);
        let module = self.modules.get(after.checked_sub(1)?)?;
        if !module.range.contains(&address) {
            return None;
        }
        let after = module
            .symbols
            .partition_point(|symbol| symbol.range.start <= address);
        let symbol = after
            .checked_sub(1)
            .and_then(|index| module.symbols.get(index));
        Some((
            module,
            symbol.filter(|symbol| symbol.range.contains(&address)),
        ))
    }
}

/// The files of code by name: path, or `[vdso]`.
fn mappings(maps: &str) -> BTreeMap<String, Mapping> {
    let mut found: BTreeMap<String, (Range<u64>, Option<(u64, u64)>)> = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (range, access, offset) = (word(), word(), word());
        let _ = (word(), word());
        let name = word().trim_start();
        let name = name.strip_suffix(" (deleted)").unwrap_or(name);
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let Some((start, end)) = range.split_once('-') else {
            continue;
        };
        let (Some(start), Some(end), Some(offset)) =
            (hexadecimal(start), hexadecimal(end), hexadecimal(offset))
        else {
            continue;
        };
        if !name.starts_with('/') && name != KERNEL_PAGE {
            continue;
        }
        let (whole, code) = found.entry(name.to_owned()).or_insert((start..end, None));
        whole.end = whole.end.max(end);
        if access.contains('x') && code.is_none() {
            *code = Some((start, offset));
        }
    }
    let with_code = found.into_iter().filter_map(|(name, (range, code))| {
        let code = code?;
        Some((name, Mapping { range, code }))
    });
    with_code.collect()
}

fn own_memory(range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

/// `None` for what is not a library or program.
fn read_module(
    name: String,
    is_program: bool,
    mapping: &Mapping,
    content: &[u8],
    unwinder: &mut UnwinderX86_64<Vec<u8>>,
) -> Option<CodeModule> {
    let object = object::File::parse(content).ok()?;
    let (code_address, code_offset) = mapping.code;
    // Addresses in the file are relative to this.
    let base = object.segments().find_map(|segment| {
        let (offset, _) = segment.file_range();
        let page = |position: u64| position & !(PAGE_BYTES - 1);
        let starts_there = page(offset) == code_offset;
        starts_there.then(|| code_address.wrapping_sub(page(segment.address())))
    })?;
    let section = |name: &str| {
        let section = object.section_by_name(name)?;
        let range = section.address()..section.address() + section.size();
        Some((range, section.data().ok()?.to_vec()))
    };
    let range_of = |name: &str| {
        let section = object.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
    let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range_of(".text"),
        got_svma: range_of(".got"),
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        ..ExplicitModuleSectionInfo::default()
    };
    let range = mapping.range.clone();
    unwinder.add_module(Module::new(name.clone(), range.clone(), base, sections));
    Some(CodeModule {
        range,
        name,
        is_program,
        symbols: symbols(&object, base),
    })
}

/// The functions, by address: those of the full table, else those that others may link to.
fn symbols(object: &object::File<'_>, base: u64) -> Vec<Symbol> {
    let mut found = symbols_of(object.symbols(), base);
    if found.is_empty() {
        found = symbols_of(object.dynamic_symbols(), base);
    }
    found.sort_by(|a, b| {
        a.range
            .start
            .cmp(&b.range.start)
            .then_with(|| a.name.cmp(&b.name))
    });
    found.dedup_by_key(|symbol| symbol.range.start);
    found
}

fn symbols_of<'a>(table: impl Iterator<Item = object::Symbol<'a, 'a>>, base: u64) -> Vec<Symbol> {
    let mut found = vec![];
    let mut file: Option<&str> = None;
    for symbol in table {
        let Ok(name) = symbol.name() else {
            continue;
        };
        if symbol.kind() == SymbolKind::File {
            // The local symbols after it are of this file.
            file = Some(name);
        } else if symbol.kind() == SymbolKind::Text && symbol.size() > 0 && symbol.is_definition() {
            let start = base.wrapping_add(symbol.address());
            found.push(Symbol {
                range: start..start.saturating_add(symbol.size()),
                name: name.to_owned(),
                file: file.filter(|_| symbol.is_local()).map(Box::from),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_a_file_belong_together() {
        let maps = "\
            559000-55a000 r--p 00000000 08:01 17                         /usr/bin/a program\n\
            55a000-55c000 r-xp 00001000 08:01 17                         /usr/bin/a program\n\
            55c000-55d000 rw-p 00003000 08:01 17                         /usr/bin/a program\n\
            600000-700000 rw-p 00000000 00:00 0                          [heap]\n\
            700000-701000 rwxp 00000000 00:00 0 \n\
            800000-801000 r--p 00000000 08:01 18                         /data (deleted)\n\
            7fff000-8000000 r-xp 00000000 00:00 0                        [vdso]\n";
        let found: Vec<_> = mappings(maps).into_iter().collect();
        let program = Mapping {
            range: 0x55_9000..0x55_d000,
            code: (0x55_a000, 0x1000),
        };
        let vdso = Mapping {
            range: 0x7ff_f000..0x800_0000,
            code: (0x7ff_f000, 0),
        };
        let expected = [
            ("/usr/bin/a program".to_owned(), program),
            ("[vdso]".to_owned(), vdso),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn functions_of_this_program_are_found_by_address() {
        let modules = Modules::read(&mut UnwinderX86_64::new()).unwrap();
        let address = functions_of_this_program_are_found_by_address as fn() as usize as u64;
        let (module, symbol) = modules.at(address).unwrap();
        assert!(module.is_program, "{}", module.name);
        let name = &symbol.unwrap().name;
        assert!(name.contains("functions_of_this_program"), "{name}");
        assert!(modules.at(1).is_none());
        let libraries = modules.modules.iter().filter(|module| !module.is_program);
        let has_libc = libraries.filter(|module| module.name.contains("libc"));
        assert!(has_libc.flat_map(|module| &module.symbols).count() > 100);
    }
}
