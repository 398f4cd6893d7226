"""Writes events.tfevents with TensorBoard's own messages and record writer: what src/training/tensorboard.rs must write.

Run it with Python 3 with tensorboard; the result does not depend on when or where it runs:

    python3 make_events.py

With the path of an event file it writes nothing and checks that TensorBoard reads the same values from that file.
"""

import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

START = 1700000000.0
LARGEST = struct.unpack("<f", bytes.fromhex("ffff7f7f"))[0]
EVENTS = [
    (0, START + 0.25, [("loss", 2.5)]),
    (1, START + 1.5, [("loss", 0.0), ("rate", 1e-4)]),
    (300, START + 2, [("Genauigkeit/größte", -0.1), ("long/" * 40, 3.0)]),
    (2**63 - 1, START + 3, [("loss", LARGEST), ("rate", float("inf"))]),
]


def write(path):
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=START, file_version="brain.Event:2").SerializeToString())
        for step, wall_time, values in EVENTS:
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values])
            writer.write(Event(wall_time=wall_time, step=step, summary=summary).SerializeToString())


def check(path):
    accumulator = EventAccumulator(str(path))
    accumulator.Reload()
    expected = {}
    for step, wall_time, values in EVENTS:
        for tag, value in values:
            single = struct.unpack("<f", struct.pack("<f", value))[0]
            expected.setdefault(tag, []).append((wall_time, step, single))
    found = {
        tag: [(event.wall_time, event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }
    assert accumulator.file_version == 2, accumulator.file_version
    assert found == expected, found
    print(f"{path}: {sum(map(len, found.values()))} values of {len(found)} tags")


if len(sys.argv) > 1:
    check(sys.argv[1])
else:
    golden = pathlib.Path(__file__).with_name("events.tfevents")
    write(golden)
    check(golden)
