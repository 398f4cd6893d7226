//! The one thread that writes: what many ask for within a moment is one commit.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use genus::LiveEncoder;
use genus_collection::{Arrival, Collection, EntryId, Error, ItemState, Reply, Review};
use tokio::sync::{oneshot, watch};

use crate::actions::ActionBody;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::wire::{DecisionBody, EntryBody, UnfitBody};

/// How long others are waited for, and how many items make a commit.
const MOMENT: Duration = Duration::from_millis(2);
const ITEMS: usize = 256;
/// Requests that may wait for the writer.
const QUEUE: usize = 4096;
/// How often is looked whether those that wait have found each other.
const REVIEW_EVERY: Duration = Duration::from_secs(1);

/// What is asked of the writer.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) author: String,
    /// The entry that the log must be at.
    pub(crate) if_match: Option<i64>,
    /// The key that the answer is kept under, and the hash of the request.
    pub(crate) key: Option<([u8; 32], [u8; 32])>,
}

pub(crate) enum Work {
    Items {
        arrivals: Vec<Arrival>,
        encoder: Option<Arc<LiveEncoder>>,
        /// Whether the answer is one item, or a line for each.
        single: bool,
    },
    Act(Box<ActionBody>),
    Settle(Review),
}

/// What the writer answers, when it is on disk.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) log: i64,
    pub(crate) lines: bool,
}

type QueuedJob = (Job, oneshot::Sender<Answer>);

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: SyncSender<QueuedJob>,
}

impl Writer {
    /// Starts the thread that writes, and the one that looks after items that wait.
    pub(crate) fn start(
        collection: Collection,
        events: Events,
        metrics: Metrics,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<(Self, Vec<JoinHandle<()>>)> {
        let (queue, jobs) = sync_channel(QUEUE);
        let waiting = watch::Sender::new(0u64);
        let news = waiting.subscribe();
        let folder = collection.folder().to_owned();
        let writing = std::thread::Builder::new().name("writer".to_owned()).spawn({
            let stop = stop.clone();
            move || write(collection, &jobs, &events, &metrics, &stop, &waiting)
        })?;
        let reviewing = std::thread::Builder::new().name("review".to_owned()).spawn({
            let queue = queue.clone();
            move || review(&folder, &queue, &news, &stop)
        })?;
        Ok((Self { queue }, vec![writing, reviewing]))
    }

    /// Asks for something, and waits until it is on disk.
    pub(crate) async fn ask(&self, job: Job) -> Result<Answer, Problem> {
        let (to, answer) = oneshot::channel();
        match self.queue.try_send((job, to)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Problem::busy("too much waits to be written", 1)),
            Err(TrySendError::Disconnected(_)) => return Err(Problem::busy("the service is ending", 5)),
        }
        answer
            .await
            .map_err(|_| Problem::busy("the service is ending; whether it was done is not known", 5))
    }
}

fn write(
    mut collection: Collection,
    jobs: &Receiver<QueuedJob>,
    events: &Events,
    metrics: &Metrics,
    stop: &watch::Receiver<bool>,
    waiting: &watch::Sender<u64>,
) {
    loop {
        let first = match jobs.recv_timeout(Duration::from_millis(100)) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) if *stop.borrow() => return,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut batch = vec![first];
        let until = Instant::now() + MOMENT;
        let size = |batch: &[QueuedJob]| batch.iter().map(|(job, _)| job.size()).sum::<usize>();
        while size(&batch) < ITEMS {
            match jobs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        let start = Instant::now();
        let (jobs, answers): (Vec<Job>, Vec<_>) = batch.into_iter().unzip();
        let before = events.last();
        let mut unsettled = 0;
        let mut done = collection.together(|collection| {
            unsettled = 0;
            commit(collection, &jobs, &mut unsettled)
        });
        if done.is_err() && jobs.len() > 1 {
            // One that fails must not take the others with it.
            done = Ok(jobs
                .iter()
                .map(|job| {
                    let alone =
                        collection.together(|collection| commit(collection, std::slice::from_ref(job), &mut unsettled));
                    let log = collection.last_entry().map_or(before, |no| no.0);
                    match alone {
                        Ok(mut answer) if answer.len() == 1 => answer.remove(0),
                        Ok(_) => failed(&Problem::internal("there is no answer"), log),
                        Err(error) => failed(&noted(error), log),
                    }
                })
                .collect());
        }
        if let Ok(entries) = collection.log_after(EntryId(before), 10_000) {
            let entries: Vec<EntryBody> = entries.iter().map(EntryBody::from).collect();
            events.tell(&entries);
        }
        metrics.commits.inc();
        metrics.commit_seconds.observe(start.elapsed().as_secs_f64());
        metrics.log.set(events.last() as f64);
        let done = done.unwrap_or_else(|error| {
            let problem = noted(error);
            jobs.iter().map(|_| failed(&problem, before)).collect()
        });
        for ((answer, to), job) in done.into_iter().zip(answers).zip(&jobs) {
            if answer.status < 300 && matches!(job.work, Work::Items { .. }) {
                metrics.items.inc_by(job.size() as u64);
            }
            // Whoever asked may be gone.
            let _ = to.send(answer);
        }
        if unsettled > 0 {
            waiting.send_modify(|count| *count += unsettled);
        }
    }
}

impl Job {
    fn size(&self) -> usize {
        match &self.work {
            Work::Items { arrivals, .. } => arrivals.len(),
            _ => 1,
        }
    }
}

/// What a client is told of an error; what it may not know goes to standard error.
pub(crate) fn noted(error: Error) -> Problem {
    let said = error.to_string();
    let problem = Problem::from(error);
    if problem.status() >= 500 {
        eprintln!("genus serve: {said}");
    }
    problem
}

fn failed(problem: &Problem, log: i64) -> Answer {
    Answer {
        status: problem.status(),
        body: problem.to_bytes(),
        log,
        lines: false,
    }
}

/// Does all that was asked for; what refuses one does not concern the others.
fn commit(collection: &mut Collection, jobs: &[Job], unsettled: &mut u64) -> Result<Vec<Answer>, Error> {
    let mut answers: Vec<Answer> = Vec::with_capacity(jobs.len());
    let mut at = 0;
    while let Some(job) = jobs.get(at) {
        // Items of requests that follow each other are taken in together.
        let together = jobs[at..].iter().take_while(|job| job.is_plain()).count();
        if together > 1 {
            let jobs = &jobs[at..at + together];
            let all: Vec<Arrival> = jobs.iter().flat_map(Job::arrivals).cloned().collect();
            collection.set_author(&job.author);
            let mut decided = collection.take(&all, None)?.into_iter();
            let log = collection.last_entry()?.0;
            for job in jobs {
                let own = decided.by_ref().take(job.size()).collect();
                answers.push(items_answer(job, own, log, unsettled));
            }
            at += together;
            continue;
        }
        answers.push(one(collection, job, unsettled)?);
        at += 1;
    }
    Ok(answers)
}

impl Job {
    /// Whether it is about items of features, whenever they come.
    fn is_plain(&self) -> bool {
        matches!(self.work, Work::Items { encoder: None, .. }) && self.if_match.is_none() && self.key.is_none()
    }

    fn arrivals(&self) -> &[Arrival] {
        match &self.work {
            Work::Items { arrivals, .. } => arrivals,
            _ => &[],
        }
    }
}

fn one(collection: &mut Collection, job: &Job, unsettled: &mut u64) -> Result<Answer, Error> {
    let log = collection.last_entry()?.0;
    if let Some((key, request)) = &job.key
        && let Some(reply) = collection.reply(key)?
    {
        return Ok(match reply.request == *request {
            true => Answer {
                status: reply.status,
                lines: !job.is_single(),
                body: reply.body,
                log,
            },
            false => failed(&Problem::other_request(), log),
        });
    }
    if job.if_match.is_some_and(|wanted| wanted != log) {
        return Ok(failed(&Problem::changed(log), log));
    }
    collection.set_author(&job.author);
    let answer = match &job.work {
        Work::Items { arrivals, encoder, .. } => match collection.take(arrivals, encoder.as_deref()) {
            Ok(decided) => items_answer(job, decided, collection.last_entry()?.0, unsettled),
            Err(error @ (Error::Data(_) | Error::Dim { .. })) => failed(&noted(error), log),
            Err(error) => return Err(error),
        },
        Work::Act(action) => match action.run(collection) {
            Ok(body) => Answer {
                status: 200,
                body: serde_json::to_vec(&body).unwrap_or_default(),
                log: collection.last_entry()?.0,
                lines: false,
            },
            Err(
                error @ (Error::Refused(_) | Error::Nothing | Error::NoSuchGroup { .. } | Error::NoSuchItem { .. }),
            ) => failed(&noted(error), log),
            Err(error) => return Err(error),
        },
        Work::Settle(review) => {
            collection.set_author("genus");
            collection.settle(review)?;
            // Nobody waits for this answer.
            Answer {
                status: 204,
                body: Vec::new(),
                log,
                lines: false,
            }
        }
    };
    if let Some((key, request)) = &job.key
        && answer.status < 300
    {
        let reply = Reply {
            request: *request,
            status: answer.status,
            body: answer.body.clone(),
        };
        collection.keep_reply(key, &reply)?;
    }
    Ok(answer)
}

impl Job {
    fn is_single(&self) -> bool {
        !matches!(self.work, Work::Items { single: false, .. })
    }
}

fn items_answer(
    job: &Job,
    decided: Vec<Result<genus_collection::Decision, genus_collection::ItemError>>,
    log: i64,
    unsettled: &mut u64,
) -> Answer {
    let waits = decided
        .iter()
        .flatten()
        .filter(|found| found.new && matches!(found.item.state, ItemState::Waiting { .. }));
    *unsettled += waits.count() as u64;
    let mut body = Vec::new();
    let single = job.is_single();
    for decision in decided {
        match decision {
            Ok(decision) => {
                let _ = serde_json::to_writer(&mut body, &DecisionBody::from(decision));
            }
            Err(unfit) if single => return failed(&Problem::unfit(unfit.to_string()), log),
            Err(unfit) => {
                let error = unfit.to_string();
                let _ = serde_json::to_writer(&mut body, &UnfitBody { error });
            }
        }
        if !single {
            body.push(b'\n');
        }
    }
    Answer {
        status: 200,
        body,
        log,
        lines: !single,
    }
}

/// Looks from time to time whether those that wait have found each other. That takes a while, and nobody waits for it.
fn review(
    folder: &std::path::Path,
    queue: &SyncSender<QueuedJob>,
    waiting: &watch::Receiver<u64>,
    stop: &watch::Receiver<bool>,
) {
    let mut seen = 0;
    let mut pause = REVIEW_EVERY;
    let mut since = Instant::now();
    while !*stop.borrow() {
        std::thread::sleep(Duration::from_millis(50));
        let now = *waiting.borrow();
        if since.elapsed() < pause || now == seen {
            continue;
        }
        seen = now;
        let start = Instant::now();
        let found = Collection::open(folder).and_then(|collection| collection.review());
        // At most a tenth of the time goes into this.
        pause = REVIEW_EVERY.max(start.elapsed() * 10);
        since = Instant::now();
        match found {
            Ok(review) if !review.is_empty() => {
                let job = Job {
                    work: Work::Settle(review),
                    author: String::new(),
                    if_match: None,
                    key: None,
                };
                let _ = queue.try_send((job, oneshot::channel().0));
            }
            Ok(_) => {}
            Err(error) => drop(noted(error)),
        }
    }
}
