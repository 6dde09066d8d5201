"""The Robots Exclusion Protocol: values and functions. They use no Scrapy, no Twisted, no clock and no I/O."""
