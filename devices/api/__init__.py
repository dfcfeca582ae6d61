"""The REST API of floor 2: same nouns, verbs and codes as the pages."""
