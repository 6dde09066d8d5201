"""The Robots Exclusion Protocol itself: the standard library alone, no clock, no I/O; a file a section of RFC 9309."""
