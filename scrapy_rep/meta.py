"""All keys of this package in the meta of requests and responses."""

# For users (docs/spiders.md). The first is Scrapy's.
DONT_OBEY = "dont_obey_robotstxt"
TOKENS_KEY = "robotstxt_user_agent"
EVIDENCE_KEY = "robots"
USAGE_KEY = "robots_usage"
SOURCES_KEY = "robots_usage_sources"
LICENSES_KEY = "robots_licenses"
# Marks of our own. Their values can be copied, pickled and written as JSON.
ROBOTS_TXT_REQUEST = "rep_robots_txt"  # on our requests for a robots.txt; the value is the number of the download
PUT_BACK = "rep_put_back"  # on a request that is in the queue again
