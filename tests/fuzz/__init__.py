"""Fuzzing: damaged input of every kind. An AleboError is the right answer to it; any other exception is a finding."""
