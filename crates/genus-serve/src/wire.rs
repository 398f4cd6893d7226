//! What goes over the wire: the shapes of requests and answers.

use std::sync::LazyLock;

use genus_collection::{Candidate, Decision, Entry, GroupInfo, ItemInfo, ItemKind, ItemState, Query, Sort, Status};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A collection in numbers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusBody {
    /// What it is called.
    name: String,
    /// All items.
    items: u64,
    /// Those in groups that have names.
    known: u64,
    /// Those in groups without.
    grouped: u64,
    /// Those that wait.
    waiting: u64,
    /// Those that belong to no class.
    noise: u64,
    /// Those that a person put somewhere or confirmed there.
    confirmed: u64,
    /// Features per item.
    dim: Option<usize>,
    /// Whether items have pictures.
    pictures: bool,
    /// The last entry of the log.
    log: i64,
    /// Whether sorting everything anew is worth it.
    refresh_advised: bool,
    /// What the next undo would undo, in a word.
    undo: Option<String>,
    /// What the next redo would redo.
    redo: Option<String>,
    /// What the one who asks may do.
    role: String,
}

impl StatusBody {
    pub(crate) fn new(status: &Status, pictures: bool, role: &str) -> Self {
        let name = status.folder.canonicalize().unwrap_or_else(|_| status.folder.clone());
        Self {
            name: name
                .file_name()
                .map_or_else(|| "collection".to_owned(), |name| name.to_string_lossy().into_owned()),
            items: status.items,
            known: status.in_named,
            grouped: status.in_new,
            waiting: status.waiting,
            noise: status.noise,
            confirmed: status.confirmed,
            dim: status.dim,
            pictures,
            log: status.log.0,
            refresh_advised: status.refresh_advised,
            undo: status.undo.clone(),
            redo: status.redo.clone(),
            role: role.to_owned(),
        }
    }
}

/// A group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupBody {
    id: i64,
    name: String,
    /// Whether a person called it that.
    named: bool,
    /// How many items are in it.
    items: u64,
    /// How many of them a person put there or confirmed.
    confirmed: u64,
    /// How many of them are in doubt: nobody has said so, and it is not very likely either.
    doubtful: u64,
    /// How many wait that it is the best guess for.
    guessed: u64,
    /// The colour that it is shown in, such as `#0072b2`.
    colour: &'static str,
    /// The names of groups that were merged into it.
    merged: Vec<String>,
    /// The larger group that it is one of.
    parent: Option<i64>,
    /// Whether it holds groups and no items.
    holds_groups: bool,
    /// Items that are typical of it, the surest first.
    typical: Vec<i64>,
}

/// The colours of groups: after so many they begin again.
static COLOURS: LazyLock<Vec<String>> = LazyLock::new(|| genus_report::palette::colours(96));

impl GroupBody {
    pub(crate) fn new(group: GroupInfo, doubtful: u64, typical: Vec<i64>) -> Self {
        Self {
            id: group.id.0,
            name: group.name,
            named: group.named,
            items: group.items,
            confirmed: group.confirmed,
            doubtful,
            guessed: group.guessed,
            colour: &COLOURS[(group.id.0.max(1) - 1) as usize % COLOURS.len()],
            merged: group.merged,
            parent: group.parent.map(|parent| parent.0),
            holds_groups: group.holds_groups,
            typical,
        }
    }
}

/// All groups, those with names first, then from large to small.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupsBody {
    pub(crate) groups: Vec<GroupBody>,
    /// The last entry of the log.
    pub(crate) log: i64,
}

/// What an item is: in a group that has a name, in one without, in none yet, or belonging nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KindBody {
    Known,
    Group,
    Waiting,
    Noise,
}

impl From<KindBody> for ItemKind {
    fn from(kind: KindBody) -> Self {
        match kind {
            KindBody::Known => ItemKind::Known,
            KindBody::Group => ItemKind::Group,
            KindBody::Waiting => ItemKind::Waiting,
            KindBody::Noise => ItemKind::Noise,
        }
    }
}

/// The order of items: by number, from typical to doubtful, or the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SortBody {
    #[default]
    Number,
    Surest,
    LeastSure,
}

impl From<SortBody> for Sort {
    fn from(sort: SortBody) -> Self {
        match sort {
            SortBody::Number => Sort::Number,
            SortBody::Surest => Sort::Surest,
            SortBody::LeastSure => Sort::LeastSure,
        }
    }
}

/// An item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemBody {
    id: i64,
    name: String,
    kind: KindBody,
    /// The group that it is in, or the best guess while it waits.
    group: Option<i64>,
    /// The name of that group.
    group_name: Option<String>,
    /// How likely it belongs there.
    probability: Option<f32>,
    /// Whether a person said so.
    confirmed: bool,
    /// Whether it stays there because of a merge or a split.
    bound: bool,
    /// The number of its scene: copies, crops and frames of one burst have the same.
    scene: Option<i64>,
    /// Whether there is a picture of it.
    picture: bool,
}

impl ItemBody {
    pub(crate) fn new(item: ItemInfo, is_named: impl Fn(i64) -> bool) -> Self {
        let picture = item.path.is_some();
        let (kind, group, group_name, probability, confirmed, bound) = match item.state {
            ItemState::In {
                group,
                group_name,
                probability,
                confirmed,
                bound,
            } => {
                let kind = match is_named(group.0) {
                    true => KindBody::Known,
                    false => KindBody::Group,
                };
                (kind, Some(group.0), Some(group_name), probability, confirmed, bound)
            }
            ItemState::Waiting {
                guess,
                guess_name,
                probability,
            } => (
                KindBody::Waiting,
                guess.map(|guess| guess.0),
                guess_name,
                probability,
                false,
                false,
            ),
            ItemState::Noise => (KindBody::Noise, None, None, None, true, false),
        };
        Self {
            id: item.id.0,
            name: item.name,
            kind,
            group,
            group_name,
            probability,
            confirmed,
            bound,
            scene: item.scene,
            picture,
        }
    }
}

/// A group that an item may belong to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CandidateBody {
    group: i64,
    name: String,
    /// The cosine of the item with the middle of the group.
    similarity: f32,
}

impl From<Candidate> for CandidateBody {
    fn from(candidate: Candidate) -> Self {
        Self {
            group: candidate.group.0,
            name: candidate.name,
            similarity: candidate.similarity,
        }
    }
}

/// An item, and why it is where it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhyBody {
    #[serde(flatten)]
    pub(crate) item: ItemBody,
    /// The groups that it is most like, without those that a person said it is not of.
    pub(crate) candidates: Vec<CandidateBody>,
}

/// Items that nobody is sure of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnsureBody {
    pub(crate) items: Vec<WhyBody>,
    /// How many items wait.
    pub(crate) total: u64,
    /// The last entry of the log.
    pub(crate) log: i64,
}

/// All items by what is true of them, in columns: short, because there may be very many.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct SheetBody {
    ids: Vec<i64>,
    names: Vec<String>,
    /// The group that each is in, or the best guess while it waits.
    groups: Vec<Option<i64>>,
    /// How likely each belongs there, in thousandths.
    probabilities: Vec<Option<u16>>,
    /// What each is, as a letter: `s` sorted into its group, `c` the same and confirmed, `w` waiting, `n` noise.
    states: String,
    /// Whether there is a picture of each: `1` or `0`.
    pictures: String,
    /// The last entry of the log.
    log: i64,
}

impl SheetBody {
    pub(crate) fn new(items: Vec<ItemInfo>, log: i64) -> Self {
        let mut sheet = Self { log, ..Self::default() };
        for item in items {
            let (letter, group, probability) = match item.state {
                ItemState::In {
                    group,
                    probability,
                    confirmed,
                    ..
                } => (if confirmed { 'c' } else { 's' }, Some(group), probability),
                ItemState::Waiting { guess, probability, .. } => ('w', guess, probability),
                ItemState::Noise => ('n', None, None),
            };
            sheet.ids.push(item.id.0);
            sheet.names.push(item.name);
            sheet.groups.push(group.map(|group| group.0));
            sheet
                .probabilities
                .push(probability.map(|share| (share.clamp(0.0, 1.0) * 1000.0).round() as u16));
            sheet.states.push(letter);
            sheet.pictures.push(if item.path.is_some() { '1' } else { '0' });
        }
        sheet
    }
}

/// A page of items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ItemsBody {
    pub(crate) items: Vec<ItemBody>,
    /// The cursor of the next page; none after the last.
    pub(crate) next: Option<String>,
    /// How many items there are on all pages.
    pub(crate) total: u64,
    /// The last entry of the log.
    pub(crate) log: i64,
}

/// Which items are meant.
#[derive(Clone, Debug, Default, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// The group that they are in, or, with the kind `waiting`, the best guess.
    group: Option<i64>,
    /// What they are.
    #[param(inline)]
    kind: Option<KindBody>,
    /// Whether a person said so.
    confirmed: Option<bool>,
    /// How likely they belong there, at least.
    #[schema(minimum = 0, maximum = 1)]
    #[param(minimum = 0, maximum = 1)]
    at_least: Option<f64>,
    /// The same, at most.
    #[schema(minimum = 0, maximum = 1)]
    #[param(minimum = 0, maximum = 1)]
    at_most: Option<f64>,
    /// What is in their names.
    #[param(max_length = 1000)]
    name: Option<String>,
}

impl Filter {
    pub(crate) fn query(&self) -> Result<Query, String> {
        for bound in [self.at_least, self.at_most].into_iter().flatten() {
            if !(0.0..=1.0).contains(&bound) {
                return Err(format!("a probability is between 0 and 1, and not {bound}"));
            }
        }
        Ok(Query {
            group: self.group.map(genus_collection::GroupId),
            kind: self.kind.map(Into::into),
            confirmed: self.confirmed,
            at_least: self.at_least,
            at_most: self.at_most,
            name: self.name.clone(),
        })
    }
}

/// An entry of the log.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct EntryBody {
    no: i64,
    /// Milliseconds since 1970.
    time: i64,
    author: String,
    /// What was done, in a word.
    kind: String,
    /// The event that it is: born, grew, named, merged, split, moved, confirmed, rejected, noise, applied, refreshed, undone or redone.
    event: &'static str,
    /// The details.
    #[schema(value_type = Object)]
    said: serde_json::Value,
    /// The entry that it undid or redid.
    of: Option<i64>,
    /// How many items it changed.
    items: u64,
    /// How many groups it changed.
    groups: u64,
}

impl EntryBody {
    pub(crate) fn no(&self) -> i64 {
        self.no
    }

    pub(crate) fn event(&self) -> &'static str {
        self.event
    }
}

impl From<&Entry> for EntryBody {
    fn from(entry: &Entry) -> Self {
        let born = entry.said.get("born").and_then(|born| born.as_array());
        let event = match entry.kind.as_str() {
            "add" | "label" | "take-over" if born.is_some_and(|born| !born.is_empty()) => "born",
            "add" | "label" | "take-over" => "grew",
            "name" => "named",
            "merge" => "merged",
            "split" => "split",
            "move" => "moved",
            "confirm" => "confirmed",
            "reject" => "rejected",
            "noise" => "noise",
            "apply" => "applied",
            "refresh" => "refreshed",
            "undo" => "undone",
            "redo" => "redone",
            _ => "changed",
        };
        Self {
            no: entry.no.0,
            time: entry.time,
            author: entry.author.clone(),
            kind: entry.kind.clone(),
            event,
            said: entry.said.clone(),
            of: entry.of.map(|of| of.0),
            items: entry.items,
            groups: entry.groups,
        }
    }
}

/// Entries of the log, the last first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogBody {
    pub(crate) entries: Vec<EntryBody>,
    /// The last entry of the log.
    pub(crate) log: i64,
}

/// Items in the plane.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MapBody {
    /// How they were laid out.
    pub(crate) projection: &'static str,
    /// The numbers of the items.
    pub(crate) ids: Vec<i64>,
    /// Where each is: x, y, x, y and so on, between -1 and 1.
    pub(crate) xy: Vec<f32>,
}

/// An item that comes as features.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewItem {
    /// What it is called; by default its number in the request.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub(crate) name: Option<String>,
    /// Its features.
    pub(crate) features: Vec<f32>,
}

/// Where an item is that came.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecisionBody {
    #[serde(flatten)]
    item: ItemBody,
    /// Whether it was not there before.
    new: bool,
    /// The group that is likeliest after that.
    runner_up: Option<RunnerUp>,
}

/// A group by number and name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunnerUp {
    group: i64,
    name: String,
}

impl From<Decision> for DecisionBody {
    fn from(decision: Decision) -> Self {
        let named = decision.named;
        Self {
            item: ItemBody::new(decision.item, |_| named),
            new: decision.new,
            runner_up: decision
                .runner_up
                .map(|(group, name)| RunnerUp { group: group.0, name }),
        }
    }
}

/// The line of a batch for an item that was not taken in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnfitBody {
    /// What is wrong with it.
    pub(crate) error: String,
}
