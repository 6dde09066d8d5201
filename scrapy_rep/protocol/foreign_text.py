"""Text from servers and sites, decoded and shortened so that people can read it in messages and reports."""

from __future__ import annotations

import re

MAX_TEXT = 200  # characters of a site's text in a message, a reason or a report
MAX_RULE = 500  # characters of a rule in a message or a report


def text_of(octets: bytes) -> str:
    """Decode octets of a robots.txt as UTF-8, or as Latin-1 if they are not UTF-8. Never raises."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


_USER_INFO = re.compile(r"(?<=[\w+.-]://)[^\s/?#]*@")


def without_user_info(text: str) -> str:
    """Return the text without the user names and passwords in its URLs: `http://user:secret@host` is `http://host`."""
    return _USER_INFO.sub("", text) if "@" in text else text


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text, cut to `limit` characters. The last character of a cut text is an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
