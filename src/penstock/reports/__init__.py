"""Text, tables, charts, pictures and HTML from the data of runs."""
