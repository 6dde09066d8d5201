"""What a site states that its pages may be used for (REP_PURPOSES): the drafts on usage are known here alone.

`vocabulary` has the categories of use and their spellings, `statements` reads lines of robots.txt and headers, and
`preferences` combines the statements for a page and says whether a crawl's purposes refuse it. `extensions.page_usage`
connects them to a crawl.

To delete the feature, delete this folder, that file, their rows in tables (a search for `usage` and `PURPOSES` finds
all of them), and what `scrapy robots` and the report show.
"""
