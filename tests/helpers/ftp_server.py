"""A real FTP server on loopback, in a process of its own: a folder for anyone, and one in it for alice.

It prints its port. With `hang`, it accepts connections and sends nothing.
With `talk`, it sends a greeting without end. With `mute`, it says nothing after a file; with `leave`, it disconnects.
With `stall`, it opens the connection for a file, and sends nothing. Any other text is its reply to each request for a
file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from twisted.cred.checkers import AllowAnonymousAccess, InMemoryUsernamePasswordDatabaseDontUse
from twisted.cred.portal import Portal
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.ftp import (
    CNX_CLOSED_TXFR_ABORTED,
    FILE_STATUS_OK_OPEN_DATA_CNX,
    FTP,
    TXFR_COMPLETE_OK,
    FTPFactory,
    FTPRealm,
)
from twisted.python.filepath import FilePath


class Realm(FTPRealm):
    """Gives the user alice her own folder."""

    def getHomeDirectory(self, avatarId: object) -> FilePath[str]:  # noqa: N802, N803 - Twisted's names
        return FilePath(str(Path(self.anonymousRoot.path) / "alice"))


class Talks(Protocol):
    """Sends a greeting that never ends."""

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        transport: Any = self.transport
        transport.registerProducer(self, False)

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        transport: Any = self.transport
        transport.write(b"220-welcome, welcome, welcome\r\n" * 2_000)

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        pass


class Mute(FTP):
    """Does not say how a transfer ended."""

    def reply(self, key: str, *args: Any) -> None:
        if key in {TXFR_COMPLETE_OK, CNX_CLOSED_TXFR_ABORTED}:
            self.transfer_ended()
        else:
            super().reply(key, *args)  # type: ignore[no-untyped-call]

    def transfer_ended(self) -> None:
        pass


class Leave(Mute):
    """Ends the session after a transfer."""

    def transfer_ended(self) -> None:
        transport: Any = self.transport
        transport.loseConnection()


class Stall(FTP):
    """Opens the connection for a file, and sends nothing."""

    def ftp_RETR(self, _path: str) -> Deferred[Any]:  # noqa: N802 - Twisted's name
        self.reply(FILE_STATUS_OK_OPEN_DATA_CNX)  # type: ignore[no-untyped-call]
        return Deferred()


def refuses(reply: str) -> type[FTP]:
    class Refuses(FTP):
        def ftp_RETR(self, _path: str) -> None:  # noqa: N802 - Twisted's name
            self.sendLine(reply.encode())  # type: ignore[no-untyped-call]

    return Refuses


def main(folder: str, mode: str = "") -> None:
    users = InMemoryUsernamePasswordDatabaseDontUse(alice=b"secret")
    realm: Any = Realm(folder)  # type: ignore[no-untyped-call]
    checkers: list[Any] = [AllowAnonymousAccess(), users]
    serves = FTPFactory(Portal(realm, checkers))  # type: ignore[no-untyped-call]
    factory: Any = serves
    loop: Any = reactor
    serves.protocol = {"": FTP, "mute": Mute, "leave": Leave, "stall": Stall}.get(mode) or refuses(mode)
    if mode == "hang":
        factory = Factory.forProtocol(Protocol)
    elif mode == "talk":
        factory = Factory.forProtocol(Talks)
    port = loop.listenTCP(0, factory, interface="127.0.0.1")
    sys.stdout.write(f"{port.getHost().port}\n")
    sys.stdout.flush()
    loop.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
