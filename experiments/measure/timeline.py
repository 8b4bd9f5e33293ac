"""The devices' counters while a program runs, sampled repeatedly."""

import threading
import time
from contextlib import contextmanager

from experiments.devices.emulated import Devices

INTERVAL_SECONDS = 0.2
# Totals of all devices since the beginning.
COLUMNS = ["seconds", "reads", "bytes_read", "bytes_written"]


@contextmanager
def timeline(devices: Devices):
    """A list that is complete when the block is left: rows of COLUMNS."""
    rows = []
    ended = threading.Event()
    begin = time.monotonic()
    first = devices.counters()

    def note():
        now = devices.counters()
        rows.append([round(time.monotonic() - begin, 3),
                     *(sum(b[what] - a[what] for a, b in zip(first, now))
                       for what in COLUMNS[1:])])

    def watch():
        while not ended.wait(INTERVAL_SECONDS):
            note()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield rows
    finally:
        ended.set()
        watcher.join()
        note()
