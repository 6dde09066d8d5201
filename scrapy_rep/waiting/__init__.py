"""Everything about requests whose robots.txt is not known yet."""
