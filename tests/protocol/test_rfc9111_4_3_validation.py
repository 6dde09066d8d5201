"""Asking whether what is held still holds (RFC 9111 section 4.3): the values."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.freshness import SILENT, Caching, freshened, validates

HELD = Caching(max_age=7200.0, date=1000.0, age=5.0, must_revalidate=True, etag='"a"', last_modified="then")


@pytest.mark.parametrize(
    ("held", "by", "after"),
    [
        pytest.param(
            HELD, SILENT, Caching(7200.0, must_revalidate=True, etag='"a"', last_modified="then"), id="4.3.4-silent"
        ),
        pytest.param(
            HELD,
            Caching(date=2000.0, age=1.0),
            Caching(7200.0, date=2000.0, age=1.0, must_revalidate=True, etag='"a"', last_modified="then"),
            id="4.3.4-date-and-age-are-the-new-ones",
        ),
        pytest.param(
            HELD,
            Caching(max_age=60.0),
            Caching(max_age=60.0, etag='"a"', last_modified="then"),
            id="4.3.4-cache-control-as-a-whole",
        ),
        pytest.param(
            Caching(expires=9000.0, etag='"a"'),
            Caching(expires=9500.0, no_store=True),
            Caching(expires=9500.0, no_store=True, etag='"a"'),
            id="4.3.4-expires",
        ),
        pytest.param(
            Caching(etag='W/"a"'), Caching(etag='"a"', last_modified="now"), Caching(etag='"a"', last_modified="now"),
            id="4.3.4-validators",
        ),
    ],
)  # fmt: skip
def test_a_304_freshens_field_by_field(held: Caching, by: Caching, after: Caching) -> None:
    assert freshened(held, by) == after


@pytest.mark.parametrize(
    ("held", "by", "does"),
    [
        pytest.param('"a"', '"a"', True, id="4.3.4-the-same"),
        pytest.param('W/"a"', '"a"', True, id="RFC9110-8.8.3.2-weakly-the-same"),
        pytest.param('"a"', '"b"', False, id="4.3.4-of-something-else"),
        pytest.param('"a"', None, True, id="4.3.4-nothing-said"),
        pytest.param(None, '"b"', True, id="4.3.4-by-last-modified"),
    ],
)
def test_a_304_confirms_the_stored_answer_unless_its_etag_differs(held: str | None, by: str | None, does: bool) -> None:
    assert validates(Caching(etag=held), Caching(etag=by)) is does
