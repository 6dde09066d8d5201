"""A Scrapy project that obeys robots.txt with scrapy-rep, and the small web that it crawls."""
