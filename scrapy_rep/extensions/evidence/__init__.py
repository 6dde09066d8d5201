"""What is kept of a crawl for others to check: REP_ARCHIVE, REP_REFUSALS, REP_EVIDENCE; and what reads an archive."""
