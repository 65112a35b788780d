//! The compiled part of the Python package `refrain`. Its users import the package, whose sources
//! are in `python/`; this module is the engine's verbs, without defaults and conversions.
//!
//! Python code runs only in threads of Python: the engine's workers read file objects through
//! [`pipe`] and [`exchange`], because a worker may be a coroutine with a stack of its own.
//!
//! | file | what |
//! |---|---|
//! | `verbs`, `archive` | what Python calls |
//! | `job`, `process` | runs without the interpreter's lock; signals, cancellation, forks |
//! | `endpoints`, `outputs`, `buffer`, `pipe`, `exchange` | where bytes come from and go to |
//! | `options`, `entry`, `listing`, `error` | arguments, answers, exceptions |

mod archive;
mod buffer;
mod endpoints;
mod entry;
mod error;
mod exchange;
mod job;
mod listing;
mod options;
mod outputs;
mod pipe;
mod process;
mod recover;
mod verbs;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _refrain(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<archive::NativeArchive>()?;
    module.add_class::<entry::PythonEntry>()?;
    module.add_class::<entry::PythonMember>()?;
    module.add_class::<exchange::Exchange>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<pipe::Pipe>()?;
    module.add_function(wrap_pyfunction!(process::set_main_thread, module)?)?;
    module.add_function(wrap_pyfunction!(process::after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::compress_members, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::decompress, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::test, module)?)?;
    module.add_function(wrap_pyfunction!(recover::recover_below, module)?)
}
