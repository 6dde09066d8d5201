"""Text from servers and sites, decoded, shortened and made printable, for messages and reports."""

import re

MAX_TEXT = 200  # characters of a site's text in a message, a reason or a report
MAX_RULE = 500  # characters of a rule in a message or a report


def text_of(octets: bytes) -> str:
    """Decode octets of a robots.txt as UTF-8, or as Latin-1 if they are not UTF-8. Never raises."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


# The user name and password in a URL: `user:secret@` in `http://user:secret@host`.
_USER_INFO = re.compile(r"(?<=[\w+.-]://)[^\s/?#]*@")
# The same without a scheme, as the address of a proxy may be written.
_LOGIN = re.compile(r"(?<![^\s'\"(])[^\s/?#:@]{1,99}:[^\s/?#@]{1,99}@")


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text, cut to `limit` characters. The last character of a cut text is an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: str, limit: int | None = MAX_TEXT) -> str:
    """Return the text, with control characters, line ends and the like escaped, because they could forge a log line.

    The URLs in it lose their user names and passwords, because an exception may name a proxy with its password. A text
    with more than `limit` characters is cut and ends in an ellipsis. With None, it is not cut.
    """
    shown = _USER_INFO.sub("", text) if "@" in text else text
    shown = shown if limit is None else shown[: limit + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)
    return shown if limit is None else shortened(shown, limit)


def without_login(text: str) -> str:
    """Return a text about a proxy without user names and passwords that follow no scheme: `user:secret@host`.

    `printable` removes the others. In a robots.txt, such a text is no password: `Disallow: *a:b@c`.
    """
    return _LOGIN.sub("", text)
