"""A real Redis server in a process of its own, on a free port of loopback. It and its files end with the test."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from types import TracebackType

BINARY = shutil.which("redis-server")
MISSING = "no redis-server is installed: `apt-get install redis-server`, or `brew install redis`"


class RedisServer:
    def __init__(self) -> None:
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> RedisServer:
        for _ in range(3):
            try:
                self.start()
            except OSError:  # another process has taken the port
                self.port = _free_port()
            else:
                return self
        raise OSError("redis-server does not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        assert BINARY is not None, MISSING
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen([BINARY, *options], stdout=subprocess.DEVNULL)
        give_up_at = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                self.stop()
                raise OSError("redis-server has ended, or does not answer")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self.freeze(False)
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def freeze(self, frozen: bool = True) -> None:
        """Stop the process (SIGSTOP), so it keeps its connections and answers nothing; or let it go on (SIGCONT)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith(b"+PONG")
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
