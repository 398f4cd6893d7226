//! Errors of the pipeline.
//!
//! An error says what is wrong, as values. What to do about it depends on who asked: a command line names its flags, a service its
//! fields.

use std::io;
use std::path::PathBuf;

use genus_core::methods::MethodError;
use genus_core::{CalibrationError, DiscoverError, FeatureError, TaskError, TaxonomyError};
use genus_data::{DataError, Export, ExportError, SortError};
use genus_files::FileError;
use genus_vision::{EncodeError, HubError, IsaError, LoadError, SpecError};
use thiserror::Error;

use crate::training::TrainingError;

/// Errors of the pipeline.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The method cannot be built.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The method cannot work on these items.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// Examples and pile make no task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Features have the wrong shape or values.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// Categories do not belong together.
    #[error(transparent)]
    Taxonomy(#[from] TaxonomyError),
    /// There is no such encoder.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The encoder cannot run with these settings on this machine.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The weights cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The weights cannot be fetched.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The network failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A training cannot go on, or is not complete.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// Files cannot be sorted into folders.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// Files for another program cannot be written.
    #[error(transparent)]
    Export(#[from] ExportError),

    /// A parameter of the method has no effect on what it was given for.
    #[error("the parameter {parameter} of {method} only affects learning from base classes, and has no effect here")]
    NoEffect {
        /// The method.
        method: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// The method uses cosine similarity, which this normalisation of centres breaks.
    #[error("centres scaled as in the authors' code are not for the method {method}, which uses cosine similarity")]
    CentreNorm {
        /// The method.
        method: String,
    },
    /// A calibration for a method that does not use one.
    #[error("the method {method} does not use a calibration")]
    NoUseForCalibration {
        /// The method.
        method: String,
    },
    /// A calibration of the features of another encoder.
    #[error(
        "{} is a calibration of the encoder \"{own}\", but {} was made by \"{encoder}\"; calibrate on features of the same encoder",
        calibration.display(), items.display()
    )]
    CalibrationEncoder {
        /// The calibration.
        calibration: PathBuf,
        /// Its encoder.
        own: String,
        /// The items.
        items: PathBuf,
        /// Theirs.
        encoder: String,
    },
    /// A calibration of features of another length.
    #[error(
        "{} is a calibration of {own} features, but {} has {dim} an item; calibrate on features of the same encoder",
        calibration.display(), items.display()
    )]
    CalibrationDim {
        /// The calibration.
        calibration: PathBuf,
        /// Its number of features.
        own: usize,
        /// The items.
        items: PathBuf,
        /// Theirs.
        dim: usize,
    },
    /// A calibration for a taxonomy that has one.
    #[error("{} has a calibration of its own ({knowledge})", taxonomy.display())]
    CalibratedAlready {
        /// The taxonomy.
        taxonomy: PathBuf,
        /// What that was learnt from.
        knowledge: String,
    },
    /// A calibration that does not fit a taxonomy.
    #[error("{}: {source}", calibration.display())]
    Calibration {
        /// The calibration.
        calibration: PathBuf,
        /// What is wrong.
        source: TaxonomyError,
    },
    /// A taxonomy that cannot grow.
    #[error("{source}")]
    CannotGrow {
        /// Why.
        source: TaxonomyError,
    },
    /// Nothing can be learnt from these items.
    #[error("{what}: {source}")]
    CannotCalibrate {
        /// The items, and which classes of them.
        what: String,
        /// Why.
        source: CalibrationError,
    },
    /// No item to calibrate on has a label.
    #[error("{}: no item has a label; a calibration is learnt from items whose classes are known", items.display())]
    NoLabels {
        /// The items.
        items: PathBuf,
    },
    /// A split without base classes.
    #[error("split {}: there is no base class; list the classes to learn from in \"base\"", split.display())]
    NoBaseClasses {
        /// The split.
        split: PathBuf,
    },

    /// Features in memory whose parts are of different lengths.
    #[error("{rows} rows of features have {ids} ids and {labels} labels; every row needs one of each")]
    Ragged {
        /// Rows of features.
        rows: usize,
        /// Their ids.
        ids: usize,
        /// Their labels, `None` for none.
        labels: usize,
    },
    /// A file of examples without any.
    #[error("{source}")]
    NoExamples {
        /// What is wrong with it.
        source: DataError,
    },
    /// Every item has a label.
    #[error(
        "{}: every item has a label, so there is nothing to sort; leave the label of the pile's items empty",
        items.display()
    )]
    AllLabelled {
        /// The items.
        items: PathBuf,
        /// A label that is a word for "no label".
        odd: Option<String>,
    },
    /// There is no item.
    #[error("{}: there is nothing to sort", items.display())]
    NothingToSort {
        /// The items.
        items: PathBuf,
    },
    /// An example without a class.
    #[error("{}: item \"{id}\" has no label, and every example needs one", items.display())]
    UnlabelledExample {
        /// The examples.
        items: PathBuf,
        /// The item.
        id: String,
    },
    /// An example image without a class.
    #[error(
        "{}: the image {image} has no label; put the examples of each class into a folder of its name, or name their \
         classes in a manifest with the columns path and label",
        source_path.display()
    )]
    UnlabelledImage {
        /// The images.
        source_path: PathBuf,
        /// The one.
        image: String,
    },
    /// Examples that are no support.
    #[error("{}: {source}", items.display())]
    Examples {
        /// The examples.
        items: PathBuf,
        /// What is wrong.
        source: TaskError,
    },
    /// Two classes with the same direction, as items have a single feature.
    #[error(
        "the items have one feature, and items are compared by their direction: all numbers of one sign are alike, so nothing \
         can tell classes `{first}` and `{second}` apart; use features of two or more columns"
    )]
    OneFeature {
        /// A class.
        first: String,
        /// The other.
        second: String,
    },
    /// Two classes with the same prototype.
    #[error(
        "the examples of classes `{first}` and `{second}` have the same mean, so nothing can tell them apart; give them one \
         label or other examples"
    )]
    SameMean {
        /// A class.
        first: String,
        /// The other.
        second: String,
    },
    /// A split for several kinds of items.
    #[error("a class split is of one kind of items, and there are {kinds}; give only labelled base classes of each")]
    SplitOfKinds {
        /// The number of kinds.
        kinds: usize,
    },
    /// Features that cannot come from the same encoder.
    #[error(
        "{} has {first_dim} features an item, but {} has {second_dim}; features must come from the same encoder",
        first.display(), second.display()
    )]
    Dim {
        /// Some items.
        first: PathBuf,
        /// Their number of features.
        first_dim: usize,
        /// Other items.
        second: PathBuf,
        /// Theirs.
        second_dim: usize,
    },

    /// An image that cannot be read, where that is not allowed.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The image.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Not one image can be read.
    #[error("{}: not one image could be read", source_path.display())]
    NoImages {
        /// Where they are.
        source_path: PathBuf,
    },
    /// An encoder without weights to fetch.
    #[error("the encoder `{encoder}` has no weights of its own")]
    NoWeights {
        /// The encoder.
        encoder: &'static str,
    },
    /// An ONNX file where only a built-in architecture works.
    #[error("{} is a file of ONNX, which makes features and nothing else", model.display())]
    OnlyEmbeds {
        /// The file.
        model: PathBuf,
    },
    /// Weights or precision were given for an ONNX file.
    #[error("{} has its own weights and its own precision; leave both out", model.display())]
    OnnxIsWhole {
        /// The file.
        model: PathBuf,
    },
    /// This build cannot run ONNX files.
    #[cfg(not(feature = "onnx"))]
    #[error("{} needs ONNX Runtime, which this build is without; build it with the cargo feature `onnx`", model.display())]
    NoOnnx {
        /// The file.
        model: PathBuf,
    },
    /// An ONNX file cannot be loaded.
    #[error(transparent)]
    Onnx(#[from] genus_vision::OnnxError),
    /// The encoder of a taxonomy is not where it was.
    #[error(
        "{} was made with the encoder {encoder}, but {} no longer exists",
        taxonomy.display(),
        file.display()
    )]
    WeightsGone {
        /// The taxonomy.
        taxonomy: PathBuf,
        /// The encoder.
        encoder: String,
        /// What is missing: the file of its weights, or the folder of its training.
        file: PathBuf,
    },
    /// The encoder of a taxonomy is not known by name.
    #[error(
        "{} does not say which encoder made its features{}",
        taxonomy.display(),
        fingerprint.as_ref().map_or(String::new(), |text| format!(", only its fingerprint, which none at hand has: {text}"))
    )]
    UnknownEncoder {
        /// The taxonomy.
        taxonomy: PathBuf,
        /// What is known of the encoder.
        fingerprint: Option<String>,
    },
    /// There is no place for the feature cache.
    #[error("there is no home folder to keep the feature cache in; set GENUS_CACHE")]
    NoCacheFolder,
    /// There is no place for temporary files.
    #[error("cannot make a temporary folder in {}: {source}", folder.display())]
    Scratch {
        /// The folder of temporary files.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A pipe cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Pipe {
        /// The pipe.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A list of images through a pipe that has a name.
    #[error("{} is a pipe with a list of images; name a file, or - for the standard input", path.display())]
    PipeOfImages {
        /// The pipe.
        path: PathBuf,
    },

    /// A folder for results cannot be made.
    #[error("cannot make the folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What it is for.
        purpose: Purpose,
        /// Why.
        source: io::Error,
    },
    /// The truths or texts to show cannot be found.
    #[error(
        "there is neither a file {named} nor a column of that name, since {} is no table; name a table with the columns id and \
         {column}, or say label for the folders that images are in",
        pile.display()
    )]
    NoSuchColumn {
        /// What was named.
        named: String,
        /// The column that a table would have.
        column: String,
        /// The pile.
        pile: PathBuf,
    },
    /// The pile has no such column.
    #[error("{source}; there is no file {named} either")]
    NoSuchFile {
        /// What is wrong with the pile.
        source: Box<DataError>,
        /// What was named.
        named: String,
    },
    /// The labels of the pile were asked for, and it has none.
    #[error("the pile has no labels; use one folder per class, or a column label")]
    PileWithoutLabels,
    /// A table that says nothing about the items.
    #[error("{}: not one of its ids is that of an item that is shown", table.display())]
    NoneOfTheIds {
        /// The table.
        table: PathBuf,
    },
    /// An export needs a folder.
    #[error("the export {export} needs {}", if *export == Export::ImageFolder { "a sorted folder" } else { "a folder of results" })]
    ExportNeedsFolder {
        /// The export.
        export: Export,
    },
    /// Files would be sorted into the folder that they come from.
    #[error("{} is inside {}, so that the next run would sort the links as well", folder.display(), pile.display())]
    SortIntoPile {
        /// The folder.
        folder: PathBuf,
        /// The pile.
        pile: PathBuf,
    },
    /// An id leads out of its table's folder.
    #[error(
        "\"{id}\" names {}, which is neither below here nor beside {}; whoever made the table may have chosen it",
        path.display(), table.display()
    )]
    FileOutside {
        /// The id.
        id: String,
        /// Where it leads.
        path: PathBuf,
        /// The table.
        table: PathBuf,
    },
    /// An item without a file.
    #[error("\"{id}\" is no file, neither from here nor beside {}; sort images, or a table whose ids are their paths", table.display())]
    NoFile {
        /// The id.
        id: String,
        /// The table.
        table: PathBuf,
        /// Whether the files were to be sorted. Otherwise they were to be exported.
        sorting: bool,
    },
}

/// What a folder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The results of a run.
    Results,
    /// A taxonomy that has grown.
    Growth,
    /// A collection.
    Collection,
}
