# What `.ci/run peers` appends to Scrapy's default settings: every crawl of Scrapy's tests obeys robots.txt, by the add-on
# if the environment says so. A name that does not resolve is refused at once instead of after 30 s.
import os

ROBOTSTXT_OBEY = True
ADDONS = {"scrapy_rep.Addon": 500} if "WITH_REP" in os.environ else {}
REP_UNREACHABLE_WAIT = 0
