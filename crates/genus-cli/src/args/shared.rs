//! Arguments that several commands have, and what they mean.

use std::path::PathBuf;
use std::str::FromStr;

use genus::{CacheChoice, ImageOptions, NextSteps, OutputOptions, TableFormat, TableOptions};
use genus_core::episode::ShortClasses;
use genus_core::{CentreNorm, Prototypes, ranges};
use genus_data::{Export, Format, LinkKind};
use genus_vision::{Limits, Model, Precision};

use crate::output::OutputTarget;

/// Reads a number that the table of ranges has under a name.
pub(crate) fn ranged<T>(name: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err: ToString> + Clone + Send + Sync + 'static,
{
    move |text| {
        if let Ok(number) = text.parse() {
            ranges::check(name, number).map_err(|e| format!("it must be {e}"))?;
        }
        text.parse().map_err(|e: T::Err| e.to_string())
    }
}

/// The heading of the options that matter for tables only.
pub(crate) const TABLES: &str = "Options for tables";

/// Which columns of a table are what, but for its features.
#[derive(Debug, clap::Args)]
pub(crate) struct ColumnArgs {
    /// The label column; by default label, class, target or y
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    label: Option<String>,
    /// The id column; by default id, or a path
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    id: Option<String>,
    /// A label that means "no label", such as unknown, NA or ?; can be given several times. An empty label always does
    #[arg(long, value_name = "WORD", help_heading = TABLES)]
    unlabelled: Vec<String>,
}

impl ColumnArgs {
    pub(crate) fn options(self) -> TableOptions {
        TableOptions {
            id: self.id,
            label: self.label,
            unlabelled: self.unlabelled.iter().map(|word| word.trim().to_owned()).collect(),
            ..TableOptions::default()
        }
    }
}

/// Which columns of a table are what.
#[derive(Debug, clap::Args)]
pub(crate) struct TableArgs {
    /// The feature columns, such as pca1,pca2 or 'pca*', or one column of lists; by default columns numbered from 0 or 1, or
    /// embedding
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = TABLES)]
    features: Vec<String>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// The format of tables whose file names do not tell: csv, tsv, jsonl, parquet, arrow, npy, npz or safetensors. With it, -
    /// is a table on standard input
    #[arg(long, value_name = "FORMAT", help_heading = TABLES)]
    input: Option<TableFormat>,
}

impl TableArgs {
    pub(crate) fn options(self) -> TableOptions {
        TableOptions {
            features: self.features,
            format: self.input,
            ..self.columns.options()
        }
    }
}

/// The heading of the options that matter for images only.
pub(crate) const IMAGES: &str = "Options for images";

/// Which encoder makes the features.
#[derive(Debug, clap::Args)]
pub(crate) struct EncoderArgs {
    /// The encoder, such as dinov2-small or dinov2-small:size=448 (see `genus encoders list`), or the folder of a training run.
    /// By default the built-in one; for `train` and `bench paper` the paper's, for `assign` the taxonomy's
    #[arg(long, value_name = "ENCODER", help_heading = IMAGES)]
    encoder: Option<String>,
    /// The encoder's weights, .safetensors or PyTorch; by default from the Hugging Face hub or its cache
    #[arg(long, value_name = "FILE", help_heading = IMAGES)]
    weights: Option<PathBuf>,
}

/// How images become features.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    encoder: EncoderArgs,
    /// Precision of matrix products, by default f32. bf16 is faster on CPUs with AVX512-BF16 or AMX, for vision transformers
    /// only. Features of different precision are never compared
    #[arg(long, value_name = "f32|bf16", help_heading = IMAGES)]
    precision: Option<Precision>,
    /// Do not use the feature cache
    #[arg(long, help_heading = IMAGES)]
    no_cache: bool,
    /// Fail at the first unreadable image instead of skipping it
    #[arg(long, help_heading = IMAGES)]
    strict: bool,
    /// Skip images larger than this many million pixels
    #[arg(long, value_parser = ranged::<u64>("max-megapixels"), default_value_t = 100, value_name = "N", help_heading = IMAGES)]
    max_megapixels: u64,
    /// Skip image files larger than this many megabytes
    #[arg(long, value_parser = ranged::<u64>("max-file-mb"), default_value_t = 256, value_name = "N", help_heading = IMAGES)]
    max_file_mb: u64,
}

impl EncoderArgs {
    /// The same as options, with everything else as it is by default.
    pub(crate) fn options(self) -> ImageOptions {
        ImageOptions {
            encoder: self.encoder,
            weights: self.weights,
            ..ImageOptions::default()
        }
    }
}

/// The same options with the encoder of the paper where none is named.
pub(crate) fn of_paper(mut options: ImageOptions) -> ImageOptions {
    options.encoder.get_or_insert_with(|| Model::PAPER.to_owned());
    options
}

impl ImageArgs {
    pub(crate) fn options(self) -> ImageOptions {
        ImageOptions {
            precision: self.precision,
            cache: match self.no_cache {
                true => CacheChoice::Nowhere,
                false => CacheChoice::User,
            },
            strict: self.strict,
            limits: Limits {
                file_bytes: self.max_file_mb.saturating_mul(1 << 20),
                pixels: self.max_megapixels.saturating_mul(1_000_000),
            },
            ..self.encoder.options()
        }
    }
}

/// Where data sets lie.
#[derive(Debug, clap::Args)]
pub(crate) struct DataRootArgs {
    /// The folder of the data sets; by default $GENUS_DATA, or the current folder
    #[arg(long, value_name = "DIR")]
    data_root: Option<PathBuf>,
}

impl DataRootArgs {
    /// The folder.
    pub(crate) fn path(self) -> PathBuf {
        self.data_root
            .or_else(|| std::env::var_os("GENUS_DATA").map(PathBuf::from))
            .unwrap_or_else(|| ".".into())
    }
}

/// The classes of an episode.
#[derive(Debug, clap::Args)]
pub(crate) struct ClassArgs {
    /// Known classes per episode
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 5, value_name = "N")]
    pub(crate) way: usize,
    /// Labelled examples per known class
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    pub(crate) shot: usize,
    /// New classes per episode
    #[arg(long, value_parser = ranged::<usize>("new"), default_value_t = 5, value_name = "M")]
    pub(crate) new: usize,
    /// What to do with classes that have too few items
    #[arg(long, default_value_t = ShortClasses::Error, value_name = "error|skip")]
    pub(crate) short_classes: ShortClasses,
}

/// How examples become prototypes.
#[derive(Debug, clap::Args)]
pub(crate) struct PrototypeArgs {
    /// How a class's examples become its prototype: raw-mean, unit-mean or unit-mean-unnormalised
    #[arg(long = "proto", default_value_t = Prototypes::default(), value_name = "KIND")]
    pub(crate) kind: Prototypes,
}

/// What happens when a subset was clustered and the rest is assigned.
#[derive(Debug, clap::Args)]
pub(crate) struct SecondStepArgs {
    /// Number of k-means passes over all items before they are assigned
    #[arg(long, value_parser = ranged::<usize>("refine"), default_value_t = 0, value_name = "N")]
    pub(crate) refine: usize,
    /// How centres are normalised before items are assigned: cosine, or authors-columns as in the authors' code
    #[arg(long, default_value_t = CentreNorm::Cosine, value_name = "NORM")]
    pub(crate) centre_norm: CentreNorm,
}

/// Where results go, and how they are written.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the results to this folder instead of standard output
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Format of the assignments: csv, jsonl or parquet
    #[arg(long, short, default_value_t = Format::Csv, value_name = "FORMAT")]
    format: Format,
    /// Put an apostrophe before CSV cells that a spreadsheet would take for a formula (= + - @)
    #[arg(long)]
    spreadsheet: bool,
}

/// What is done with the files of the items afterwards.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Next steps (for images, and tables whose ids are paths)")]
pub(crate) struct NextStepsArgs {
    /// Make one folder per category in DIR, with links to its files; unsure items go to unsure/, by their best guess. Nothing
    /// is moved or replaced, and existing links stay
    #[arg(long, value_name = "DIR")]
    sort_into: Option<PathBuf>,
    /// What --sort-into makes: symbolic links, hard links or copies
    #[arg(long, default_value_t = LinkKind::Sym, value_name = "sym|hard|copy", requires = "sort_into")]
    link: LinkKind,
    /// Allow ids of a table to name files outside its folder and the current one
    #[arg(long)]
    allow_outside: bool,
    /// Also write files for another program; can be given several times. label-studio (tasks with predictions) and fiftyone are
    /// written to --out, imagefolder (metadata.csv for Hugging Face datasets) to --sort-into
    #[arg(long, value_name = "label-studio|fiftyone|imagefolder")]
    export: Vec<Export>,
}

impl OutputArgs {
    /// Where the results go, and what is done with the files of the items.
    pub(crate) fn target(self, next: NextStepsArgs) -> OutputTarget {
        OutputTarget {
            folder: self.out,
            options: OutputOptions {
                format: self.format,
                spreadsheet: self.spreadsheet,
                next: NextSteps {
                    sort_into: next.sort_into,
                    link: next.link,
                    allow_outside: next.allow_outside,
                    exports: next.export,
                },
            },
        }
    }
}
