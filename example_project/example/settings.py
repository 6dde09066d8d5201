"""The project's settings: one line switches scrapy-rep on, the rest makes the example what it is."""

ADDONS = {"scrapy_rep.Addon": 500}

# A server that hangs costs two of these: robots.txt is asked for once more. Loopback answers in milliseconds, so that
# 2 seconds are plenty here; on a real web leave the 30 seconds that are the default.
REP_FETCH_TIMEOUT = 2
# No robots.txt of this web ever comes back, so that nothing is won by waiting for it.
REP_UNREACHABLE_WAIT = 0

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
USER_AGENT = "TourBot/1.0"
EXTENSIONS = {"example.web.Web": 0, "example.table.Table": 0}

HTTPPROXY_ENABLED = False  # no proxy could reach this web
LOG_LEVEL = "WARNING"  # so that the table stands out
