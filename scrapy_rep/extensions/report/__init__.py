"""The report at the end of a crawl (REP_REPORT)."""
