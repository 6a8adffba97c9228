"""A Redis server of a few lines that answers some commands and is then lost, for the tests of the example database."""

from __future__ import annotations

import math
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


class Server(threading.Thread):
    """``answered`` is the number of commands so far."""

    def __init__(self, server: socket.socket, most: float) -> None:
        super().__init__(daemon=True)
        self._server, self._most, self.answered = server, most, 0
        self.address = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        self._sets: dict[bytes, set[bytes]] = defaultdict(set)

    def run(self) -> None:
        # Until the server is closed.
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._server.accept()[0],), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        queued: list[bytes] | None = None
        with client, client.makefile("rb") as stream, suppress(OSError):
            while (line := stream.readline()) and self.answered < self._most:
                self.answered += 1
                words = [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                name = words[0].upper()
                if name == b"MULTI":
                    queued, answer = [], b"+OK\r\n"
                elif name == b"EXEC":
                    answer, queued = b"*%d\r\n" % len(queued or ()) + b"".join(queued or ()), None
                elif queued is not None:
                    queued.append(self._answer(name, words[1:]))
                    answer = b"+QUEUED\r\n"
                else:
                    answer = self._answer(name, words[1:])
                client.sendall(answer)

    def _answer(self, name: bytes, words: Sequence[bytes]) -> bytes:
        if name == b"HELLO":
            return b"%1\r\n+proto\r\n:3\r\n"
        if name == b"SMEMBERS":
            found = sorted(self._sets[words[0]])
            return b"*%d\r\n" % len(found) + b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in found)
        if name == b"SADD":
            self._sets[words[0]].update(words[1:])
        if name == b"SREM":
            self._sets[words[0]].difference_update(words[1:])
        return b":1\r\n" if name in (b"SADD", b"SREM", b"EXPIRE") else b"+OK\r\n"


@contextmanager
def redis_server(most: float = math.inf) -> Iterator[Server]:
    """A server that answers ``most`` commands, and then closes each connection."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Server(listening, most)
    server.start()
    try:
        yield server
    finally:
        listening.close()
