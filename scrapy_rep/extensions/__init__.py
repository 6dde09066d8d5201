"""What listens to the signals: each file is one feature that a setting switches on, or part of the log."""
