"""The project's settings: the first line switches scrapy-rep on."""

ADDONS = {"scrapy_rep.Addon": 500}

# A robots.txt that does not answer is requested twice, so it takes twice this time. 2 seconds do on one machine.
# On the real web leave it at 30 seconds, the default.
REP_FETCH_TIMEOUT = 2
# No unreachable robots.txt comes back in this example, so waiting for it would only take time.
REP_UNREACHABLE_WAIT = 0

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
USER_AGENT = "TourBot/1.0"
EXTENSIONS = {"example.web.Web": 0, "example.table.Table": 0}
WEB_PORT = 8001  # of the first site; the others have the next ones

HTTPPROXY_ENABLED = False  # no proxy could reach this web
LOG_LEVEL = "WARNING"  # so that the table stands out
