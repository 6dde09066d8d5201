"""A robots.txt over the wire: requests, downloads, limits, cookies."""
