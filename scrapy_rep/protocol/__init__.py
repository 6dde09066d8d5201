"""The Robots Exclusion Protocol (RFC 9309): values and functions, without clock, I/O or Scrapy.

They use the standard library alone.
"""
