//! The program and its libraries: where their code is, how to unwind it, and the names of
//! functions.
//!
//! They are read once, at the start. Code loaded later is unknown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use framehop::x86_64::UnwinderX86_64;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use liblzma::read::XzDecoder;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef};

use super::symbols::{Symbol, SymbolTable, TextSection};

/// The page in which the kernel provides functions such as reading the clock.
const KERNEL_PAGE: &str = "[vdso]";
const PAGE_BYTES: u64 = 4096;
/// The maximum size of unpacked symbols.
const PACKED_SYMBOLS_MAX: u64 = 256 << 20;

/// A file with code in memory.
#[derive(Debug)]
pub(super) struct CodeModule {
    range: Range<u64>,
    /// The path, or the kernel's name.
    pub(super) name: String,
    pub(super) is_program: bool,
    symbols: SymbolTable,
}

#[derive(Debug, Default)]
pub(super) struct Modules {
    modules: Vec<CodeModule>,
}

/// Lines of `/proc/self/maps` that belong together.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    /// The first executable part.
    code: CodePart,
}

/// Executable bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodePart {
    /// Where they are in memory.
    address: u64,
    /// Where they are in the file.
    offset: u64,
}

impl Modules {
    /// Reads what is in memory now, and registers it with `unwinder`.
    ///
    /// # Errors
    /// The list of mappings, or the program itself, cannot be read. Unreadable libraries are left
    /// out.
    pub(super) fn read(unwinder: &mut UnwinderX86_64<Vec<u8>>) -> io::Result<Modules> {
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        let maps = fs::read_to_string("/proc/self/maps")?;
        let mut modules = vec![];
        for (name, mapping) in mappings(&maps) {
            let is_program = Path::new(&name) == program;
            // The file may have been removed or replaced.
            let path = if is_program { "/proc/self/exe" } else { name.as_str() };
            if name == KERNEL_PAGE {
                let content = own_memory(&mapping.range)?;
                modules.extend(read_module(name, false, &mapping, &*content, unwinder));
                continue;
            }
            match File::open(path) {
                // Reads on demand: a program may have a lot of debug information.
                Ok(file) => {
                    let content = ReadCache::new(file);
                    modules.extend(read_module(name, is_program, &mapping, &content, unwinder));
                }
                Err(error) if is_program => return Err(error),
                Err(_) => {}
            }
        }
        modules.sort_by_key(|module| module.range.start);
        Ok(Modules { modules })
    }

    pub(super) fn at(&self, address: u64) -> Option<(&CodeModule, Option<Symbol<'_>>)> {
        let after = self
            .modules
            .partition_point(|module| module.range.start <= address);
        let module = self.modules.get(after.checked_sub(1)?)?;
        let is_inside = module.range.contains(&address);
        is_inside.then(|| (module, module.symbols.at(address)))
    }
}

/// The files with code by name: path, or `[vdso]`.
fn mappings(maps: &str) -> BTreeMap<String, Mapping> {
    let mut found: BTreeMap<String, (Range<u64>, Option<CodePart>)> = BTreeMap::new();
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
            *code = Some(CodePart {
                address: start,
                offset,
            });
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

/// `None` for anything but a library or program.
fn read_module<'a>(
    name: String,
    is_program: bool,
    mapping: &Mapping,
    content: impl ReadRef<'a>,
    unwinder: &mut UnwinderX86_64<Vec<u8>>,
) -> Option<CodeModule> {
    let object = object::File::parse(content).ok()?;
    let code = mapping.code;
    // Addresses in the file are relative to this.
    let base = object.segments().find_map(|segment| {
        let (offset, _) = segment.file_range();
        let page = |position: u64| position & !(PAGE_BYTES - 1);
        let starts_there = page(offset) == code.offset;
        starts_there.then(|| code.address.wrapping_sub(page(segment.address())))
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

/// The functions of a file: from the full table, which may be packed, otherwise those that others
/// may link to.
fn symbols<'a>(object: &object::File<'a, impl ReadRef<'a>>, base: u64) -> SymbolTable {
    if let Some(packed) = packed_symbols(object)
        && let Ok(object) = object::File::parse(&*packed)
    {
        return symbols_of_table(&object, base);
    }
    symbols_of_table(object, base)
}

/// A program without symbols may contain an xz-compressed file with only the symbols: GDB's
/// "MiniDebugInfo". For this program that takes a seventh of the space.
fn packed_symbols<'a>(object: &object::File<'a, impl ReadRef<'a>>) -> Option<Vec<u8>> {
    let section = object.section_by_name(".gnu_debugdata")?;
    let mut unpacked = vec![];
    let packed = XzDecoder::new(section.data().ok()?);
    let read = packed.take(PACKED_SYMBOLS_MAX).read_to_end(&mut unpacked);
    read.ok().map(|_| unpacked)
}

fn symbols_of_table<'a>(object: &object::File<'a, impl ReadRef<'a>>, base: u64) -> SymbolTable {
    let bytes = |name| object.section_by_name(name)?.data().ok();
    let text = object.section_by_name(".text");
    let text = text.map(|section| TextSection {
        number: section.index().0,
        end: base.wrapping_add(section.address() + section.size()),
    });
    if let (Some(table), Some(names)) = (bytes(".symtab"), bytes(".strtab")) {
        return SymbolTable::read(table, names, text, base);
    }
    let (table, names) = (bytes(".dynsym"), bytes(".dynstr"));
    SymbolTable::read(
        table.unwrap_or_default(),
        names.unwrap_or_default(),
        None,
        base,
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

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
            code: CodePart {
                address: 0x55_a000,
                offset: 0x1000,
            },
        };
        let vdso = Mapping {
            range: 0x7ff_f000..0x800_0000,
            code: CodePart {
                address: 0x7ff_f000,
                offset: 0,
            },
        };
        let expected = [
            ("/usr/bin/a program".to_owned(), program),
            ("[vdso]".to_owned(), vdso),
        ];
        assert_eq!(found, expected);
    }

    /// As packed by `.ci/split-debug`.
    #[test]
    fn packed_symbols_are_those_of_the_full_table() {
        let directory = tempfile::tempdir().unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let ran = command.args(arguments).current_dir(&directory).output();
            ran.is_ok_and(|output| output.status.success())
        };
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        let keep = ["--only-keep-debug", program, "symbols"];
        if !run("objcopy", &keep) || !run("xz", &["-1", "--check=crc32", "symbols"]) {
            println!("skipped: objcopy or xz is missing");
            return;
        }
        let add = "--add-section=.gnu_debugdata=symbols.xz";
        assert!(run("objcopy", &["--strip-all", add, program, "packed"]));
        let read = |path: &Path| {
            let content = fs::read(path).unwrap();
            let object = object::File::parse(&*content).unwrap();
            let has_table = object.section_by_name(".symtab").is_some();
            (has_table, symbols(&object, 0))
        };
        let (has_table, full) = read(Path::new(program));
        assert!(has_table && full.len() > 1000);
        let (has_table, packed) = read(&directory.path().join("packed"));
        assert!(!has_table);
        assert_eq!(packed.len(), full.len());
        for address in (0..4 << 20).step_by(997) {
            assert_eq!(packed.at(address), full.at(address));
        }
    }

    #[test]
    fn functions_of_this_program_are_found_by_address() {
        let modules = Modules::read(&mut UnwinderX86_64::new()).unwrap();
        let address = functions_of_this_program_are_found_by_address as fn() as usize as u64;
        let (module, symbol) = modules.at(address).unwrap();
        assert!(module.is_program, "{}", module.name);
        let name = symbol.unwrap().name;
        assert!(name.contains("functions_of_this_program"), "{name}");
        assert!(modules.at(1).is_none());
        let libraries = modules.modules.iter().filter(|module| !module.is_program);
        let has_libc = libraries.filter(|module| module.name.contains("libc"));
        assert!(has_libc.map(|module| module.symbols.len()).sum::<usize>() > 100);
    }
}
