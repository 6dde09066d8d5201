"""Requests that wait for a robots.txt: most at the scheduler (`scheduler_door`), a few `in_downloader`."""
