"""Requests that wait for a robots.txt: nearly all at the scheduler (`scheduler_door`), a few in the downloader
(`in_downloader`)."""
