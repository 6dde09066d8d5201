"""The Robots Exclusion Protocol itself: values and functions, without Scrapy, Twisted, a clock or I/O."""
