"""Pages of floor 2, one module a noun: get the tenant, check the form, call one verb, render."""
