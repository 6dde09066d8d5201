"""Evidence that others can check after a crawl (REP_ARCHIVE, REP_REFUSALS, REP_EVIDENCE)."""
