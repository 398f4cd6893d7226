//! Errors of the library as Python's exceptions, with the library's messages.

use std::error::Error;
use std::io::{self, ErrorKind};

use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};

/// An error as the exception that Python has for such things: what the system refused is an `OSError`, anything else was wrong
/// with what was given.
pub(crate) fn raised(error: impl Error + 'static) -> PyErr {
    let message = error.to_string();
    match of_the_system(&error) {
        Some(ErrorKind::NotFound) => PyFileNotFoundError::new_err(message),
        Some(ErrorKind::PermissionDenied) => PyPermissionError::new_err(message),
        Some(ErrorKind::AlreadyExists) => PyFileExistsError::new_err(message),
        // What was read makes no sense.
        Some(ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof) | None => {
            PyValueError::new_err(message)
        }
        Some(_) => PyOSError::new_err(message),
    }
}

/// The kind of the error of the system that an error comes from, if it does.
fn of_the_system(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(of_system) = error.downcast_ref::<io::Error>() {
            return Some(of_system.kind());
        }
        cause = error.source();
    }
    None
}

/// What a panic is in Python: it is never the caller's fault.
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let said = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    PyRuntimeError::new_err(format!("genus failed where it should not: {said}; please report this"))
}
