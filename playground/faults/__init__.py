"""What can be broken, how it is mended again: by command, in drills and in tests."""
