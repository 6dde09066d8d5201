"""The project's settings. The first line enables scrapy-rep."""

ADDONS = {"scrapy_rep.Addon": 500}

# Seconds for one robots.txt request. 2 seconds are enough on one machine. On the real web, keep the default of 30.
REP_FETCH_TIMEOUT = 2
# In this example, an unreachable robots.txt stays unreachable, so waiting is useless.
REP_UNREACHABLE_WAIT = 0

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]
USER_AGENT = "TourBot/1.0"
EXTENSIONS = {"example.web.Web": 0, "example.table.Table": 0}
WEB_PORT = 8001  # the port of the first site; the other sites use the next ports

HTTPPROXY_ENABLED = False  # a proxy could not reach sites on loopback
LOG_LEVEL = "WARNING"  # few lines, so that the table is easy to find
