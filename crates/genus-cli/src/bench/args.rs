//! The arguments of `genus bench`, and what they mean.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Subcommand;
use genus::{CacheChoice, CalibrationFile, TableOptions};
use genus_core::episode::{Half, Pile, Shape, ShortClasses, Tail};
use genus_core::projection::Projection;
use genus_data::datasets::{Images, ParseImagesError};
use genus_lab::{
    ALPHAS, Bench, BenchMethod, DataInput, DataSource, EmbeddingOptions, Experiment, LargeSettings, PileSettings,
    PileVariable, StreamSettings, THRESHOLDS,
};

use super::paper::{Paper, Transfer};
use super::{Backbones, BenchRun, BenchTask, EpisodePlot, HalfOfClasses, ResultFiles, ScoreRun};
use crate::args::Arguments;
use crate::args::shared::{
    ClassArgs, ColumnArgs, DataRootArgs, IMAGES, ImageArgs, PrototypeArgs, SecondStepArgs, TABLES, of_paper, ranged,
};
use crate::failure::Failure;
use crate::say::Terminal;

/// Run the paper's experiments
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  genus bench main --features cub.npz --split cub.split.json
  genus bench main --features cub.npz --shot 1 --methods shc,ukc --json cub.json
  genus bench realtime --data cub200 --data-root /data --encoder dinov2-small
  genus bench paper --data-root /data --out results"
)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    experiment: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// All methods on episodes of one shape: the main table
    #[command(
        after_help = "Examples:\n  genus bench main --features cub.npz --split cub.split.json\n  \
                            genus bench main --data cub200 --data-root /data --encoder runs/cub --shot 1\n  \
                            genus bench main --features cub.npz --methods shc,shc:boost=1.1 --shot 1\n  \
                            genus bench main --features cub.npz --tail 3-24 --outliers 5"
    )]
    Main(EpisodeArgs),
    /// Real-time: every query on its own against the known classes
    #[command(
        after_help = "Examples:\n  genus bench realtime --features cub.npz --split cub.split.json --svg trade-off.svg"
    )]
    Realtime(EpisodeArgs),
    /// Large tasks: cluster a subset, assign the rest
    #[command(
        mut_arg("tail", |arg| arg.hide(true)),
        mut_arg("outliers", |arg| arg.hide(true)),
        after_help = "Examples:\n  genus bench large --features cifar.npz --subset 400 --tasks 10\n  \
                            genus bench large --features cifar.npz --authors --tasks 1"
    )]
    Large {
        #[command(flatten)]
        common: CommonArgs,
        /// Number of queries to cluster
        #[arg(long, value_parser = ranged::<NonZeroUsize>("subset"), default_value = "400", value_name = "N")]
        subset: NonZeroUsize,
        /// Number of tasks to average over
        #[arg(long, value_parser = ranged::<NonZeroU64>("tasks"), default_value = "10", value_name = "N", visible_alias = "episodes")]
        tasks: NonZeroU64,
        #[command(flatten)]
        second_step: SecondStepArgs,
        /// Take the data in file order and cluster the first 40 items per class, as the authors' code does
        #[arg(long)]
        authors: bool,
    },
    /// Accuracy against the number of queries per class
    #[command(
        after_help = "Examples:\n  genus bench queries --features cub.npz --query 1,5,10,15,20 --svg queries.svg"
    )]
    Queries {
        #[command(flatten)]
        common: CommonArgs,
        /// Numbers of queries per class; by default 1,5,10,15,20,25,30, as far as the data allows
        #[arg(long, value_parser = ranged::<NonZeroUsize>("query"), value_name = "Q,…", value_delimiter = ',')]
        query: Vec<NonZeroUsize>,
        #[command(flatten)]
        episodes: EpisodeCountArgs,
    },
    /// Realistic piles: items per class, long tails, bursts, numbers of examples, outliers
    #[command(
        after_help = "Examples:\n  genus bench piles --features birds.npz --svg piles.svg --report piles.html\n  \
                            genus bench piles --features birds.npz --half first --with-base\n  \
                            genus bench piles --features birds.npz --classes 48 --way 10 --items 200 --vary items,tail"
    )]
    Piles(Box<PilesArgs>),
    /// A pile item by item in several random orders, as in `assign --grow`, compared with the whole pile at once and OCD
    #[command(
        after_help = "Examples:\n  genus bench stream --features birds.npz --svg stream.svg\n  \
                            genus bench stream --features birds.npz --split birds.split.json --tail 6-200 --orders 10"
    )]
    Stream(Box<StreamArgs>),
    /// More known and new classes: 5 and 20, 10 and 20, 10 and 40
    #[command(after_help = "Examples:\n  genus bench tasks --features cub.npz --split cub.split.json")]
    Tasks(EpisodeArgs),
    /// Ablation of the calibrated method, and SHC and UKC on its features
    #[command(
        after_help = "Examples:\n  genus bench ablation --features cub.npz --split cub.split.json\n  \
                            genus bench ablation --features cub.npz --split cub.split.json --tail 3-24 --outliers 5"
    )]
    Ablation(EpisodeArgs),
    /// UKC against α
    #[command(
        after_help = "Examples:\n  genus bench alpha --features cub.npz --alpha 1.2,1.4,1.6\n  \
                            genus bench alpha --features cub.npz --methods ukc:first-alpha=1.4"
    )]
    Alpha {
        #[command(flatten)]
        bench: EpisodeArgs,
        /// Values of α
        #[arg(long, value_name = "A,…", value_delimiter = ',', default_values_t = ALPHAS)]
        alpha: Vec<f64>,
    },
    /// SHC against t
    #[command(after_help = "Examples:\n  genus bench threshold --features cub.npz --threshold 0,1,2,3,4")]
    Threshold {
        #[command(flatten)]
        bench: EpisodeArgs,
        /// Values of t
        #[arg(long, value_parser = ranged::<usize>("threshold"), value_name = "T,…", value_delimiter = ',', default_values_t = THRESHOLDS)]
        threshold: Vec<usize>,
    },
    /// Several encoders on the same images
    #[command(
        after_help = "Examples:\n  genus bench backbones --data cub200 --data-root /data --encoders dino-vitb16,resnet18,resnet50\n  \
                            genus bench backbones --images birds/ --encoders resnet18@my.pth,runs/birds"
    )]
    Backbones {
        #[command(flatten)]
        bench: EpisodeArgs,
        /// The encoders: names or folders of training runs, optionally with weights as in resnet18@FILE
        #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
        encoders: Vec<String>,
    },
    /// Encoders trained on one data set, tested on others
    #[command(
        after_help = "Examples:\n  genus bench transfer --data cub200,cars --data-root /data --trained cub200=runs/cub,cars=runs/cars"
    )]
    Transfer {
        /// The data sets to test on
        #[arg(long, value_name = "A,B,…", value_delimiter = ',', required = true)]
        data: Vec<String>,
        #[command(flatten)]
        data_root: DataRootArgs,
        /// Which images of the data sets to use
        #[arg(long, default_value_t, value_name = "train|test|all|paper")]
        images: Images,
        /// The training runs, with the data set of each
        #[arg(long, value_name = "NAME=RUN,…", value_delimiter = ',', required = true)]
        trained: Vec<String>,
        #[command(flatten)]
        trial: TrialArgs,
        #[command(flatten)]
        results: ResultArgs,
        #[command(flatten)]
        image_options: ImageArgs,
        #[command(flatten)]
        episodes: EpisodeCountArgs,
        /// Queries per class
        #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
        query: usize,
    },
    /// Judge predictions of any program for episodes that --export-episodes wrote
    #[command(
        mut_arg("seeds", |arg| arg.hide(true)),
        after_help = "Examples:\n  genus bench main --features cub.npz --export-episodes episodes.jsonl\n  \
                            genus bench score --episodes episodes.jsonl --predictions mine.jsonl --name mine"
    )]
    Score {
        /// The episodes
        #[arg(long, value_name = "FILE")]
        episodes: PathBuf,
        /// The predictions, one JSON line per episode: {"episode": 0, "predictions": [0, 3, "new-1"]}, in the order of the
        /// queries: the number or the name of a known class, or anything else for a new category
        #[arg(long, value_name = "FILE")]
        predictions: PathBuf,
        /// The name of the method in the results
        #[arg(long, default_value = "predictions", value_name = "NAME")]
        name: String,
        #[command(flatten)]
        results: ResultArgs,
    },
    /// Draw single episodes: maps of the categories, and confusion matrices
    #[command(after_help = "Examples:\n  genus bench plot --features cub.npz --split cub.split.json --out figures")]
    Plot {
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        trial: TrialArgs,
        /// The folder for the figures
        #[arg(long, short, value_name = "DIR")]
        out: PathBuf,
        /// Number of episodes to draw
        #[arg(long, value_parser = ranged::<NonZeroU64>("episodes"), default_value = "4", value_name = "N")]
        episodes: NonZeroU64,
        /// Queries per class
        #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
        query: usize,
        /// The projection to two dimensions
        #[arg(long, default_value_t = Projection::Tsne, value_name = "tsne|pca")]
        projection: Projection,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List the data sets on disk, with their image counts next to the paper's
    #[command(after_help = "Examples:\n  genus bench data --data-root /data\n  genus bench data --data cub200")]
    Data {
        #[command(flatten)]
        data_root: DataRootArgs,
        /// The data sets to look for; by default all
        #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
        data: Vec<String>,
    },
    /// All experiments on all data sets on disk, into one folder; resumes after an interrupt
    #[command(after_help = "Examples:\n  genus bench paper --data-root /data --out results\n  \
                            genus bench paper --data-root /data --data cub200 --encoder efficientnet-lite2 --weights lite2.pth\n  \
                            genus bench paper --data-root /data --trained cub200=runs/cub --encoders resnet18,resnet50")]
    Paper(Box<PaperArgs>),
}

/// Piles as people have them.
#[derive(Debug, clap::Args)]
struct PilesArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    half: HalfArgs,
    /// Classes per pile
    #[arg(long, value_parser = ranged::<NonZeroUsize>("classes"), default_value = "24", value_name = "N")]
    classes: NonZeroUsize,
    /// Known classes per pile
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 8, value_name = "N")]
    way: usize,
    /// Labelled examples per known class, unless these are varied
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    shot: usize,
    /// Numbers of items per class, without examples; everything else is varied at the middle one
    #[arg(long, value_parser = ranged::<NonZeroUsize>("items"), value_name = "Q,…", value_delimiter = ',', default_values = ["20", "60", "200"])]
    items: Vec<NonZeroUsize>,
    /// The smallest and largest class size in the pile with a long tail, in geometric steps
    #[arg(long, default_value = "6-200", value_name = "LOW-HIGH")]
    tail: Tail,
    /// Frames per burst, simulated in feature space: the row itself and rows near it
    #[arg(long, value_parser = ranged::<NonZeroUsize>("bursts"), default_value = "3", value_name = "N")]
    bursts: NonZeroUsize,
    /// Numbers of examples per known class
    #[arg(long, value_parser = ranged::<NonZeroUsize>("examples"), value_name = "K,…", value_delimiter = ',', default_values = ["1", "5", "10"])]
    examples: Vec<NonZeroUsize>,
    /// Outliers per pile, each of a different class that is not in the pile; they are not scored
    #[arg(long, value_parser = ranged::<NonZeroUsize>("outliers"), default_value = "10", value_name = "N")]
    outliers: NonZeroUsize,
    /// What to vary: items, tail, bursts, examples, outliers; by default all
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    vary: Vec<PileVariable>,
    /// Number of piles of each kind to average over
    #[arg(long, value_parser = ranged::<NonZeroU64>("draws"), default_value = "3", value_name = "N", visible_alias = "episodes")]
    draws: NonZeroU64,
    #[command(flatten)]
    choice: MethodArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// A pile item by item.
#[derive(Debug, clap::Args)]
struct StreamArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    half: HalfArgs,
    /// Classes per pile
    #[arg(long, value_parser = ranged::<NonZeroUsize>("classes"), default_value = "24", value_name = "N")]
    classes: NonZeroUsize,
    /// Known classes per pile
    #[arg(long, value_parser = ranged::<usize>("way"), default_value_t = 8, value_name = "N")]
    way: usize,
    /// Labelled examples per known class
    #[arg(long, value_parser = ranged::<usize>("shot"), default_value_t = 5, value_name = "K")]
    shot: usize,
    /// Items per class
    #[arg(long, value_parser = ranged::<NonZeroUsize>("items"), default_value = "60", value_name = "Q", conflicts_with = "tail")]
    items: NonZeroUsize,
    /// A long tail: class sizes from LOW to HIGH, in geometric steps
    #[arg(long, value_name = "LOW-HIGH")]
    tail: Option<Tail>,
    /// Number of random orders per pile
    #[arg(long, value_parser = ranged::<NonZeroU64>("orders"), default_value = "5", value_name = "N")]
    orders: NonZeroU64,
    /// Number of points along the stream at which accuracy is measured, the last one at its end
    #[arg(long, value_parser = ranged::<NonZeroUsize>("looks"), default_value = "8", value_name = "N")]
    looks: NonZeroUsize,
    /// Number of piles to average over
    #[arg(long, value_parser = ranged::<NonZeroU64>("draws"), default_value = "1", value_name = "N", visible_alias = "episodes")]
    draws: NonZeroU64,
    #[command(flatten)]
    choice: MethodArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// Which of the classes are drawn from.
#[derive(Debug, clap::Args)]
struct HalfArgs {
    /// Use only one half of the classes: first (for choosing settings) or second (for measuring). Classes alternate between the
    /// halves, whatever the seed
    #[arg(long, value_name = "first|second")]
    half: Option<Half>,
    /// Use the classes of the other half as base classes
    #[arg(long, requires = "half")]
    with_base: bool,
}

/// Everything that the disk allows.
#[derive(Debug, clap::Args)]
struct PaperArgs {
    #[command(flatten)]
    data_root: DataRootArgs,
    /// The data sets; by default those of the paper
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    data: Vec<String>,
    /// Which images of the data sets to use
    #[arg(long, default_value_t, value_name = "train|test|all|paper")]
    images: Images,
    /// The folder of the results
    #[arg(long, short, default_value = "results", value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    image_options: ImageArgs,
    /// First train the encoder on the base classes of every data set for this many epochs, in OUT/runs
    #[arg(long, value_parser = ranged::<u64>("epochs"), value_name = "EPOCHS", num_args = 0..=1, default_missing_value = "50")]
    train: Option<u64>,
    /// Training runs, with the data set of each
    #[arg(long, value_name = "NAME=RUN,…", value_delimiter = ',')]
    trained: Vec<String>,
    /// Encoders for the table of backbones
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    encoders: Vec<String>,
    #[command(flatten)]
    views: ViewArgs,
    /// Methods of the main, real-time and large-scale tables; by default those of the paper
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    methods: Vec<String>,
    /// What to do with classes that have too few items
    #[arg(long, default_value_t = ShortClasses::Skip, value_name = "error|skip")]
    short_classes: ShortClasses,
    #[command(flatten)]
    episodes: EpisodeCountArgs,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, clap::Args)]
struct ViewArgs {
    /// Augmented views per image for the trained baselines; by default 2 if one of them runs
    #[arg(long, value_parser = ranged::<usize>("views"), value_name = "N", help_heading = IMAGES)]
    views: Option<usize>,
}

#[derive(Debug, clap::Args)]
struct CommonArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    trial: TrialArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// The data of a bench.
#[derive(Debug, clap::Args)]
struct SourceArgs {
    /// The feature file, with labels
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["images", "data"],
        conflicts_with_all = ["images", "data"]
    )]
    features: Option<PathBuf>,
    /// A data set by name, such as cub200; see `genus bench data`
    #[arg(long, value_name = "NAME", conflicts_with = "split")]
    data: Option<String>,
    #[command(flatten)]
    data_root: DataRootArgs,
    /// Images: a folder with one folder per class, or a manifest with labels; with --data, which of its images: train, test,
    /// all or paper
    #[arg(long, value_name = "DIR|PART")]
    images: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// The feature columns, such as pca1,pca2 or 'pca*', or one column of lists
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', help_heading = TABLES)]
    feature_columns: Vec<String>,
    #[command(flatten)]
    image_options: ImageArgs,
    #[command(flatten)]
    views: ViewArgs,
    /// The folder of a training run with --objective ocd; by default only OCD's head is trained, on the features
    #[arg(long, value_name = "RUN", help_heading = IMAGES, conflicts_with = "features")]
    ocd: Option<PathBuf>,
    /// Class split, JSON {"base": [...], "novel": [...]}; episodes are drawn from the novel classes, by default from all
    #[arg(long, value_name = "FILE")]
    split: Option<PathBuf>,
    /// The data set of a feature file, to print the paper's figures next to the results
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    paper_set: Option<String>,
}

/// What all experiments on episodes can be told.
#[derive(Debug, clap::Args)]
struct TrialArgs {
    #[command(flatten)]
    classes: ClassArgs,
    /// A long tail: queries per class from LOW to HIGH, in geometric steps; without a value 3-24
    #[arg(long, value_name = "LOW-HIGH", num_args = 0..=1, default_missing_value = "3-24")]
    tail: Option<Tail>,
    /// Outlier queries, each of a different class that is not in the episode; they are not scored
    #[arg(long, value_parser = ranged::<usize>("outliers"), default_value_t = 0, value_name = "N")]
    outliers: usize,
    #[command(flatten)]
    choice: MethodArgs,
}

/// What is run.
#[derive(Debug, clap::Args)]
struct MethodArgs {
    /// Methods with their parameters, such as shc,ukc:alpha=1.3; by default those of the paper's table and calibrated
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    methods: Vec<String>,
    /// A calibration for the method calibrated; by default it is learnt from the base classes
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    #[command(flatten)]
    prototypes: PrototypeArgs,
}

/// How often it is run, and where the results go.
#[derive(Debug, clap::Args)]
struct ResultArgs {
    /// Run N seeds, starting at --seed, and report the means
    #[arg(long, value_parser = ranged::<NonZeroUsize>("seeds"), default_value = "1", value_name = "N")]
    seeds: NonZeroUsize,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the main table as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Also write the main table as LaTeX
    #[arg(long, value_name = "FILE")]
    latex: Option<PathBuf>,
    /// Also draw the accuracies as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, clap::Args)]
struct PageArgs {
    /// Also write a self-contained HTML page with the tables, the charts and this command
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}
/// What experiments on episodes of one shape have in common.
#[derive(Debug, clap::Args)]
struct EpisodeArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Queries per class
    #[arg(long, value_parser = ranged::<usize>("query"), default_value_t = 15, value_name = "Q", conflicts_with = "tail")]
    query: usize,
    #[command(flatten)]
    episodes: EpisodeCountArgs,
    /// Also write the episodes, as row numbers with their classes; genus bench score judges predictions for them
    #[arg(long, value_name = "FILE")]
    export_episodes: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct EpisodeCountArgs {
    /// Number of episodes to average over
    #[arg(long, value_parser = ranged::<NonZeroU64>("episodes"), default_value = "500", value_name = "N")]
    episodes: NonZeroU64,
}

impl Arguments for BenchArgs {
    type Options = BenchTask;

    fn options(self, seed: u64) -> Result<BenchTask, Failure> {
        Ok(match self.experiment {
            BenchCommand::Main(args) => args.run(Experiment::Main, seed)?.into(),
            BenchCommand::Realtime(args) => args.run(Experiment::RealTime, seed)?.into(),
            BenchCommand::Tasks(args) => args.run(Experiment::Tasks, seed)?.into(),
            BenchCommand::Ablation(args) => args.run(Experiment::Ablation, seed)?.into(),
            BenchCommand::Alpha { bench, alpha } => bench.run(Experiment::Alpha(alpha), seed)?.into(),
            BenchCommand::Threshold { bench, threshold } => bench.run(Experiment::Threshold(threshold), seed)?.into(),
            BenchCommand::Queries {
                common,
                query,
                episodes,
            } => {
                let experiment = Experiment::Queries(numbers(&query));
                common
                    .run(experiment, Shape::default().query, episodes.episodes, seed)?
                    .into()
            }
            BenchCommand::Large {
                common,
                subset,
                tasks,
                second_step,
                authors,
            } => {
                let experiment = Experiment::Large(LargeSettings {
                    subset: subset.get(),
                    refine: second_step.refine,
                    centre_norm: second_step.centre_norm,
                    authors,
                });
                common.run(experiment, Shape::default().query, tasks, seed)?.into()
            }
            BenchCommand::Piles(args) => args.run(seed)?.into(),
            BenchCommand::Stream(args) => args.run(seed)?.into(),
            BenchCommand::Backbones { bench, encoders } => {
                if bench.common.source.features.is_some() {
                    return Err(Failure::Usage(
                        "features come from one encoder; name images with --images or a data set with --data".into(),
                    ));
                }
                if bench.export_episodes.is_some() {
                    return Err(Failure::Usage(
                        "episodes do not depend on the encoder; export them with genus bench main".into(),
                    ));
                }
                // Every encoder has its own experiment.
                let run = bench.run(Experiment::Main, seed)?;
                BenchTask::Backbones(Box::new(Backbones { run, encoders }))
            }
            BenchCommand::Transfer {
                data,
                data_root,
                images,
                trained,
                trial,
                results,
                image_options,
                episodes,
                query,
            } => BenchTask::Transfer(Box::new(Transfer {
                data,
                root: data_root.path(),
                images,
                trained,
                options: image_options.options(),
                bench: trial.bench(query, episodes.episodes, seed)?,
                seeds: results.seeds,
                files: results.files(),
            })),
            BenchCommand::Score {
                episodes,
                predictions,
                name,
                results,
            } => BenchTask::Score(Box::new(ScoreRun {
                episodes,
                predictions,
                name,
                files: results.files(),
            })),
            BenchCommand::Plot {
                source,
                trial,
                out,
                episodes,
                query,
                projection,
                page,
            } => BenchTask::Plot(Box::new(EpisodePlot {
                source: source.source(trial.choice.calibration.clone())?,
                bench: trial.bench(query, episodes, seed)?,
                projection,
                out,
                page: page.report,
            })),
            BenchCommand::Data { data_root, data } => BenchTask::Data {
                root: data_root.path(),
                names: data,
            },
            BenchCommand::Paper(args) => BenchTask::Paper(Box::new(args.paper(seed)?)),
        })
    }

    fn run(task: BenchTask, terminal: Terminal) -> Result<(), Failure> {
        task.run(terminal)
    }
}

impl EpisodeArgs {
    fn run(self, experiment: Experiment, seed: u64) -> Result<BenchRun, Failure> {
        if self.export_episodes.is_some() && self.common.results.seeds.get() > 1 {
            return Err(Failure::Usage(
                "every seed has its own episodes; export them with one seed".into(),
            ));
        }
        Ok(BenchRun {
            export: self.export_episodes,
            ..self.common.run(experiment, self.query, self.episodes.episodes, seed)?
        })
    }
}

impl CommonArgs {
    fn run(self, experiment: Experiment, query: usize, episodes: NonZeroU64, seed: u64) -> Result<BenchRun, Failure> {
        Ok(BenchRun {
            source: self.source.source(self.trial.choice.calibration.clone())?,
            half: None,
            bench: self.trial.bench(query, episodes, seed)?,
            experiment,
            seeds: self.results.seeds,
            files: self.results.files(),
            export: None,
        })
    }
}

impl PilesArgs {
    fn run(self, seed: u64) -> Result<BenchRun, Failure> {
        let piles = PileSettings {
            items: numbers(&self.items),
            tail: self.tail,
            frames: self.bursts.get(),
            examples: numbers(&self.examples),
            outliers: self.outliers.get(),
            varied: match &self.vary[..] {
                [] => PileVariable::ALL.to_vec(),
                _ => self.vary,
            },
        };
        let shape = Shape {
            way: self.way,
            shot: self.shot,
            new: new_classes(self.classes, self.way)?,
            query: piles.usual_items(),
        };
        Ok(BenchRun {
            source: self.source.source(self.choice.calibration.clone())?,
            half: self.half.half(),
            bench: self.choice.bench(shape, self.draws, seed)?,
            experiment: Experiment::Piles(piles),
            seeds: self.results.seeds,
            files: self.results.files(),
            export: None,
        })
    }
}

impl StreamArgs {
    fn run(self, seed: u64) -> Result<BenchRun, Failure> {
        let shape = Shape {
            way: self.way,
            shot: self.shot,
            new: new_classes(self.classes, self.way)?,
            query: self.items.get(),
        };
        Ok(BenchRun {
            source: self.source.source(self.choice.calibration.clone())?,
            half: self.half.half(),
            bench: Bench {
                pile: Pile {
                    tail: self.tail,
                    outliers: 0,
                },
                ..self.choice.bench(shape, self.draws, seed)?
            },
            experiment: Experiment::Stream(StreamSettings {
                orders: self.orders.get(),
                looks: self.looks.get(),
            }),
            seeds: self.results.seeds,
            files: self.results.files(),
            export: None,
        })
    }
}

impl PaperArgs {
    fn paper(self, seed: u64) -> Result<Paper, Failure> {
        Ok(Paper {
            root: self.data_root.path(),
            data: self.data,
            images: self.images,
            out: self.out,
            options: of_paper(self.image_options.options()),
            train: self.train,
            trained: self.trained,
            encoders: self.encoders,
            views: self.views.views,
            bench: Bench {
                episodes: self.episodes.episodes.get(),
                seed,
                methods: BenchMethod::list(self.methods.iter().map(String::as_str))?,
                short_classes: self.short_classes,
                heads: CacheChoice::User.folder()?.map(|root| root.join("heads")),
                ..Bench::default()
            },
            page: self.page.report,
        })
    }
}

impl SourceArgs {
    fn source(self, calibration: Option<PathBuf>) -> Result<DataSource, Failure> {
        let input = match (self.data, self.features, self.images) {
            (Some(name), _, images) => DataInput::Named {
                name,
                root: self.data_root.path(),
                images: match images {
                    None => Images::default(),
                    Some(text) => text
                        .to_string_lossy()
                        .parse()
                        .map_err(|e: ParseImagesError| Failure::Usage(e.to_string()))?,
                },
            },
            (None, Some(path), _) | (None, None, Some(path)) => DataInput::Path(path),
            (None, None, None) => {
                return Err(Failure::Usage(
                    "name a feature file with --features, images with --images, or a data set with --data".into(),
                ));
            }
        };
        Ok(DataSource {
            input,
            split: self.split,
            paper_set: self.paper_set,
            calibration,
            tables: TableOptions {
                features: self.feature_columns,
                ..self.columns.options()
            },
            embedding: EmbeddingOptions {
                images: self.image_options.options(),
                views: self.views.views,
                ocd: self.ocd,
            },
        })
    }
}

impl TrialArgs {
    fn bench(self, query: usize, episodes: NonZeroU64, seed: u64) -> Result<Bench, Failure> {
        let shape = Shape {
            way: self.classes.way,
            shot: self.classes.shot,
            new: self.classes.new,
            query,
        };
        Ok(Bench {
            pile: Pile {
                tail: self.tail,
                outliers: self.outliers,
            },
            short_classes: self.classes.short_classes,
            ..self.choice.bench(shape, episodes, seed)?
        })
    }
}

impl MethodArgs {
    fn bench(self, shape: Shape, episodes: NonZeroU64, seed: u64) -> Result<Bench, Failure> {
        Ok(Bench {
            shape,
            episodes: episodes.get(),
            seed,
            methods: BenchMethod::list(self.methods.iter().map(String::as_str))?,
            prototypes: self.prototypes.kind,
            heads: CacheChoice::User.folder().ok().flatten().map(|root| root.join("heads")),
            calibration: match &self.calibration {
                None => None,
                Some(path) => Some(CalibrationFile::read(path)?.calibration),
            },
            ..Bench::default()
        })
    }
}

impl HalfArgs {
    fn half(&self) -> Option<HalfOfClasses> {
        let with_base = self.with_base;
        self.half.map(|half| HalfOfClasses { half, with_base })
    }
}

impl ResultArgs {
    fn files(self) -> ResultFiles {
        ResultFiles {
            json: self.json,
            csv: self.csv,
            latex: self.latex,
            svg: self.svg,
            page: self.page.report,
        }
    }
}

/// How many of the classes of a pile are new.
fn new_classes(classes: NonZeroUsize, way: usize) -> Result<usize, Failure> {
    classes.get().checked_sub(way).ok_or_else(|| {
        Failure::Usage(format!(
            "{way} known classes (--way) do not fit into a pile of {classes} (--classes)"
        ))
    })
}

fn numbers(list: &[NonZeroUsize]) -> Vec<usize> {
    list.iter().map(|number| number.get()).collect()
}
