//! Many experiments in one folder: each is written when it is done, and not run again.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use genus_core::episode::{Shape, ShortClasses};
use genus_core::projection::Projection;
use genus_files::{AtomicFile, FileError, MAX_TEXT, read_whole};
use serde::{Deserialize, Serialize};

use crate::charts::Figure;
use crate::counts::DatasetCounts;
use crate::key;
use crate::machine::Machine;
use crate::report::{BenchReport, ReportPage, SectionBlock};
use crate::{Bench, Dataset, Experiment, LabError, LargeSettings};
use genus::{Length, Progress};

/// The numbers of queries that are tried, as far as the data goes.
pub const QUERIES: [usize; 7] = [1, 5, 10, 15, 20, 25, 30];
/// The values of α in the paper.
pub const ALPHAS: [f64; 5] = [1.3, 1.35, 1.4, 1.45, 1.6];
/// The values of t in the paper.
pub const THRESHOLDS: [usize; 5] = [0, 1, 2, 3, 4];
/// How many tasks the large-scale experiment averages.
const TASKS: u64 = 10;
/// How many episodes are drawn as maps.
const MAPS: u64 = 4;

/// A folder of results.
///
/// `SET/EXPERIMENT.json` has one report each, `figures/` the drawings, `report.md` everything to read. A report that is there
/// already, of the same features and settings, is taken as it is: an interrupted study goes on where it was.
pub struct Study {
    folder: PathBuf,
    bench: Bench,
    machine: Machine,
    sections: Vec<Section>,
    skipped: Vec<(String, String)>,
    run: usize,
    reused: usize,
}

/// What the report says of one data set, or of several together.
struct Section {
    title: String,
    /// What the files of its figures begin with.
    folder: String,
    blocks: Vec<SectionBlock>,
}

/// A report as it lies in the folder.
#[derive(Serialize, Deserialize)]
struct StoredReport {
    /// A hash of everything that the report depends on.
    key: String,
    report: BenchReport,
}

impl Study {
    /// Opens a folder of results; `bench` has the number of episodes, the seed, and methods to use instead of the paper's.
    pub fn new(folder: impl Into<PathBuf>, bench: Bench) -> Result<Self, LabError> {
        Ok(Self {
            folder: folder.into(),
            bench,
            machine: Machine::this()?,
            sections: Vec::new(),
            skipped: Vec::new(),
            run: 0,
            reused: 0,
        })
    }

    /// How many reports were made, and how many were there already.
    pub fn counts(&self) -> (usize, usize) {
        (self.run, self.reused)
    }

    /// What was left out, and why.
    pub fn skipped(&self) -> &[(String, String)] {
        &self.skipped
    }

    /// Takes note of something that is left out.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push((what.into(), why.into()));
    }

    /// Says in the report which data sets there are.
    pub fn data_sets(&mut self, counts: DatasetCounts) {
        let DatasetCounts { table, notes } = counts;
        self.section(
            "Data sets",
            "",
            vec![SectionBlock::Table(table), SectionBlock::List(notes)],
        );
    }

    fn section(&mut self, title: &str, folder: &str, blocks: Vec<SectionBlock>) {
        let (title, folder) = (title.to_owned(), folder.to_owned());
        self.sections.push(Section { title, folder, blocks });
    }

    /// Runs all experiments that need one data set and one encoder.
    pub fn data_set(&mut self, data: &Dataset, folder: &str, progress: &dyn Progress) -> Result<(), LabError> {
        let with_shot = |shot| Bench {
            shape: Shape {
                shot,
                ..self.bench.shape
            },
            ..self.bench.clone()
        };
        let large = Bench {
            episodes: TASKS.min(self.bench.episodes),
            ..self.bench.clone()
        };
        // A sweep is over its own method.
        let swept = Bench {
            methods: Vec::new(),
            ..self.bench.clone()
        };
        let plan = [
            ("main-5-shot", with_shot(5), Experiment::Main),
            ("main-1-shot", with_shot(1), Experiment::Main),
            ("realtime", self.bench.clone(), Experiment::RealTime),
            ("large", large, Experiment::Large(LargeSettings::default())),
            ("queries", swept.clone(), Experiment::queries(data, &self.bench)),
            ("tasks", swept.clone(), Experiment::Tasks),
            ("alpha", swept.clone(), Experiment::Alpha(ALPHAS.to_vec())),
            ("threshold", swept.clone(), Experiment::Threshold(THRESHOLDS.to_vec())),
        ];
        let mut blocks = Vec::new();
        if let Some(encoder) = data.encoder() {
            blocks.push(SectionBlock::Paragraph(format!("Features of `{encoder}`.")));
        }
        for (name, bench, experiment) in plan {
            let Some(report) = self.report(folder, name, data, &bench, &experiment, progress)? else {
                continue;
            };
            if let Some(figure) = report.chart() {
                self.write_figure(folder, &figure)?;
            }
            blocks.push(SectionBlock::Report(Some(name.to_owned()), Box::new(report)));
        }
        let plot = Bench {
            episodes: MAPS.min(self.bench.episodes),
            ..swept
        };
        match plot.plot(data, Projection::Tsne, progress) {
            Ok(figures) => {
                for figure in &figures {
                    self.write_figure(folder, figure)?;
                }
                blocks.push(SectionBlock::Heading("plot".to_owned()));
                blocks.extend(figures.into_iter().map(SectionBlock::Figure));
            }
            Err(error) => self.skip_or_fail(&format!("{folder}: plot"), error)?,
        }
        self.section(data.name(), folder, blocks);
        Ok(())
    }

    /// Runs one experiment on several data sets or encoders, and puts the results into one table.
    pub fn together<'a>(
        &mut self,
        title: &str,
        name: &str,
        parts: impl Iterator<Item = (&'a str, &'a Dataset, &'a Experiment)>,
        progress: &dyn Progress,
    ) -> Result<(), LabError> {
        let bench = Bench {
            methods: Vec::new(),
            ..self.bench.clone()
        };
        let mut reports = Vec::new();
        for (folder, data, experiment) in parts {
            let stem = format!("{name}-{}", plain(experiment.subject()));
            reports.extend(self.report(folder, &stem, data, &bench, experiment, progress)?);
        }
        if let Some(report) = BenchReport::combined(reports) {
            self.section(title, "", vec![SectionBlock::Report(None, Box::new(report))]);
        }
        Ok(())
    }

    /// The report of one experiment: the one that lies in the folder, or else a new one. `None` when the data cannot give such
    /// episodes, which is noted.
    fn report(
        &mut self,
        folder: &str,
        name: &str,
        data: &Dataset,
        bench: &Bench,
        experiment: &Experiment,
        progress: &dyn Progress,
    ) -> Result<Option<BenchReport>, LabError> {
        let path = self.folder.join(folder).join(format!("{name}.json"));
        let key = key::of_report(data, bench, experiment);
        let before = read_whole(&path, MAX_TEXT)
            .ok()
            .and_then(|text| serde_json::from_slice::<StoredReport>(&text).ok());
        if let Some(kept) = before.filter(|kept| kept.key == key) {
            self.reused += 1;
            return Ok(Some(kept.report));
        }
        let what = format!("{folder} {name}");
        match bench.run(data, experiment, &NamedProgress(progress, &what)) {
            Ok(report) => {
                let kept = StoredReport { key, report };
                let json = serde_json::to_string_pretty(&kept).expect("a report has a JSON form");
                write_file(&path, &json)?;
                self.run += 1;
                Ok(Some(kept.report))
            }
            Err(error) => {
                self.skip_or_fail(&what, error)?;
                Ok(None)
            }
        }
    }

    /// What the data cannot give is left out of a study; anything else ends it.
    fn skip_or_fail(&mut self, what: &str, error: LabError) -> Result<(), LabError> {
        match error {
            LabError::Episode { .. } | LabError::NothingToRun { .. } | LabError::Pile { .. } => {
                self.skip(what, error.to_string());
                Ok(())
            }
            other => Err(other),
        }
    }

    fn write_figure(&self, folder: &str, figure: &Figure) -> Result<(), LabError> {
        write_file(
            &self.folder.join("figures").join(figure_file(folder, figure)),
            &figure.svg,
        )
    }

    /// The whole study as one self-contained page, with the command that made it.
    pub fn page(&self, command: &str) -> String {
        let mut sections: Vec<(&str, Vec<&SectionBlock>)> = self
            .sections
            .iter()
            .map(|section| (&*section.title, section.blocks.iter().collect()))
            .collect();
        let left_out = SectionBlock::List(
            self.skipped
                .iter()
                .map(|(what, why)| format!("{what}: {why}"))
                .collect(),
        );
        if !self.skipped.is_empty() {
            sections.push(("Left out", vec![&left_out]));
        }
        ReportPage {
            title: "Results".to_owned(),
            lead: format!(
                "The experiments of Few-shot Novel Category Discovery, {} episodes each unless a table says otherwise, seed {}. \
                 From a few examples of some classes a method has to say which items of a pile belong to them, and to sort the \
                 rest into new groups.",
                self.bench.episodes, self.bench.seed
            ),
            command: command.to_owned(),
            machine: self.machine.clone(),
        }
        .html(&sections)
    }

    /// Writes `report.md` and says where it is.
    pub fn finish(&self) -> Result<PathBuf, LabError> {
        let Machine {
            system,
            architecture,
            processor,
            threads,
        } = &self.machine;
        let mut text = format!(
            "# Results\n\nGenus {}, {} episodes, seed {}; {system} {architecture}, {}, {threads} threads. Every table is also JSON with \
             the figures of every episode.\n",
            env!("CARGO_PKG_VERSION"),
            self.bench.episodes,
            self.bench.seed,
            processor.as_deref().unwrap_or("unknown processor"),
        );
        for section in &self.sections {
            let _ = write!(text, "\n## {}\n\n{}\n", section.title, section.markdown().trim_end());
        }
        if !self.skipped.is_empty() {
            text += "\n## Left out\n\n";
            for (what, why) in &self.skipped {
                let _ = writeln!(text, "- {what}: {why}");
            }
        }
        let path = self.folder.join("report.md");
        write_file(&path, &text)?;
        Ok(path)
    }
}

impl Section {
    fn markdown(&self) -> String {
        let mut text = String::new();
        let figure =
            |figure: &Figure| format!("![{}](figures/{})\n\n", figure.title, figure_file(&self.folder, figure));
        for block in &self.blocks {
            match block {
                SectionBlock::Paragraph(paragraph) => text += &format!("{paragraph}\n\n"),
                SectionBlock::Heading(heading) => text += &format!("### {heading}\n\n"),
                SectionBlock::Table(table) => text += &table.to_string(),
                SectionBlock::List(items) => text.extend(items.iter().map(|item| format!("\n- {item}"))),
                SectionBlock::Figure(drawn) => text += &figure(drawn),
                SectionBlock::Report(None, report) => text += &report.markdown(),
                SectionBlock::Report(Some(name), report) => {
                    text += &format!("### {name}\n\n{}\n", report.markdown());
                    text.extend(report.chart().as_ref().map(figure));
                }
            }
        }
        text
    }
}

/// The name of the file of a drawing.
fn figure_file(folder: &str, figure: &Figure) -> String {
    format!("{}-{}.svg", plain(folder), figure.name)
}

impl Experiment {
    /// The numbers of queries that a data set has items for.
    pub fn queries(data: &Dataset, bench: &Bench) -> Self {
        let most = match bench.short_classes {
            ShortClasses::Error => data.pool().smallest_class(),
            // The largest number that enough classes have.
            ShortClasses::Skip => {
                let mut sizes: Vec<usize> = data.pool().items().iter().map(Vec::len).collect();
                sizes.sort_unstable_by(|a, b| b.cmp(a));
                sizes
                    .get(bench.pile.classes(bench.shape).saturating_sub(1))
                    .copied()
                    .unwrap_or(0)
            }
        };
        let most = most.saturating_sub(bench.shape.shot).max(1);
        // With nothing within reach the smallest number says which class is too small.
        Experiment::Queries(QUERIES.into_iter().filter(|&query| query <= most).collect())
    }
}

/// Says what of a study is under way.
struct NamedProgress<'a>(&'a dyn Progress, &'a str);

impl Progress for NamedProgress<'_> {
    fn start(&self, stage: &str, length: Length) {
        self.0.start(&format!("{}: {stage}", self.1), length);
    }

    fn advance(&self, steps: u64) {
        self.0.advance(steps);
    }
}

/// A name that can be part of a file's.
fn plain(name: &str) -> String {
    let plain = name.chars().map(|c| {
        if c.is_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    });
    plain.collect()
}

/// Writes a file as a whole, with the folders above it.
fn write_file(path: &Path, text: &str) -> Result<(), LabError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| FileError::write(path.display(), e))?;
    }
    let mut file = AtomicFile::create_own(path)?;
    file.append(text.as_bytes())?;
    file.commit()?;
    Ok(())
}
