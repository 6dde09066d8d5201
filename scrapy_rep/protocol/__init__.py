"""The Robots Exclusion Protocol: values and functions. They use the standard library alone, without clock or I/O."""
