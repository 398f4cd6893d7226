//! What happens to a collection in the world: earlier versions, clocks that jump, strange names, a hundred thousand groups.

use genus::{Features, Silent, Table};
use genus_collection::{Action, AddOptions, Answer, Collection, GroupId, Items, Level};
use proptest::prelude::*;
use rusqlite::Connection;

/// Items of three kinds.
fn things(count: usize) -> Table {
    let row = |at: usize| {
        let mut row = [0.0f32; 6];
        row[at % 3] = 1.0;
        row[3 + at % 2] = 0.2 + 0.01 * at as f32;
        row
    };
    Table {
        ids: (0..count).map(|at| format!("thing {at}")).collect(),
        labels: vec![None; count],
        features: Features::from_rows((0..count).map(row)).unwrap(),
    }
}

fn collection(folder: &tempfile::TempDir) -> Collection {
    let mut collection = Collection::create(folder.path().join("c"), "ann").unwrap();
    collection.add(things(30), &AddOptions::default(), &Silent).unwrap();
    collection
}

fn database(folder: &tempfile::TempDir) -> Connection {
    Connection::open(folder.path().join("c/collection.db")).unwrap()
}

/// What of a database each version added; a version is never changed, so that without these it is one of the version before.
const ADDED: [&str; 2] = ["DROP TABLE token; DROP TABLE reply;", "DROP TABLE asked;"];

#[test]
fn a_database_of_an_earlier_version_is_read_and_goes_on() {
    for version in 1..=ADDED.len() {
        let folder = tempfile::tempdir().unwrap();
        let mut fresh = collection(&folder);
        let group = fresh.groups().unwrap()[0].id;
        let name = "gull".to_owned();
        fresh.act(&Action::Name { group, name }).unwrap();
        let before = (fresh.groups().unwrap(), fresh.items(Items::All, None, 100).unwrap());
        drop(fresh);
        let db = database(&folder);
        db.execute_batch(&ADDED[version - 1..].concat()).unwrap();
        db.pragma_update(None, "user_version", version as i64).unwrap();
        drop(db);
        // To read it nothing is changed.
        let path = folder.path().join("c");
        let read = Collection::open(&path).unwrap();
        assert_eq!(
            (read.groups().unwrap(), read.items(Items::All, None, 100).unwrap()),
            before
        );
        assert!(read.asked(10).unwrap().is_empty());
        drop(read);
        let found: i64 = database(&folder)
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(found, version as i64);
        // To write it, it becomes one of today.
        let mut written = Collection::open_to_write(&path, "bob").unwrap();
        assert_eq!(
            (written.groups().unwrap(), written.items(Items::All, None, 100).unwrap()),
            before
        );
        written.undo().unwrap();
        written.add(things(40), &AddOptions::default(), &Silent).unwrap();
        assert!(written.check().unwrap().is_sound());
        assert_eq!(written.log(None, 10).unwrap().last().unwrap().author, "ann");
        written.note_asked(&written.ask(3).unwrap());
        assert!(!written.asked(10).unwrap().is_empty());
    }
}

#[test]
fn a_clock_that_jumps_changes_no_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut collection = collection(&folder);
    let group = collection.groups().unwrap()[0].id;
    let name = |name: &str| Action::Name {
        group,
        name: name.to_owned(),
    };
    for (round, time) in [i64::MAX, i64::MIN, -1, 0, 253_402_300_800_000].into_iter().enumerate() {
        collection.act(&name(&format!("n{round}"))).unwrap();
        database(&folder)
            .execute("UPDATE log SET time = ?1 WHERE no = (SELECT max(no) FROM log)", [time])
            .unwrap();
    }
    let numbers = |collection: &Collection| -> Vec<i64> {
        let log = collection.log(None, 100).unwrap();
        log.iter().map(|entry| entry.no.0).collect()
    };
    assert!(numbers(&collection).is_sorted_by(|a, b| a > b));
    for round in (0..5).rev() {
        assert_eq!(collection.group(group).unwrap().name, format!("n{round}"));
        collection.undo().unwrap();
    }
    (0..5).for_each(|_| drop(collection.redo().unwrap()));
    assert_eq!(collection.group(group).unwrap().name, "n4");
    assert!(collection.check().unwrap().is_sound());
}

#[test]
fn what_was_asked_is_remembered_with_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut collection = collection(&folder);
    let questions = collection.ask(2).unwrap();
    collection.note_asked(&questions);
    // Twice is once.
    collection.note_asked(&questions);
    let asked = collection.asked(10).unwrap();
    assert_eq!(asked.len(), 2);
    assert!(
        asked.iter().all(|asked| asked.of_group && asked.answer.is_none()),
        "{asked:?}"
    );
    let group = collection.find_group(&asked[1].name).unwrap();
    let name = "gull".to_owned();
    collection.act(&Action::Name { group, name }).unwrap();
    let after = collection.asked(10).unwrap();
    // The open one first.
    assert_eq!(after[0].name, asked[0].name);
    assert_eq!(
        (&after[1].name, &after[1].answer),
        (&asked[1].name, &Some(Answer::Is("gull".to_owned())))
    );
    let item = collection.items(Items::All, None, 1).unwrap().remove(0);
    collection.note_asked(&[genus_collection::Question::Place { item: item.clone() }]);
    assert_eq!(collection.asked(1).unwrap()[0].name, item.name);
    collection.act(&Action::Noise { items: vec![item.id] }).unwrap();
    let answers = collection.asked(10).unwrap();
    assert!(
        answers.iter().any(|asked| asked.answer == Some(Answer::Noise)),
        "{answers:?}"
    );
    // Who answers one question after another is not asked the same again.
    let open: Vec<_> = collection.ask(100).unwrap();
    let is_item = |question: &genus_collection::Question| matches!(question, genus_collection::Question::Place { item: own } if own.id == item.id);
    assert!(!open.iter().any(is_item));
}

#[test]
fn a_hundred_thousand_groups_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut collection = Collection::create(folder.path().join("c"), "ann").unwrap();
    const COUNT: usize = 100_000;
    let row = |at: usize| [(at % 317) as f32 + 1.0, (at / 317) as f32 + 1.0, 7.0, 1.0];
    let table = Table {
        ids: (0..COUNT).map(|at| at.to_string()).collect(),
        labels: (0..COUNT).map(|at| Some(format!("kind {at}"))).collect(),
        features: Features::from_rows((0..COUNT).map(row)).unwrap(),
    };
    let options = AddOptions {
        labelled: true,
        ..AddOptions::default()
    };
    collection.add(table, &options, &Silent).unwrap();
    assert_eq!(collection.groups().unwrap().len(), COUNT);
    let last = collection.find_group("kind 99999").unwrap();
    let groups = vec![collection.find_group("kind 5").unwrap(), last];
    collection
        .act(&Action::Merge {
            groups,
            into: Some(last),
        })
        .unwrap();
    assert_eq!(collection.group(last).unwrap().items, 2);
    collection.undo().unwrap();
    assert_eq!(collection.group(last).unwrap().items, 1);
    collection.undo().unwrap();
    assert_eq!(collection.groups().unwrap().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_name_may_have_anything_in_it(names in prop::collection::btree_set("[^ ]|\\PC{1,20}|[\u{0}-\u{1f}'\";#%_.*/\\\\\u{202e}\u{feff}🐦a]{1,12}", 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        let mut collection = collection(&folder);
        let group: GroupId = collection.groups().unwrap()[0].id;
        for name in names {
            let trimmed = name.trim().to_owned();
            match collection.act(&Action::Name { group, name: name.clone() }) {
                Ok(_) => {
                    prop_assert_eq!(&collection.group(group).unwrap().name, &trimmed);
                    prop_assert_eq!(collection.find_group(&trimmed).unwrap(), group);
                    prop_assert_eq!(&collection.groups().unwrap()[0].name, &trimmed);
                }
                Err(_) => {
                    let is_taken = collection.find_group(&trimmed).is_ok_and(|found| found != group);
                    let is_blank = trimmed.chars().all(|c| c.is_whitespace() || c.is_control());
                    prop_assert!(is_taken || is_blank, "{:?}", name);
                }
            }
        }
        collection.refresh(Level::AsFound, &Silent).unwrap();
        prop_assert!(collection.check().unwrap().is_sound());
    }
}
