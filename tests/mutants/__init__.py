"""Mistakes put into the source by hand or by a tool, to see whether the tests notice them. `make mutants` runs both."""
