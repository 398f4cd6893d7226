//! Parameters by name: how a text such as `shc:t=3:attach=cosine` becomes the fields of a method.

use std::str::FromStr;

use crate::error::ParameterError;
use crate::ranges;

/// One parameter of a method, as help shows it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default value.
    pub default: &'static str,
    /// What it does and which values it takes.
    pub help: &'static str,
}

impl Parameter {
    /// A parameter of this name.
    pub const fn new(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { name, default, help }
    }
}

/// The parameters that a text sets for one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    method: &'static str,
    given: Vec<(String, String)>,
}

impl Values {
    /// Splits `name=value` texts, which must name parameters of the method, each once.
    pub fn parse<'a>(
        method: &'static str,
        known: &[Parameter],
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, ParameterError> {
        let mut given: Vec<(String, String)> = Vec::new();
        for text in texts {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            if !known.iter().any(|parameter| parameter.name == name) {
                let names: Vec<_> = known.iter().map(|parameter| parameter.name).collect();
                let expected = if names.is_empty() {
                    "it has no parameters".to_owned()
                } else {
                    format!("its parameters are {}", names.join(", "))
                };
                return Err(ParameterError::new(method, name, value, &expected));
            }
            if given.iter().any(|(other, _)| other == name) {
                return Err(ParameterError::new(method, name, value, "it is given twice"));
            }
            // What is no whole number is for whoever takes the value.
            if let Ok(number) = value.parse()
                && let Err(error) = ranges::check(name, number)
            {
                return Err(ParameterError::new(method, name, value, &error.to_string()));
            }
            given.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { method, given })
    }

    /// The method that they are of.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The text of a parameter, if it was given.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        let found = self.given.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| &**value)
    }

    /// The value of a parameter, or its default when it was not given.
    pub fn get<T: FromStr<Err: ToString>>(&self, name: &str, default: T) -> Result<T, ParameterError> {
        match self.given(name) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .map_err(|e: T::Err| ParameterError::new(self.method, name, value, &e.to_string())),
        }
    }

    /// The value of a parameter that may be absent or `none`.
    pub fn optional<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, ParameterError> {
        match self.given(name) {
            None | Some("none") => Ok(None),
            Some(value) => value
                .parse()
                .map(Some)
                .map_err(|e: T::Err| ParameterError::new(self.method, name, value, &e.to_string())),
        }
    }
}

impl ParameterError {
    /// A value that a parameter of a method cannot have, and what it can.
    pub fn new(method: &'static str, parameter: &str, value: impl ToString, expected: &str) -> Self {
        Self {
            method,
            parameter: parameter.to_owned(),
            value: value.to_string(),
            expected: expected.to_owned(),
        }
    }
}
