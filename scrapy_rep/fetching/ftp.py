"""Downloads a robots.txt by FTP, up to REP_BODY_LIMIT. Scrapy's own FTP handler has no limit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from scrapy import Request
from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ClientCreator, Protocol

from scrapy_rep.deferreds import settle
from scrapy_rep.fetching.request import download_of

if TYPE_CHECKING:
    from twisted.protocols.ftp import FTPClient

MAX_REPLIES = 65_536  # octets that the server may send on the control connection


class RepFTPDownloadHandler(FTPDownloadHandler):
    """Scrapy's FTP handler, with limits for our requests for a robots.txt."""

    async def download_request(self, request: Request) -> Response:
        """Return the response. If this is cancelled, the connections are closed."""
        download = download_of(request)
        if download is None:
            return await super().download_request(request)
        # Imported late, as in Scrapy: these modules install a reactor if there is none.
        from twisted.internet import reactor  # noqa: PLC0415
        from twisted.protocols.ftp import CommandFailed, ConnectionLost, FTPClient  # noqa: PLC0415

        parts, meta = urlparse_cached(request), request.meta
        user, password = meta.get("ftp_user", self.default_user), meta.get("ftp_password", self.default_password)
        passive = int(bool(meta.get("ftp_passive", self.passive_mode)))
        creator = ClientCreator(reactor, FTPClient, user, password, passive=passive)  # type: ignore[no-untyped-call]
        connected = creator.connectTCP(parts.hostname, parts.port or 21)  # type: ignore[no-untyped-call]
        client: FTPClient = await maybe_deferred_to_future(connected)
        _limit_replies(client)
        received = _Received(download.limit)
        try:
            retrieved = client.retrieveFile(unquote(parts.path), received)  # type: ignore[no-untyped-call]
            retrieved.addBoth(partial(settle, received.ended))
            await maybe_deferred_to_future(received.ended)
        except CommandFailed as exc:
            code = exc.args[0][-1][:3]  # the last line of a reply begins with its code
            return Response(request.url, status=self.CODE_MAPPING.get(code, self.CODE_MAPPING["default"]))
        except ConnectionLost as exc:
            cause = exc.args[1]
            raise getattr(cause, "value", cause) from None
        finally:
            for connection in (client, received):
                if connection.transport is not None:
                    connection.transport.abortConnection()
        return Response(request.url, body=bytes(received.octets))


def _limit_replies(client: FTPClient) -> None:
    """Abort the connection after MAX_REPLIES octets, because Twisted keeps all lines of a reply in memory."""
    receive, left = client.dataReceived, MAX_REPLIES

    def received(data: bytes) -> None:
        nonlocal left
        left -= len(data)
        if left >= 0:
            receive(data)  # type: ignore[no-untyped-call]
        else:
            client.transport.abortConnection()  # type: ignore[union-attr]

    client.dataReceived = received  # type: ignore[method-assign]


class _Received(Protocol):
    """Receives the file, up to `limit` + 1 octets: the last one shows that the file is too long."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.octets = bytearray()
        self.ended: Deferred[Any] = Deferred()
        """Has a result when the file is too long, even if the server then says nothing."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self.octets += data[: self._limit + 1 - len(self.octets)]
        if len(self.octets) > self._limit and self.transport is not None:
            self.transport.loseConnection()  # type: ignore[misc]
            settle(self.ended, None)
