//! Maps addresses to numbered functions.

use std::collections::HashMap;

use super::modules::{CodeModule, Modules};
use super::symbols::Symbol;
use crate::origin;
use crate::profile::{Function, FunctionNumber};

#[derive(Debug)]
pub(super) struct Functions {
    modules: Modules,
    by_address: HashMap<u64, FunctionNumber>,
    by_name: HashMap<(String, String), FunctionNumber>,
    functions: Vec<Function>,
}

impl Functions {
    pub(super) fn new(modules: Modules) -> Functions {
        Functions {
            modules,
            by_address: HashMap::new(),
            by_name: HashMap::new(),
            functions: vec![],
        }
    }

    pub(super) fn at(&mut self, address: u64) -> FunctionNumber {
        if let Some(number) = self.by_address.get(&address) {
            return *number;
        }
        let function = match self.modules.at(address) {
            None => Function::without_symbol("[unknown]", "unknown"),
            Some((module, None)) => {
                let library = origin::of_library(&module.name);
                Function {
                    module: module.name.clone(),
                    ..Function::without_symbol(&format!("[{library}]"), &library)
                }
            }
            Some((module, Some(symbol))) => of_symbol(module, symbol),
        };
        let number = self.number_of(function);
        self.by_address.insert(address, number);
        number
    }

    /// The number of a function; the existing one if name and origin are equal, as for instances of
    /// a generic function.
    pub(super) fn number_of(&mut self, function: Function) -> FunctionNumber {
        let key = (function.name.clone(), function.origin.clone());
        *self.by_name.entry(key).or_insert_with(|| {
            self.functions.push(function);
            self.functions.len() as FunctionNumber - 1
        })
    }

    pub(super) fn into_vec(self) -> Vec<Function> {
        self.functions
    }
}

fn of_symbol(module: &CodeModule, symbol: Symbol<'_>) -> Function {
    let demangled = rustc_demangle::try_demangle(symbol.name);
    let name = match &demangled {
        Ok(demangled) => format!("{demangled:#}"),
        Err(_) => symbol.name.to_owned(),
    };
    let origin = match module.is_program {
        true if demangled.is_ok() => origin::of_rust(&name),
        true => origin::of_c(&name, symbol.file),
        false => origin::of_library(&module.name),
    };
    Function {
        name,
        linker_name: symbol.name.to_owned(),
        origin,
        module: module.name.clone(),
    }
}
