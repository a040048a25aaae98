"""Is the result equal and faster: inputs that run, outputs compared, models timed."""
