//! The extension module below the Python package `genus`: arguments in, a call of the library, results out.
//!
//! Long work is done on a thread of its own ([`job`]) while Python's looks for Ctrl-C; matrices stay where Python has them ([`rows`]).
//! What a result looks like in Python is said in Python.

mod arrow;
mod bench;
mod collection;
mod discover;
mod failure;
mod job;
mod rows;
mod taxonomy;

use pyo3::prelude::*;

#[pymodule]
fn _genus(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<taxonomy::Calibration>()?;
    module.add_class::<taxonomy::Taxonomy>()?;
    module.add_class::<taxonomy::Stream>()?;
    module.add_function(wrap_pyfunction!(taxonomy::discover_rows, module)?)?;
    module.add_function(wrap_pyfunction!(taxonomy::stream_of_rows, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::matrix_of_arrow, module)?)?;
    module.add_class::<discover::Outcome>()?;
    module.add_function(wrap_pyfunction!(discover::discover, module)?)?;
    module.add_function(wrap_pyfunction!(discover::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(discover::list_images, module)?)?;
    module.add_function(wrap_pyfunction!(discover::write_demo, module)?)?;
    module.add_function(wrap_pyfunction!(discover::embed_files, module)?)?;
    module.add_function(wrap_pyfunction!(discover::embed_pixels, module)?)?;
    module.add_class::<collection::Collection>()?;
    module.add_class::<bench::Dataset>()?;
    module.add_class::<bench::Episodes>()?;
    module.add_class::<bench::Report>()?;
    module.add_function(wrap_pyfunction!(bench::run_bench, module)?)?;
    module.add_function(wrap_pyfunction!(bench::episodes, module)?)?;
    module.add_function(wrap_pyfunction!(bench::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(bench::method_table, module)?)?;
    module.add_function(wrap_pyfunction!(job::panic_for_tests, module)?)?;
    module.add_function(wrap_pyfunction!(job::sleep_for_tests, module)?)?;
    Ok(())
}
