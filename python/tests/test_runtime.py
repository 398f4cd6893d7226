"""Threads, signals, panics, and what an import costs."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import kinds

from genus import CategoryDiscovery, _genus


def python(code, **more):
    return subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
    )


def test_a_panic_is_an_exception():
    with pytest.raises(RuntimeError, match="please report this"):
        _genus._panic()


def test_ctrl_c_breaks_off():
    child = python("import genus._genus as g; print('now', flush=True); g._sleep(60)")
    assert child.stdout.readline() == "now\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors


def test_ctrl_c_in_the_middle_of_a_fit_leaves_the_interpreter_usable():
    code = """
import signal, threading, os
import numpy as np
from genus import CategoryDiscovery
X = np.random.default_rng(0).normal(size=(6000, 256)).astype("float32")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    CategoryDiscovery().fit(X)
    print("too fast")
except KeyboardInterrupt:
    print("broken off", len(CategoryDiscovery("shc").fit(X[:50], [0] * 5 + [1] * 5 + [-1] * 40).labels_))
"""
    out, errors = python(code).communicate(timeout=120)
    assert out in ("broken off 50\n", "too fast\n"), errors


def test_other_threads_go_on_while_it_works():
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.01)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        _genus._sleep(0.5)
    finally:
        done.set()
        thread.join()
    assert len(ticks) > 10


def test_many_threads_at_once(pile):
    X, y, _ = pile
    expected = CategoryDiscovery().fit_predict(X, y)
    found = [None] * 4

    def work(at):
        found[at] = CategoryDiscovery().fit_predict(X, y)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((labels == expected).all() for labels in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(pile):
    X, y, _ = pile
    expected = CategoryDiscovery().fit_predict(X, y)
    child = os.fork()
    if child == 0:
        try:
            same = (CategoryDiscovery().fit_predict(X, y) == expected).all()
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the forked process hung")


def test_an_import_brings_nothing_heavy():
    code = "import sys, genus; print(sorted({'numpy', 'sklearn', 'pandas', 'scipy', 'tqdm', 'PIL'} & set(sys.modules)))"
    out, errors = python(code).communicate(timeout=60)
    assert out == "[]\n", errors


def test_every_public_name_is_there():
    import genus

    for name in genus.__all__:
        assert getattr(genus, name) is not None
        assert name in dir(genus)
    with pytest.raises(AttributeError, match="swan"):
        _ = genus.swan


def test_progress_is_told(capsys):
    X, kind = kinds(items=50)
    y = np.where(np.arange(len(X)) % 50 < 5, kind, -1)
    CategoryDiscovery(verbose=True, subset=100).fit(X, y)
    assert "items" in capsys.readouterr().err


def test_progress_without_tqdm(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, _ = kinds(items=50)
    CategoryDiscovery(verbose=True, subset=100).fit(X)
    assert "items …" in capsys.readouterr().err
