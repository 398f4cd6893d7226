//! What the base classes of a data set say about its features, for the methods that ask.

use std::sync::Arc;

use genus_core::{Calibration, CalibrationSettings};

use crate::{Bench, Dataset, LabError};
use genus::{CalibrationFile, Length, Progress};

/// The calibrations of a data set, each made once.
pub(crate) struct Calibrations<'a> {
    data: &'a Dataset,
    given: Option<&'a Arc<Calibration>>,
    progress: &'a dyn Progress,
    made: Vec<(CalibrationSettings, Result<Arc<Calibration>, String>)>,
    notes: Vec<String>,
}

impl<'a> Calibrations<'a> {
    /// None are made yet.
    pub(crate) fn new(data: &'a Dataset, bench: &'a Bench, progress: &'a dyn Progress) -> Self {
        Self {
            data,
            given: bench.calibration.as_ref(),
            progress,
            made: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The calibration of some settings, if there can be one; if not, a note says so.
    pub(crate) fn of(
        &mut self,
        method: &str,
        settings: CalibrationSettings,
    ) -> Result<Option<Arc<Calibration>>, LabError> {
        match self.find(method, settings)? {
            Ok(calibration) => Ok(Some(calibration)),
            Err(problem) => {
                self.note(format!(
                    "{method}: {problem}, so every episode's own examples calibrate it"
                ));
                Ok(None)
            }
        }
    }

    /// The same for a comparison that means nothing without one.
    pub(crate) fn required(
        &mut self,
        method: &str,
        settings: CalibrationSettings,
    ) -> Result<Arc<Calibration>, LabError> {
        self.find(method, settings)?.map_err(|problem| LabError::NoBaseClasses {
            data: self.data.name().to_owned(),
            method: method.to_owned(),
            problem,
        })
    }

    /// What the reader should know.
    pub(crate) fn notes(self) -> Vec<String> {
        self.notes
    }

    /// A calibration, or why there is none. One that was given stands in for the usual one, not for those with settings of
    /// their own.
    fn find(
        &mut self,
        method: &str,
        settings: CalibrationSettings,
    ) -> Result<Result<Arc<Calibration>, String>, LabError> {
        let usual = CalibrationSettings {
            seed: settings.seed,
            ..CalibrationSettings::default()
        };
        if let Some(given) = self.given.filter(|_| settings == usual) {
            let (dim, needed) = (given.dim(), self.data.features().dim());
            if dim != needed {
                let problem = format!("the calibration is of {dim} features, and the items have {needed}");
                return Err(self.failed(method, problem));
            }
            self.note(format!(
                "{method}: by the calibration that was given, of {} classes",
                given.classes()
            ));
            return Ok(Ok(given.clone()));
        }
        // Without base classes a bench goes by what `discover` would.
        if settings == usual
            && self.data.base().classes().is_empty()
            && let Some(shipped) = CalibrationFile::shipped(self.data.encoder())
        {
            self.note(format!("{method}: by {}", shipped.path().display()));
            return Ok(Ok(shipped.calibration));
        }
        if let Some((_, made)) = self.made.iter().find(|(of, _)| *of == settings) {
            return Ok(made.clone());
        }
        let made = self.fit(settings);
        self.made.push((settings, made.clone()));
        Ok(made)
    }

    /// Learns from the base classes and from nothing else.
    fn fit(&self, settings: CalibrationSettings) -> Result<Arc<Calibration>, String> {
        if self.data.base().classes().is_empty() {
            return Err("no base classes".to_owned());
        }
        self.progress.start("calibration", Length::Steps(1));
        let (rows, labels) = self.data.base_rows();
        let made = Calibration::fit(&self.data.features().select(&rows), &labels, settings);
        self.progress.step();
        made.map(Arc::new).map_err(|error| error.to_string())
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn failed(&self, method: &str, problem: String) -> LabError {
        LabError::Learning {
            data: self.data.name().to_owned(),
            method: method.to_owned(),
            problem,
        }
    }
}
