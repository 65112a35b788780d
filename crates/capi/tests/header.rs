//! `include/refrain.h` and `symbols.txt` are what the sources say.
//!
//! `REFRAIN_WRITE_HEADER=1 cargo test -p refrain-capi --test header` writes both.

#![allow(clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Expr, Field, Fields, FnArg, Item, Lit, Meta, ReturnType, Type};

/// The files with functions, in the order of the header.
const FUNCTIONS: [&str; 5] = ["general", "options", "streams", "files", "archives"];

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn parsed(path: &str) -> Vec<Item> {
    let text = fs::read_to_string(crate_path(path)).expect("the source exists");
    syn::parse_file(&text).expect("the source is Rust").items
}

/// The documentation as a comment, indented by `indent`.
fn comment(attributes: &[Attribute], indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else {
            continue;
        };
        if !pair.path.is_ident("doc") {
            continue;
        }
        let Expr::Lit(literal) = &pair.value else { continue };
        let Lit::Str(text) = &literal.lit else { continue };
        lines.push(text.value().trim().replace('`', ""));
    }
    // What the caller has to see to.
    if let Some(at) = lines.iter().position(|line| line == "# Safety") {
        lines.remove(at);
        let after = &mut lines[at];
        *after = format!("Requires: {after}");
    }
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let start = if number == 0 { "/* " } else { " * " };
        let _ = writeln!(text, "{indent}{}", format!("{start}{line}").trim_end());
    }
    let end = text.pop();
    assert_eq!(end, Some('\n'), "everything in the interface is documented");
    text + " */\n"
}

/// `RefrainInBuffer` -> `refrain_in_buffer`.
fn c_name(name: &str) -> String {
    let mut found = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !found.is_empty() {
            found.push('_');
        }
        found.extend(letter.to_lowercase());
    }
    found
}

/// A declaration of `name` with this type.
fn declared(kind: &Type, name: &str) -> String {
    match kind {
        Type::Ptr(pointer) => {
            let is_const = pointer.const_token.is_some() && !matches!(*pointer.elem, Type::Ptr(_));
            let start = if is_const { "const " } else { "" };
            format!("{start}{}", declared(&pointer.elem, &format!("*{name}")))
        }
        Type::Array(array) => {
            let length = array.len.to_token_stream();
            declared(&array.elem, &format!("{name}[{length}]"))
        }
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a name").ident.to_string();
            let known = match &*last {
                "i32" => "int32_t",
                "i64" => "int64_t",
                "u8" => "uint8_t",
                "u32" => "uint32_t",
                "u64" => "uint64_t",
                "usize" => "size_t",
                "c_char" => "char",
                "c_void" => "void",
                own if own.starts_with("Refrain") => return format!("{} {name}", c_name(own)),
                other => panic!("no C type for {other}"),
            };
            format!("{known} {name}")
        }
        other => panic!("no C type for {}", other.to_token_stream()),
    }
}

fn constant(item: &syn::ItemConst) -> String {
    let value = item.expr.to_token_stream().to_string().replace(' ', "");
    let value = match &*value {
        "u64::MAX" => "UINT64_MAX".to_owned(),
        negative if negative.starts_with('-') => format!("({negative})"),
        _ => value,
    };
    format!(
        "{}#define {} {value}\n\n",
        comment(&item.attrs, ""),
        item.ident
    )
}

fn structure(item: &syn::ItemStruct) -> String {
    let name = c_name(&item.ident.to_string());
    let start = comment(&item.attrs, "");
    let Fields::Named(fields) = &item.fields else { panic!("fields have names") };
    let field_name = |field: &Field| field.ident.as_ref().expect("a name").to_string();
    if fields
        .named
        .iter()
        .any(|field| field_name(field) == "_private")
    {
        return format!("{start}typedef struct {name} {name};\n\n");
    }
    let fields = fields.named.iter().map(|field| {
        let text = comment(&field.attrs, "    ");
        format!("{text}    {};\n", declared(&field.ty, &field_name(field)))
    });
    let fields: String = fields.collect();
    format!("{start}typedef struct {name} {{\n{fields}}} {name};\n\n")
}

/// The type of a callback, an optional pointer to a function.
fn callback(item: &syn::ItemType) -> String {
    let text = item.ty.to_token_stream().to_string();
    let inner = text
        .strip_prefix("Option <")
        .and_then(|text| text.strip_suffix('>'));
    let Ok(Type::BareFn(function)) = syn::parse_str(inner.expect("an option")) else {
        panic!("a function")
    };
    let arguments = function.inputs.iter().map(|argument| {
        let name = &argument.name.as_ref().expect("a name").0;
        declared(&argument.ty, &name.to_string())
    });
    let name = format!(
        "(*{})({})",
        c_name(&item.ident.to_string()),
        list(arguments)
    );
    let ReturnType::Type(_, result) = &function.output else { panic!("a result") };
    format!(
        "{}typedef {};\n\n",
        comment(&item.attrs, ""),
        declared(result, &name)
    )
}

fn list(arguments: impl Iterator<Item = String>) -> String {
    let arguments: Vec<_> = arguments.collect();
    if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") }
}

fn is_exported(item: &syn::ItemFn) -> bool {
    let is_no_mangle = |attribute: &Attribute| {
        attribute
            .to_token_stream()
            .to_string()
            .contains("no_mangle")
    };
    item.attrs.iter().any(is_no_mangle)
}

fn function(item: &syn::ItemFn) -> String {
    let arguments = item.sig.inputs.iter().map(|argument| {
        let FnArg::Typed(argument) = argument else { panic!("no self") };
        declared(&argument.ty, &argument.pat.to_token_stream().to_string())
    });
    let arguments: Vec<_> = arguments.collect();
    let ReturnType::Type(_, result) = &item.sig.output else { panic!("a result") };
    let name = item.sig.ident.to_string();
    let line = declared(
        result,
        &format!("{name}({})", list(arguments.iter().cloned())),
    );
    let line = if line.len() < 100 {
        line
    } else {
        declared(
            result,
            &format!("{name}(\n    {})", arguments.join(",\n    ")),
        )
    };
    format!("{}{line};\n\n", comment(&item.attrs, ""))
}

fn exported() -> impl Iterator<Item = syn::ItemFn> {
    let files = FUNCTIONS.into_iter();
    let items = files.flat_map(|file| parsed(&format!("src/calls/{file}.rs")));
    items.filter_map(|item| match item {
        Item::Fn(item) if is_exported(&item) => Some(item),
        _ => None,
    })
}

fn header() -> String {
    let mut text = fs::read_to_string(crate_path("src/preamble.h")).expect("a preamble");
    text += "#ifndef REFRAIN_H\n#define REFRAIN_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n";
    text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text += "/* The version of this header. */\n";
    for (part, value) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        let _ = writeln!(text, "#define REFRAIN_VERSION_{part} {value}");
    }
    text.push('\n');
    for item in parsed("src/numbers.rs")
        .iter()
        .chain(&parsed("src/types.rs"))
    {
        match item {
            Item::Const(item) if matches!(item.vis, syn::Visibility::Public(_)) => {
                text += &constant(item);
            }
            Item::Struct(item) => text += &structure(item),
            Item::Type(item) => text += &callback(item),
            _ => {}
        }
    }
    exported().for_each(|item| text += &function(&item));
    text += "#ifdef __cplusplus\n}\n#endif\n\n#endif /* REFRAIN_H */\n";
    text
}

fn compare(path: &str, expected: &str) {
    let path = crate_path(path);
    if std::env::var_os("REFRAIN_WRITE_HEADER").is_some() {
        fs::write(&path, expected).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let difference = found
        .lines()
        .zip(expected.lines())
        .find(|(found, new)| found != new);
    assert!(
        found == expected,
        "{}: not what the sources say, first at {difference:?}; REFRAIN_WRITE_HEADER=1 writes it",
        path.display()
    );
}

#[test]
fn the_header_is_made_from_the_sources() {
    compare("include/refrain.h", &header());
}

/// The names that programs are linked with. One that is gone needs a new major version.
#[test]
fn the_symbols_are_those_of_the_sources() {
    let mut names: Vec<_> = exported().map(|item| item.sig.ident.to_string()).collect();
    names.sort();
    compare("symbols.txt", &(names.join("\n") + "\n"));
}
