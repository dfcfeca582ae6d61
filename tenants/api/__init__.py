"""The REST API of floor 1: same nouns, verbs and codes as the pages."""
