"""A Scrapy project that obeys robots.txt by scrapy-rep, crawling a web of its own."""
