//! Words for people, on standard error; and texts that were asked for, on standard output.
//!
//! Where they cannot be written (a full disk, a reader who has left) nothing is said, and the work goes on: the usual macros would
//! end the program.

/// Says a line.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr().lock(), $($words)*);
    }};
}

/// Says a text that has its own ends of lines.
macro_rules! say_as_is {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(anstream::stderr().lock(), $($words)*);
    }};
}

/// Whom the program speaks to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Whether only errors are to be said.
    pub(crate) quiet: bool,
}

/// Prints text to standard output, with its colours only where they are wanted.
pub(crate) fn print(text: &str) -> Result<(), crate::failure::Failure> {
    use std::io::Write as _;
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
