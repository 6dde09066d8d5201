"""Requests that wait for a robots.txt: most at the scheduler (`door`), a few `in_downloader`."""
