"""What child processes do in the tests: a spawned one imports it, and cannot import a test."""

from __future__ import annotations

import os
import signal
import time


def twice(send):
    os.write(1, b"this is dropped")
    send({"n": 1})
    send({"n": 2})


def dying(send):
    send({"n": 1})
    os.kill(os.getpid(), signal.SIGABRT)


def hanging(send):
    send({"n": 1})
    time.sleep(60)


def breaking_off(send):
    send({"n": 1})
    # The length of a message, and a part of it.
    os.write(send.__self__.fileno(), (100).to_bytes(4, "big") + b"half")
    os._exit(3)
