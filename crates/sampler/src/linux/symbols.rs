//! The functions of a file with code, as the linker left them (`Elf64_Sym`).
//!
//! Names stay in the file's table until requested: there are tens of thousands, and a run meets a
//! few hundred.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    /// The linker's name.
    pub(super) name: &'a str,
    /// The source file or compilation unit, if known.
    pub(super) file: Option<&'a str>,
}

/// A section in which labels without a size may be functions.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextSection {
    pub(super) number: usize,
    /// Where it ends in memory.
    pub(super) end: u64,
}

/// The functions of a file by their address in memory.
#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    functions: Vec<FunctionRange>,
    names: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FunctionRange {
    range: Range<u64>,
    name: u32,
    /// Where the name of its file begins; 0 if unknown.
    file: u32,
}

const ENTRY_BYTES: usize = 24;
/// `STT_FUNC`, `STT_FILE`, `STT_GNU_IFUNC`, `STT_NOTYPE`.
const FUNCTION: u8 = 2;
const FILE: u8 = 4;
const CHOSEN_FUNCTION: u8 = 10;
const LABEL: u8 = 0;
/// `STB_LOCAL`.
const LOCAL: u8 = 0;
/// `SHN_UNDEF`.
const UNDEFINED: u16 = 0;

/// `Elf64_Sym`.
struct ElfSymbol {
    name: u32,
    kind: u8,
    binding: u8,
    section: u16,
    address: u64,
    length: u64,
}

impl ElfSymbol {
    fn parse(bytes: &[u8; ENTRY_BYTES]) -> ElfSymbol {
        let [n0, n1, n2, n3, info, _, s0, s1, rest @ ..] = *bytes;
        let [
            a0,
            a1,
            a2,
            a3,
            a4,
            a5,
            a6,
            a7,
            l0,
            l1,
            l2,
            l3,
            l4,
            l5,
            l6,
            l7,
        ] = rest;
        ElfSymbol {
            name: u32::from_ne_bytes([n0, n1, n2, n3]),
            kind: info & 0xf,
            binding: info >> 4,
            section: u16::from_ne_bytes([s0, s1]),
            address: u64::from_ne_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            length: u64::from_ne_bytes([l0, l1, l2, l3, l4, l5, l6, l7]),
        }
    }
}

impl SymbolTable {
    /// Parses a symbol table and its names. Its addresses are relative to `base`.
    pub(super) fn read(
        table: &[u8],
        names: &[u8],
        text: Option<TextSection>,
        base: u64,
    ) -> SymbolTable {
        let mut found = vec![];
        let mut file = 0;
        let (entries, _) = table.as_chunks::<ENTRY_BYTES>();
        for entry in entries.iter().map(ElfSymbol::parse) {
            let is_function = matches!(entry.kind, FUNCTION | CHOSEN_FUNCTION);
            let is_in_text = text.is_some_and(|text| text.number == usize::from(entry.section));
            if entry.kind == FILE {
                // The local symbols after it belong to this file.
                file = entry.name;
            } else if entry.section != UNDEFINED && entry.name != 0 {
                let is_sized = is_function && entry.length > 0;
                let may_be_label = is_in_text && (is_function || entry.kind == LABEL);
                if is_sized || may_be_label {
                    let start = base.wrapping_add(entry.address);
                    found.push(FunctionRange {
                        range: start..start.saturating_add(entry.length),
                        name: entry.name,
                        file: if entry.binding == LOCAL { file } else { 0 },
                    });
                }
            }
        }
        // Of several names of a function keep the first, of a label and a function the function.
        found.sort_unstable_by_key(|function| {
            let Range { start, end } = function.range;
            (start, std::cmp::Reverse(end), function.name)
        });
        found.dedup_by_key(|function| function.range.start);
        SymbolTable {
            functions: with_labels_extended(found, text.map_or(0, |text| text.end)),
            names: names.to_vec(),
        }
    }

    /// The function that contains an address.
    pub(super) fn at(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self
            .functions
            .partition_point(|function| function.range.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let file = self.name(function.file).filter(|_| function.file != 0);
        function.range.contains(&address).then_some(Symbol {
            name: self.name(function.name)?,
            file,
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }

    fn name(&self, offset: u32) -> Option<&str> {
        let rest = self.names.get(offset as usize..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// Assembly functions may be labels without a size: each ends where the next function begins.
/// Labels inside functions do not count.
fn with_labels_extended(found: Vec<FunctionRange>, end: u64) -> Vec<FunctionRange> {
    let mut kept: Vec<FunctionRange> = Vec::with_capacity(found.len());
    let mut function_end = 0;
    for function in found {
        let is_label = function.range.is_empty();
        if is_label && function.range.start < function_end {
            continue;
        }
        if let Some(before) = kept.last_mut().filter(|before| before.range.is_empty()) {
            before.range.end = function.range.start;
        }
        function_end = function_end.max(function.range.end);
        kept.push(function);
    }
    if let Some(last) = kept.last_mut().filter(|last| last.range.is_empty()) {
        last.range.end = end.max(last.range.start);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: u32, info: u8, section: u16, address: u64, length: u64) -> Vec<u8> {
        let mut bytes = name.to_ne_bytes().to_vec();
        bytes.extend([info, 0]);
        bytes.extend(section.to_ne_bytes());
        bytes.extend(address.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes
    }

    #[test]
    fn functions_labels_and_files_are_told_apart() {
        let names = b"\0file.c\0static\0global\0label\0data\0imported\0last\0inside\0";
        let at = |name: &str| {
            let found = names
                .windows(name.len())
                .position(|text| text == name.as_bytes());
            found.unwrap() as u32
        };
        let (local, global) = (0, 1 << 4);
        let table = [
            entry(at("file.c"), FILE | local, 0xfff1, 0, 0),
            entry(at("static"), FUNCTION | local, 7, 0x10, 0x20),
            entry(at("inside"), LABEL | local, 7, 0x18, 0),
            entry(at("label"), LABEL | global, 7, 0x30, 0),
            entry(at("global"), FUNCTION | global, 7, 0x50, 0x10),
            entry(at("imported"), FUNCTION | global, 0, 0, 0),
            entry(at("data"), LABEL | global, 9, 0x58, 0),
            entry(at("last"), FUNCTION | global, 7, 0x70, 0),
        ];
        let base = 0x1000;
        let text = TextSection {
            number: 7,
            end: base + 0x90,
        };
        let table = SymbolTable::read(&table.concat(), names, Some(text), base);
        let named = |address| {
            table
                .at(base + address)
                .map(|symbol| (symbol.name, symbol.file))
        };
        assert_eq!(named(0xf), None);
        assert_eq!(named(0x10), Some(("static", Some("file.c"))));
        assert_eq!(named(0x2f), Some(("static", Some("file.c"))));
        assert_eq!(named(0x4f), Some(("label", None)));
        assert_eq!(named(0x5f), Some(("global", None)));
        assert_eq!(named(0x60), None);
        assert_eq!(named(0x8f), Some(("last", None)));
        assert_eq!(named(0x90), None);
    }

    #[test]
    fn a_table_that_is_cut_or_wrong_gives_no_names() {
        let bytes = entry(50, FUNCTION, 7, 0x10, 0x20);
        let table = SymbolTable::read(&bytes, b"\0a\0", None, 0);
        assert_eq!(table.at(0x10), None, "the name is outside");
        let table = SymbolTable::read(&bytes[..20], b"\0a\0", None, 0);
        assert_eq!(table.len(), 0);
        let bytes = entry(1, FUNCTION, 7, u64::MAX - 1, u64::MAX);
        let table = SymbolTable::read(&bytes, b"\0never ends", None, 9);
        assert_eq!(table.at(u64::MAX), None);
    }
}
