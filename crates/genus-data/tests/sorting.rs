//! A folder a category: the right links, and nothing of the user's ever touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use genus_core::{Kind, Score};
use genus_data::{LinkKind, SortError, SortedItem, Sorting};
use proptest::prelude::*;

/// A temporary folder with files.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// An item whose file `photos/ID` holds its id.
    fn item(&self, id: &str, category: &str) -> SortedItem {
        let path = self.write(&format!("photos/{id}"), id);
        item(id, path, category)
    }

    fn plan(&self, link: LinkKind, items: &[SortedItem]) -> Result<Sorting, SortError> {
        Sorting::plan(&self.path("sorted"), link, items)
    }

    fn sort(&self, link: LinkKind, items: &[SortedItem]) {
        self.plan(link, items).unwrap().run(|| {}).unwrap();
    }

    /// What the sorted folder holds: the content of every file by its place.
    fn sorted(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path("sorted")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path
                        .strip_prefix(self.path("sorted"))
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .replace('\\', "/");
                    found.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }
}

fn item(id: &str, path: PathBuf, category: &str) -> SortedItem {
    SortedItem {
        id: id.to_owned(),
        path,
        category: category.to_owned(),
        kind: Kind::Known,
        score: Score {
            similarity: 0.5,
            margin: 0.1,
            probability: None,
            unsure: false,
        },
        scene: None,
    }
}

fn unsure(mut item: SortedItem) -> SortedItem {
    item.score.unsure = true;
    item
}

fn targets(sorting: &Sorting) -> Vec<&str> {
    sorting.targets().collect()
}

#[test]
fn every_category_has_a_folder_and_unsure_items_their_own() {
    for link in LinkKind::ALL {
        let disk = Disk::new();
        let items = [
            disk.item("a.jpg", "sparrow"),
            disk.item("b.jpg", "new-1"),
            unsure(disk.item("c.jpg", "sparrow")),
            disk.item("d.jpg", "sparrow"),
        ];
        let sorting = disk.plan(link, &items).unwrap();
        assert_eq!(
            targets(&sorting),
            ["sparrow/a.jpg", "new-1/b.jpg", "unsure/sparrow/c.jpg", "sparrow/d.jpg"]
        );
        assert!(!disk.path("sorted").exists(), "a plan writes nothing");
        let mut count = 0;
        sorting.run(|| count += 1).unwrap();
        assert_eq!(count, 4);
        let expected = [
            ("new-1/b.jpg", "b.jpg"),
            ("sparrow/a.jpg", "a.jpg"),
            ("sparrow/d.jpg", "d.jpg"),
            ("unsure/sparrow/c.jpg", "c.jpg"),
        ];
        assert!(
            disk.sorted().iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expected),
            "{:?}",
            disk.sorted()
        );
        let made = fs::symlink_metadata(disk.path("sorted/sparrow/a.jpg")).unwrap();
        assert_eq!(made.is_symlink(), link == LinkKind::Sym);
        // A change of the file shows through a link and not through a copy.
        fs::write(disk.path("photos/a.jpg"), "changed").unwrap();
        let seen = fs::read_to_string(disk.path("sorted/sparrow/a.jpg")).unwrap();
        assert_eq!(seen, if link == LinkKind::Copy { "a.jpg" } else { "changed" });
    }
}

#[test]
fn names_of_categories_become_names_of_folders() {
    let disk = Disk::new();
    let names = [
        "..",
        ".",
        "",
        "a/b",
        "a_b",
        "A_b",
        "../../etc",
        "/absolute",
        "c:\\d",
        "CON",
        "lpt3.txt",
        "ends.",
        "ends ",
        ".hidden",
        "__private",
        "unsure",
        "metadata.csv",
        "README.md",
        "what? <b>\"*|",
        "tab\tnew\nline\0",
        "שלום",
        "\u{202e}turned",
        "鳥",
        "👩‍👩‍👧",
        "plain name",
    ];
    let long = "so long ".repeat(100);
    let names: Vec<&str> = names.into_iter().chain([&*long]).collect();
    let items: Vec<SortedItem> = names
        .iter()
        .enumerate()
        .map(|(at, name)| disk.item(&format!("{at}.jpg"), name))
        .collect();
    let sorting = disk.plan(LinkKind::Sym, &items).unwrap();
    let folders: Vec<&str> = targets(&sorting)
        .iter()
        .map(|target| target.split_once('/').unwrap().0)
        .collect();
    let unique: BTreeSet<String> = folders.iter().map(|folder| folder.to_lowercase()).collect();
    assert_eq!(unique.len(), names.len(), "{folders:?}");
    for (name, folder) in names.iter().zip(&folders) {
        assert!(!folder.is_empty() && folder.len() < 230, "{name:?}: {folder:?}");
        assert!(
            !folder.starts_with('.') && !folder.starts_with("__") && !folder.ends_with(['.', ' ']),
            "{folder:?}"
        );
        assert!(
            !folder.contains(['/', '\\', ':', '\0', '\n', '\u{202e}', '<', '"']),
            "{folder:?}"
        );
        assert!(
            !["unsure", "metadata.csv", "readme.md"].contains(&&*folder.to_lowercase()),
            "{folder:?}"
        );
    }
    // What is a name stays one, and a changed name never takes its place.
    for kept in ["A_b", "שלום", "鳥", "👩‍👩‍👧", "plain name"] {
        assert!(folders.contains(&kept), "{kept} in {folders:?}");
    }
    sorting.run(|| {}).unwrap();
    assert_eq!(disk.sorted().len(), names.len());
    let beside: Vec<_> = fs::read_dir(disk.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(beside.len(), 2, "nothing is made beside the folder: {beside:?}");
}

#[test]
fn files_of_one_name_keep_apart_whatever_their_category() {
    let disk = Disk::new();
    let items = |category: &str| {
        [
            disk.item("monday/1.jpg", category),
            disk.item("tuesday/1.jpg", "new-1"),
            disk.item("2.jpg", "new-1"),
            disk.item("monday_1.jpg", "new-1"),
            disk.item("tuesday/2.JPG", "other"),
        ]
    };
    let first = items("new-1");
    let sorting = disk.plan(LinkKind::Sym, &first).unwrap();
    let names = |sorting: &Sorting| -> Vec<String> {
        sorting
            .targets()
            .map(|target| target.rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    // The file that is called monday_1.jpg is not moved aside for the other.
    assert_eq!(
        names(&sorting),
        [
            "monday_1 (2).jpg",
            "tuesday_1.jpg",
            "2.jpg",
            "monday_1.jpg",
            "tuesday_2.JPG"
        ]
    );
    let elsewhere = items("another");
    assert_eq!(names(&disk.plan(LinkKind::Sym, &elsewhere).unwrap()), names(&sorting));
}

#[test]
fn the_same_run_again_changes_nothing_and_an_interrupted_one_goes_on() {
    for link in LinkKind::ALL {
        let disk = Disk::new();
        let items: Vec<SortedItem> = (0..6).map(|at| disk.item(&format!("{at}.jpg"), "bird")).collect();
        disk.sort(link, &items[..3]);
        let times = || -> Vec<_> {
            let entries = fs::read_dir(disk.path("sorted/bird")).unwrap();
            let mut times: Vec<_> = entries
                .map(|entry| entry.unwrap())
                .map(|entry| {
                    (
                        entry.file_name(),
                        fs::symlink_metadata(entry.path()).unwrap().modified().unwrap(),
                    )
                })
                .collect();
            times.sort();
            times
        };
        let before = times();
        disk.sort(link, &items);
        assert_eq!(times()[..3], before[..], "{link}");
        assert_eq!(disk.sorted().len(), 6);
        disk.sort(link, &items);
        assert_eq!(disk.sorted().len(), 6);
        // Further items join those of before.
        let more = [disk.item("more.jpg", "bird"), disk.item("else.jpg", "new-1")];
        disk.sort(link, &more);
        assert_eq!(disk.sorted().len(), 8);
    }
}

#[test]
fn what_is_in_the_way_is_named_before_anything_is_written() {
    for link in LinkKind::ALL {
        let disk = Disk::new();
        let items = [
            disk.item("a.jpg", "bird"),
            disk.item("b.jpg", "cat"),
            disk.item("c.jpg", "bird"),
        ];
        let refused = |why: &str| {
            let before = disk.sorted();
            let error = disk.plan(link, &items).unwrap_err().to_string();
            assert!(error.contains(why), "{link}: {error}");
            assert_eq!(disk.sorted(), before);
        };
        // The user's own file, also where an earlier item's place is free.
        disk.write("sorted/cat/b.jpg", "mine");
        refused("b.jpg");
        assert_eq!(fs::read_to_string(disk.path("sorted/cat/b.jpg")).unwrap(), "mine");
        assert!(!disk.path("sorted/bird").exists());
        fs::remove_file(disk.path("sorted/cat/b.jpg")).unwrap();
        // A folder of that name.
        fs::create_dir(disk.path("sorted/cat/b.jpg")).unwrap();
        refused("b.jpg");
        fs::remove_dir_all(disk.path("sorted")).unwrap();
        // A file where a category's folder should be.
        disk.write("sorted/cat", "mine");
        refused("cat");
        fs::remove_dir_all(disk.path("sorted")).unwrap();
        // A file where the folder should be.
        disk.write("sorted", "mine");
        refused("sorted");
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_elsewhere_or_nowhere_are_in_the_way_too() {
    let disk = Disk::new();
    let items = [disk.item("a.jpg", "bird")];
    let other = disk.write("other.jpg", "other");
    for target in [other, disk.path("nowhere")] {
        fs::create_dir_all(disk.path("sorted/bird")).unwrap();
        std::os::unix::fs::symlink(&target, disk.path("sorted/bird/a.jpg")).unwrap();
        for link in LinkKind::ALL {
            let error = disk.plan(link, &items).unwrap_err();
            assert!(matches!(error, SortError::Taken { .. }), "{error}");
        }
        assert_eq!(fs::read_link(disk.path("sorted/bird/a.jpg")).unwrap(), target);
        fs::remove_dir_all(disk.path("sorted")).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_sorted_through_a_link_below_the_folder() {
    use std::os::unix::fs::symlink;
    let disk = Disk::new();
    fs::create_dir_all(disk.path("elsewhere/bird")).unwrap();
    for (link_at, items) in [
        ("bird", [disk.item("a.jpg", "bird")]),
        ("unsure", [unsure(disk.item("a.jpg", "bird"))]),
        ("unsure/bird", [unsure(disk.item("a.jpg", "bird"))]),
    ] {
        fs::create_dir_all(disk.path("sorted").join(link_at).parent().unwrap()).unwrap();
        symlink(disk.path("elsewhere"), disk.path("sorted").join(link_at)).unwrap();
        for link in LinkKind::ALL {
            let error = disk.plan(link, &items).unwrap_err();
            assert!(error.to_string().contains("is a link"), "{error}");
        }
        fs::remove_dir_all(disk.path("sorted")).unwrap();
    }
    // The folder that the user names may be one.
    symlink(disk.path("elsewhere"), disk.path("sorted")).unwrap();
    disk.sort(LinkKind::Copy, &[disk.item("a.jpg", "bird")]);
    assert!(disk.path("elsewhere/bird/a.jpg").is_file());
}

#[test]
fn a_file_that_is_sorted_already_is_not_sorted_again_elsewhere() {
    for link in LinkKind::ALL {
        let disk = Disk::new();
        disk.sort(link, &[disk.item("a.jpg", "bird"), unsure(disk.item("b.jpg", "bird"))]);
        let found_anew = [disk.item("a.jpg", "new-1")];
        let error = disk.plan(link, &found_anew).unwrap_err();
        assert!(matches!(error, SortError::Elsewhere { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&*Path::new("bird").join("a.jpg").to_string_lossy()),
            "{error}"
        );
        let now_sure = [disk.item("b.jpg", "bird")];
        assert!(
            matches!(disk.plan(link, &now_sure), Err(SortError::Elsewhere { .. })),
            "{link}"
        );
        // Another file of the same name is not the same file.
        let other = item("a.jpg", disk.write("elsewhere/a.jpg", "another"), "new-1");
        disk.sort(link, &[other]);
        assert_eq!(disk.sorted().len(), 3);
    }
}

#[test]
fn items_without_a_file_are_named() {
    let disk = Disk::new();
    let gone = item("gone", disk.path("photos/gone.jpg"), "bird");
    let folder = item("photos", disk.path("photos"), "bird");
    fs::create_dir(disk.path("photos")).unwrap();
    for item in [gone, folder] {
        let error = disk
            .plan(LinkKind::Sym, &[disk.item("a.jpg", "bird"), item.clone()])
            .unwrap_err();
        assert!(
            matches!(&error, SortError::NoFile { id, .. } if *id == item.id),
            "{error}"
        );
    }
    assert!(!disk.path("sorted").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_text_and_links_to_files_work() {
    use std::os::unix::ffi::OsStrExt;
    let disk = Disk::new();
    let file = disk.write("photos/real.jpg", "real");
    let raw = disk.path("photos").join(std::ffi::OsStr::from_bytes(b"caf\xe9.jpg"));
    fs::write(&raw, "raw").unwrap();
    std::os::unix::fs::symlink(&file, disk.path("photos/link.jpg")).unwrap();
    for (link, folder) in [(LinkKind::Sym, "s"), (LinkKind::Hard, "h"), (LinkKind::Copy, "c")] {
        let items = [
            item("raw", raw.clone(), folder),
            item("link", disk.path("photos/link.jpg"), folder),
        ];
        disk.sort(link, &items);
        let sorted = disk.sorted();
        assert_eq!(sorted[&format!("{folder}/caf%E9.jpg")], "raw");
        assert_eq!(sorted[&format!("{folder}/link.jpg")], "real");
        fs::remove_dir_all(disk.path("sorted")).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn hard_links_to_another_disk_are_refused_with_a_way_out() {
    use std::os::unix::fs::MetadataExt;
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("no second disk at /dev/shm; not tested");
        return;
    };
    let disk = Disk::new();
    if fs::metadata(other.path()).unwrap().dev() == fs::metadata(disk.0.path()).unwrap().dev() {
        eprintln!("/dev/shm is on the same disk as temporary files; not tested");
        return;
    }
    let items = [disk.item("a.jpg", "bird")];
    let folder = other.path().join("deep/sorted");
    let error = Sorting::plan(&folder, LinkKind::Hard, &items).unwrap_err();
    assert!(matches!(error, SortError::OtherDisk { .. }), "{error}");
    assert!(!folder.exists());
    Sorting::plan(&folder, LinkKind::Copy, &items)
        .unwrap()
        .run(|| {})
        .unwrap();
    assert_eq!(fs::read_to_string(folder.join("bird/a.jpg")).unwrap(), "a.jpg");
}

#[test]
fn what_appears_after_the_plan_is_left_alone() {
    for link in LinkKind::ALL {
        let disk = Disk::new();
        let sorting = disk.plan(link, &[disk.item("a.jpg", "bird")]).unwrap();
        disk.write("sorted/bird/a.jpg", "mine");
        assert!(matches!(sorting.run(|| {}), Err(SortError::Taken { .. })), "{link}");
        assert_eq!(disk.sorted()["bird/a.jpg"], "mine");
        assert_eq!(disk.sorted().len(), 1, "nothing else is left");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_names_stay_inside_the_folder_and_apart(names in prop::collection::vec((".{0,12}", "[a-b./_ ]{0,4}", any::<bool>()), 1..12)) {
        let disk = Disk::new();
        let items: Vec<SortedItem> = names
            .iter()
            .enumerate()
            .map(|(at, (category, folder, doubtful))| {
                let id = format!("{}{at}/x.jpg", folder.replace(['.', '/'], "-"));
                let item = disk.item(&id, category);
                if *doubtful { unsure(item) } else { item }
            })
            .collect();
        let sorting = disk.plan(LinkKind::Sym, &items).unwrap();
        let places = targets(&sorting);
        let unique: BTreeSet<String> = places.iter().map(|place| place.to_lowercase()).collect();
        prop_assert_eq!(unique.len(), items.len());
        for (place, item) in places.iter().zip(&items) {
            let parts: Vec<&str> = place.split('/').collect();
            prop_assert_eq!(parts.len(), 2 + usize::from(item.score.unsure));
            prop_assert!(parts.iter().all(|part| !part.is_empty() && !part.starts_with('.')));
        }
        sorting.run(|| {}).unwrap();
        let found = disk.sorted();
        for (place, item) in places.iter().zip(&items) {
            prop_assert_eq!(&found[*place], &item.id);
        }
        prop_assert_eq!(found.len(), items.len());
        disk.sort(LinkKind::Sym, &items);
    }
}
