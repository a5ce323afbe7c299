"""Results for people: tables, pictures, one page. Knows nothing of how they came about."""
