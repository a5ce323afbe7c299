"""Pictures of digits: format, drawing, shrinking, recognition."""
