"""Pictures of digits: how they are kept, drawn, made small and recognised."""
