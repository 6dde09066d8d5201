"""A real FTP server on loopback, in a process of its own: a folder for anyone, and one in it for alice.

It prints its port. With `hang`, it accepts connections and sends nothing. Any other text is its reply
to each request for a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from twisted.cred.checkers import AllowAnonymousAccess, InMemoryUsernamePasswordDatabaseDontUse
from twisted.cred.portal import Portal
from twisted.internet import reactor
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.ftp import FTP, FTPFactory, FTPRealm
from twisted.python.filepath import FilePath


class Realm(FTPRealm):
    """Gives the user alice her own folder."""

    def getHomeDirectory(self, avatarId: object) -> FilePath[str]:  # noqa: N802, N803 - Twisted's names
        return FilePath(str(Path(self.anonymousRoot.path) / "alice"))


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
    serves.protocol = refuses(mode) if mode else FTP
    if mode == "hang":
        factory = Factory.forProtocol(Protocol)
    port = loop.listenTCP(0, factory, interface="127.0.0.1")
    sys.stdout.write(f"{port.getHost().port}\n")
    sys.stdout.flush()
    loop.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
