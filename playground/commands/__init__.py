"""The command line `python -m playground`: one module for each noun."""
