"""Usage preferences (REP_PURPOSES): what sites state that their pages may be used for, such as training AI.

This folder implements the drafts on usage. `vocabulary` has the categories of use and their spellings. `statements`
reads lines of robots.txt, headers of responses and `meta` elements of pages. `preferences` combines the statements
for a page, and decides whether the page is refused for a purpose of the crawl. `extensions.page_usage` connects all
this to a crawl.

To delete the feature, delete this folder, `extensions.page_usage`, their rows in tables, and the parts of
`scrapy robots` and of the report that show usage preferences. A search for `usage` and `PURPOSES` finds all rows.
"""
