"""What every page is made of: the parts, the status words, the forms, the refusals, fragments."""
