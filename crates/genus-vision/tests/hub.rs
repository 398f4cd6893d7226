//! The hub's client against a server of its own, which answers as the hub and its store of large files do.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use genus_vision::{Hub, HubError, HubSettings};
use sha2::{Digest, Sha256};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const REPO: &str = "some-lab/net.v2";

#[derive(Clone, Debug)]
struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
}

#[derive(Default)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Close the connection after so many bytes of the body.
    cut: Option<usize>,
}

/// A server that runs as long as the tests.
struct Server {
    endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(handler: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let handler = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
                thread::spawn(move || serve(stream, &seen, &*handler));
            }
        });
        Self { endpoint, requests }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn gets(&self) -> Vec<Request> {
        self.requests()
            .into_iter()
            .filter(|request| request.method == "GET")
            .collect()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>, handler: &dyn Fn(&Request, usize) -> Answer) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_once(": ")
                .map(|(k, v)| (k.to_ascii_lowercase(), v.to_owned()))
        })
        .collect();
    let request = Request { method, path, headers };
    let count = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.iter()
            .filter(|r| r.method == request.method && r.path == request.path)
            .count()
    };
    let answer = handler(&request, count);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", answer.body.len());
    let mut stream = &stream;
    let _ = stream.write_all(head.as_bytes());
    if request.method == "GET" {
        let _ = stream.write_all(&answer.body[..answer.cut.unwrap_or(answer.body.len())]);
    }
    let _ = stream.flush();
    let _ = stream.shutdown(Shutdown::Both);
}

fn content() -> Vec<u8> {
    (0..1_000_000_u32).map(|i| ((i.wrapping_mul(i)) >> 7) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn error(status: u16) -> Answer {
    Answer {
        status,
        ..Answer::default()
    }
}

/// The hub's answer for a large file: a redirect with all that is to be known.
fn hub_answer(etag: &str, size: usize) -> Answer {
    Answer {
        status: 302,
        headers: vec![
            ("X-Repo-Commit", COMMIT.to_owned()),
            ("X-Linked-Etag", format!("\"{etag}\"")),
            ("X-Linked-Size", size.to_string()),
            ("ETag", "\"something-else\"".to_owned()),
            ("Location", "/store/object?signature=1".to_owned()),
        ],
        ..Answer::default()
    }
}

/// The store's answer, from the byte that is asked for.
fn store_answer(request: &Request, bytes: &[u8]) -> Answer {
    let range = request.headers.get("range").map(|range| {
        let from = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
        from.unwrap().parse::<usize>().unwrap()
    });
    match range {
        Some(from) if from >= bytes.len() => error(416),
        Some(from) => Answer {
            status: 206,
            headers: vec![(
                "Content-Range",
                format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()),
            )],
            body: bytes[from..].to_vec(),
            cut: None,
        },
        None => Answer {
            status: 200,
            headers: vec![("ETag", "\"of-the-store\"".to_owned())],
            body: bytes.to_vec(),
            cut: None,
        },
    }
}

/// A hub with one large file that is answered for under `etag`.
fn large_file(etag: String) -> Server {
    Server::start(move |request, _| match request.path.as_str() {
        path if path.starts_with("/store/") => store_answer(request, &content()),
        "/some-lab/net.v2/resolve/main/sub/model.bin" => hub_answer(&etag, content().len()),
        _ => error(404),
    })
}

fn hub(server: &str, cache: &Path) -> Hub {
    Hub::new(HubSettings {
        cache: cache.to_owned(),
        endpoint: server.to_owned(),
        token: None,
        offline: false,
    })
}

fn silent(_: u64, _: Option<u64>) {}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path),
        }
    }
    files
}

#[test]
fn a_large_file_arrives_in_the_shared_layout() {
    let server = large_file(sha256(&content()));
    let cache = tempfile::tempdir().unwrap();
    let hub = hub(&format!("{}/", server.endpoint), cache.path());
    assert_eq!(hub.cached(REPO, "sub/model.bin"), None);
    let mut reports = Vec::new();
    let path = hub
        .fetch(REPO, "sub/model.bin", &mut |done, total| reports.push((done, total)))
        .unwrap();

    let folder = cache.path().join("models--some-lab--net.v2");
    assert_eq!(path, folder.join("snapshots").join(COMMIT).join("sub/model.bin"));
    assert_eq!(fs::read(&path).unwrap(), content());
    assert_eq!(fs::read_to_string(folder.join("refs/main")).unwrap(), COMMIT);
    let blob = folder.join("blobs").join(sha256(&content()));
    assert_eq!(fs::read(&blob).unwrap(), content());
    #[cfg(unix)]
    {
        let target = Path::new("../../../blobs").join(sha256(&content()));
        assert_eq!(fs::read_link(&path).unwrap(), target);
    }
    assert_eq!(files_below(&folder).len(), 3, "{:?}", files_below(&folder));
    let size = content().len() as u64;
    assert_eq!(reports.first(), Some(&(0, Some(size))));
    assert_eq!(reports.last(), Some(&(size, Some(size))));
    assert!(reports.is_sorted());

    // A second time nothing is asked.
    let asked = server.requests().len();
    assert_eq!(hub.fetch(REPO, "sub/model.bin", &mut silent).unwrap(), path);
    assert_eq!(hub.cached(REPO, "sub/model.bin"), Some(path));
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn a_small_file_has_its_headers_in_the_last_answer() {
    let server = Server::start(|request, _| match request.path.as_str() {
        // A repository that was renamed.
        "/old/resolve/main/config.json" => Answer {
            status: 307,
            headers: vec![("Location", "/new/net/resolve/main/config.json".to_owned())],
            ..Answer::default()
        },
        "/new/net/resolve/main/config.json" => Answer {
            status: 200,
            headers: vec![
                ("X-Repo-Commit", COMMIT.to_owned()),
                ("ETag", "W/\"a1b2c3\"".to_owned()),
            ],
            body: b"{}".to_vec(),
            cut: None,
        },
        _ => error(404),
    });
    let cache = tempfile::tempdir().unwrap();
    let path = hub(&server.endpoint, cache.path())
        .fetch("old", "config.json", &mut silent)
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), b"{}");
    assert!(cache.path().join("models--old/blobs/a1b2c3").is_file());
}

#[test]
fn a_broken_download_goes_on_where_it_ended() {
    let etag = sha256(&content());
    let server = Server::start(move |request, count| match request.path.as_str() {
        path if path.starts_with("/store/") => Answer {
            cut: (count <= 2).then_some(300_000),
            ..store_answer(request, &content())
        },
        _ => hub_answer(&etag, content().len()),
    });
    let cache = tempfile::tempdir().unwrap();
    let path = hub(&server.endpoint, cache.path())
        .fetch(REPO, "model.bin", &mut silent)
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
    let ranges: Vec<_> = server.gets().iter().map(|r| r.headers.get("range").cloned()).collect();
    assert_eq!(ranges.len(), 3);
    assert_eq!(ranges[0], None);
    assert_eq!(ranges[1].as_deref(), Some("bytes=300000-"));
    assert_eq!(ranges[2].as_deref(), Some("bytes=600000-"));
}

#[test]
fn an_earlier_process_is_taken_over_from() {
    let server = large_file(sha256(&content()));
    let cache = tempfile::tempdir().unwrap();
    let blobs = cache.path().join("models--some-lab--net.v2/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let part = blobs.join(format!("{}.incomplete", sha256(&content())));
    let hub = hub(&server.endpoint, cache.path());
    fs::write(&part, &content()[..123_456]).unwrap();
    let path = hub.fetch(REPO, "sub/model.bin", &mut silent).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content());
    assert_eq!(server.gets()[0].headers["range"], "bytes=123456-");
    assert!(!part.exists());

    // One that is longer than the file is no beginning of it.
    fs::remove_dir_all(cache.path().join("models--some-lab--net.v2/snapshots")).unwrap();
    fs::remove_file(blobs.join(sha256(&content()))).unwrap();
    fs::write(&part, vec![7; content().len() + 1]).unwrap();
    assert_eq!(
        fs::read(hub.fetch(REPO, "sub/model.bin", &mut silent).unwrap()).unwrap(),
        content()
    );
}

#[test]
fn a_store_without_ranges_begins_anew() {
    let etag = sha256(&content());
    let server = Server::start(move |request, count| match request.path.as_str() {
        path if path.starts_with("/store/") => Answer {
            status: 200,
            headers: Vec::new(),
            body: content(),
            cut: (count == 1).then_some(400_000),
        },
        _ => hub_answer(&etag, content().len()),
    });
    let cache = tempfile::tempdir().unwrap();
    let path = hub(&server.endpoint, cache.path())
        .fetch(REPO, "model.bin", &mut silent)
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), content());
}

#[test]
fn a_download_that_never_ends_is_given_up_and_kept() {
    let etag = sha256(&content());
    let server = Server::start(move |request, count| match request.path.as_str() {
        path if path.starts_with("/store/") => Answer {
            cut: Some(if count == 1 { 1000 } else { 0 }),
            ..store_answer(request, &content())
        },
        _ => hub_answer(&etag, content().len()),
    });
    let cache = tempfile::tempdir().unwrap();
    let error = hub(&server.endpoint, cache.path())
        .fetch(REPO, "model.bin", &mut silent)
        .unwrap_err();
    assert!(error.to_string().contains("breaks off after 1000 bytes"), "{error}");
    let part = format!("models--some-lab--net.v2/blobs/{}.incomplete", sha256(&content()));
    assert_eq!(fs::read(cache.path().join(part)).unwrap(), &content()[..1000]);
}

#[test]
fn a_wrong_hash_or_length_leaves_nothing() {
    for (etag, size) in [(sha256(b"other"), content().len()), (sha256(&content()), 999_999)] {
        let server = Server::start(move |request, _| match request.path.as_str() {
            path if path.starts_with("/store/") => store_answer(request, &content()),
            _ => hub_answer(&etag, size),
        });
        let cache = tempfile::tempdir().unwrap();
        let hub = hub(&server.endpoint, cache.path());
        let error = hub.fetch(REPO, "model.bin", &mut silent).unwrap_err();
        assert!(matches!(error, HubError::Damaged { .. }), "{error}");
        assert_eq!(hub.cached(REPO, "model.bin"), None);
        let left = files_below(&cache.path().join("models--some-lab--net.v2"));
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn answers_without_a_file_are_clear() {
    let fetch = |status: u16| {
        let server = Server::start(move |_, _| error(status));
        let cache = tempfile::tempdir().unwrap();
        let error = hub(&server.endpoint, cache.path())
            .fetch(REPO, "model.bin", &mut silent)
            .unwrap_err()
            .to_string();
        assert!(error.contains("/some-lab/net.v2/resolve/main/model.bin"), "{error}");
        assert!(files_below(cache.path()).is_empty());
        error
    };
    assert!(fetch(404).contains("no such file"));
    assert!(fetch(401).contains("HF_TOKEN"));
    assert!(fetch(403).contains("HF_TOKEN"));
    assert!(fetch(503).contains("status 503"));
    // A page that is no hub's.
    assert!(fetch(200).contains("names no commit"));
    assert!(fetch(302).contains("redirect to nowhere"));
}

#[test]
fn headers_do_not_become_paths() {
    for (name, value) in [
        ("X-Repo-Commit", "../../../../evil"),
        ("X-Repo-Commit", "main"),
        ("X-Linked-Etag", "\"../../evil\""),
        ("X-Linked-Etag", "\"..\""),
        ("X-Linked-Etag", "\"\""),
        ("X-Linked-Etag", "\"a/b\""),
        ("X-Linked-Etag", "\"C:\\evil\""),
        ("Location", "/again"),
    ] {
        let server = Server::start(move |_, _| {
            let mut answer = hub_answer("abc", 3);
            answer
                .headers
                .retain(|(n, _)| *n != name && (name != "Location" || *n == "ETag"));
            answer.headers.push((name, value.to_owned()));
            answer
        });
        let cache = tempfile::tempdir().unwrap();
        let error = hub(&server.endpoint, cache.path())
            .fetch(REPO, "model.bin", &mut silent)
            .unwrap_err();
        assert!(matches!(error, HubError::Answer { .. }), "{name} {value}: {error}");
        assert!(files_below(cache.path()).is_empty());
    }
    let cache = tempfile::tempdir().unwrap();
    let hub = hub("http://127.0.0.1:9", cache.path());
    for (repo, file) in [
        ("../x", "a"),
        ("a/b/c", "a"),
        ("", "a"),
        ("a//b", "a"),
        ("a", "../a"),
        ("a", "b/../a"),
        ("a", "/etc/passwd"),
        ("a", "b\\a"),
        ("a", ""),
        ("a", "a?b"),
        ("..", "a"),
    ] {
        assert!(
            matches!(hub.fetch(repo, file, &mut silent), Err(HubError::Name { .. })),
            "{repo} {file}"
        );
        assert_eq!(hub.cached(repo, file), None);
    }
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let store = Server::start(|request, _| store_answer(request, &content()));
    let etag = sha256(&content());
    let location = format!("{}/store/object", store.endpoint);
    let server = Server::start(move |_, _| {
        let mut answer = hub_answer(&etag, content().len());
        answer.headers.retain(|(name, _)| *name != "Location");
        answer.headers.push(("Location", location.clone()));
        answer
    });
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub::new(HubSettings {
        token: Some("hf_secret".to_owned()),
        ..hub(&server.endpoint, cache.path()).settings().clone()
    });
    hub.fetch(REPO, "model.bin", &mut silent).unwrap();
    assert!(
        server
            .requests()
            .iter()
            .all(|r| r.headers["authorization"] == "Bearer hf_secret")
    );
    assert!(!store.requests().is_empty());
    assert!(
        store
            .requests()
            .iter()
            .all(|r| !r.headers.contains_key("authorization"))
    );
    assert!(!format!("{hub:?}").contains("hf_secret"));
}

#[test]
fn many_at_once_download_once() {
    let server = large_file(sha256(&content()));
    let cache = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                // A client of its own each, as processes have.
                let path = hub(&server.endpoint, cache.path())
                    .fetch(REPO, "sub/model.bin", &mut silent)
                    .unwrap();
                assert_eq!(fs::read(path).unwrap(), content());
            });
        }
    });
    assert_eq!(server.gets().len(), 1);
}

#[test]
fn offline_or_unreachable_says_what_to_do() {
    let cache = tempfile::tempdir().unwrap();
    // Nothing listens on a port that was just given back.
    let endpoint = format!(
        "http://{}",
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    );
    let unreachable = hub(&endpoint, cache.path());
    let offline = Hub::new(HubSettings {
        offline: true,
        ..unreachable.settings().clone()
    });
    let url = format!("{endpoint}/{REPO}/resolve/main/sub/model.bin");
    for hub in [&unreachable, &offline] {
        let error = hub.fetch(REPO, "sub/model.bin", &mut silent).unwrap_err();
        let HubError::Unavailable { place, .. } = &error else {
            panic!("{error}");
        };
        let message = error.to_string();
        assert!(message.contains(&url), "{message}");
        assert!(message.contains(&place.display().to_string()), "{message}");
        // What the message says works.
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, "by hand").unwrap();
        assert_eq!(hub.fetch(REPO, "sub/model.bin", &mut silent).unwrap(), *place);
        fs::remove_dir_all(cache.path().join("models--some-lab--net.v2")).unwrap();
    }
    assert!(
        offline
            .fetch(REPO, "x", &mut silent)
            .unwrap_err()
            .to_string()
            .contains("HF_HUB_OFFLINE")
    );
}

#[cfg(unix)]
#[test]
fn a_cache_of_the_python_client_is_used() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("models--some-lab--net.v2");
    let older = "f".repeat(40);
    for (commit, file, blob) in [
        (COMMIT, "a.bin", "e1"),
        (&older, "a.bin", "e2"),
        (&older, "b.bin", "e3"),
    ] {
        fs::create_dir_all(folder.join("blobs")).unwrap();
        fs::create_dir_all(folder.join("snapshots").join(commit)).unwrap();
        fs::write(folder.join("blobs").join(blob), blob).unwrap();
        let link = folder.join("snapshots").join(commit).join(file);
        std::os::unix::fs::symlink(format!("../../blobs/{blob}"), link).unwrap();
    }
    fs::create_dir_all(folder.join("refs")).unwrap();
    let hub = hub("http://127.0.0.1:9", cache.path());
    let read = |file: &str| hub.cached(REPO, file).map(|path| fs::read_to_string(path).unwrap());
    fs::write(folder.join("refs/main"), &older).unwrap();
    assert_eq!(read("a.bin").as_deref(), Some("e2"));
    fs::write(folder.join("refs/main"), COMMIT).unwrap();
    assert_eq!(read("a.bin").as_deref(), Some("e1"));
    assert_eq!(read("b.bin").as_deref(), Some("e3"));
    // A link whose blob was removed is not a file.
    fs::remove_file(folder.join("blobs/e3")).unwrap();
    assert_eq!(read("b.bin"), None);
    // A reference that leads out of the cache is not followed.
    fs::write(folder.join("refs/main"), "../../..").unwrap();
    assert_eq!(read("a.bin").as_deref(), Some("e1"));
}

#[test]
fn the_environment_is_read_as_other_clients_read_it() {
    let home = tempfile::tempdir().unwrap();
    let settings = |variables: &[(&str, &str)]| {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        HubSettings::from_variables(home.path(), find)
    };
    let default = settings(&[]);
    assert_eq!(default.cache, home.path().join(".cache/huggingface/hub"));
    assert_eq!(default.endpoint, "https://huggingface.co");
    assert_eq!((default.token, default.offline), (None, false));
    assert_eq!(
        settings(&[("XDG_CACHE_HOME", "/x")]).cache,
        Path::new("/x/huggingface/hub")
    );
    assert_eq!(
        settings(&[("HF_HOME", "/h"), ("XDG_CACHE_HOME", "/x")]).cache,
        Path::new("/h/hub")
    );
    assert_eq!(settings(&[("HF_HOME", "~/h")]).cache, home.path().join("h/hub"));
    assert_eq!(
        settings(&[("HUGGINGFACE_HUB_CACHE", "/c"), ("HF_HOME", "/h")]).cache,
        Path::new("/c")
    );
    assert_eq!(
        settings(&[("HUGGINGFACE_HUB_CACHE", "/c"), ("HF_HUB_CACHE", "/d")]).cache,
        Path::new("/d")
    );
    assert_eq!(settings(&[("HF_ENDPOINT", "http://mirror")]).endpoint, "http://mirror");
    for (value, offline) in [
        ("1", true),
        ("TRUE", true),
        ("yes", true),
        ("On", true),
        ("0", false),
        ("", false),
    ] {
        assert_eq!(settings(&[("HF_HUB_OFFLINE", value)]).offline, offline, "{value}");
    }
    assert_eq!(settings(&[("HF_TOKEN", " t \n")]).token.as_deref(), Some("t"));
    assert_eq!(settings(&[("HF_TOKEN", "a\nb")]).token, None);
    fs::create_dir_all(home.path().join(".cache/huggingface")).unwrap();
    fs::write(home.path().join(".cache/huggingface/token"), "of-a-file\n").unwrap();
    assert_eq!(settings(&[]).token.as_deref(), Some("of-a-file"));
    assert_eq!(settings(&[("HF_TOKEN", "t")]).token.as_deref(), Some("t"));
}
