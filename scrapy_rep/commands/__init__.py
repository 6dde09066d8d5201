"""The command `scrapy robots`."""
