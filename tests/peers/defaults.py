# `tox -e peers` appends this to the default settings of Scrapy. So every crawl of its tests obeys robots.txt, by the
# add-on if WITH_REP is set. A name that does not resolve is refused at once instead of after 30 s.
import os

ROBOTSTXT_OBEY = True
ADDONS = {"scrapy_rep.Addon": 500} if "WITH_REP" in os.environ else {}
REP_UNREACHABLE_WAIT = 0
