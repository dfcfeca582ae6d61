"""Template tags of floor 2."""
